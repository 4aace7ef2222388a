"""Values of options: what argparse is given to turn texts into numbers and names."""

import argparse
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

DESCRIBED = argparse.RawDescriptionHelpFormatter
LABELLED = ("IID", "Grouped")
COMPONENTS = (*LABELLED, "AR1", "RW1", "OU")
_COLUMN = r"\s*(?:`(?P<{0}_quoted>[^`]+)`|(?P<{0}>[^`]*?))\s*"
_COMPONENT = re.compile(
    rf"\s*(?P<kind>\w+)\s*\({_COLUMN.format('column')}(?:,\s*slope\s*=(?P<sloped>){_COLUMN.format('slope')})?\)\s*"
)


class ComponentOption(NamedTuple):
    """A latent component as it was asked for: the class, the column of positions or groups, the column of slopes."""

    kind: str
    column: str
    slope: str | None


def whole_number(low: int) -> Callable[[str], int]:
    """A reader of whole numbers that are at least `low`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number; got {text!r}") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"must be {low} or more; got {value}")
        return value

    return read


def number(low: float, below: float = math.inf) -> Callable[[str], float]:
    """A reader of numbers that are at least `low` and less than `below`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number; got {text!r}") from None
        if not low <= value < below:
            limits = f"{low:g} or more" if below == math.inf else f"{low:g} or more and less than {below:g}"
            raise argparse.ArgumentTypeError(f"must be {limits}; got {text}")
        return value

    return read


def share(text: str) -> float:
    """Read a probability strictly between 0 and 1."""
    value = number(0.0, 1.0)(text)
    if value == 0.0:
        raise argparse.ArgumentTypeError("must be more than 0 and less than 1; got 0")
    return value


def jobs(text: str) -> int:
    """Read how many chains run at a time: 1 or more, or -1 for all cores."""
    value = whole_number(-1)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be 1 or more, or -1 for all cores; got 0")
    return value


def trials(text: str) -> int | str:
    """Read a number of trials, or the name of the column that has them."""
    try:
        int(text)
    except ValueError:
        return text
    return whole_number(1)(text)


def penalty(text: str) -> str | float:
    """Read the price of an operation: a name or a number."""
    if text in ("bic", "aic", "predict"):
        return text
    try:
        return number(0.0)(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be bic, aic, predict or a number of 0 or more; got {text!r}") from None


def component(text: str) -> ComponentOption:
    """Read a latent component: AR1(time), or Grouped(subject, slope=dose)."""
    found = _COMPONENT.fullmatch(text)
    if found is None or found["kind"] not in COMPONENTS:
        raise argparse.ArgumentTypeError(
            f"must be one of {', '.join(COMPONENTS)} with the name of a column, AR1(time) say, or Grouped(subject, "
            f"slope=dose); got {text!r}"
        )
    column = found["column_quoted"] or found["column"]
    slope = found["slope_quoted"] or found["slope"] if found["sloped"] is not None else None
    if not column or slope == "":
        raise argparse.ArgumentTypeError(f"must name a column, as in AR1(time); got {text!r}")
    if slope is not None and found["kind"] != "Grouped":
        raise argparse.ArgumentTypeError(f"has a slope, which is for Grouped; got {text!r}")
    return ComponentOption(found["kind"], column, slope)


def add_columns(parser: Any, flag: str, **settings: Any) -> None:
    """Add an option that takes one or more columns, or any texts."""
    parser.add_argument(flag, nargs="+", action="extend", default=[], **{"metavar": "COLUMN", **settings})


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that all commands on tables have."""
    add_columns(parser, "--na", metavar="TEXT", help="texts that stand for missing values, beside NA, NaN, null, None")
    parser.add_argument("--quiet", action="store_true", help="no notes and no progress; warnings and errors stay")
