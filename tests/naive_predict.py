"""Obvious slow twins of prediction: mixtures by scipy, one model and one row after the other."""

import itertools
import math

import numpy as np
from scipy import integrate, optimize, stats

import bgnlm
from bgnlm.features import Input, TrainingRange
from bgnlm.likelihood.families import resolve_family
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.predict import Rows
from tests.naive_glm import simulate

INF = math.inf


def component(degrees):
    """Student's t, or the normal distribution."""
    return stats.norm if math.isinf(degrees) else stats.t(degrees)


def mixture_cdf(x, places, widths, weights, degrees):
    """Distribution function of a mixture; a component without width is a step."""
    total = 0.0
    for place, width, weight, df in zip(places, widths, weights, degrees, strict=True):
        if weight > 0.0:
            total += weight * (component(df).cdf((x - place) / width) if width > 0.0 else float(x >= place))
    return total


def mixture_quantile(level, places, widths, weights, degrees):
    """By bisection of the whole mixture between the components' own quantiles."""
    used = [i for i, weight in enumerate(weights) if weight > 0.0]
    each = [places[i] + widths[i] * component(degrees[i]).ppf(level) for i in used]
    low, high = min(each), max(each)
    reach = 1e-6 * max(high - low, max(widths[i] for i in used))
    return optimize.brentq(
        lambda x: mixture_cdf(x, places, widths, weights, degrees) - level,
        low - reach,
        high + reach,
        xtol=1e-14,
        rtol=1e-14,
    )


def mixture_width(places, widths, weights):
    """Standard deviation of a mixture of normal distributions with these places and widths."""
    places, widths, weights = (np.asarray(values, dtype=float) for values in (places, widths, weights))
    weights = weights / weights.sum()
    return float(np.sqrt(weights @ (np.square(places - weights @ places) + np.square(widths))))


def normal_expectation(function, place, width):
    """E f(eta) for normal eta by adaptive quadrature."""
    pieces = [place + width * z for z in (-9.0, -3.0, -1.0, 0.0, 1.0, 3.0, 9.0)]
    ends = sorted({*pieces, *(end for end in (-40.0, -5.0, 0.0, 5.0, 40.0) if pieces[0] < end < pieces[-1])})
    return sum(
        integrate.quad(lambda e: function(e) * stats.norm.pdf(e, place, width), low, high, epsabs=1e-13, epsrel=1e-11)[
            0
        ]
        for low, high in itertools.pairwise(ends)
    )


def new_rows(X, offset=None, trials=None):
    """Rows of plain inputs x1, x2, ..."""
    n_rows, n_inputs = X.shape
    return Rows(
        np.asarray(X, dtype=float),
        tuple(f"x{j + 1}" for j in range(n_inputs)),
        np.zeros(n_rows) if offset is None else np.asarray(offset, dtype=float),
        np.ones(n_rows) if trials is None else np.asarray(trials, dtype=float),
    )


def fits_of(y, X, models, **options):
    """One `ModelFit` for each model, each from a call of its own."""
    return [bgnlm.fit_model(y, X[:, list(model)], **options) for model in models]


def average_of(y, X, models, probabilities, **options):
    """A `ModelAverage` of linear models, put together from separate fits of standardised columns."""
    weights = np.asarray(options.get("sample_weight", np.ones(len(y))), dtype=float)
    centres = weights @ X / weights.sum()
    scales = np.sqrt(weights @ np.square(X - centres) / weights.sum())
    fits = fits_of(y, (X - centres) / scales, models, **options)
    return ModelAverage(
        family=resolve_family(options.get("family", "gaussian"), options.get("link")),
        features=tuple(Input(f"x{j + 1}") for j in range(X.shape[1])),
        known_as=tuple(Input(f"x{j + 1}") for j in range(X.shape[1])),
        ranges=tuple(TrainingRange.of(column, weights) for column in X.T),
        centres=centres,
        scales=scales,
        probabilities=np.asarray(probabilities, dtype=float),
        mass=1.0,
        starts=np.append(0, np.cumsum([len(model) for model in models])),
        members=np.concatenate([*map(list, models), []]).astype(np.int64),
        coefficients=np.concatenate([fit.coefficients for fit in fits]),
        factors=np.concatenate([fit.covariance_factor.ravel() for fit in fits]),
        dispersions=np.array([fit.dispersion for fit in fits]),
        degrees=np.array([fit.degrees_of_freedom for fit in fits]),
    )


def components_at(fits, models, x, offset=0.0, *, gaussian=False, with_noise=False):
    """Place and width of the linear predictor of each model at one row, from fits on the scale of the data."""
    places, widths = [], []
    for fit, model in zip(fits, models, strict=True):
        z = np.append(1.0, x[list(model)])
        covariance = fit.covariance_factor @ fit.covariance_factor.T
        scale = fit.dispersion if gaussian else 1.0
        places.append(float(z @ fit.coefficients) + offset)
        widths.append(float(np.sqrt(scale * (z @ covariance @ z + with_noise))))
    return places, widths


def example(family="gaussian", link=None, n=60, k=4, seed=0, **options):
    """Data, some models of them with probabilities, and the options that describe them."""
    if family == "gaussian":
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, k)) * 3.0 ** np.arange(k) + 2.0 * np.arange(k)
        y = 1.0 + X[:, 0] - 0.1 * X[:, 2 % k] + rng.normal(size=n)
        options = {"family": family} | options
    else:
        y, X, weights, _ = simulate(family, link, n, k, seed, weighted=family == "binomial")
        options = {"family": family, "link": link, "sample_weight": weights} | options
    models = [(0, 2), (0,), (0, 1, 2), (3,), ()]
    probabilities = np.array([0.45, 0.3, 0.15, 0.06, 0.04])
    return y, X, models, probabilities, options
