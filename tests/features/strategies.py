"""Hypothesis strategies for features: any, any with known cut points, and tame ones with moderate numbers."""

import numpy as np
from hypothesis import strategies as st

from bgnlm.features import Feature, Input, Transform, modify, multiply, project, registered_transforms

NASTY_NAMES = [
    *["x", "x1", "_", "sin", "sigmoid", "above_median", "lambda", "None", "inf", "nan", "e5", "é", "ﬁ", "𝒳"],
    *[
        "1e5",
        "3",
        "-1",
        ".5",
        " a",
        "a ",
        "a b",
        "a\nb",
        "\t",
        "\x00",
        "\u200d",
        "\ud800",
        "😀",
        "`",
        "\\",
        "\\`",
    ],
    *["a\\", "x**2", "a*b", "a + b", "sin(x)", ",", "#2", "100%", "$x_1^2$", "{", "}", "a~b|c<d>&", "1e-3*x"],
]
USER_TRANSFORMS = (
    Transform("cube", lambda x: x**3, derivative=lambda x: 3 * x**2),
    Transform("größer_als", lambda x, t: x > t, quantile=0.9),
    Transform("x", np.cosh),
)


class Frame:
    """As much of a data frame as is needed: names of columns, and an array of numbers."""

    def __init__(self, values, columns):
        self.values, self.columns = values, list(columns)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


any_names = st.sampled_from(NASTY_NAMES) | st.text(min_size=1, max_size=6)
any_transforms = st.sampled_from(registered_transforms() + USER_TRANSFORMS)
any_numbers = (
    st.sampled_from([1.0, -1.0, 5e-324, -1.7976931348623157e308, 0.1, 1e22, 123456789.123456789])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-3, 3).map(float)
)

tame_names = st.sampled_from(["a", "b", "a b", "sin"])
tame_transforms = st.sampled_from(registered_transforms())
tame_numbers = st.floats(0.1, 3).map(lambda number: round(number, 3))


@st.composite
def _transformed(draw, operands, transforms, numbers, learnt):
    transform = draw(transforms)
    parameters = ()
    if transform.quantile is not None and (learnt or draw(st.booleans())):
        parameters = (draw(numbers),)
    chosen = draw(st.lists(operands, min_size=1, max_size=3, unique=True))
    if len(chosen) == 1:
        return modify(transform, chosen[0], parameters)
    weights = [draw(numbers.filter(bool)) for _ in chosen]
    return project(transform, chosen, weights, draw(st.just(0.0) | numbers), parameters)


def _features(names, transforms, numbers, *, learnt, max_leaves) -> st.SearchStrategy[Feature]:
    def larger(smaller):
        products = st.lists(smaller, min_size=2, max_size=3).map(lambda factors: multiply(*factors))
        return products | _transformed(smaller, transforms, numbers, learnt)

    return st.recursive(names.map(Input), larger, max_leaves=max_leaves)


any_features = _features(any_names, any_transforms, any_numbers, learnt=False, max_leaves=8)
learnt_features = _features(any_names, any_transforms, any_numbers, learnt=True, max_leaves=8)
tame_features = _features(tame_names, tame_transforms, tame_numbers, learnt=True, max_leaves=5)
