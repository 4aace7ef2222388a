"""The response given its mean: variance, distribution function, quantiles of mixtures and draws.

Shares (binomial) are means of a number of trials. The dispersion is the shape of a Gamma distribution, the size of a
negative binomial one.
"""

from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.likelihood.families import Family

_MOST_STEPS = 60
_COARSE = 1e-15
_SMALLEST = 1e-290


def response_variance(
    family: Family, mean: FloatArray, square: FloatArray, scaled: FloatArray, trials: FloatArray
) -> FloatArray:
    """Expected variance of the response.

    Given of its mean: the mean, the mean square, and the mean of the square divided by the dispersion.
    """
    match family.name:
        case "binomial":
            return np.asarray((mean - square) / trials)
        case "poisson":
            return mean
        case "gamma":
            return scaled
        case _:
            return mean + scaled


@dataclass(frozen=True, eq=False)
class MeanMixture:
    """Responses whose means are uncertain: row by row, each of several means with a weight.

    `means` and `weights` are (means, rows); `dispersions` (means, 1); `trials` has one number for each row.
    """

    family: Family
    means: FloatArray
    weights: FloatArray
    dispersions: FloatArray
    trials: FloatArray

    def quantile(self, level: float) -> FloatArray:
        """Smallest y with P(Y <= y) >= level, for each row."""
        if self.family.name == "gamma":
            return self._continuous_quantile(level)
        scale = self.trials if self.family.name == "binomial" else np.ones_like(self.trials)
        highest = self.trials if self.family.name == "binomial" else np.full_like(self.trials, np.inf)
        return self._whole_quantile(level, self._guess(level) * scale, highest) / scale

    def _whole_quantile(self, level: float, guess: FloatArray, highest: FloatArray) -> FloatArray:
        """Among whole numbers: step away from a guess, farther each time, then halve the distance."""
        low, high = np.full_like(guess, -1.0), highest.copy()  # P(Y <= low) < level <= P(Y <= high)
        y = np.clip(np.floor(guess), 0.0, highest)
        step = np.maximum(1.0, _COARSE * y)  # beyond 2^53 there are no neighbouring whole numbers
        rows = np.flatnonzero(high - low > 1.0)
        with np.errstate(over="ignore"):  # a step, or a guess, may become infinite
            while len(rows):
                enough = self.take(rows).distribution(y[rows]) >= level
                high[rows[enough]], low[rows[~enough]] = y[rows[enough]], y[rows[~enough]]
                distance = np.where(np.isfinite(high[rows]), high[rows] - low[rows], np.inf)
                rows = rows[distance > np.maximum(1.0, _COARSE * low[rows])]
                below, above = low[rows], high[rows]
                highest_yet = np.where(np.isfinite(above), above, 4.0 * below + 16.0)
                wide = highest_yet > 16.0 * (below + 2.0)  # halve the logarithm
                middle = np.where(wide, np.sqrt((below + 2.0) * highest_yet), 0.5 * (below + highest_yet))
                away = np.where(
                    y[rows] == below, below + step[rows], np.where(np.isfinite(above), above, 0.0) - step[rows]
                )
                y[rows] = np.floor(np.where((away > below) & (away < above), away, middle))
                step[rows] *= 3.0
        return high

    def _guess(self, level: float) -> FloatArray:
        """The quantile if the response were normal."""
        from scipy.special import ndtri

        mean, squares = (self.means * self.weights).sum(axis=0), np.square(self.means) * self.weights
        square, scaled = squares.sum(axis=0), (squares / self.dispersions).sum(axis=0)
        noise = response_variance(self.family, mean, square, scaled, self.trials)
        return np.asarray(mean + ndtri(level) * np.sqrt(np.maximum(square - np.square(mean), 0.0) + noise))

    def take(self, rows: IntArray) -> "MeanMixture":
        """Return some of the rows."""
        return MeanMixture(self.family, self.means[:, rows], self.weights[:, rows], self.dispersions, self.trials[rows])

    def _continuous_quantile(self, level: float) -> FloatArray:
        """By false position in log y, with the Illinois rule."""
        from scipy.special import gammaincinv, gammaln

        # Of a very uneven distribution low quantiles are beyond the range of numbers, but their logarithms are not.
        unit = gammaincinv(self.dispersions, level)
        by_series = (np.log(level) + gammaln(self.dispersions + 1.0)) / self.dispersions
        log_unit = np.where(unit > _SMALLEST, np.log(np.maximum(unit, _SMALLEST)), by_series)
        each = log_unit - np.log(self.dispersions) + np.log(self.means)
        low, high = each.min(axis=0) - 1e-9, each.max(axis=0) + 1e-9
        below, above = (self.distribution(np.exp(end)) - level for end in (low, high))
        for _ in range(_MOST_STEPS):
            gap = above - below  # 0 where all of it is below the smallest number
            middle = np.where(gap > 0.0, (low * above - high * below) / np.where(gap > 0.0, gap, 1.0), low)
            value = self.distribution(np.exp(middle)) - level
            if np.abs(value).max() < 1e-9:
                break
            is_above = value > 0.0
            below, above = np.where(is_above, 0.5 * below, value), np.where(is_above, value, 0.5 * above)
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        return np.asarray(np.exp(middle))

    def distribution(self, y: FloatArray) -> FloatArray:
        """P(Y <= y) for each row; y of shares counts successes."""
        from scipy import special

        size = self.dispersions
        match self.family.name:
            case "poisson":
                each = special.gammaincc(y + 1.0, self.means)
            case "negative_binomial":
                each = special.betainc(size, y + 1.0, size / (size + self.means))
            case "gamma":
                each = special.gammainc(size, size * y / self.means)
            case _:
                inside = y < self.trials
                failures = np.where(inside, self.trials - y, 1.0)
                each = np.where(inside, special.betainc(failures, y + 1.0, 1.0 - self.means), 1.0)
        return np.asarray((each * self.weights).sum(axis=0))


def draw_response(
    rng: np.random.Generator, family: Family, mean: FloatArray, dispersion: float, trials: FloatArray
) -> FloatArray:
    """Draw one response for each mean."""
    match family.name:
        case "poisson":
            return _poisson(rng, mean)
        case "negative_binomial":
            return _poisson(rng, mean * rng.gamma(dispersion, 1.0 / dispersion, mean.shape))
        case "gamma":
            return np.asarray(mean * rng.gamma(dispersion, 1.0 / dispersion, mean.shape))
        case _:
            return np.asarray(rng.binomial(trials.astype(np.int64), mean) / trials)


def _poisson(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
    """Also for means beyond the range of whole numbers, where the normal distribution is as good."""
    small = np.minimum(mean, 1e15)
    return np.where(mean > 1e15, mean + np.sqrt(mean) * rng.standard_normal(mean.shape), rng.poisson(small))
