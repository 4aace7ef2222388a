"""Sets of transforms under one name: the sets G of the paper's examples and of the models it covers."""

from collections.abc import Iterable

# Importing these two registers what comes with bgnlm.
import bgnlm.features.fractional_polynomials
import bgnlm.features.library  # noqa: F401
from bgnlm.errors import FeatureError, SettingError
from bgnlm.features.transform import Transform, get_transform, registered_transforms

PRESETS: dict[str, tuple[str, ...]] = {
    "default": ("sigmoid", "gauss", "sin", "log1p_abs", "cbrt_abs", "sqrt_abs", "inverse", "hinge_up"),
    "classification": ("gauss", "tanh", "atan", "sin"),
    "abalone": ("sigmoid", "exp_neg_abs", "log1p_abs", "cbrt_abs", "abs_pow_5_2", "abs_pow_7_2"),
    "kepler-g1": ("sigmoid", "sin_deg", "cos_deg", "tanh", "atan", "cbrt_abs"),
    "kepler-g2": (
        "sigmoid",
        "sin_deg",
        "exp_neg_abs",
        "log1p_abs",
        "cbrt_abs",
        "abs_pow_2_3",
        "abs_pow_7_2",
    ),
    "neural": ("sigmoid",),
    "splines": ("hinge_up", "hinge_down"),
    "trees": ("above_median", "below_q25", "above_q75"),
    "fractional-polynomials": tuple(t.name for t in registered_transforms() if t.name.startswith("fp_")),
    "logic": ("not_",),
    "none": (),
}
"""Names of transforms by the name of their set.

Examples
--------
>>> from bgnlm.features import PRESETS
>>> PRESETS["classification"]
('gauss', 'tanh', 'atan', 'sin')
"""


def resolve_transforms(spec: str | Iterable[str | Transform]) -> tuple[Transform, ...]:
    """Find the transforms meant by a preset's name, or by a list of names and `Transform` objects.

    Examples
    --------
    >>> from bgnlm.features import resolve_transforms
    >>> [transform.name for transform in resolve_transforms(["sin", "tanh"])]
    ['sin', 'tanh']
    """
    transforms = tuple(map(_resolve_one, _entries(spec)))
    names = [transform.name for transform in transforms]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingError(f"transforms must have different names, got twice: {', '.join(twice)}. Leave one out.")
    return transforms


def _entries(spec: str | Iterable[str | Transform]) -> Iterable[str | Transform]:
    if isinstance(spec, str):
        if spec not in PRESETS:
            raise SettingError(
                f"transforms must be one of {', '.join(map(repr, PRESETS))}, or a list of transforms, "
                f"got {spec!r}. For a single transform write [{spec!r}]."
            )
        return PRESETS[spec]
    if isinstance(spec, Transform) or not isinstance(spec, Iterable):
        raise SettingError(f"transforms must be a preset's name or a list, got {spec!r}. Write [{spec!r}].")
    return spec


def _resolve_one(entry: str | Transform) -> Transform:
    if isinstance(entry, Transform):
        return entry
    if not isinstance(entry, str):
        raise SettingError(
            f"an entry of transforms must be a name or a Transform, got {entry!r}. "
            "A function of your own is given as Transform('its_name', function)."
        )
    try:
        return get_transform(entry)
    except FeatureError as error:
        raise SettingError(str(error)) from None
