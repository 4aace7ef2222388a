"""What a Laplace approximation leaves out, by quadrature along a chain: against grids over the whole path."""

import math

import numpy as np
import pytest
from scipy import special

from bgnlm.kernels import chain_ratio
from bgnlm.kernels.families import row_terms, row_value, row_values
from bgnlm.latent import log_marginal, refined
from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.hyperpriors import Gamma
from bgnlm.latent.inner import SlopePrior
from tests.latent.cases import build
from tests.naive_glm import log_likelihood_rows
from tests.naive_latent import ALL_PAIRS, Case, covariance, placed, simulate

POISSON, BINOMIAL = ("poisson", "log"), ("binomial", "logit")


def _exact(case, hyperparameters, intercepts):
    """Log p(y | hyperparameters) of one chain and an intercept, by a filter on a grid; rows sorted by position."""
    (component,) = case.components
    parts, dispersion, _ = case.split(hyperparameters)
    matrix = covariance(component.field, parts[0], component.positions)
    spread = math.sqrt(np.diag(matrix).max())
    grid, h = np.linspace(-8 * spread, 8 * spread, 401, retstep=True)
    pinned = component.field.is_pinned
    message, totals = None, np.zeros(len(intercepts))  # messages: (grid, intercepts)
    for t in range(len(component.positions)):
        if t == 0 or (t == 1 and pinned):
            if variance := matrix[t, t]:
                density = np.exp(-0.5 * grid**2 / variance) * h / math.sqrt(2 * math.pi * variance)
                message = np.repeat(density[:, None], len(intercepts), axis=1)
        else:
            slope = matrix[t, t - 1] / matrix[t - 1, t - 1]
            rest = matrix[t, t] - slope * matrix[t, t - 1]
            moves = np.exp(-0.5 * (grid[:, None] - slope * grid) ** 2 / rest) * h / math.sqrt(2 * math.pi * rest)
            message = moves @ message
        rows = np.flatnonzero(component.place == t)[:, None, None]
        at = grid[:, None] if message is not None else np.zeros((1, 1))
        eta = intercepts + case.response.offset[rows] + component.loading[rows] * at
        values = case.response.weights[rows] * log_likelihood_rows(*case.pair, case.y[rows], eta, dispersion)
        values = values.sum(axis=0)
        totals += values.max(axis=0)
        if message is not None:
            message = message * np.exp(values - values.max(axis=0))
            totals += np.log(message.sum(axis=0))
            message /= message.sum(axis=0)
    value = special.logsumexp(totals) + math.log(intercepts[1] - intercepts[0])
    if case.pair[0] == "binomial":
        w, y = case.response.weights, case.y
        value += np.sum(-np.log1p(w) - special.betaln(1 + w * y, 1 + w - w * y))
    return value


@pytest.mark.parametrize(
    ("component", "hyperparameters"),
    [
        (IID("pos"), [-2.0]),
        (IID("pos"), [0.5]),
        (AR1("pos"), [-1.5, 1.5]),
        (AR1("pos"), [-1.0, -1.5]),
        (RW1("pos"), [1.5]),
        (OU("pos"), [-1.5, -1.0]),
        (Grouped("pos"), [-1.5]),
    ],
    ids=str,
)
@pytest.mark.parametrize("pair", [POISSON, BINOMIAL], ids="-".join)
def test_sparse_counts_against_the_whole_path(pair, component, hyperparameters):
    """Few events, and effects that are large: the series of the second order would be off by up to a nat."""
    rng = np.random.default_rng(4)
    n = 40
    place = np.arange(n) // 2 if isinstance(component, Grouped) else np.arange(n)
    field = placed(component, place)
    hyperparameters = np.array(hyperparameters)
    matrix = covariance(component, hyperparameters, field.positions)
    effects = rng.multivariate_normal(np.zeros(len(matrix)), matrix)
    y = simulate(rng, pair, -1.0 + effects[field.place], np.ones(n))
    case = Case(pair, y, (field,))
    inner = case.inner()
    there = inner.evaluate(hyperparameters, inner.start(), 1e-14)
    ours = there.log_integrand - inner.log_prior(hyperparameters) + refined.log_ratio(inner, hyperparameters, there)
    assert ours == pytest.approx(_exact(case, hyperparameters, np.linspace(-16.0, 9.0, 126)), abs=0.03)


@pytest.mark.parametrize("pair", ALL_PAIRS[1:], ids="-".join)
@pytest.mark.parametrize("layout", ["none", "iid", "ar1", "ar1, swinging", "rw1", "ou", "grouped"])
def test_equals_the_series_where_that_is_small(pair, layout):
    case, hyperparameters = build(pair, layout, n=60, level=3.0 if pair[0] != "binomial" else 0.3)
    case = Case(case.pair, case.y, case.components, case.columns, 6 * case.weights, case.offset, case.slopes)
    inner = case.inner()
    there = inner.evaluate(hyperparameters, inner.start(), 1e-14)
    series = inner.series(hyperparameters, there)
    assert not series.is_doubtful
    assert refined.log_ratio(inner, hyperparameters, there) == pytest.approx(
        series.total, abs=0.02 + 0.25 * abs(series.total)
    )
    assert inner.correction(hyperparameters, there) == series.total


@pytest.mark.parametrize("component", [None, AR1("pos"), IID("pos")], ids=str)
def test_category_without_a_single_event(component):
    """Its slope has a posterior with a cliff: against a grid of that slope, given which everything is well-behaved."""
    rng = np.random.default_rng(2)
    n, k = 80, 20
    column = (np.arange(n) % 4 == 0).astype(float)
    y = rng.poisson(1.5, size=n) * (1.0 - column)
    components = () if component is None else (placed(component, np.arange(n)),)
    case = Case(POISSON, y, components, column[:, None])
    inner = case.inner()
    hyperparameters = np.array({AR1: [2.0, 1.0], IID: [2.0]}.get(type(component), []))
    there = inner.evaluate(hyperparameters, inner.start(), 1e-14)
    assert inner.series(hyperparameters, there).is_doubtful
    ours = there.log_integrand + inner.correction(hyperparameters, there)
    slopes = np.concatenate([np.arange(-160.0, -8.0, 1.0), np.arange(-8.0, 4.0, 0.1)])
    widths = np.where(slopes < -8.0, 1.0, 0.1)
    values = []
    for slope in slopes:
        rest = Case(POISSON, y, components, offset=slope * column).inner()
        found = rest.evaluate(hyperparameters, rest.start(), 1e-12)
        values.append(found.log_integrand + rest.series(hyperparameters, found).total - 0.5e-3 * slope**2)
    expected = special.logsumexp(np.array(values) + np.log(widths)) + 0.5 * math.log(1e-3 / (2 * math.pi))
    assert k == column.sum()
    assert ours == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("prior", [Gamma(1.0, 0.5), Gamma()], ids=str)
@pytest.mark.parametrize("sd", [0.0, 2.0])
def test_effects_of_single_binary_rows(sd, prior):
    """Nothing tells how large they are, and the Laplace approximation is worse the larger: against exact integrals."""
    rng = np.random.default_rng(0)
    n = 200
    y = simulate(rng, BINOMIAL, 0.3 + sd * rng.normal(size=n), np.ones(n))
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    log_precisions, intercepts = np.arange(-8.0, 16.0, 0.1), np.arange(-40.0, 40.0, 0.05)
    values = []
    for log_precision in log_precisions:
        yes = special.expit(intercepts[:, None] + nodes * math.exp(-0.5 * log_precision)) @ weights / weights.sum()
        likelihood = y.sum() * np.log(yes) + (n - y.sum()) * np.log1p(-yes)
        values.append(special.logsumexp(likelihood) + prior.log_density(log_precision))
    expected = special.logsumexp(values) + math.log(0.1 * 0.05)
    found = log_marginal(y, family="binomial", latent=[IID("t", prior)], positions=np.arange(n))
    assert found == pytest.approx(expected, abs=0.05)


def test_only_one_chain_and_few_coefficients(monkeypatch):
    one, _ = build(POISSON, "ar1")
    assert refined.applies(one.inner())
    for layout in ("iid, ar1", "intercepts and slopes"):
        assert not refined.applies(build(POISSON, layout)[0].inner())
    monkeypatch.setattr(refined, "MOST_COEFFICIENTS", 2)
    assert not refined.applies(one.inner())


@pytest.mark.parametrize("pair", ALL_PAIRS, ids="-".join)
def test_values_of_single_rows(pair):
    case, _ = build(pair, "none")
    response = case.response
    eta = np.linspace(-4.0, 4.0, len(case.y))
    values, score, information = np.empty((3, len(eta)))
    row_values(response.family.code, 2.0, case.y, response.weights, eta, values)
    total = row_terms(response.family.code, 2.0, case.y, response.weights, eta, score, information)
    assert values.sum() == pytest.approx(total, rel=1e-10)
    slopes = [row_value(response.family.code, 2.0, *row)[1] for row in zip(case.y, response.weights, eta, strict=True)]
    assert slopes == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_compiled_kernels_equal_their_interpreted_form(monkeypatch):
    case, hyperparameters = build(POISSON, "ar1", n=12)
    inner = case.inner()
    there = inner.evaluate(hyperparameters, inner.start(), 1e-14)
    compiled = refined.log_ratio(inner, hyperparameters, there)
    names = ("chain_moments", "log_mean_ratio", "_log_factors", "_times_factors", "_carry_over", "_scaled")
    for name in names:
        monkeypatch.setattr(chain_ratio, name, getattr(chain_ratio, name).py_func)
    assert refined.log_ratio(inner, hyperparameters, there) == pytest.approx(compiled, abs=1e-9)


def test_slopes_of_the_coefficients():
    """A prior that is itself narrow leaves nothing to correct along a coefficient."""
    case, hyperparameters = build(POISSON, "iid", slopes=SlopePrior(precision=1e6))
    inner = case.inner()
    there = inner.evaluate(hyperparameters, inner.start(), 1e-14)
    rho, slopes = refined._ratios(inner, hyperparameters, there, 16)
    at = np.array([0.3, -0.2, 0.1])
    steps = 1e-4 * np.eye(3)
    expected = [(rho(at + step) - rho(at - step)) / 2e-4 for step in steps]
    assert slopes(at) == pytest.approx(expected, abs=1e-6)
