"""HTML from values: every text is escaped, whatever it holds; what is markup already has a type of its own."""

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from typing import Any

_VOID = frozenset({"input", "img", "meta", "br"})
_BLANKS = {"\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}", "\t": "\N{RIGHTWARDS ARROW}"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def clean(text: str) -> str:
    """Write what cannot be printed (control characters, half characters, changes of direction) as escapes."""
    return "".join(c if c.isprintable() else _BLANKS.get(c) or c.encode("unicode_escape").decode("ascii") for c in text)


def escape(value: object) -> Markup:
    """Turn a value into HTML; markup stays as it is."""
    return value if isinstance(value, Markup) else Markup(html.escape(clean(str(value)), quote=True))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Put values one after the other."""
    return Markup(between.join(map(escape, parts)))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Make an element; `class_` and `for_` are `class` and `for`, underscores are hyphens, None leaves one out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    texts = [_attribute(key, value) for key, value in given.items() if value is not None and value is not False]
    start = f"<{' '.join([name, *texts])}>"
    return Markup(start if name in _VOID else f"{start}{join(children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    return key if value is True else f'{key}="{escape(value)}"'


def preformatted(text: str) -> Markup:
    """Code, in which lines stay lines."""
    return tag("pre", tag("code", join(text.split("\n"), "\n")), tabindex="0")


def embedded(document: Any) -> str:
    """JSON that can stand in a script element: no character that HTML or JavaScript would take for something else."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def digest_source(text: str) -> str:
    """The hash by which a Content-Security-Policy allows a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
