"""Modes of the hyperparameters of a model: from several starts, by quasi-Newton steps."""

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
ROUGH_TOLERANCE = 1e-5  # of the squared Newton decrement; the weights of the grid do not need more
ABOVE = 0.5  # nats that a grid may be higher than its mode
_ATTEMPTS = 3
_DISPERSIONS = (-1.0, 0.0, 1.0, 2.0, 3.5)  # tried where only hyperparameters of components are known, as logarithms
_SAME = 0.7  # standard deviations between starts that have led to the same mode
NEGLIGIBLE = 12.0  # nats below the best mode


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


def find_modes(inner: InnerLaplace, known: Sequence[OuterMode]) -> list[OuterMode]:
    """All modes that were found: from `known` ones of a similar model, or from all starts."""
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
        add_mode(found, climb(inner, nearby[0].place, _fitting(inner, nearby[0].mode), nearby[0].axes))
        # What columns explain, a component need not: it may be nearly absent here and not in the similar model.
        others: list[tuple[FloatArray, FloatArray | None]] = [(mode.place, mode.axes) for mode in nearby[1:]]
        others += [(start, None) for start in starts_of(inner)[1:]]
        beginning = _fitting(inner, nearby[0].mode)
        for start, axes in others:
            highest = max((mode.log_integrand for mode in found), default=-math.inf)
            if inner.has_dispersion and axes is not None:  # process and noise may change places: only climbing tells
                add_mode(found, climb(inner, start, beginning, axes))
                continue
            place, there = _with_noise(inner, start, beginning)
            if there.log_integrand > highest - NEGLIGIBLE:
                add_mode(found, climb(inner, place, there.mode, axes))
    else:
        beginning = inner.start()
        for start in starts_of(inner):
            add_mode(found, climb(inner, start, beginning, None))
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
        return place, inner.evaluate(place, mode, ROUGH_TOLERANCE)
    number, centre = sum(inner.sizes), _dispersion_start(inner)

    def best_of(values: Sequence[float]) -> tuple[FloatArray, Inner]:
        places = [np.concatenate([place[:number], [value], place[number + 1 :]]) for value in values]
        each = [(there, inner.evaluate(there, mode, ROUGH_TOLERANCE)) for there in places]
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


def add_mode(found: list[OuterMode], mode: OuterMode | None) -> bool:
    """Add a mode, or let it take the place of one that is the same and lower; tell if that makes a difference."""
    if mode is None:
        return False
    for number, other in enumerate(found):
        if min(distance(other, mode.place), distance(mode, other.place)) < _SAME:
            gain = mode.log_integrand - other.log_integrand
            if gain > 0.0:
                found[number] = mode
            return gain > ABOVE
    found.append(mode)
    return True


def distance(mode: OuterMode, place: FloatArray) -> float:
    """In standard deviations."""
    return float(np.linalg.norm(np.linalg.solve(mode.axes, place - mode.place)))


def climb(inner: InnerLaplace, place: FloatArray, mode: Mode, axes: FloatArray | None) -> OuterMode | None:
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
        if covariance is None:
            covariance = _first_covariance(inner, place, there, diagonal)
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


def _first_covariance(inner: InnerLaplace, place: FloatArray, there: Inner, diagonal: FloatArray | None) -> FloatArray:
    """An inverse of the negative Hessian to begin with."""
    if diagonal is not None:
        return np.diag(1.0 / np.clip(-diagonal, _FLATTEST, None))
    axes = _axes(inner, place, there)
    return np.asarray(axes @ axes.T)


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
        above = inner.evaluate(place + step, there.mode)
        below = inner.evaluate(place - step, continued(there.mode, above.mode))
        up, down = above.log_integrand, below.log_integrand
        gradient[j] = (up - down) / (2.0 * _STEP)
        diagonal[j] = (up - 2.0 * there.log_integrand + down) / _STEP**2
    return gradient, diagonal


def continued(mode: Mode, before: Mode) -> Mode:
    """A start for the next place of a line: where the last two lead."""
    return Mode(2.0 * mode.field - before.field, 2.0 * mode.border - before.border)


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
    return np.asarray(0.5 * (hessian + hessian.T))


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
