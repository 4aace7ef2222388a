"""Fractional polynomials (Royston and Altman 1997) as transforms, named in section 2.1 of the paper.

The powers are -2, -1, -0.5, 0, 0.5, 1, 2, 3, where 0 stands for the logarithm. A power that is used a second
time is multiplied by the logarithm: x^p log|x|. Whole powers keep the sign of x, the others are of |x|;
for p > 0 the value of x^p log|x| at zero is its limit, 0.
"""

from typing import Any

import numpy as np

from bgnlm._typing import AnyArray
from bgnlm.features.transform import Transform, add_to_library

_POWERS = {"m2": -2.0, "m1": -1.0, "m05": -0.5, "05": 0.5, "1": 1.0, "2": 2.0, "3": 3.0}


def _power(x: AnyArray, power: float) -> AnyArray:
    return np.asarray(x**power if power.is_integer() else np.abs(x) ** power)


def _slope(x: AnyArray, power: float) -> AnyArray:
    """Differentiate `_power`."""
    slope = power * np.abs(x) ** (power - 1)
    return np.asarray(slope if power % 2 == 1 else np.sign(x) * slope)


def _times_log(factor: AnyArray, x: AnyArray) -> AnyArray:
    """Multiply by log|x|, where 0 log 0 is 0."""
    return np.where((x == 0) & (factor == 0), 0.0, factor * np.log(np.abs(x)))


def _sympy(sp: Any, x: Any, power: float) -> Any:
    return (x if power.is_integer() else sp.Abs(x)) ** sp.Rational(power)


def _sympy_times_log(sp: Any, x: Any, power: float) -> Any:
    product = _sympy(sp, x, power) * sp.log(sp.Abs(x))
    return sp.Piecewise((0, sp.Eq(x, 0)), (product, True)) if power > 0 else product


def _latex(power: float) -> str:
    return rf"\left(#1\right)^{{{power:g}}}" if power.is_integer() else rf"\left|#1\right|^{{{power:g}}}"


def _single(suffix: str, power: float) -> Transform:
    return Transform(
        f"fp_{suffix}",
        lambda x: _power(x, power),
        derivative=lambda x: _slope(x, power),
        latex=_latex(power),
        sympy=lambda sp, x: _sympy(sp, x, power),
        smooth=power >= 1,
    )


def _repeated(suffix: str, power: float) -> Transform:
    return Transform(
        f"fp_{suffix}_log",
        lambda x: _times_log(_power(x, power), x),
        derivative=lambda x: _times_log(_slope(x, power), x) + _slope(x, power) / power,
        latex=_latex(power) + r" \log\left|#1\right|",
        sympy=lambda sp, x: _sympy_times_log(sp, x, power),
        smooth=power > 1,
    )


add_to_library(_single(suffix, power) for suffix, power in _POWERS.items() if power != 1)
add_to_library(_repeated(suffix, power) for suffix, power in _POWERS.items())
add_to_library(
    [
        Transform(
            "fp_0",
            lambda x: np.log(np.abs(x)),
            derivative=lambda x: 1 / x,
            latex=r"\log\left|#1\right|",
            sympy=lambda sp, x: sp.log(sp.Abs(x)),
        ),
        Transform(
            "fp_0_log",
            lambda x: np.log(np.abs(x)) ** 2,
            derivative=lambda x: 2 * np.log(np.abs(x)) / x,
            latex=r"\left(\log\left|#1\right|\right)^{2}",
            sympy=lambda sp, x: sp.log(sp.Abs(x)) ** 2,
        ),
    ]
)
