"""Formulas as MathML, which browsers typeset themselves, from the LaTeX that `bgnlm.features` writes.

Only the commands that appear there are known. Others, of a transform of one's own, stay as they are typed; no text
whatever is an error.
"""

import re
from typing import NamedTuple

from bgnlm.page.html import Markup, escape, join

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_SYMBOLS = {"\\sigma": "σ", "\\pi": "π", "\\Phi": "Φ", "\\phi": "φ", "\\alpha": "α", "\\beta": "β"}
_OPERATORS = {
    "\\cdot": "·",
    "\\times": "×",
    "\\geq": "≥",
    "\\leq": "≤",
    "\\ge": "≥",
    "\\le": "≤",
    "-": "−",
    "\\vert": "|",
}
_FUNCTIONS = frozenset(
    {"exp", "log", "ln", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "max", "min"}
)
_SPACES = frozenset({"\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad"})
_NAMES = frozenset({"\\operatorname", "\\mathrm", "\\mathbb", "\\text", "\\mathit"})
_SPECIAL = {
    "\\textbackslash": "\\",
    "\\textasciicircum": "^",
    "\\textasciitilde": "~",
    "\\textless": "<",
    "\\textgreater": ">",
    "\\textbar": "|",
}
_SPACED = '<mo form="infix" lspace="0.22em" rspace="0.22em">'
_BOLD = {"1": "𝟙"}


class _Item(NamedTuple):
    xml: Markup
    is_sign: bool = False
    is_relation: bool = False


def to_mathml(latex: str) -> Markup:
    """Typeset a formula in one piece."""
    return _math(_Reader(latex).row())


def in_pieces(latex: str) -> Markup:
    """Typeset an equation as several formulas, cut before plus and minus, so that a line can break there."""
    pieces: list[list[_Item]] = [[]]
    for item in _Reader(latex).row():
        if item.is_sign and pieces[-1]:
            pieces.append([])
            item = _Item(Markup(item.xml.replace("<mo>", _SPACED)))  # with space on both sides
        pieces[-1].append(item)
        if item.is_relation:
            pieces.append([])
    return join([_math(piece) for piece in pieces if piece], " ")


def _math(items: list[_Item]) -> Markup:
    return Markup(f"<math><mrow>{join(item.xml for item in items)}</mrow></math>")


def _element(name: str, text: str) -> Markup:
    return Markup(f"<{name}>{escape(text)}</{name}>")


class _Reader:
    """Reads LaTeX from left to right; what is not closed is closed by the end."""

    def __init__(self, latex: str) -> None:
        self._tokens = _TOKEN.findall(latex)
        self._place = 0

    def row(self, end: str = "") -> list[_Item]:
        """Items up to an end, which is taken away; signs and relations count only outside of brackets."""
        items: list[_Item] = []
        depth = 0
        while self._place < len(self._tokens):
            token = self._next()
            if token == end:
                break
            if token in "^_" and items:
                name = "msup" if token == "^" else "msub"
                items[-1] = _Item(Markup(f"<{name}>{items[-1].xml}{self._argument()}</{name}>"))
            elif not token.isspace():
                depth += (token == "(") - (token == ")")
                items.append(self._item(token, depth == 0))
        return items

    def _next(self) -> str:
        self._place += 1
        return str(self._tokens[self._place - 1])

    def _item(self, token: str, is_outside: bool) -> _Item:
        if token in "+-":
            return _Item(_element("mo", _OPERATORS.get(token, token)), is_sign=is_outside)
        if token == "=":
            return _Item(Markup('<mo form="infix">=</mo>'), is_relation=is_outside)
        return _Item(self._symbol(token))

    def _symbol(self, token: str) -> Markup:
        if token[0].isdigit():
            return _element("mn", token)
        if token == "{":
            return self._group("}")
        if token == "\\left":
            return self._fenced()
        if token in ("\\frac", "\\tfrac"):
            return Markup(f"<mfrac>{self._argument()}{self._argument()}</mfrac>")
        if token == "\\sqrt":
            return Markup(f"<msqrt>{self._argument()}</msqrt>")
        if token in _NAMES:
            return self._name(token)
        if token in _SPACES:
            return Markup('<mspace width="0.2em"></mspace>')
        if token in _SYMBOLS or token[1:] in _FUNCTIONS:
            return _element("mi", _SYMBOLS.get(token, token[1:]))
        if token in _OPERATORS or (len(token) == 1 and not token.isalpha()):
            return _element("mo", _OPERATORS.get(token, token))
        return _element("mi" if len(token) == 1 else "mtext", token)

    def _group(self, end: str) -> Markup:
        return Markup(f"<mrow>{join(item.xml for item in self.row(end))}</mrow>")

    def _argument(self) -> Markup:
        while self._place < len(self._tokens) and self._tokens[self._place].isspace():
            self._place += 1
        return self._symbol(self._next()) if self._place < len(self._tokens) else Markup("<mrow></mrow>")

    def _fenced(self) -> Markup:
        opening = self._next() if self._place < len(self._tokens) else "."
        inside = self._group("\\right")
        closing = self._next() if self._place < len(self._tokens) else "."
        return Markup(f"<mrow>{_fence(opening, 'prefix')}{inside}{_fence(closing, 'postfix')}</mrow>")

    def _name(self, command: str) -> Markup:
        """A name letter by letter: what is a formula elsewhere is none here."""
        if self._place < len(self._tokens) and self._tokens[self._place] == "{":
            self._place += 1
        letters, depth = [], 0
        while self._place < len(self._tokens):
            token = self._next()
            if token == "}" and not depth:
                break
            depth += (token == "{") - (token == "}")
            if token not in "{}":
                letters.append(_SPECIAL.get(token, token[1:] if token[0] == "\\" and len(token) == 2 else token))
        text = "".join(letters)
        if command == "\\mathbb":
            return _element("mn", _BOLD.get(text, text))
        if len(text) == 1:  # letters alone would be slanted
            return Markup(f'<mi mathvariant="normal">{escape(text)}</mi>')
        return _element("mi", text)  # no mtext, which counts as space: signs beside it would lose theirs


def _fence(delimiter: str, form: str) -> Markup:
    if delimiter == ".":
        return Markup("")
    text = {"\\{": "{", "\\}": "}", "\\lvert": "|", "\\rvert": "|"}.get(delimiter, delimiter)
    return Markup(f'<mo form="{form}" fence="true">{escape(text)}</mo>')
