"""How complex a feature is, and how many features there are: section 2.1 and Table 1 of the paper.

Where the paper's numbers differ from its definitions:

* Table 1 prints 3 operations for u(x + u(x) + x²); by the definition (and its twin v(...)) there are 5.
* The sum in q*_d for even d must run over t <= s, not t < s, to give the printed numbers.
* Without multiplications q_3 is printed as 8176; the formula gives 2 (2^15 - 1) - 14 = 65520.
* q_3 = 68719476740 counts constructions. It takes x · x³ and x² · x² for two features, and
  subtracts the product x² from the transforms; the number of distinct features is 68719476738.
"""

from math import comb
from typing import NamedTuple

from bgnlm._validation import check_count
from bgnlm.errors import SettingError
from bgnlm.features.checks import not_a_feature
from bgnlm.features.nodes import (
    Component,
    Feature,
    Input,
    Modification,
    Multiplication,
    Projection,
    check_features,
    sort_key,
)
from bgnlm.features.transform import Transform

# 2^q with more features than this would not fit into memory in any useful sense.
_MAX_BITS = 10_000_000


def depth(feature: Feature) -> int:
    """d: one more than the deepest operand; for a product, one more than the sum over both operands.

    Examples
    --------
    >>> from bgnlm.features import depth, parse
    >>> depth(parse("x")), depth(parse("sin(x*y)"))
    (0, 2)
    """
    check_features(feature)
    return feature._depth


def local_width(feature: Feature) -> int:
    """lw: the number of features that the last operation put together.

    Examples
    --------
    >>> from bgnlm.features import local_width, parse
    >>> local_width(parse("x*y*z")), local_width(parse("sin(x + y + z)"))
    (2, 3)
    """
    match feature:
        case Input() | Component() | Modification():
            return 1
        case Multiplication():
            return 2
        case Projection(operands=operands):
            return len(operands)
        case _:
            raise not_a_feature(feature)


def operation_count(feature: Feature) -> int:
    """oc: additions, multiplications and transforms; weights and the intercept do not count.

    Examples
    --------
    >>> from bgnlm.features import operation_count, parse
    >>> operation_count(parse("x")), operation_count(parse("sin(0.5 + x - 2*y)"))
    (0, 2)
    """
    operations: int = sort_key(feature)[0]
    return operations


def additional_weights(feature: Feature) -> int:
    """Number of weights inside projections beyond the first of each; 0 if there is no projection."""
    match feature:
        case Input() | Component():
            return 0
        case Modification(operand=operand):
            return additional_weights(operand)
        case Multiplication(factors=parts):
            return sum(map(additional_weights, parts))
        case Projection(operands=parts):
            return len(parts) - 1 + sum(map(additional_weights, parts))
        case _:
            raise not_a_feature(feature)


def weight_count(feature: Feature) -> int:
    """Number of weights inside projections, intercepts included."""
    match feature:
        case Input() | Component():
            return 0
        case Modification(operand=operand):
            return weight_count(operand)
        case Multiplication(factors=parts):
            return sum(map(weight_count, parts))
        case Projection(operands=parts):
            return 1 + len(parts) + sum(map(weight_count, parts))
        case _:
            raise not_a_feature(feature)


def leaf_count(feature: Feature) -> int:
    """Count the inputs in a feature, each as often as it occurs.

    Examples
    --------
    >>> from bgnlm.features import leaf_count, parse
    >>> leaf_count(parse("sin(x)*x*y"))
    3
    """
    check_features(feature)
    return feature._leaves


def inputs_of(feature: Feature) -> frozenset[str]:
    """Names of the inputs that a feature uses.

    Examples
    --------
    >>> from bgnlm.features import inputs_of, parse
    >>> sorted(inputs_of(parse("sin(x)*x*y")))
    ['x', 'y']
    """
    match feature:
        case Input(name=name):
            return frozenset((name,))
        case Component():
            return frozenset()
        case Modification(operand=operand):
            return inputs_of(operand)
        case Multiplication(factors=parts) | Projection(operands=parts):
            return frozenset().union(*map(inputs_of, parts))
        case _:
            raise not_a_feature(feature)


def transforms_of(feature: Feature) -> tuple[Transform, ...]:
    """Transforms that a feature uses, as often as it does.

    Examples
    --------
    >>> from bgnlm.features import parse, transforms_of
    >>> transforms_of(parse("sin(tanh(x)*y)"))
    (Transform('sin'), Transform('tanh'))
    """
    match feature:
        case Input() | Component():
            return ()
        case Modification(transform=transform, operand=operand):
            return (transform, *transforms_of(operand))
        case Multiplication(factors=parts):
            return tuple(transform for part in parts for transform in transforms_of(part))
        case Projection(transform=transform, operands=parts):
            return (transform, *(inner for part in parts for inner in transforms_of(part)))
        case _:
            raise not_a_feature(feature)


class FeatureCounts(NamedTuple):
    """Numbers of features of one depth by their last operation: q^p and q^* of the paper (and the inputs).

    Examples
    --------
    >>> from bgnlm.features import FeatureCounts, feature_counts
    >>> counts = feature_counts(1, n_inputs=2, n_transforms=1)
    >>> counts[1] == FeatureCounts(inputs=0, transforms=3, products=3)
    True
    >>> counts[1].total
    6
    """

    inputs: int
    transforms: int
    products: int

    @property
    def total(self) -> int:
        """q_d."""
        return sum(self)


def count_features(
    depth: int, n_inputs: int, n_transforms: int, *, multiplications: bool = True, distinct: bool = False
) -> int:
    """Count the features of exactly this depth, weights aside: q_d of the paper.

    With `distinct` every feature counts once, however it can be constructed.

    Examples
    --------
    >>> from bgnlm.features import count_features
    >>> count_features(1, n_inputs=2, n_transforms=1), count_features(2, n_inputs=1, n_transforms=2)
    (6, 31)
    """
    counts = feature_counts(depth, n_inputs, n_transforms, multiplications=multiplications, distinct=distinct)
    return counts[depth].total


def feature_counts(
    max_depth: int, n_inputs: int, n_transforms: int, *, multiplications: bool = True, distinct: bool = False
) -> list[FeatureCounts]:
    """Count the features of each depth from 0 to `max_depth` by their last operation.

    Examples
    --------
    >>> from bgnlm.features import feature_counts
    >>> [counts.total for counts in feature_counts(2, n_inputs=1, n_transforms=2)]
    [1, 3, 31]
    """
    max_depth = check_count(max_depth, "depth")
    n_inputs, n_transforms = check_count(n_inputs, "n_inputs"), check_count(n_transforms, "n_transforms")
    counts = [FeatureCounts(n_inputs, 0, 0)]
    for depth in range(1, max_depth + 1):
        transforms = _count_transforms(counts, n_transforms, distinct)
        count_products = _count_distinct_products if distinct else _count_constructed_products
        products = count_products(counts, depth) if multiplications else 0
        counts.append(FeatureCounts(0, transforms, products))
    return counts


def _count_transforms(shallower: list[FeatureCounts], n_transforms: int, distinct: bool) -> int:
    """q^p_d: every transform of every sum, without those that are less deep."""
    n_operands = sum(count.total for count in shallower)
    if n_operands > _MAX_BITS:
        raise SettingError(
            f"at depth {len(shallower)} the count has more than {_MAX_BITS} bits. Ask for a smaller depth."
        )
    less_deep = sum(count.transforms for count in shallower)
    if not distinct:  # as printed, products of depth below d - 1 are subtracted too
        less_deep += sum(count.products for count in shallower[:-1])
    return n_transforms * ((1 << n_operands) - 1) - less_deep


def _count_constructed_products(shallower: list[FeatureCounts], depth: int) -> int:
    """q^*_d: unordered pairs of features whose depths add up to d - 1."""
    total = [count.total for count in shallower]
    pairs = sum(total[t] * total[depth - 1 - t] for t in range(depth // 2))
    return pairs + (comb(1 + total[depth // 2], 2) if depth % 2 else 0)


def _count_distinct_products(shallower: list[FeatureCounts], depth: int) -> int:
    """Multisets of two or more features that are no products; a factor of depth t takes t + 1 of d + 1."""
    ways = [1] + [0] * (depth + 1)
    for t, count in enumerate(shallower):
        kinds = count.inputs + count.transforms
        ways = [
            sum(_multisets(kinds, k) * ways[used - k * (t + 1)] for k in range(used // (t + 1) + 1))
            for used in range(depth + 2)
        ]
    return ways[depth + 1]


def _multisets(kinds: int, size: int) -> int:
    return comb(kinds + size - 1, size) if size else 1
