"""Predictions averaged over models: the paper's mean at the modes, and the whole mixture with its uncertainty.

Given a model, the linear predictor at a row is normal, or Student t where a noise variance was integrated out; the
posterior is the mixture of these over the models. For the Gaussian family g is at the posterior mean of its shrinkage;
for others the distribution has the mean and the variance over g, and each model's dispersion is at its mode. With
latent components hyperparameters, the dispersion among them, are part of the mixture.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.features.new_data import NewColumns
from bgnlm.kernels import predictive as kernels
from bgnlm.latent.place import NewPlaces
from bgnlm.latent.posterior import LatentPosterior
from bgnlm.likelihood.families import FARTHEST, Family
from bgnlm.likelihood.response import MeanMixture, draw_response, response_variance
from bgnlm.posterior.average import ModelAverage

_ROWS = 2048  # for which features are computed at a time
_LOCATED_ROWS = 256  # for which the linear predictors of all models are held, in the processor's cache
_HERMITE = 11  # nodes of the normal distribution
_CELLS = 32  # of the linear predictor, which stand for its distribution
_NARROWEST = 1e-12  # spread, as a share of the location
_NEGLIGIBLE = 1e-5
FARTHEST_OUT = 1e100  # standard deviations from the training data; its square is still a number
_SMALLEST_WIDTH = 1e-290
_WHOLE = 1e-9  # successes
_ALIKE = 0.4  # dispersions within this factor, as a logarithm, share one in quantiles


class Rows(NamedTuple):
    """New rows: coded inputs with their names, offset, for shares the number of trials, places of latent components."""

    X: FloatArray
    names: tuple[str, ...]
    offset: FloatArray
    trials: FloatArray
    latent: tuple[NewPlaces, ...] = ()


class _Located(NamedTuple):
    """Linear predictors of all models at some rows: where and how wide."""

    rows: slice
    location: FloatArray
    spread: FloatArray


def predict_mean(average: ModelAverage, rows: Rows, *, plug_in: bool = True) -> FloatArray:
    """Mean of the response: at the modes of the coefficients, as in the paper, or averaged over their posterior."""
    mean = np.empty(len(rows.X))
    if average.family.name == "gaussian" and average.latent is None:  # all the same
        coefficients = average.mean_coefficients
        for place, columns in _columns(average, rows):
            mean[place] = rows.offset[place] + coefficients[0] + coefficients[1:] @ columns
        return mean
    if plug_in:
        for here in _located(average, rows, with_spread=False):
            mean[here.rows] = average.family.mean(here.location) @ average.probabilities
    else:
        mean = _moments(average, rows)[0]
    # The probabilities of many models sum to 1 up to rounding.
    return np.minimum(mean, 1.0) if average.family.name == "binomial" else mean


def predict_deviation(average: ModelAverage, rows: Rows) -> FloatArray:
    """Standard deviation of the response: models, coefficients and noise."""
    mean, square, scaled = _moments(average, rows)
    if average.family.name == "gaussian":
        return np.sqrt(square)
    spread = np.maximum(square - np.square(mean), 0.0)
    return np.sqrt(spread + response_variance(average.family, mean, square, scaled, rows.trials))


def _moments(average: ModelAverage, rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, mean square, and mean of the square divided by the dispersion, all of the mean of the response.

    For the Gaussian family mean and variance of the response.
    """
    mean, square, scaled = np.zeros((3, len(rows.X)))
    average = average.mixture or average
    family, probabilities = average.family, average.probabilities
    by_dispersion = probabilities / average.dispersions
    nodes, weights = np.polynomial.hermite_e.hermegauss(_HERMITE)
    weights = weights / weights.sum()
    for here in _located(average, rows):
        location, spread = here.location, here.spread
        if family.name == "gaussian":
            mean[here.rows] = location @ probabilities
            location -= mean[here.rows, None]
            variance = np.square(average.coefficient_scales) * (1.0 + np.square(spread))
            with np.errstate(invalid="ignore"):  # a variance may be infinite
                square[here.rows] = (np.square(location) + variance) @ probabilities
        elif family.link == "log":
            variance = np.square(spread)
            mean[here.rows] = np.exp(np.minimum(location + 0.5 * variance, FARTHEST)) @ probabilities
            squares = np.exp(np.minimum(2.0 * (location + variance), 2.0 * FARTHEST))
            square[here.rows], scaled[here.rows] = squares @ probabilities, squares @ by_dispersion
        else:
            kernels.share_moments(
                location,
                spread,
                probabilities,
                family.code,
                nodes,
                weights,
                steps_of(family),
                mean[here.rows],
                square[here.rows],
            )
    return mean, square, scaled


def steps_of(family: Family) -> FloatArray:
    """Where and how a mean between 0 and 1 rises: places, rise of it and of its square."""
    t = np.arange(-36.0, 36.25, 0.5)
    slope = family.mean_slope(t)
    return np.column_stack([t, 0.5 * slope, family.mean(t) * slope])


def predict_quantiles(average: ModelAverage, rows: Rows, levels: Sequence[float], of: str) -> FloatArray:
    """Quantiles of the mixture, one column for each level: of the mean of the response, or of the response."""
    wanted = np.asarray(levels, dtype=np.float64)
    average = average.mixture or average
    if average.family.name == "gaussian":
        return _linear_quantiles(average, rows, wanted, with_noise=of == "response")
    if of == "mean":
        return average.family.mean(_linear_quantiles(average, rows, wanted))
    out = np.empty((len(rows.X), len(wanted)))
    for here, mixture in _response_mixtures(average, rows):
        order = np.argsort(wanted, kind="stable")
        quantiles = [mixture.quantile(level) for level in wanted[order].tolist()]
        out[here, order] = np.maximum.accumulate(quantiles).T  # in order also where they are rounded
    return out


def predict_cdf(average: ModelAverage, rows: Rows, y: FloatArray) -> FloatArray:
    """P(Y <= y) of a new response of each row, under the mixture."""
    average = average.mixture or average
    if average.family.name == "gaussian":
        return _gaussian_cdf(average, rows, y)
    out = np.empty(len(rows.X))
    # What shares count are successes; a share is known to rounding error only.
    counted = np.floor(y * rows.trials + _WHOLE) if average.family.name == "binomial" else y
    for here, mixture in _response_mixtures(average, rows):
        out[here] = mixture.distribution(np.maximum(counted[here], 0.0))
    return np.where(counted < 0.0, 0.0, np.clip(out, 0.0, 1.0))


def _gaussian_cdf(average: ModelAverage, rows: Rows, y: FloatArray) -> FloatArray:
    from scipy.special import ndtr, stdtr

    known = np.isinf(average.degrees)
    degrees, scale = np.where(known, 1.0, average.degrees), np.sqrt(average.dispersions)
    out = np.empty(len(rows.X))
    for here in _located(average, rows):
        width = np.maximum(np.sqrt(np.square(here.spread) + 1.0) * scale, _SMALLEST_WIDTH)
        standard = (y[here.rows, None] - here.location) / width
        out[here.rows] = np.where(known, ndtr(standard), stdtr(degrees, standard)) @ average.probabilities
    return np.clip(out, 0.0, 1.0)


def _response_mixtures(average: ModelAverage, rows: Rows) -> Iterator[tuple[slice, MeanMixture]]:
    """Responses of some rows after the other, of families other than the Gaussian."""
    groups, dispersions = _groups_of_dispersion(average)
    normal = _tables(np.array([np.inf]))[0]
    for here in _located(average, rows):
        places, masses = np.empty((2, len(groups), len(here.location), _CELLS))
        # Cells need a width: absurd coefficients put models where numbers are further apart than the models are wide.
        location = np.clip(np.nan_to_num(here.location), -FARTHEST_OUT, FARTHEST_OUT)
        spread = np.maximum(here.spread, _NARROWEST * np.abs(location))
        for g, probabilities in enumerate(groups):
            kernels.mixture_masses(location, spread, probabilities, normal, _NEGLIGIBLE, places[g], masses[g])
        yield (
            here.rows,
            MeanMixture(
                average.family,
                average.family.mean(places.transpose(0, 2, 1).reshape(-1, len(here.location))),
                masses.transpose(0, 2, 1).reshape(-1, len(here.location)),
                np.repeat(dispersions, _CELLS)[:, None],
                rows.trials[here.rows],
            ),
        )


def _groups_of_dispersion(average: ModelAverage) -> tuple[list[FloatArray], FloatArray]:
    """Models of nearly the same dispersion: probabilities, 0 for the models of other groups; and dispersions."""
    used = average.probabilities > 0.0
    kinds = np.where(used, np.round(np.log(average.dispersions) / _ALIKE), np.inf)
    groups = [np.where(kinds == kind, average.probabilities, 0.0) for kind in np.unique(kinds[used])]
    # The noise has the square of the mean over the dispersion as variance.
    return groups, np.array([group.sum() / (group @ (1.0 / average.dispersions)) for group in groups])


def _linear_quantiles(average: ModelAverage, rows: Rows, levels: FloatArray, *, with_noise: bool = False) -> FloatArray:
    """Quantiles of the linear predictor, with or without the noise of a Gaussian response."""
    order = np.argsort(levels, kind="stable")
    degrees, shapes = np.unique(average.degrees, return_inverse=True)
    tables, standard = _tables(degrees), _standard_quantiles(degrees, levels[order])
    scale = np.sqrt(average.dispersions) if average.family.name == "gaussian" else np.ones(len(average))
    out = np.empty((len(rows.X), len(levels)))
    for here in _located(average, rows):
        width = np.sqrt(np.square(here.spread) + 1.0) if with_noise else here.spread
        part = np.empty((len(width), len(levels)))
        kernels.mixture_quantiles(
            here.location,
            width * scale,
            average.probabilities,
            shapes.astype(np.int64),
            tables,
            levels[order],
            standard,
            part,
        )
        out[here.rows, order] = part
    return out


def _tables(degrees: FloatArray) -> FloatArray:
    """Distribution functions of Student's t (normal for infinite degrees) and derivatives, as the kernels take them."""
    from scipy import stats

    near = np.linspace(-kernels.NEAR, kernels.NEAR, kernels.N_NEAR)
    far = np.linspace(-kernels.FAR, kernels.FAR, kernels.N_FAR)
    z = np.concatenate([near, np.sinh(far)])
    slope = np.concatenate([np.ones_like(near), np.cosh(far)])
    tables = np.empty((len(degrees), len(z), 2))
    for table, df in zip(tables, degrees.tolist(), strict=True):
        distribution = stats.norm if np.isinf(df) else stats.t(max(df, 1e-3))
        table[:, 0], table[:, 1] = distribution.cdf(z), distribution.pdf(z) * slope
    return tables


def _standard_quantiles(degrees: FloatArray, levels: FloatArray) -> FloatArray:
    from scipy import stats

    rows = [stats.norm.ppf(levels) if np.isinf(df) else stats.t.ppf(levels, max(df, 1e-3)) for df in degrees.tolist()]
    return np.asarray(np.clip(np.array(rows), -np.sinh(kernels.FAR), np.sinh(kernels.FAR)))


class Draws(NamedTuple):
    """Draws from the posterior: models, intercept and slopes of standardised columns, and scales of the noise."""

    models: IntArray
    coefficients: FloatArray
    noise: FloatArray


def draw_models(rng: np.random.Generator, average: ModelAverage, n_draws: int) -> IntArray:
    """Draw models by their probabilities."""
    counts = rng.multinomial(n_draws, average.probabilities / average.probabilities.sum())
    models = np.repeat(np.arange(len(average)), counts)
    rng.shuffle(models)
    return models


def draw_coefficients(rng: np.random.Generator, average: ModelAverage, models: IntArray) -> Draws:
    """Draw the coefficients of drawn models; 0 for features that a model lacks."""
    average = average.mixture or average
    draws = np.zeros((len(models), len(average.features) + 1))
    noise = np.zeros(len(models))
    for m in np.unique(models).tolist():
        which = np.flatnonzero(models == m)
        alone = average.only(m)
        size = len(alone.coefficients)
        scale = np.ones(len(which))
        if average.family.name == "gaussian":
            df = float(alone.degrees[0])
            scale *= np.sqrt(alone.dispersions[0])
            if np.isfinite(df):
                scale /= np.sqrt(rng.chisquare(max(df, 1e-3), len(which)) / max(df, 1e-3))
        deviations = rng.standard_normal((len(which), size)) @ alone.factors.reshape(size, size).T
        places = np.append(0, average.members_of(m) + 1)
        draws[which[:, None], places] = alone.coefficients + scale[:, None] * deviations
        noise[which] = scale
    return Draws(models, draws, noise)


def draw_predictive(
    rng: np.random.Generator,
    average: ModelAverage,
    rows: Rows,
    n_draws: int,
    of: str,
    drawn: Draws | None = None,
) -> FloatArray:
    """Draw models and coefficients, and with them the means, or responses, at all rows: (draws, rows).

    With `drawn` these are the models and coefficients.
    """
    average = average.mixture or average
    models = draw_models(rng, average, n_draws) if drawn is None else drawn.models
    if average.latent is not None:
        out, noise = _draw_latent(rng, average, average.latent, rows, models)
        return _with_noise(rng, average, rows, out, noise, models, of)
    drawn = draw_coefficients(rng, average, models) if drawn is None else drawn
    out = np.empty((n_draws, len(rows.X)))
    for here, columns in _columns(average, rows):
        eta = drawn.coefficients[:, :1] + drawn.coefficients[:, 1:] @ columns + rows.offset[here]
        out[:, here] = average.family.mean(eta)
    return _with_noise(rng, average, rows, out, drawn.noise, models, of)


def _draw_latent(
    rng: np.random.Generator, average: ModelAverage, latent: LatentPosterior, rows: Rows, models: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Draw means for so many times each model, and the standard deviation of the noise with them."""
    unit = np.concatenate([columns for _, columns in _columns(average, rows)], axis=1)
    out = np.empty((len(models), len(rows.X)))
    for m in np.unique(models).tolist():
        which = models == m
        drawn = latent.draw(rng, m, int(which.sum()), unit[average.members_of(m)], rows.offset, rows.latent)
        out[which] = average.family.mean(drawn)
    return out, np.sqrt(average.dispersions[models])


def _with_noise(
    rng: np.random.Generator,
    average: ModelAverage,
    rows: Rows,
    out: FloatArray,
    noise: FloatArray,
    models: IntArray,
    of: str,
) -> FloatArray:
    """Responses of drawn means, if that is what is wanted."""
    if of == "mean":
        return out
    if average.family.name == "gaussian":
        return np.asarray(out + noise[:, None] * rng.standard_normal(out.shape))
    for draw, m in enumerate(models.tolist()):
        out[draw] = draw_response(rng, average.family, out[draw], float(average.dispersions[m]), rows.trials)
    return out


def _located(average: ModelAverage, rows: Rows, *, with_spread: bool = True) -> Iterator[_Located]:
    if average.latent is not None:
        yield from _located_latent(average, average.latent, rows, with_spread)
        return
    starts, members = average.starts.astype(np.int64), average.members.astype(np.int64)
    for place, columns in _columns(average, rows):
        for low in range(place.start, place.stop, _LOCATED_ROWS):
            here = slice(low, min(low + _LOCATED_ROWS, place.stop))
            location = np.empty((here.stop - low, len(average)))
            spread = np.empty(location.shape if with_spread else (0, 0))
            kernels.locate(
                np.ascontiguousarray(columns[:, low - place.start : here.stop - place.start]),
                starts,
                members,
                average.coefficients,
                average.factors,
                with_spread,
                location,
                spread,
            )
            location += rows.offset[here, None]
            yield _Located(here, location, spread)


def _located_latent(
    average: ModelAverage, latent: LatentPosterior, rows: Rows, with_spread: bool
) -> Iterator[_Located]:
    gaussian = average.family.name == "gaussian"
    for here, columns in _columns(average, rows):
        location, spread = np.empty((2, columns.shape[1], len(average)))
        places = [component.part(here) for component in rows.latent]
        for m in range(len(average)):
            unit, offset = columns[average.members_of(m)], rows.offset[here]
            if not with_spread:
                location[:, m] = latent.mean(m, unit, offset, places)
                continue
            location[:, m], variance = latent.locate(m, unit, offset, places)
            spread[:, m] = np.sqrt(variance / average.dispersions[m] if gaussian else variance)
        yield _Located(here, location, spread)


def _columns(average: ModelAverage, rows: Rows) -> Iterator[tuple[slice, FloatArray]]:
    """Standardised columns of the features for some rows after the other, as (features, rows)."""
    with NewColumns(average.features, average.ranges) as new:
        for low in range(0, len(rows.X), _ROWS):
            here = slice(low, min(low + _ROWS, len(rows.X)))
            columns = new.evaluate(rows.X[here], rows.names).T
            with np.errstate(over="ignore"):
                standardised = (columns - average.centres[:, None]) / average.scales[:, None]
            yield here, np.ascontiguousarray(np.clip(standardised, -FARTHEST_OUT, FARTHEST_OUT))
