"""Nested Laplace approximation of log p(y | m): the hyperparameters are summed out around all their modes.

Up to two hyperparameters by a grid around each mode; more by one-dimensional integrals along the principal axes. Grids
of several modes share out what they have in common.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.latent.inner import Inner, InnerLaplace, Mode

_STEP = 0.05  # of differences, in units of the hyperparameters
_GAIN = 2e-3  # nats that another step has to promise
_MAX_STEPS = 40
_HALVINGS = 10
_LONGEST = 3.0
_FLATTEST = 0.05  # second derivative of a hyperparameter that the data tell nothing of
_DIFFERENT = 0.5  # of the logarithm of second derivatives
_GRID_TOLERANCE = 1e-5  # of the squared Newton decrement; the weights of the grid do not need more
_SPACING = 1.4  # of the grid, in standard deviations
_FLOOR = 4.0  # nats below the mode where the grid ends
_MAX_POINTS = 400  # of one grid
_SAME = 0.7  # standard deviations between starts that have led to the same mode
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
    modes = _modes(inner, known)
    if not modes:
        return Integrated(-math.inf, (), (), 0.0)
    grids = [_grid(inner, modes, number) for number in range(len(modes))]
    masses, corrections, nodes = [], [], []
    for mode, grid in zip(modes, grids, strict=True):
        correction = 0.0
        if corrected:
            there = inner.evaluate(mode.place, mode.mode)
            correction = inner.correction(mode.place, there) if there.log_integrand > -math.inf else 0.0
            if not math.isfinite(correction):
                correction = 0.0
        corrections.append(correction)
        masses.append(_log_sum([node.log_weight for node in grid]) + correction)
        nodes += [node._replace(log_weight=node.log_weight + correction) for node in grid]
    total = _log_sum(masses)
    if not math.isfinite(total):
        return Integrated(-math.inf, (), (), 0.0)
    nodes = [node._replace(log_weight=node.log_weight - total) for node in nodes]
    average = sum(math.exp(mass - total) * c for mass, c in zip(masses, corrections, strict=True))
    return Integrated(total, tuple(modes), tuple(nodes), average)


def starts_of(inner: InnerLaplace) -> list[FloatArray]:
    """Every component present and nearly absent; with many components not all combinations."""
    fields = [component.field for component in inner.layout.placed]
    rest = []
    if inner.has_dispersion:
        rest.append(_dispersion_start(inner))
    if inner.integrates_slopes:
        rest.append(0.0)
    choices: list[tuple[tuple[float, ...], ...]]
    if len(fields) <= 2:
        choices = list(itertools.product(*(field.starts for field in fields)))
    else:
        present, absent = [field.starts[0] for field in fields], [field.starts[-1] for field in fields]
        alone = [(*absent[:j], field.starts[0], *absent[j + 1 :]) for j, field in enumerate(fields)]
        choices = [tuple(present), tuple(absent), *alone]
    return [np.array([*itertools.chain(*choice), *rest], dtype=np.float64) for choice in choices]


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
    if known and all(len(mode.place) == size for mode in known):
        for mode in known:
            _add(found, _climb(inner, mode.place, _fitting(inner, mode.mode), mode.axes))
        # What columns explain, a component need not: it may be nearly absent here and not in the similar model.
        highest = max((mode.log_integrand for mode in found), default=-math.inf)
        for start in starts_of(inner)[1:]:
            there = inner.evaluate(start, _fitting(inner, known[0].mode), _GRID_TOLERANCE)
            if there.log_integrand > highest - _NEGLIGIBLE:
                _add(found, _climb(inner, start, there.mode, None))
    else:
        beginning = inner.start()
        for start in starts_of(inner):
            _add(found, _climb(inner, start, beginning, None))
    if not found:
        return []
    best = max(mode.log_integrand for mode in found)
    return [mode for mode in found if mode.log_integrand > best - _NEGLIGIBLE]


def _fitting(inner: InnerLaplace, mode: Mode) -> Mode:
    """The mode of a model with other columns as a start: its fields, and its intercept."""
    size = len(inner.border)
    if len(mode.border) == size:
        return mode
    border = np.zeros(size)
    border[0] = mode.border[0]
    n_beside = inner.layout.border.shape[1]
    if n_beside:
        border[size - n_beside :] = mode.border[len(mode.border) - n_beside :]
    return Mode(mode.field, border)


def _add(found: list[OuterMode], mode: OuterMode | None) -> None:
    if mode is None:
        return
    for other in found:
        if min(_distance(other, mode.place), _distance(mode, other.place)) < _SAME:
            return
    found.append(mode)


def _distance(mode: OuterMode, place: FloatArray) -> float:
    return float(np.linalg.norm(np.linalg.solve(mode.axes, place - mode.place)))


def _climb(inner: InnerLaplace, place: FloatArray, mode: Mode, axes: FloatArray | None) -> OuterMode | None:
    """Quasi-Newton steps with derivatives by differences; `axes` are known from a similar model."""
    there = inner.evaluate(place, mode)
    if there.log_integrand == -math.inf:
        return None
    gradient, diagonal = _slopes(inner, place, there)
    covariance = np.diag(1.0 / np.clip(-diagonal, _FLATTEST, None)) if axes is None else axes @ axes.T
    for _ in range(_MAX_STEPS):
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
        place, there, before = place + step, further, gradient
        gradient, diagonal = _slopes(inner, place, there)
        covariance = _updated(covariance, step, before - gradient)
    if axes is None or _far(axes, diagonal):
        axes = _axes(inner, place, there, diagonal)
    return OuterMode(place, axes, there.mode, there.log_integrand)


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


def _slopes(inner: InnerLaplace, place: FloatArray, there: Inner) -> tuple[FloatArray, FloatArray]:
    """First derivatives and second ones of each hyperparameter alone."""
    gradient, diagonal = np.empty(len(place)), np.empty(len(place))
    for j in range(len(place)):
        step = np.zeros(len(place))
        step[j] = _STEP
        up = inner.evaluate(place + step, there.mode).log_integrand
        down = inner.evaluate(place - step, there.mode).log_integrand
        gradient[j] = (up - down) / (2.0 * _STEP)
        diagonal[j] = (up - 2.0 * there.log_integrand + down) / _STEP**2
    return gradient, diagonal


def _axes(inner: InnerLaplace, place: FloatArray, there: Inner, diagonal: FloatArray) -> FloatArray:
    """Principal axes of the negative Hessian; where it is not positive, as wide as a hyperparameter can be."""
    size = len(place)
    hessian = np.diag(diagonal)
    for j, k in itertools.combinations(range(size), 2):
        values = []
        for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            step = np.zeros(size)
            step[j], step[k] = one * _STEP, other * _STEP
            values.append(inner.evaluate(place + step, there.mode).log_integrand)
        hessian[j, k] = hessian[k, j] = (values[0] - values[1] - values[2] + values[3]) / (4.0 * _STEP**2)
    if not np.isfinite(hessian).all():
        return np.eye(size)
    curvature, axes = np.linalg.eigh(-hessian)
    return np.asarray(axes / np.sqrt(np.clip(np.abs(curvature), _FLATTEST, None)))


def _grid(inner: InnerLaplace, modes: Sequence[OuterMode], number: int) -> list[Node]:
    """Nodes around a mode whose weights add up to its mass."""
    mode = modes[number]
    size = len(mode.place)
    if size == 0:
        return [Node(mode.place, mode.log_integrand, mode.mode)]
    volume = math.log(abs(np.linalg.det(mode.axes))) + size * math.log(_SPACING)
    if size <= 2:
        lattice = _flood(inner, modes, number)
        return [Node(place, value + volume, there) for place, value, there in lattice.values()]
    return _star(inner, modes, number, volume)


def _star(inner: InnerLaplace, modes: Sequence[OuterMode], number: int, volume: float) -> list[Node]:
    """Integrals along each axis, multiplied as if the axes did not depend on each other.

    What is left stands for the distribution: two points on each axis, as far out as it takes for all of them together
    to have its variances, each side with its own.
    """
    mode = modes[number]
    size = len(mode.place)
    mass, sides = mode.log_integrand + volume, []
    for j in range(size):
        line = {point[j]: value for point, (_, value, _) in _flood(inner, modes, number, axis=j).items()}
        mass += _log_sum(list(line.values())) - mode.log_integrand
        for direction in (-1, 1):
            half = [math.exp(value - line[0]) for z, value in line.items() if z * direction > 0]
            deviation = _SPACING * (1.0 + 2.0 * sum(half)) / math.sqrt(2.0 * math.pi)
            sides.append((j, direction, deviation))
    total = sum(deviation for _, _, deviation in sides)
    nodes = []
    for j, direction, deviation in sides:
        place = mode.place + direction * math.sqrt(size) * deviation * mode.axes[:, j]
        nodes.append(Node(place, mass + math.log(deviation / total), mode.mode))
    return nodes


Lattice = dict[tuple[int, ...], tuple[FloatArray, float, Mode]]


def _flood(inner: InnerLaplace, modes: Sequence[OuterMode], number: int, axis: int | None = None) -> Lattice:
    """Points of the lattice around a mode with the log integrand there, out to where it does not matter.

    Where grids of several modes meet, a point counts by the share of its own mode in the sum of all of them.
    """
    mode = modes[number]
    size = len(mode.place)
    origin = (0,) * size
    points: Lattice = {origin: (mode.place, mode.log_integrand + _log_share(modes, number, mode.place), mode.mode)}
    edge = [origin]
    while edge and len(points) < _MAX_POINTS:
        following = []
        for point in edge:
            for j in range(size) if axis is None else (axis,):
                for direction in (-1, 1):
                    neighbour = (*point[:j], point[j] + direction, *point[j + 1 :])
                    if neighbour in points:
                        continue
                    place = mode.place + mode.axes @ (_SPACING * np.array(neighbour, dtype=np.float64))
                    before = points.get((*point[:j], point[j] - direction, *point[j + 1 :]))
                    there = inner.evaluate(place, _continued(points[point][2], before), _GRID_TOLERANCE)
                    value = there.log_integrand + _log_share(modes, number, place)
                    points[neighbour] = (place, value, there.mode)
                    if value > mode.log_integrand - _FLOOR:
                        following.append(neighbour)
        edge = following
    return points


def _continued(mode: Mode, before: tuple[FloatArray, float, Mode] | None) -> Mode:
    """A start for the next point of a line: where the last two lead."""
    if before is None:
        return mode
    last = before[2]
    return Mode(2.0 * mode.field - last.field, 2.0 * mode.border - last.border)


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
