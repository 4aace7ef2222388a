"""Tables of HTML, those that sort and filter among them."""

from collections.abc import Sequence
from typing import NamedTuple

from bgnlm.page.html import Markup, join, tag

_DIGITS = 4
_LEAST = 0.0001  # probabilities below are not written with their digits


class Cell(NamedTuple):
    """What a cell shows, and the number it is sorted by, if it is one."""

    content: object
    value: float | None = None
    kind: str | None = None


def number_cell(value: float, text: str | None = None) -> Cell:
    """A cell with a number."""
    written = f"{value:.{_DIGITS}g}" if text is None else text
    return Cell(written.replace("-", "\N{MINUS SIGN}"), value)


def sortable(name: str, caption: str, headers: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell]]]) -> Markup:
    """A table; each row comes with a text to be found by, beside what it shows."""
    numeric = [bool(rows) and rows[0][1][k].value is not None for k in range(len(headers))]
    head = [
        tag("th", tag("button", text, type="button"), scope="col", class_="n" if is_number else None)
        for text, is_number in zip(headers, numeric, strict=True)
    ]
    body = [tag("tr", *map(_cell, cells), data_text=text) for text, cells in rows]
    box = f"filter-{name}"
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        data_filter=box,
        id=name,
        class_="by-class" if headers[0] == "class" else None,
    )
    return join(
        [
            tag(
                "div",
                tag("label", "Show rows with", for_=box),
                tag("input", type="search", id=box, autocomplete="off"),
                tag("output", id=f"{box}-count", for_=box),
                class_="filter",
            ),
            tag("div", table, class_="table", tabindex="0", role="region", aria_label=caption),
        ]
    )


def _cell(cell: Cell) -> Markup:
    if cell.value is None:
        return tag("td", cell.content, class_=cell.kind)
    return tag("td", cell.content, class_="n", data_value=repr(float(cell.value)))


def plain(caption: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """A table without buttons."""
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in headers)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    table = tag("table", tag("caption", caption), head, body, class_="plain")
    return tag("div", table, class_="table", tabindex="0", role="region", aria_label=caption)


def probability_cell(value: float) -> Cell:
    """A probability with its bar."""
    bar = tag("progress", value=f"{value:.4f}", max="1", aria_hidden="true")
    return Cell(join([f"{value:.4f}" if value >= _LEAST or value == 0.0 else f"< {_LEAST}", bar]), value)
