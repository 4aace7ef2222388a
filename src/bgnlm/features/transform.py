"""The nonlinear functions g in G of section 2.1 of the paper, as values with a name, and their register."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any

from bgnlm._typing import AnyArray
from bgnlm.errors import FeatureError

Elementwise = Callable[..., AnyArray]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Transform:
    r"""One function g, known by its name: transforms of the same name are equal.

    Parameters
    ----------
    name
        A Python identifier; it stands for the transform in printed features.
    function
        Works on a whole float array at once. A threshold transform takes its cut point as second argument.
        Where the argument is missing (NaN) the feature is missing too, whatever the function returns.
    derivative
        Its derivative almost everywhere, with the same arguments; None if there is none of use.
    latex
        LaTeX with ``#1`` for the argument and ``#2`` for the cut point; None for ``\operatorname{name}``.
    sympy
        ``lambda sp, x: ...`` (``sp`` is the sympy module); None for an undefined SymPy function.
    smooth
        Whether the function is finite and differentiable everywhere.
    quantile
        For a threshold transform, the quantile of the training column that is its cut point.

    Examples
    --------
    >>> Transform("cube", lambda x: x**3, derivative=lambda x: 3 * x**2)
    Transform('cube')
    """

    name: str
    function: Elementwise
    derivative: Elementwise | None = None
    latex: str | None = None
    sympy: Callable[..., Any] | None = None
    smooth: bool = False
    quantile: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise FeatureError(
                f"the name of a transform must be a Python identifier, got {self.name!r}. "
                "Use letters, digits and underscores, such as 'cube' or 'log_10'."
            )
        if not callable(self.function):
            raise FeatureError(
                f"the function of transform {self.name} must be callable, got {self.function!r}. "
                f"Write for example Transform({self.name!r}, lambda x: x**3)."
            )
        if self.quantile is not None and not (_is_number(self.quantile) and 0 <= self.quantile <= 1):
            raise FeatureError(
                f"the quantile of transform {self.name} must be a number between 0 and 1, got {self.quantile!r}. "
                "Use 0.5 for the median."
            )

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Transform) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Transform({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The functions of the library are lambdas, which do not pickle: its entries travel by name.
        if _library.get(self.name) is self:
            return _library_entry, (self.name,)
        values = (
            self.name,
            self.function,
            self.derivative,
            self.latex,
            self.sympy,
            self.smooth,
            self.quantile,
        )
        return Transform, values

    def __copy__(self) -> "Transform":
        return self

    def __deepcopy__(self, memo: object) -> "Transform":
        return self


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


_library: dict[str, Transform] = {}
_registered: dict[str, Transform] = {}


def add_to_library(transforms: Iterable[Transform]) -> None:
    """Register transforms that come with bgnlm and are therefore pickled by name."""
    for transform in transforms:
        register(transform)
        _library[transform.name] = transform


def _library_entry(name: str) -> Transform:
    return _library[name]


def register(transform: Transform, *, replace: bool = False) -> Transform:
    """Make a transform known by its name, to `parse` and wherever names of transforms are given.

    A name that is taken is refused unless `replace` is true. Returns the transform.

    Examples
    --------
    >>> from bgnlm.features import Transform, parse, register
    >>> _ = register(Transform("cube_of_docs", lambda x: x**3), replace=True)
    >>> str(parse("cube_of_docs(x)"))
    'cube_of_docs(x)'
    """
    if not isinstance(transform, Transform):
        raise FeatureError(
            f"only a Transform can be registered, got {transform!r}. "
            "Write for example register(Transform('cube', lambda x: x**3))."
        )
    if transform.name in _registered and not replace:
        raise FeatureError(
            f"a transform named {transform.name!r} is registered already. "
            "Choose another name, or pass replace=True to put yours in its place."
        )
    _registered[transform.name] = transform
    return transform


def registered_transforms() -> tuple[Transform, ...]:
    """All registered transforms in the order of their registration.

    Examples
    --------
    >>> from bgnlm.features import registered_transforms
    >>> "tanh" in [transform.name for transform in registered_transforms()]
    True
    """
    return tuple(_registered.values())


def get_transform(name: str) -> Transform:
    """Find a registered transform by its name.

    Examples
    --------
    >>> from bgnlm.features import get_transform
    >>> get_transform("sin")
    Transform('sin')
    """
    if not isinstance(name, str):
        raise FeatureError(f"a transform is found by its name, got {name!r}. Write for example get_transform('sin').")
    if name in _registered:
        return _registered[name]
    raise FeatureError(unknown_transform(name, _registered))


def unknown_transform(name: object, known: Iterable[str]) -> str:
    """Say that a transform is not known and which names come close."""
    names = sorted(known)
    close = get_close_matches(str(name), names)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known transforms: {', '.join(names)}."
    return f"unknown transform {name!r}. {hint} Your own can be given as Transform({str(name)!r}, function)."
