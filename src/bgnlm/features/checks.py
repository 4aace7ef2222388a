"""What the parts of a feature must be: small enough, with finite numbers and known transforms."""

from collections.abc import Iterable
from math import fsum, isfinite
from typing import Never

from bgnlm.errors import FeatureError
from bgnlm.features.transform import Transform

# Far beyond any search; these keep recursion and powers of powers within bounds.
MAX_NESTING = 100
MAX_LEAVES = 10_000


def not_a_feature(value: Never) -> FeatureError:
    """Error for the last case of a `match` over features; its type makes a forgotten case a type error."""
    return FeatureError(
        f"expected a feature, got {value!r}. Use parse(...) for a text such as 'x*sin(y)', or Input(...) for a column."
    )


def finite_numbers(values: Iterable[float], what: str) -> tuple[float, ...]:
    """Floats of numbers, without the sign of zero."""
    try:
        numbers = tuple(float(value) + 0.0 for value in values)  # + 0.0 makes -0.0 the same as 0.0
    except (TypeError, ValueError, OverflowError) as error:
        raise FeatureError(f"the {what} of a feature must be numbers, got {values!r}.") from error
    if not all(map(isfinite, numbers)):
        raise FeatureError(f"the {what} of a feature must be finite, got {numbers}.")
    return numbers


def exact_sum(weights: list[float]) -> float:
    """Add up without rounding on the way, so that the order does not matter."""
    try:
        return fsum(weights)
    except OverflowError:
        raise FeatureError(f"the weights of a feature must have a finite sum, got {weights}.") from None


def checked_parameters(transform: Transform, parameters: Iterable[float]) -> tuple[float, ...]:
    """Cut points as floats; only a threshold transform has one."""
    if not isinstance(transform, Transform):
        raise FeatureError(f"expected a Transform, got {transform!r}. Use get_transform(name) for a known one.")
    numbers = finite_numbers(parameters, "cut points")
    allowed = 0 if transform.quantile is None else 1
    if len(numbers) > allowed:
        raise FeatureError(f"transform {transform.name} takes {allowed} cut points, got {len(numbers)}: {numbers}.")
    return numbers


def check_size(leaves: int, nesting: int) -> None:
    """Refuse features beyond all use."""
    if leaves > MAX_LEAVES or nesting > MAX_NESTING:
        raise FeatureError(
            f"a feature may hold at most {MAX_LEAVES} inputs, nested at most {MAX_NESTING} deep; "
            f"this one would hold {leaves}, {nesting} deep. Use a smaller one."
        )
