"""Nested Laplace approximation of log p(y | m): the hyperparameters are summed out around all their modes.

By a grid along the principal axes around each mode, which is coarser for many hyperparameters. Grids of several modes
share out what they have in common.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.latent.inner import Inner, InnerLaplace, Mode

_STEP = 0.05  # of differences, in units of the hyperparameters
_MOST_DIFFERENCED = 2  # hyperparameters whose derivatives are differences; of more, gradients take less time
_GAIN = 2e-3  # nats that another step has to promise
_LEFT = 0.02  # nats that the second derivatives at the end may promise
_MAX_STEPS = 40
_HALVINGS = 10
_LONGEST = 3.0
_FLATTEST = 0.05  # second derivative of a hyperparameter that the data tell nothing of
_DIFFERENT = 0.5  # of the logarithm of second derivatives
_GRID_TOLERANCE = 1e-5  # of the squared Newton decrement; the weights of the grid do not need more
_MOST_WITH_ALL = 2  # hyperparameters of which all points of the grid are nodes
_ABOVE = 0.5  # nats that a grid may be higher than its mode
_ATTEMPTS = 3
_REACH = 8.0  # nats below the mode that a node may be
_DISPERSIONS = (-1.0, 0.0, 1.0, 2.0, 3.5)  # tried where only hyperparameters of components are known, as logarithms
_MAX_POINTS = 400  # of one grid
_SAME = 0.7  # standard deviations between starts that have led to the same mode
_VARIES = 0.7  # nats of a correction that is not taken for the same around a mode
_FAR = 2.0  # standard deviations from a mode to which a parabola of corrections is trusted
_NEGLIGIBLE = 12.0  # nats below the best mode


class OuterMode(NamedTuple):
    """A mode over the hyperparameters.

    Attributes
    ----------
    place
        Hyperparameters.
    axes
        Columns: principal axes times the standard deviations along them.
    mode
        Fields and coefficients there.
    """

    place: FloatArray
    axes: FloatArray
    mode: Mode
    log_integrand: float


class Node(NamedTuple):
    """Hyperparameters with their posterior probability."""

    place: FloatArray
    log_weight: float
    mode: Mode


class Point(NamedTuple):
    """A point of a lattice: hyperparameters, what they count for, fields and coefficients."""

    place: FloatArray
    value: float
    mode: Mode


Points = dict[tuple[int, ...], Point]


class Mesh(NamedTuple):
    """Distance of the points of a lattice, in standard deviations, and nats below the mode where it ends."""

    spacing: float
    floor: float


class Integrated(NamedTuple):
    """A model with its hyperparameters summed out.

    Attributes
    ----------
    log_marginal
        log p(y | m), -inf where no mode was found.
    modes
        Over the hyperparameters; starts for similar models.
    nodes
        Of the grids, with normalised weights.
    correction
        Nats that the second order added, on average.
    """

    log_marginal: float
    modes: tuple[OuterMode, ...]
    nodes: tuple[Node, ...]
    correction: float


def integrate(inner: InnerLaplace, known: Sequence[OuterMode] = (), corrected: bool = True) -> Integrated:
    """Sum out the hyperparameters; from `known` modes of a similar model, or from all starts."""
    found = _modes(inner, known)
    if not found:
        return Integrated(-math.inf, (), (), 0.0)
    for _ in range(_ATTEMPTS):
        modes = _that_matter(found)
        floods = [_flood(inner, modes, number, _mesh(inner)) for number in range(len(modes))]
        tops = [max(points.values(), key=lambda point: point.value) for points in floods]
        # A grid that goes up further than its mode has come to another one.
        higher = [top for mode, top in zip(modes, tops, strict=True) if top.value > mode.log_integrand + _ABOVE]
        changes = [_add(found, _climb(inner, top.place, top.mode, None)) for top in higher]
        if not any(changes):
            break
    masses, corrections, nodes = [], [], []
    for mode, points in zip(modes, floods, strict=True):
        plain = _log_sum([point.value for point in points.values()])
        if corrected:
            points = _corrected(inner, mode, points)
        around = _nodes(inner, mode, points)
        masses.append(_log_sum([node.log_weight for node in around]))
        corrections.append(_log_sum([point.value for point in points.values()]) - plain)
        nodes += around
    total = _log_sum(masses)
    if not math.isfinite(total):
        return Integrated(-math.inf, (), (), 0.0)
    nodes = [node._replace(log_weight=node.log_weight - total) for node in nodes]
    average = sum(math.exp(mass - total) * c for mass, c in zip(masses, corrections, strict=True))
    return Integrated(total, tuple(found), tuple(nodes), average)


def _corrected(inner: InnerLaplace, mode: OuterMode, points: Points) -> Points:
    """Points of a lattice with what the Laplace approximation leaves out: as at the mode, or a parabola around it."""
    here, size = _correction(inner, mode.place, mode.mode), len(mode.place)
    slopes, curvatures = np.zeros(size), np.zeros(size)
    if abs(here) > _VARIES:
        for j, axis in enumerate(mode.axes.T):
            up, down = (_correction(inner, mode.place + side * axis, mode.mode, here) for side in (1.0, -1.0))
            slopes[j], curvatures[j] = 0.5 * (up - down), up - 2.0 * here + down
    corrected = {}
    for key, point in points.items():
        away = np.linalg.solve(mode.axes, point.place - mode.place).clip(-_FAR, _FAR) if slopes.any() else np.zeros(size)
        correction = here + float(away @ slopes + 0.5 * np.square(away) @ curvatures)
        corrected[key] = point._replace(value=point.value + correction)
    return corrected


def _correction(inner: InnerLaplace, place: FloatArray, mode: Mode, otherwise: float = 0.0) -> float:
    there = inner.evaluate(place, mode)
    if there.log_integrand == -math.inf:
        return otherwise
    found = inner.correction(place, there)
    return found if math.isfinite(found) else otherwise


def _that_matter(modes: Sequence[OuterMode]) -> list[OuterMode]:
    best = max(mode.log_integrand for mode in modes)
    return [mode for mode in modes if mode.log_integrand > best - _NEGLIGIBLE]


def starts_of(inner: InnerLaplace) -> list[FloatArray]:
    """Every component present and nearly absent; with many components not all combinations."""
    fields = [component.field for component in inner.layout.placed]
    # A process along the observations can be the noise, which is then nearly absent itself.
    rest: list[list[float]] = [[]]
    if inner.has_dispersion:
        rest = [[_dispersion_start(inner)], *([[inner.dispersion_prior.mode]] if fields else [])]
    if inner.integrates_slopes:
        rest = [[*before, 0.0] for before in rest]
    choices: list[tuple[tuple[float, ...], ...]]
    if len(fields) <= 2:
        choices = list(itertools.product(*(field.starts for field in fields)))
    else:
        present, absent = [field.starts[0] for field in fields], [field.starts[-1] for field in fields]
        alone = [(*absent[:j], field.starts[0], *absent[j + 1 :]) for j, field in enumerate(fields)]
        choices = [tuple(present), tuple(absent), *alone]
    return [np.array([*itertools.chain(*choice), *after], dtype=np.float64) for choice in choices for after in rest]


def _dispersion_start(inner: InnerLaplace) -> float:
    if inner.response.family.name != "gaussian":
        return 1.0
    residual = inner.y - inner.offset
    variance = float(np.average((residual - np.average(residual, weights=inner.weights)) ** 2, weights=inner.weights))
    return -math.log(max(variance, 1e-12)) + 0.7


def _modes(inner: InnerLaplace, known: Sequence[OuterMode]) -> list[OuterMode]:
    size = inner.n_hyperparameters
    found: list[OuterMode] = []
    if size == 0:
        place = np.empty(0)
        there = inner.evaluate(place, inner.start())
        if there.log_integrand == -math.inf:
            return []
        return [OuterMode(place, np.empty((0, 0)), there.mode, there.log_integrand)]
    known = [_widened(mode, size) for mode in known]
    if known and all(len(mode.place) == size for mode in known):
        nearby = sorted(known, key=lambda mode: -mode.log_integrand)
        _add(found, _climb(inner, nearby[0].place, _fitting(inner, nearby[0].mode), nearby[0].axes))
        # What columns explain, a component need not: it may be nearly absent here and not in the similar model.
        others: list[tuple[FloatArray, FloatArray | None]] = [(mode.place, mode.axes) for mode in nearby[1:]]
        others += [(start, None) for start in starts_of(inner)[1:]]
        beginning = _fitting(inner, nearby[0].mode)
        for start, axes in others:
            highest = max((mode.log_integrand for mode in found), default=-math.inf)
            if inner.has_dispersion and axes is not None:  # process and noise may change places: only climbing tells
                _add(found, _climb(inner, start, beginning, axes))
                continue
            place, there = _with_noise(inner, start, beginning)
            if there.log_integrand > highest - _NEGLIGIBLE:
                _add(found, _climb(inner, place, there.mode, axes))
    else:
        beginning = inner.start()
        for start in starts_of(inner):
            _add(found, _climb(inner, start, beginning, None))
    return found


def _widened(mode: OuterMode, size: int) -> OuterMode:
    """A mode of a model without columns for one with columns, where the precision of slopes is integrated out."""
    if len(mode.place) != size - 1:
        return mode
    axes = np.eye(size)
    axes[:-1, :-1] = mode.axes
    return mode._replace(place=np.append(mode.place, 0.0), axes=axes)


def _with_noise(inner: InnerLaplace, place: FloatArray, mode: Mode) -> tuple[FloatArray, Inner]:
    """A place and what is there; with the best of some dispersions, without which no place looks like anything."""
    if not inner.has_dispersion:
        return place, inner.evaluate(place, mode, _GRID_TOLERANCE)
    number, centre = sum(inner.sizes), _dispersion_start(inner)

    def best_of(values: Sequence[float]) -> tuple[FloatArray, Inner]:
        places = [np.concatenate([place[:number], [value], place[number + 1 :]]) for value in values]
        each = [(there, inner.evaluate(there, mode, _GRID_TOLERANCE)) for there in places]
        return max(each, key=lambda pair: pair[1].log_integrand)

    best = best_of((place[number], *(centre + shift for shift in _DISPERSIONS), inner.dispersion_prior.mode))
    for step in (0.75, 0.375, 0.1875):
        near = best_of([best[0][number] - step, best[0][number] + step])
        best = max(best, near, key=lambda pair: pair[1].log_integrand)
    return best


def _fitting(inner: InnerLaplace, mode: Mode) -> Mode:
    """The mode of a model with other columns as a start: its fields, and its intercept."""
    size = inner.n_border
    if len(mode.border) == size:
        return mode
    border = np.zeros(size)
    border[0] = mode.border[0]
    n_beside = inner.layout.n_beside
    if n_beside:
        border[size - n_beside :] = mode.border[len(mode.border) - n_beside :]
    return Mode(mode.field, border)


def _add(found: list[OuterMode], mode: OuterMode | None) -> bool:
    """Add a mode, or let it take the place of one that is the same and lower; tell if that makes a difference."""
    if mode is None:
        return False
    for number, other in enumerate(found):
        if min(_distance(other, mode.place), _distance(mode, other.place)) < _SAME:
            gain = mode.log_integrand - other.log_integrand
            if gain > 0.0:
                found[number] = mode
            return gain > _ABOVE
    found.append(mode)
    return True


def _distance(mode: OuterMode, place: FloatArray) -> float:
    return float(np.linalg.norm(np.linalg.solve(mode.axes, place - mode.place)))


def _climb(inner: InnerLaplace, place: FloatArray, mode: Mode, axes: FloatArray | None) -> OuterMode | None:
    """Go up to a mode; `axes` are known from a similar model. None where the integrand fails, there or next to it."""
    there = inner.evaluate(place, mode)
    if there.log_integrand == -math.inf:
        return None
    for _ in range(_ATTEMPTS):
        reached = _ascend(inner, place, there, axes)
        if reached is None:
            return None
        place, there, gradient, diagonal = reached
        if axes is None or diagonal is None or _far(axes, diagonal):
            axes = _axes(inner, place, there, diagonal)
        found = OuterMode(place, axes, there.mode, there.log_integrand)
        if 0.5 * float(np.square(axes.T @ gradient).sum()) < _LEFT:
            break
    return found


def _ascend(
    inner: InnerLaplace, place: FloatArray, there: Inner, axes: FloatArray | None
) -> tuple[FloatArray, Inner, FloatArray, FloatArray | None] | None:
    """Quasi-Newton steps: where they end, and the derivatives before the last one."""
    covariance = None if axes is None else axes @ axes.T
    step, before = np.zeros_like(place), np.zeros_like(place)
    for _ in range(_MAX_STEPS):
        gradient, diagonal = _slopes(inner, place, there)
        if not np.isfinite(gradient).all():
            return None
        if covariance is None and diagonal is None:
            axes = _axes(inner, place, there)
            covariance = axes @ axes.T
        elif covariance is None:
            covariance = np.diag(1.0 / np.clip(-diagonal, _FLATTEST, None))
        covariance, before = _updated(covariance, step, before - gradient), gradient
        step = covariance @ gradient
        if 0.5 * float(gradient @ step) < _GAIN:
            further = inner.evaluate(place + step, there.mode)
            if further.log_integrand > there.log_integrand:
                place, there = place + step, further
            break
        step *= min(1.0, _LONGEST / float(np.abs(step).max()))
        for _ in range(_HALVINGS):
            further = inner.evaluate(place + step, there.mode)
            if further.log_integrand > there.log_integrand:
                break
            step *= 0.4
        else:
            break
        place, there = place + step, further
    return place, there, gradient, diagonal


def _updated(covariance: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Update the inverse of the negative Hessian after a step (Broyden, Fletcher, Goldfarb, Shanno)."""
    along = float(step @ change)
    if not along > 1e-8 * float(step @ step):
        return covariance
    left = np.eye(len(step)) - np.outer(step, change) / along
    return np.asarray(left @ covariance @ left.T + np.outer(step, step) / along)


def _far(axes: FloatArray, diagonal: FloatArray) -> bool:
    """Whether second derivatives differ much from those that these axes stand for."""
    curvature = np.diag(np.linalg.inv(axes @ axes.T))
    return bool((np.abs(np.log(np.clip(-diagonal, _FLATTEST, None) / curvature)) > _DIFFERENT).any())


def _slopes(inner: InnerLaplace, place: FloatArray, there: Inner) -> tuple[FloatArray, FloatArray | None]:
    """First derivatives; and second ones of each hyperparameter alone, where both come from differences."""
    if len(place) > _MOST_DIFFERENCED:
        return inner.gradient(place, there), None
    gradient, diagonal = np.empty(len(place)), np.empty(len(place))
    for j, step in enumerate(_STEP * np.eye(len(place))):
        up = inner.evaluate(place + step, there.mode).log_integrand
        down = inner.evaluate(place - step, there.mode).log_integrand
        gradient[j] = (up - down) / (2.0 * _STEP)
        diagonal[j] = (up - 2.0 * there.log_integrand + down) / _STEP**2
    return gradient, diagonal


def _axes(inner: InnerLaplace, place: FloatArray, there: Inner, diagonal: FloatArray | None = None) -> FloatArray:
    """Principal axes of the negative Hessian; where it is not positive, as wide as a hyperparameter can be."""
    hessian = _hessian(inner, place, there) if diagonal is None else _mixed(inner, place, there, diagonal)
    if not np.isfinite(hessian).all():
        return np.eye(len(place))
    curvature, axes = np.linalg.eigh(-hessian)
    return np.asarray(axes / np.sqrt(np.clip(np.abs(curvature), _FLATTEST, None)))


def _hessian(inner: InnerLaplace, place: FloatArray, there: Inner) -> FloatArray:
    """Differences of gradients."""
    gradient = inner.gradient(place, there)
    hessian = np.full((len(place), len(place)), math.nan)
    for j, step in enumerate(_STEP * np.eye(len(place))):
        further = inner.evaluate(place + step, there.mode)
        if further.log_integrand > -math.inf:
            hessian[j] = (inner.gradient(place + step, further) - gradient) / _STEP
    return 0.5 * (hessian + hessian.T)


def _mixed(inner: InnerLaplace, place: FloatArray, there: Inner, diagonal: FloatArray) -> FloatArray:
    """Differences of values in two hyperparameters at a time."""
    size = len(place)
    hessian = np.diag(diagonal)
    for j, k in itertools.combinations(range(size), 2):
        values = []
        for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            step = np.zeros(size)
            step[j], step[k] = one * _STEP, other * _STEP
            values.append(inner.evaluate(place + step, there.mode).log_integrand)
        hessian[j, k] = hessian[k, j] = (values[0] - values[1] - values[2] + values[3]) / (4.0 * _STEP**2)
    return hessian


def _nodes(inner: InnerLaplace, mode: OuterMode, points: Points) -> list[Node]:
    """Nodes around a mode whose weights add up to its mass."""
    mesh = _mesh(inner)
    volume = math.log(abs(np.linalg.det(mode.axes))) + len(mode.place) * math.log(mesh.spacing)
    if len(mode.place) > _MOST_WITH_ALL:
        return _on_axes(inner, mode, points, mesh, volume)
    return [Node(point.place, point.value + volume, point.mode) for point in points.values()]


def _mesh(inner: InnerLaplace) -> Mesh:
    """As fine as it can be afforded, and finer where dispersions make posteriors skew."""
    if inner.n_hyperparameters == 1:
        return Mesh(0.9, 7.0)
    if inner.n_hyperparameters > _MOST_WITH_ALL:
        return Mesh(1.8, 3.2)
    return Mesh(1.0, 6.0) if inner.has_dispersion or inner.integrates_slopes else Mesh(1.4, 4.0)


def _on_axes(
    inner: InnerLaplace, mode: OuterMode, points: Points, mesh: Mesh, volume: float
) -> list[Node]:
    """Few nodes that stand for many points.

    Two on each axis, as far out as it takes for all of them together to have the variances, each side with its own.
    """
    size = len(mode.place)
    origin = points[(0,) * size].value
    nodes, deviations = [], []
    for j, direction in itertools.product(range(size), (-1, 1)):
        half = sum(
            math.exp(min(point.value - origin, 0.0))  # what is higher belongs to another mode
            for place, point in points.items()
            if direction * place[j] == sum(map(abs, place)) > 0
        )
        deviation = mesh.spacing * (1.0 + 2.0 * half) / math.sqrt(2.0 * math.pi)
        deviations.append(deviation)
        nodes.append(_within_reach(inner, mode, direction * math.sqrt(size) * deviation * mode.axes[:, j]))
    mass = _log_sum([point.value for point in points.values()]) + volume - math.log(sum(deviations))
    return [
        Node(place, mass + math.log(deviation), mode.mode) for place, deviation in zip(nodes, deviations, strict=True)
    ]


def _within_reach(inner: InnerLaplace, mode: OuterMode, step: FloatArray) -> FloatArray:
    """A place in some direction from a mode that is not much less probable."""
    for _ in range(_HALVINGS):
        there = inner.evaluate(mode.place + step, mode.mode, _GRID_TOLERANCE)
        if there.log_integrand > mode.log_integrand - _REACH:
            return np.asarray(mode.place + step)
        step = 0.6 * step
    return mode.place


def _flood(inner: InnerLaplace, modes: Sequence[OuterMode], number: int, mesh: Mesh) -> Points:
    """Points of the lattice around a mode with the log integrand there, out to where it does not matter.

    Where grids of several modes meet, a point counts by the share of its own mode in the sum of all of them.
    """
    mode = modes[number]
    origin = (0,) * len(mode.place)
    value = mode.log_integrand + _log_share(modes, number, mode.place)
    points = {origin: Point(mode.place, value, mode.mode)}
    edge = [origin]
    while edge and len(points) < _MAX_POINTS:
        following = []
        for point, j, direction in itertools.product(edge, range(len(origin)), (-1, 1)):
            neighbour = (*point[:j], point[j] + direction, *point[j + 1 :])
            if neighbour in points:
                continue
            place = mode.place + mode.axes @ (mesh.spacing * np.array(neighbour, dtype=np.float64))
            before = points.get((*point[:j], point[j] - direction, *point[j + 1 :]))
            there = inner.evaluate(place, _continued(points[point].mode, before), _GRID_TOLERANCE)
            value = there.log_integrand + _log_share(modes, number, place)
            points[neighbour] = Point(place, value, there.mode)
            if value > mode.log_integrand - mesh.floor:
                following.append(neighbour)
        edge = following
    return points


def _continued(mode: Mode, before: Point | None) -> Mode:
    """A start for the next point of a line: where the last two lead."""
    if before is None:
        return mode
    return Mode(2.0 * mode.field - before.mode.field, 2.0 * mode.border - before.mode.border)


def _log_share(modes: Sequence[OuterMode], number: int, place: FloatArray) -> float:
    """Log of the part of a point that belongs to one of several modes."""
    if len(modes) == 1:
        return 0.0
    heights = [
        mode.log_integrand - 0.5 * _distance(mode, place) ** 2  # normal densities, of equal height as the modes
        for mode in modes
    ]
    return heights[number] - _log_sum(heights)


def _log_sum(values: Sequence[float]) -> float:
    largest = max(values)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(sum(math.exp(value - largest) for value in values))
