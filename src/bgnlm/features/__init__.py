"""The feature language: values, measures, transforms, evaluation, text (section 2.1 of the paper).

Features never see the response.

Examples
--------
>>> from bgnlm import features
>>> law = features.parse("cbrt_abs(period**2 * mass)")
>>> features.operation_count(law), features.depth(law)
(3, 3)
"""

from bgnlm.features.cut_points import learn_cut_points, weighted_quantile
from bgnlm.features.evaluate import Evaluator, reject_reason
from bgnlm.features.latex import to_latex
from bgnlm.features.measures import (
    FeatureCounts,
    count_features,
    depth,
    feature_counts,
    inputs_of,
    leaf_count,
    local_width,
    operation_count,
    transforms_of,
)
from bgnlm.features.new_data import TrainingRange, evaluate_on_new_data
from bgnlm.features.nodes import (
    Component,
    Feature,
    Input,
    Modification,
    Multiplication,
    Projection,
    modify,
    multiply,
    power,
    project,
    sort_key,
)
from bgnlm.features.parser import parse
from bgnlm.features.presets import PRESETS, resolve_transforms
from bgnlm.features.sympy_form import to_sympy
from bgnlm.features.text import render
from bgnlm.features.transform import Transform, get_transform, register, registered_transforms

__all__ = [
    "PRESETS",
    "Component",
    "Evaluator",
    "Feature",
    "FeatureCounts",
    "Input",
    "Modification",
    "Multiplication",
    "Projection",
    "TrainingRange",
    "Transform",
    "count_features",
    "depth",
    "evaluate_on_new_data",
    "feature_counts",
    "get_transform",
    "inputs_of",
    "leaf_count",
    "learn_cut_points",
    "local_width",
    "modify",
    "multiply",
    "operation_count",
    "parse",
    "power",
    "project",
    "register",
    "registered_transforms",
    "reject_reason",
    "render",
    "resolve_transforms",
    "sort_key",
    "to_latex",
    "to_sympy",
    "transforms_of",
    "weighted_quantile",
]
