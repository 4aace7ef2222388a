"""A feature as a tree: operations with what they are done to below them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bgnlm.features import Component, Feature, Input, Modification, Multiplication, Projection, parse
from bgnlm.features.text import with_exponents
from bgnlm.plot.canvas import BLUE, DARK, PLAIN, axes_for, feature_text, shown, title
from bgnlm.plot.fits import find_feature, one_search

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT, _CHARACTER = 0.8, 0.085  # inches of a level, and of a character
_LONGEST = 24


@dataclass(eq=False)
class Node:
    """A node to draw: its text, whether it is an input, what is below it, and the weights on the way there."""

    text: str
    is_input: bool = False
    children: list[Node] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0


def tree(model: Any, feature: int | str | Feature = 0, *, target: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the expression tree of a feature: inputs in boxes, operations in round ones, weights on edges.

    Parameters
    ----------
    model
        A fitted estimator; or a feature, or its text, by itself.
    feature
        Of a model, its place in `features_`, 0 the most probable; or its text.
    target, ax
        As for `inclusion`.

    Examples
    --------
    >>> import bgnlm
    >>> ax = bgnlm.plot.tree("sin(x*y)")
    >>> [text.get_text() for text in ax.texts]
    ['sin', '×', 'x', 'y']
    """
    words = ""
    if isinstance(model, str | Feature):
        chosen: Feature = parse(model) if isinstance(model, str) else model
    else:
        found = one_search(model, target)
        chosen, words = find_feature(found, feature), found.title
    root = node_of(chosen)
    width, height = _placed(root)
    text = f"{feature_text(chosen, 70)}{'; ' if words else ''}{words}"
    leaf = 0.35 + _CHARACTER * max(8, _longest(root))
    ax = axes_for(ax, (max(leaf * width, _CHARACTER * len(text) + 0.5, 3.0), _HEIGHT * (height + 1) + 0.5))
    _edges(ax, root)
    _nodes(ax, root)
    ax.set(xlim=(-0.6, width - 0.4), ylim=(-height - 0.5, 0.5))
    ax.set_axis_off()
    title(ax, text)
    return ax


def _longest(node: Node) -> int:
    """Return the number of characters of the longest text."""
    return max([len(node.text), *map(_longest, node.children)])


def node_of(feature: Feature) -> Node:
    """Make nodes of a feature; equal factors become a power."""
    match feature:
        case Input(name=name) | Component(name=name):
            return Node(shown(name, _LONGEST), is_input=True)
        case Modification(transform=transform, operand=operand, parameters=parameters):
            cut = "".join(f", {value:.3g}" for value in parameters)
            return Node(shown(transform.name, _LONGEST) + cut, children=[node_of(operand)])
        case Projection(transform=transform, operands=operands, parameters=parameters):
            cut = "".join(f", {value:.3g}" for value in parameters)
            head = Node(shown(transform.name, _LONGEST) + cut)
            constant = f"{feature.intercept:.3g} + " if feature.intercept else ""
            total = Node(f"{constant}Σ", children=[node_of(one) for one in operands])
            total.weights = [f"{weight:.3g}" for weight in feature.weights]
            head.children = [total]
            return head
        case Multiplication():
            factors = [_power(factor, exponent) for factor, exponent in with_exponents(feature)]
            return factors[0] if len(factors) == 1 else Node("×", children=factors)


def _power(factor: Feature, exponent: int) -> Node:
    node = node_of(factor)
    return node if exponent == 1 else Node(f"power {exponent}", children=[node])


def _placed(root: Node) -> tuple[int, int]:
    """Give leaves a place each, others the middle of what is below them; return the numbers of leaves and of levels."""
    n_leaves = deepest = 0

    def place(node: Node, level: int) -> None:
        nonlocal n_leaves, deepest
        node.y, deepest = -float(level), max(deepest, level)
        for child in node.children:
            place(child, level + 1)
        if node.children:
            node.x = 0.5 * (node.children[0].x + node.children[-1].x)
        else:
            node.x, n_leaves = float(n_leaves), n_leaves + 1

    place(root, 0)
    return n_leaves, deepest


def _edges(ax: Axes, node: Node) -> None:
    for number, child in enumerate(node.children):
        ax.plot([node.x, child.x], [node.y, child.y], color=DARK, linewidth=1.0, zorder=1)
        if node.weights:
            _weight(ax, node, child, node.weights[number])
        _edges(ax, child)


def _weight(ax: Axes, node: Node, child: Node, text: str) -> None:
    ax.text(
        0.45 * node.x + 0.55 * child.x, 0.45 * node.y + 0.55 * child.y, text, ha="center", va="center",
        fontsize="x-small", color=DARK, zorder=2,
        bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}, **PLAIN,
    )  # fmt: skip


def _nodes(ax: Axes, node: Node) -> None:
    box = {"boxstyle": "square,pad=0.35" if node.is_input else "round,pad=0.35,rounding_size=0.8", "linewidth": 1.0}
    box |= {"facecolor": "white", "edgecolor": DARK} if node.is_input else {"facecolor": "#DCEAF4", "edgecolor": BLUE}
    ax.text(node.x, node.y, node.text, ha="center", va="center", fontsize="small", zorder=3, bbox=box, **PLAIN)
    for child in node.children:
        _nodes(ax, child)
