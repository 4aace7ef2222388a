"""The transforms that come with bgnlm: the functions named in sections 2.1 and 4 of the paper, and more.

Functions that need scipy import it when they are called, which keeps the import of bgnlm light.
"""

from typing import Any

import numpy as np

from bgnlm._typing import AnyArray
from bgnlm.features.transform import Transform, add_to_library


def _expit(x: AnyArray) -> AnyArray:
    from scipy.special import expit

    return np.asarray(expit(x))


def _erf(x: AnyArray) -> AnyArray:
    from scipy.special import erf

    return np.asarray(erf(x))


def _normal_cdf(x: AnyArray) -> AnyArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def _normal_density(x: AnyArray) -> AnyArray:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def _abs_power(name: str, power: float, ratio: tuple[int, int], latex_power: str) -> Transform:
    """|x|^power, with the power also as an exact ratio for SymPy."""
    return Transform(
        name,
        lambda x: np.abs(x) ** power,
        derivative=lambda x: power * np.sign(x) * np.abs(x) ** (power - 1),
        latex=rf"\left|#1\right|^{{{latex_power}}}",
        sympy=lambda sp, x: sp.Abs(x) ** sp.Rational(*ratio),
        smooth=power > 1,
    )


def _indicator(sp: Any, condition: Any) -> Any:
    return sp.Piecewise((1, condition), (0, True))


_DEGREE = np.pi / 180

add_to_library(
    [
        Transform(
            "sigmoid",
            _expit,
            derivative=lambda x: 0.25 / np.cosh(x / 2) ** 2,
            latex=r"\sigma\left(#1\right)",
            sympy=lambda sp, x: 1 / (1 + sp.exp(-x)),
            smooth=True,
        ),
        Transform(
            "gauss",
            lambda x: np.exp(-(x**2)),
            derivative=lambda x: -2 * x * np.exp(-(x**2)),
            latex=r"\exp\left(-\left(#1\right)^{2}\right)",
            sympy=lambda sp, x: sp.exp(-(x**2)),
            smooth=True,
        ),
        Transform(
            "tanh",
            np.tanh,
            derivative=lambda x: 1 / np.cosh(x) ** 2,
            latex=r"\tanh\left(#1\right)",
            sympy=lambda sp, x: sp.tanh(x),
            smooth=True,
        ),
        Transform(
            "atan",
            np.arctan,
            derivative=lambda x: 1 / (1 + x**2),
            latex=r"\arctan\left(#1\right)",
            sympy=lambda sp, x: sp.atan(x),
            smooth=True,
        ),
        Transform(
            "sin",
            np.sin,
            derivative=np.cos,
            latex=r"\sin\left(#1\right)",
            sympy=lambda sp, x: sp.sin(x),
            smooth=True,
        ),
        Transform(
            "cos",
            np.cos,
            derivative=lambda x: -np.sin(x),
            latex=r"\cos\left(#1\right)",
            sympy=lambda sp, x: sp.cos(x),
            smooth=True,
        ),
        Transform(
            "sin_deg",
            lambda x: np.sin(_DEGREE * x),
            derivative=lambda x: _DEGREE * np.cos(_DEGREE * x),
            latex=r"\sin\left(\tfrac{\pi}{180}\left(#1\right)\right)",
            sympy=lambda sp, x: sp.sin(sp.pi / 180 * x),
            smooth=True,
        ),
        Transform(
            "cos_deg",
            lambda x: np.cos(_DEGREE * x),
            derivative=lambda x: -_DEGREE * np.sin(_DEGREE * x),
            latex=r"\cos\left(\tfrac{\pi}{180}\left(#1\right)\right)",
            sympy=lambda sp, x: sp.cos(sp.pi / 180 * x),
            smooth=True,
        ),
        Transform(
            "exp_neg_abs",
            lambda x: np.exp(-np.abs(x)),
            derivative=lambda x: -np.sign(x) * np.exp(-np.abs(x)),
            latex=r"\exp\left(-\left|#1\right|\right)",
            sympy=lambda sp, x: sp.exp(-sp.Abs(x)),
        ),
        Transform(
            "log1p_abs",
            lambda x: np.log1p(np.abs(x)),
            derivative=lambda x: np.sign(x) / (1 + np.abs(x)),
            latex=r"\log\left(\left|#1\right| + 1\right)",
            sympy=lambda sp, x: sp.log(sp.Abs(x) + 1),
        ),
        Transform(
            "cbrt_abs",
            lambda x: np.cbrt(np.abs(x)),
            derivative=lambda x: np.sign(x) / (3 * np.cbrt(x) ** 2),
            latex=r"\left|#1\right|^{1/3}",
            sympy=lambda sp, x: sp.Abs(x) ** sp.Rational(1, 3),
        ),
        _abs_power("sqrt_abs", 0.5, (1, 2), "1/2"),
        _abs_power("abs_pow_2_3", 2.3, (23, 10), "2.3"),
        _abs_power("abs_pow_5_2", 2.5, (5, 2), "5/2"),
        _abs_power("abs_pow_7_2", 3.5, (7, 2), "7/2"),
        Transform(
            "erf",
            _erf,
            derivative=lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)),
            latex=r"\operatorname{erf}\left(#1\right)",
            sympy=lambda sp, x: sp.erf(x),
            smooth=True,
        ),
        Transform(
            "relu",
            lambda x: np.maximum(0.0, x),
            derivative=lambda x: np.where(x > 0, 1.0, 0.0),
            latex=r"\max\left(0, #1\right)",
            sympy=lambda sp, x: sp.Max(0, x),
        ),
        Transform(
            "gelu",
            lambda x: x * _normal_cdf(x),
            derivative=lambda x: _normal_cdf(x) + x * _normal_density(x),
            latex=r"\operatorname{gelu}\left(#1\right)",
            sympy=lambda sp, x: x * sp.erfc(-x / sp.sqrt(2)) / 2,
            smooth=True,
        ),
        Transform(
            "inverse",
            lambda x: 1 / x,
            derivative=lambda x: -1 / x**2,
            latex=r"\frac{1}{#1}",
            sympy=lambda sp, x: sp.Integer(1) / x,
        ),
        Transform(
            "step",
            lambda x: x >= 1,
            latex=r"\mathbb{1}\left(#1 \geq 1\right)",
            sympy=lambda sp, x: _indicator(sp, x >= 1),
        ),
        Transform(
            "not_",
            lambda x: 1 - x,
            derivative=lambda x: -np.ones_like(x),
            latex=r"\left(1 - \left(#1\right)\right)",
            sympy=lambda sp, x: sp.Integer(1) - x,
            smooth=True,
        ),
        Transform(
            "hinge_up",
            lambda x, t: np.maximum(0.0, x - t),
            derivative=lambda x, t: np.where(x > t, 1.0, 0.0),
            latex=r"\max\left(0, #1 - #2\right)",
            sympy=lambda sp, x, t: sp.Max(0, x - t),
            quantile=0.5,
        ),
        Transform(
            "hinge_down",
            lambda x, t: np.maximum(0.0, t - x),
            derivative=lambda x, t: np.where(x < t, -1.0, 0.0),
            latex=r"\max\left(0, #2 - \left(#1\right)\right)",
            sympy=lambda sp, x, t: sp.Max(0, t - x),
            quantile=0.5,
        ),
        Transform(
            "above_median",
            lambda x, t: x > t,
            latex=r"\mathbb{1}\left(#1 > #2\right)",
            sympy=lambda sp, x, t: _indicator(sp, x > t),
            quantile=0.5,
        ),
        Transform(
            "below_q25",
            lambda x, t: x < t,
            latex=r"\mathbb{1}\left(#1 < #2\right)",
            sympy=lambda sp, x, t: _indicator(sp, x < t),
            quantile=0.25,
        ),
        Transform(
            "above_q75",
            lambda x, t: x > t,
            latex=r"\mathbb{1}\left(#1 > #2\right)",
            sympy=lambda sp, x, t: _indicator(sp, x > t),
            quantile=0.75,
        ),
    ]
)
