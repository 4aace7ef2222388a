"""The words of the text form of features, and errors that point at the place in the text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from bgnlm.errors import FeatureError

_SYMBOLS = ("**", "^", "*", "+", "-", "(", ")", ",")
_NUMBER = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|[\\`ntr])")
_UNESCAPED = {"\\": "\\", "`": "`", "n": "\n", "t": "\t", "r": "\r"}
_SHOWN = 30  # characters of the text that an error shows on each side


class Token(NamedTuple):
    """A word of the text: its kind ("number", "name", "quoted", "symbol" or "end"), text and place."""

    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def error_at(text: str, position: int, message: str) -> FeatureError:
    """Build an error that shows the text with a caret below the place in question."""
    start = max(0, position - _SHOWN)
    shown = text[start : position + _SHOWN]
    line = "".join(character if character.isprintable() else " " for character in shown)
    caret = " " * (position - start) + "^"
    return FeatureError(f"cannot read the feature at position {position}: {message}\n  {line}\n  {caret}")


def tokenize(text: str) -> Iterator[Token]:
    """Split a text into tokens; the last one is of kind "end"."""
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        token, position = _next_token(text, position)
        yield token
    yield Token("end", "", len(text))


def _next_token(text: str, position: int) -> tuple[Token, int]:
    if text[position] == "`":
        return _quoted(text, position)
    if text[position].isidentifier():
        end = _identifier_end(text, position)
        return Token("name", text[position:end], position), end
    if number := _NUMBER.match(text, position):
        return Token("number", number.group(), position), number.end()
    for symbol in _SYMBOLS:
        if text.startswith(symbol, position):
            return Token("symbol", symbol, position), position + len(symbol)
    raise error_at(text, position, _advice(text[position]))


def _advice(character: str) -> str:
    if character == "/":
        return "there is no division. For x/y write x*inverse(y), for x/2 inside a transform 0.5*x."
    return f"unexpected character {character!r}. Put such a name between backticks: `a name`."


def _identifier_end(text: str, position: int) -> int:
    end = position + 1
    while end < len(text) and ("a" + text[end]).isidentifier():
        end += 1
    return end


def _quoted(text: str, start: int) -> tuple[Token, int]:
    parts, position = [], start + 1
    while position < len(text) and text[position] != "`":
        part, position = _character(text, position)
        parts.append(part)
    if position == len(text):
        raise error_at(text, start, "this backtick is not closed. End the name with another one.")
    if not parts:
        raise error_at(text, start, "the name between backticks is empty. Give the name of a column.")
    return Token("quoted", "".join(parts), start), position + 1


def _character(text: str, position: int) -> tuple[str, int]:
    """Read one character of a quoted name, which may be escaped."""
    if text[position] != "\\":
        return text[position], position + 1
    escape = _ESCAPE.match(text, position)
    if escape is None:
        message = r"unknown escape. Write \\ for a backslash, or \`, \n, \t, \r, \xNN, \uNNNN, \UNNNNNNNN."
        raise error_at(text, position, message)
    code = escape.group(1)
    return _UNESCAPED.get(code) or chr(int(code[1:], 16)), escape.end()
