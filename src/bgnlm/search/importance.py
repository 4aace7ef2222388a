"""Integrals over the weights of projections, by importance sampling (eq. MarginalPosterior2 of section 4.2).

The proposal is a mixture: t distributions around the modes of the integrand, with its true Hessian there, each at all
images of its mode under the symmetries of the integrand; and the prior, for what the modes do not cover.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.features.weight_symmetries import SignedPermutation

LogDensity = Callable[[FloatArray], FloatArray]

_FEW = 16  # symmetries whose images are all summed over
_DEGREES = 5.0  # of freedom of the proposal
_PRIOR_SHARE = 0.1
_LEAST_SHARE = 0.02  # of one mode
_NEGLIGIBLE = 12.0  # nats of mass that a mode may lack to be left out
_WIDER = 1.1  # scale of the proposal over that of the Hessian

_STEP = 0.2  # of finite differences, in standard deviations
_CLIMBS = 15
_STEPS = np.array([1.0, 0.5, 0.25, 0.1, 0.02])
_ARRIVED = 5e-3  # nats that another step would gain
_UNDEFINED = 10.0  # nats that a place without a density counts as below its neighbour

_FIRST_DRAWS = 100
_MOST_AT_ONCE = 2_000
_EFFICIENT = 0.2  # effective size of one draw below which draws are tempered
_PARTICLES = 300
_MOVES = 4
_MOST_STEPS = 15
_ACCEPTED = 0.25
_ADAPTATIONS = 4
_MOST_PARTS = 10
_EM_STEPS = 15
_MODE_SHARE = 0.1
_RELIABLE = 0.7  # largest Pareto shape for which a mean can be trusted


class Mode(NamedTuple):
    """A maximum, a triangular or other factor of the inverse of minus the Hessian there, and the log density."""

    point: FloatArray
    factor: FloatArray
    log_density: float

    @property
    def log_mass(self) -> float:
        """Laplace's approximation of the integral around it."""
        return self.log_density + float(np.linalg.slogdet(self.factor)[1]) + 0.5 * len(self.point) * math.log(2 * np.pi)


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mixture of t distributions and the prior, at all images of the symmetries.

    Of few symmetries, the density is the mean over all images. Of many, there is a density in one cell only: where
    the identity brings weights closer to a point near the first mode than any other symmetry does. What the prior
    draws is brought into the cell, what a t distribution draws out of it does not count.

    Attributes
    ----------
    modes, shares
        The t distributions, and the probability of each; what is missing to 1 is that of the prior.
    symmetries
        The group, the identity first.
    deviation
        Standard deviation of the prior.
    """

    modes: tuple[Mode, ...]
    shares: FloatArray
    symmetries: Sequence[SignedPermutation]
    deviation: float

    @property
    def n_weights(self) -> int:
        """Dimension."""
        return len(self.symmetries[0].order)

    @cached_property
    def _inverses(self) -> list[tuple[FloatArray, float]]:
        """Of the factors, with the logarithms of the densities at the modes."""
        size = self.n_weights
        constant = math.lgamma(0.5 * (_DEGREES + size)) - math.lgamma(0.5 * _DEGREES)
        constant -= 0.5 * size * math.log(_DEGREES * np.pi)
        return [
            (np.asarray(np.linalg.inv(mode.factor), np.float64), constant - float(np.linalg.slogdet(mode.factor)[1]))
            for mode in self.modes
        ]

    def log_parts(self, weights: FloatArray) -> FloatArray:
        """Log of share times density of each t distribution, then of the prior: (parts, draws)."""
        size = self.n_weights
        parts = np.empty((len(self.modes) + 1, len(weights)))
        for place, (mode, share, (inverse, constant)) in enumerate(
            zip(self.modes, self.shares, self._inverses, strict=True)
        ):
            distance = np.square((weights - mode.point) @ inverse.T).sum(axis=1)
            parts[place] = math.log(share) + constant - 0.5 * (_DEGREES + size) * np.log1p(distance / _DEGREES)
        rest = 1.0 - self.shares.sum()
        parts[-1] = log_normal(weights, self.deviation) + (math.log(rest) if rest > 0.0 else -np.inf)
        return parts

    @property
    def is_of_a_cell(self) -> bool:
        """Whether there is a density in one cell only."""
        return bool(self.modes) and len(self.symmetries) > _FEW

    @cached_property
    def _images_of_reference(self) -> FloatArray:
        """Of a point that no symmetry leaves where it is."""
        off = np.random.default_rng(11).standard_normal(self.n_weights)
        reference = self.modes[0].point + 1e-3 * self.deviation * off
        return np.array([each.apply(reference) for each in self.symmetries])

    def _closest(self, weights: FloatArray) -> IntArray:
        """Which symmetry brings the reference point closest to each draw; all keep lengths."""
        return np.asarray((weights @ self._images_of_reference.T).argmax(axis=1))

    def log_density(self, weights: FloatArray) -> FloatArray:
        """Log density: the same for all images, or infinite out of the cell, for what does not count."""
        if not self.modes:  # the prior, which is the same for all images anyway
            return log_normal(weights, self.deviation)
        if self.is_of_a_cell:
            parts, log_order = self.log_parts(weights), math.log(len(self.symmetries))
            parts[-1] += log_order
            inside = self._closest(weights) == 0
            return np.where(inside, np.logaddexp.reduce(parts) - log_order, np.inf)
        images = [np.logaddexp.reduce(self.log_parts(each.apply(weights))) for each in self.symmetries]
        return np.asarray(np.logaddexp.reduce(images) - math.log(len(images)))

    def draw(self, rng: np.random.Generator, n_draws: int) -> FloatArray:
        """Draw around the modes as they are: what is weighted by `log_density` need not be drawn at their images."""
        size = self.n_weights
        # Each part as often as its share says, up to one: this way the parts add nothing to the variance.
        ends = np.floor(n_draws * np.cumsum(self.shares) + rng.random()).astype(np.int64)
        counts = np.diff(np.minimum(ends, n_draws), prepend=0, append=n_draws)
        drawn = [self.deviation * rng.standard_normal((counts[-1], size))]
        if self.is_of_a_cell:
            drawn[0] = self.folded(drawn[0])
        for mode, count in zip(self.modes, counts[:-1], strict=True):
            scale = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size=count))
            drawn.append(mode.point + scale[:, None] * (rng.standard_normal((count, size)) @ mode.factor.T))
        return np.vstack(drawn)

    def folded(self, weights: FloatArray) -> FloatArray:
        """The images of draws that are closest to the modes."""
        if self.is_of_a_cell:
            orders, signs = (np.array(each) for each in zip(*self.symmetries, strict=True))
            chosen = self._closest(weights)
            back = np.empty_like(weights)
            np.put_along_axis(back, orders[chosen], signs[chosen] * weights, axis=1)
            return back
        if not self.modes:
            return weights
        images = np.array([each.apply(weights) for each in self.symmetries])
        closeness = np.array([np.logaddexp.reduce(self.log_parts(image)[:-1]) for image in images])
        return np.asarray(images[closeness.argmax(axis=0), np.arange(len(weights))])


@dataclass(frozen=True, eq=False)
class Integral:
    """An estimate of the log of an integral.

    Attributes
    ----------
    log_value
        The estimate.
    standard_error
        Its Monte Carlo standard error; infinite if no draw had a density.
    effective_size
        Of the draws.
    pareto_k
        Shape of the tail of the importance weights: with more than 0.7 the standard error cannot be trusted.
    draws, log_weights
        The draws, and their importance weights, not normalised.
    modes
        The modes of the proposal.
    """

    log_value: float
    standard_error: float
    effective_size: float
    pareto_k: float
    draws: FloatArray
    log_weights: FloatArray
    modes: tuple[Mode, ...]

    def resampled(self, rng: np.random.Generator, n_draws: int) -> FloatArray:
        """Draw from the posterior: systematically, so that each comes as often as its weight says, up to one."""
        if not self.effective_size:  # there is none; any weights will do
            return self.draws[rng.integers(len(self.draws), size=n_draws)]
        return self.draws[_systematic(np.exp(self.log_weights - self.log_weights.max()), n_draws, rng)]


def log_normal(weights: FloatArray, deviation: float) -> FloatArray:
    """Log density of independent weights N(0, deviation^2)."""
    squares = np.square(weights / deviation).sum(axis=1)
    return np.asarray(-0.5 * squares - weights.shape[1] * math.log(deviation * math.sqrt(2 * np.pi)))


def climb(log_density: LogDensity, start: FloatArray, deviation: float) -> Mode | None:
    """Newton's method with the true Hessian, by differences on the scale of the mode itself; None if it has no start.

    Directions in which the density is not concave, or flatter than the prior, count as those of the prior.
    """
    point, factor = start, 0.1 * deviation * np.eye(len(start))
    value = float(log_density(point[None, :])[0])
    if not math.isfinite(value):
        return None
    for number in range(_CLIMBS):
        slope, hessian = _differences(log_density, point, factor, value)
        inverse = np.linalg.inv(factor)
        curvatures, axes = np.linalg.eigh(-inverse.T @ hessian @ inverse)
        curvatures = np.clip(curvatures, 0.5 / deviation**2, 1e16 / deviation**2)
        along = axes.T @ (inverse.T @ slope)
        factor = axes / np.sqrt(curvatures)
        gain = 0.5 * float(along @ (along / curvatures))
        if gain < _ARRIVED and number:
            break
        trials = point + _STEPS[:, None] * (axes @ (along / curvatures))
        values = np.nan_to_num(log_density(trials), nan=-np.inf)
        best = int(values.argmax())
        if not values[best] > value + 1e-9:
            if number:
                break
            continue  # once more, with differences on the scale of the mode
        point, value = trials[best], float(values[best])
    return Mode(point, factor, value)


def _differences(
    log_density: LogDensity, point: FloatArray, factor: FloatArray, value: float
) -> tuple[FloatArray, FloatArray]:
    """First and second derivatives in units of the columns of `factor`."""
    size = len(point)
    ahead = _STEP * factor.T
    rows, columns = np.triu_indices(size, 1)
    both = ahead[rows] + ahead[columns]
    values = log_density(np.vstack([point + ahead, point - ahead, point + both, point - both]))
    values = np.where(np.isfinite(values), values, value - _UNDEFINED)
    plus, minus, upper, lower = np.split(values, [size, 2 * size, 2 * size + len(rows)])
    hessian = np.diag((plus + minus - 2.0 * value) / _STEP**2)
    mixed = upper + lower - (plus + minus)[rows] - (plus + minus)[columns] + 2.0 * value
    hessian[rows, columns] = hessian[columns, rows] = mixed / (2.0 * _STEP**2)
    return (plus - minus) / (2.0 * _STEP), hessian


def distinct_modes(modes: Sequence[Mode], symmetries: Sequence[SignedPermutation]) -> tuple[Mode, ...]:
    """Modes that are not images of better ones, without those of negligible mass; the heaviest first."""
    chosen: list[Mode] = []
    for mode in sorted(modes, key=lambda each: -each.log_mass):
        images = np.array([each.apply(mode.point) for each in symmetries])
        is_known = any(
            np.square((images - other.point) @ np.linalg.inv(other.factor).T).sum(axis=1).min() < 0.25
            for other in chosen
        )
        if not is_known and (not chosen or mode.log_mass > chosen[0].log_mass - _NEGLIGIBLE):
            chosen.append(mode)
    return tuple(chosen)


def around(modes: tuple[Mode, ...], symmetries: Sequence[SignedPermutation], deviation: float) -> Proposal:
    """Return the proposal around modes; the prior if there are none."""
    if not modes:
        return Proposal((), np.empty(0), symmetries, deviation)
    masses = np.array([mode.log_mass for mode in modes])
    shares = np.maximum(np.exp(masses - np.logaddexp.reduce(masses)), _LEAST_SHARE)
    wider = tuple(mode._replace(factor=_WIDER * mode.factor) for mode in modes)
    return Proposal(wider, (1.0 - _PRIOR_SHARE) * shares / shares.sum(), symmetries, deviation)


def integrate(
    log_density: LogDensity, proposal: Proposal, rng: np.random.Generator, tolerance: float, most_draws: int
) -> Integral:
    """Draw until the log of the integral is known to a tolerance, or so many draws were made.

    A proposal that turns out not to fit is adapted by draws that are then left out.
    """
    first = _drawn(log_density, proposal, rng, min(_FIRST_DRAWS, most_draws))
    if proposal.modes and not _fits(first):
        proposal = _adapted(log_density, proposal, rng)
        first = _drawn(log_density, proposal, rng, min(_FIRST_DRAWS, most_draws))
    return _to_tolerance(log_density, proposal, rng, first, tolerance, most_draws)


def _fits(found: Integral) -> bool:
    return found.effective_size >= _EFFICIENT * len(found.draws)


def _to_tolerance(
    log_density: LogDensity,
    proposal: Proposal,
    rng: np.random.Generator,
    found: Integral,
    tolerance: float,
    most_draws: int,
) -> Integral:
    while (n_draws := len(found.draws)) < most_draws and not (
        found.standard_error <= tolerance and found.pareto_k <= _RELIABLE
    ):
        # What the error asks for, if it is to be trusted; a little more than that spares another round.
        ratio = (found.standard_error / tolerance) ** 2 if math.isfinite(found.standard_error) else 10.0
        wanted = int(n_draws * min(max(1.1 * ratio - 1.0, 0.3), 4.0)) + 1
        more = _drawn(log_density, proposal, rng, min(wanted, most_draws - n_draws, _MOST_AT_ONCE))
        found = _estimate(
            np.vstack([found.draws, more.draws]), np.append(found.log_weights, more.log_weights), proposal.modes
        )
    return replace(found, draws=proposal.folded(found.draws))


def _drawn(log_density: LogDensity, proposal: Proposal, rng: np.random.Generator, n_draws: int) -> Integral:
    draws = proposal.draw(rng, n_draws)
    log_weights = _finite(log_density(draws)) - proposal.log_density(draws)
    return _estimate(draws, log_weights, proposal.modes)


def _estimate(draws: FloatArray, log_weights: FloatArray, modes: tuple[Mode, ...]) -> Integral:
    largest = float(log_weights.max())
    if not math.isfinite(largest):
        return Integral(-math.inf, math.inf, 0.0, math.inf, draws, log_weights, modes)
    weights = np.exp(log_weights - largest)
    mean = float(weights.mean())
    error = float(weights.std(ddof=1)) / mean / math.sqrt(len(weights)) if len(weights) > 1 else math.inf
    return Integral(
        log_value=largest + math.log(mean),
        standard_error=error,
        effective_size=float(weights.sum() ** 2 / np.square(weights).sum()),
        pareto_k=pareto_shape(weights),
        draws=draws,
        log_weights=log_weights,
        modes=modes,
    )


def _adapted(log_density: LogDensity, proposal: Proposal, rng: np.random.Generator) -> Proposal:
    """Fit t distributions to draws from the integrand, first by tempering, then by their importance weights."""
    draws = _tempered(log_density, proposal, rng)
    if draws is None:
        return proposal
    proposal = _refitted(proposal, draws, np.ones(len(draws)), rng)
    for _ in range(_ADAPTATIONS):
        found = _drawn(log_density, proposal, rng, _PARTICLES)
        if _fits(found) or not found.effective_size:
            break
        weights = np.exp(found.log_weights - found.log_weights.max())
        # What tempering found counts too: a few heavy draws alone would be fitted too closely.
        weights = np.append(weights / weights.sum(), np.full(len(draws), 1.0 / len(draws)))
        proposal = _refitted(proposal, np.vstack([proposal.folded(found.draws), draws]), weights, rng)
    return proposal


def _tempered(log_density: LogDensity, proposal: Proposal, rng: np.random.Generator) -> FloatArray | None:
    """Sequential Monte Carlo from the proposal q to the integrand p by q^(1 - t) p^t; None if it comes to nothing.

    Each t is as far from the one before as the effective size of the draws allows; between them the draws are
    resampled and moved by Metropolis steps. It need not be exact: a proposal is fitted to what comes out.
    """
    draws = proposal.folded(proposal.draw(rng, _PARTICLES))
    height, proposed = _finite(log_density(draws)), proposal.log_density(draws)
    t, width = 0.0, 2.4 / math.sqrt(draws.shape[1])
    for _ in range(_MOST_STEPS):
        gains = height - proposed
        if not math.isfinite(gains.max()):
            return None
        step = _longest_step(gains, 1.0 - t)
        t = 1.0 if step >= 1.0 - t else t + step
        chosen = _systematic(np.exp(step * (gains - gains.max())), len(draws), rng)
        draws, height, proposed = draws[chosen], height[chosen], proposed[chosen]
        factor = _root(np.cov(draws.T, ddof=0).reshape(draws.shape[1], -1))
        for _ in range(_MOVES):
            trial = draws + width * (rng.standard_normal(draws.shape) @ factor.T)
            if proposal.is_of_a_cell:
                trial = proposal.folded(trial)
            trial_height, trial_proposed = _finite(log_density(trial)), proposal.log_density(trial)
            change = t * (trial_height - height) + (1.0 - t) * (trial_proposed - proposed)
            accepted = np.log(rng.random(len(draws))) < change
            draws = np.where(accepted[:, None], trial, draws)
            height, proposed = np.where(accepted, trial_height, height), np.where(accepted, trial_proposed, proposed)
            width *= math.exp(float(accepted.mean()) - _ACCEPTED)
        draws = proposal.folded(draws)
        if t == 1.0:
            return draws
    return None


def _refitted(proposal: Proposal, draws: FloatArray, weights: FloatArray, rng: np.random.Generator) -> Proposal:
    """Maximum likelihood of a mixture of normal distributions, by the EM algorithm; the mode of most mass stays."""
    size = draws.shape[1]
    weights = weights / weights.sum()
    effective = 1.0 / float(np.square(weights).sum())
    n_parts = int(min(max(effective / (4.0 * size), 1.0), _MOST_PARTS))
    centre = weights @ draws
    pooled = _covariance(draws - centre, weights) + 1e-8 * proposal.deviation**2 * np.eye(size)
    chosen = rng.choice(len(draws), size=n_parts, replace=False, p=weights)
    narrow = pooled / n_parts ** (2.0 / size)
    parts = [Mode(draws[k], _root(narrow), -math.inf) for k in chosen]
    fitted = Proposal(tuple(parts), np.full(n_parts, 1.0 / n_parts), proposal.symmetries, proposal.deviation)
    for _ in range(_EM_STEPS):
        logs = fitted.log_parts(draws)[:-1]
        belonging = np.exp(logs - np.logaddexp.reduce(logs)) * weights
        parts = []
        for each in belonging:
            total = max(float(each.sum()), 1e-300)
            middle = each @ draws / total
            # As if a few draws more were there, spread like all of them.
            known = total * effective
            spread = (known * _covariance(draws - middle, each / total) + 2.0 * narrow) / (known + 2.0)
            parts.append(Mode(middle, _WIDER * _root(spread), -math.inf))
        fitted = replace(fitted, modes=tuple(parts), shares=np.maximum(belonging.sum(axis=1), 1e-300))
    shares = np.maximum(fitted.shares, 1e-3)
    shares *= (1.0 - _PRIOR_SHARE - _MODE_SHARE) / shares.sum()
    return replace(proposal, modes=(proposal.modes[0], *fitted.modes), shares=np.append(_MODE_SHARE, shares))


def _covariance(away: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(away.T @ (weights[:, None] * away))


def _longest_step(gains: FloatArray, most: float) -> float:
    """How far t may go until half of the effective size is lost."""

    def is_short(step: float) -> bool:
        weights = np.exp(step * (gains - gains.max()))
        return bool(weights.sum() ** 2 >= 0.5 * len(weights) * np.square(weights).sum())

    if is_short(most):
        return most
    low, high = 0.0, most
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_short(middle) else (low, middle)
    return high


def _systematic(weights: FloatArray, n_draws: int, rng: np.random.Generator) -> IntArray:
    """Places of draws, each as often as its weight says, up to one."""
    shares = np.cumsum(weights)
    places = np.searchsorted(shares, (np.arange(n_draws) + rng.random()) / n_draws * shares[-1])
    return np.asarray(np.minimum(places, len(weights) - 1))


def _root(covariance: FloatArray) -> FloatArray:
    """A factor of a covariance matrix, which may be singular."""
    values, axes = np.linalg.eigh(covariance)
    return np.asarray(axes * np.sqrt(np.maximum(values, 1e-12 * values.max() + 1e-300)))


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, -np.inf)


def pareto_shape(weights: FloatArray) -> float:
    """Shape k of a generalized Pareto distribution of the largest weights (Zhang and Stephens, 2009).

    With a weak prior towards 0.5, as is usual for importance weights.
    """
    n_tail = min(len(weights) // 5, int(3.0 * math.sqrt(len(weights))))
    if n_tail < 5:
        return math.inf
    largest = np.sort(weights)[-n_tail - 1 :]
    excess = largest[1:] - largest[0]
    if not excess[-1] > 1e-12 * largest[-1]:
        return 0.0
    excess = excess[excess > 1e-300]
    if (n_tail := len(excess)) < 5:
        return math.inf
    n_grid = 30 + int(math.sqrt(n_tail))
    quartile = excess[int(n_tail / 4 + 0.5) - 1]
    grid = 1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    grid = grid / (3.0 * max(quartile, 1e-12 * excess[-1])) + 1.0 / excess[-1]
    shapes = np.log1p(-grid[:, None] * excess).mean(axis=1)
    likelihood = n_tail * (np.log(-grid / shapes) - shapes - 1.0)
    posterior = np.exp(likelihood - likelihood.max())
    average = float(grid @ posterior / posterior.sum())
    shape = float(np.log1p(-average * excess).mean())
    return (n_tail * shape + 10.0 * 0.5) / (n_tail + 10.0)
