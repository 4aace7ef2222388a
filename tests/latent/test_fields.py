"""Precisions, priors and conditional distributions of the components against dense covariances."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

from bgnlm.errors import SettingError
from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped, LatentField
from bgnlm.latent.hyperpriors import Gamma, Normal
from tests.naive_latent import covariance, dense_band, log_hyperprior

EVEN = np.arange(9.0)
UNEVEN = np.array([-3.0, -2.9, 0.0, 0.5, 4.0, 4.25, 9.0])
FIELDS = [
    (IID("pos"), [1.3]),
    (Grouped("site"), [-0.4]),
    (Grouped("site", slope="z"), [2.0]),
    (RW1("pos"), [1.3]),
    (RW1(0), [-2.0]),
    (AR1("pos"), [0.7, 2.5]),
    (AR1("pos"), [0.7, -1.0]),
    (AR1("pos"), [-3.0, 0.0]),
    (AR1("pos"), [0.7, 9.0]),
    (OU("pos"), [0.7, 0.5]),
    (OU("pos"), [-1.0, -4.0]),
    (OU("pos"), [-1.0, 5.0]),
]
IDS = [f"{type(f).__name__}{h}" for f, h in FIELDS]


@pytest.mark.parametrize("positions", [EVEN, UNEVEN, UNEVEN[:2], UNEVEN[:1]], ids=["even", "uneven", "two", "one"])
@pytest.mark.parametrize(("component", "hyperparameters"), FIELDS, ids=IDS)
def test_precision_is_the_inverse_of_the_covariance(component, hyperparameters, positions):
    positions = component.times(positions)
    band = component.precision(np.array(hyperparameters), positions)
    matrix = dense_band(band)
    first = 1 if component.is_pinned else 0
    expected = covariance(component, hyperparameters, positions)[first:, first:]
    assert np.linalg.inv(matrix)[first:, first:] == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert len(band) == len(positions)
    if component.is_pinned:  # by itself, and without a part in the determinant
        assert (matrix[0] == np.eye(len(positions))[0]).all()


@pytest.mark.parametrize(("component", "hyperparameters"), FIELDS, ids=IDS)
def test_hyperpriors(component, hyperparameters):
    assert component.log_prior(np.array(hyperparameters)) == pytest.approx(log_hyperprior(component, hyperparameters))
    assert isinstance(component, LatentField)
    assert component.n_hyperparameters == len(hyperparameters) == len(component.describe(np.array(hyperparameters)))
    for start in component.starts:
        assert len(start) == component.n_hyperparameters
        assert math.isfinite(component.log_prior(np.array(start)))
    with pytest.raises(FrozenInstanceError):
        component.column = "other"


@pytest.mark.parametrize("prior", [Gamma(), Gamma(2.5, 0.1), Gamma(0.5, 30.0)])
@pytest.mark.parametrize("kind", [IID, RW1, Grouped, AR1, OU])
def test_densities_of_hyperparameters_integrate_to_one(kind, prior):
    component = kind("pos", precision_prior=prior)
    fine, coarse = np.linspace(-59.9, 59.9, 4001), np.linspace(-30.0, 30.0, 121)
    if component.n_hyperparameters == 1:
        total = sum(math.exp(component.log_prior(np.array([x]))) for x in fine) * (fine[1] - fine[0])
        assert total == pytest.approx(1.0, abs=1e-6)
        return
    along = np.array([component.log_prior(np.array([x, 0.3])) for x in fine])
    across = np.array([component.log_prior(np.array([1.0, x])) for x in coarse])
    crossing = component.log_prior(np.array([1.0, 0.3]))
    total = np.exp(along).sum() * (fine[1] - fine[0]) * np.exp(across - crossing).sum() * (coarse[1] - coarse[0])
    assert total == pytest.approx(1.0, abs=1e-6)
    assert component.log_prior(np.array([2.0, -1.0])) - component.log_prior(np.array([1.0, -1.0])) == pytest.approx(
        component.log_prior(np.array([2.0, 0.3])) - crossing
    )


@pytest.mark.parametrize(("shape", "rate"), [(1.0, 5e-5), (2.5, 0.1), (0.3, 7.0)])
def test_gamma_and_normal(shape, rate):
    prior = Gamma(shape, rate)
    for x in (-20.0, -1.0, 0.0, 3.0):
        expected = stats.gamma.logpdf(math.exp(x), shape, scale=1 / rate) + x
        assert prior.log_density(x) == pytest.approx(expected, abs=1e-10)
        assert Normal(shape, rate).log_density(x) == pytest.approx(stats.norm.logpdf(x, shape, rate**-0.5), abs=1e-10)
        assert prior.log_density(x) <= prior.log_density(prior.mode)


def test_natural_units():
    assert AR1("t").describe(np.array([math.log(4.0), math.log(3.0)])) == pytest.approx({"sd": 0.5, "correlation": 0.5})
    assert OU("t").describe(np.array([math.log(4.0), math.log(3.0)])) == pytest.approx({"sd": 0.5, "phi": 3.0})
    assert RW1("t").describe(np.array([math.log(4.0)])) == pytest.approx({"sd of increments": 0.5})
    assert IID("t").describe(np.array([math.log(4.0)])) == pytest.approx({"sd": 0.5})


def _dense_bridge(known, cross, own):
    """Conditional mean as weights of all known positions, and conditional variance."""
    weights = np.linalg.solve(known, cross)
    return weights, own - cross @ weights


def _check_bridge(bridge, number, weights, variance):
    ours = np.zeros(len(weights))
    ours[bridge.left[number]] += bridge.left_weight[number]
    ours[bridge.right[number]] += bridge.right_weight[number]
    assert ours == pytest.approx(weights, abs=1e-7)
    assert bridge.variance[number] == pytest.approx(variance, abs=1e-9)


@pytest.mark.parametrize("positions", [EVEN, UNEVEN, UNEVEN[:2], UNEVEN[:1]], ids=["even", "uneven", "two", "one"])
@pytest.mark.parametrize(
    ("component", "hyperparameters"), [(OU("pos"), [0.7, 0.5]), (OU("pos"), [-1.0, -2.0]), (RW1("pos"), [1.3])]
)
def test_fields_elsewhere_given_where_they_are_known(component, hyperparameters, positions):
    """Inside, beyond both ends, and where it is known; a walk before its beginning walks back."""
    low, high = positions[0], positions[-1]
    wanted = np.array([low - 7.0, low - 0.3, low + 0.05, 0.2, 2.0, 4.0, high + 0.1, high + 20.0, high, low])
    if isinstance(component, RW1):
        wanted = wanted[wanted != low]
    bridge = component.bridge(np.array(hyperparameters), positions, wanted)
    for number, place in enumerate(wanted):
        if (positions == place).any():
            weights, variance = (positions == place).astype(float), 0.0
        elif isinstance(component, RW1):
            weights, variance = _walk_elsewhere(positions, place, math.exp(hyperparameters[0]))
        else:
            both = covariance(component, hyperparameters, np.append(positions, place))
            weights, variance = _dense_bridge(both[:-1, :-1], both[:-1, -1], both[-1, -1])
        _check_bridge(bridge, number, weights, variance)


def test_a_walk_where_it_begins():
    bridge = RW1("pos").bridge(np.array([1.3]), EVEN, EVEN[:2])
    assert bridge.variance == pytest.approx([0.0, 0.0], abs=1e-12)
    assert bridge.left_weight + bridge.right_weight == pytest.approx([1.0, 1.0])


def _walk_elsewhere(positions, place, precision):
    """From the precision matrix of a walk with no beginning, over all positions."""
    order = np.argsort(np.append(positions, place))
    everywhere = np.append(positions, place)[order]
    increments = np.diff(np.eye(len(everywhere)), axis=0)
    structure = increments.T @ np.diag(precision / np.diff(everywhere)) @ increments
    new = int(np.flatnonzero(everywhere == place)[0])
    return -np.delete(structure[new], new) / structure[new, new], 1.0 / structure[new, new]


@pytest.mark.parametrize("hyperparameter", [2.5, 0.0, -1.5])
def test_autoregression_elsewhere(hyperparameter):
    """Positions are steps: whole ones beyond the ends, and fractions inside."""
    component, rho, variance = AR1("pos"), math.tanh(hyperparameter / 2), math.exp(-0.7)
    beyond = np.array([-4.0, -1.0, 0.0, 1.0, 8.0, 9.0, 10.0, 15.0])
    bridge = component.bridge(np.array([0.7, hyperparameter]), EVEN, beyond)
    known = covariance(component, [0.7, hyperparameter], EVEN)
    for number, place in enumerate(beyond):
        _check_bridge(bridge, number, *_dense_bridge(known, variance * rho ** np.abs(EVEN - place), variance))
    fractions = np.array([0.15, 2.5, 7.95])
    bridge = component.bridge(np.array([0.7, hyperparameter]), EVEN, fractions)
    assert (bridge.right - bridge.left == 1).all()
    for number, place in enumerate(fractions):  # a negative correlation swings
        steps = np.abs(EVEN - place)
        correlations = abs(rho) ** steps * (np.cos(np.pi * steps) if rho < 0 else 1.0)
        near = [int(place), int(place) + 1]
        weights = np.zeros(len(EVEN))
        weights[near], rest = _dense_bridge(known[np.ix_(near, near)], variance * correlations[near], variance)
        _check_bridge(bridge, number, weights, rest)


@pytest.mark.parametrize("component", [IID("pos"), Grouped("site")])
def test_nothing_is_known_of_other_labels(component):
    bridge = component.bridge(np.array([math.log(4.0)]), EVEN, np.array([3.5, -1.0]))
    assert bridge.variance == pytest.approx([0.25, 0.25])
    assert not bridge.left_weight.any()
    assert not bridge.right_weight.any()


@pytest.mark.parametrize("kind", [IID, AR1, RW1, OU, Grouped])
@pytest.mark.parametrize("column", [True, "", 1.5, None])
def test_columns_that_are_refused(kind, column):
    with pytest.raises(SettingError, match="must be the name of a column"):
        kind(column)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: IID("pos", precision_prior=3.0), "must be a Gamma"),
        (lambda: Grouped("pos", precision_prior=Normal()), "must be a Gamma"),
        (lambda: AR1("pos", correlation_prior=Gamma()), "must be a Normal"),
        (lambda: OU("pos", decay_prior=0.2), "must be a Normal"),
        (lambda: Grouped("pos", slope=1.5), "slope of Grouped"),
        (lambda: Gamma(0.0, 1.0), "shape"),
        (lambda: Gamma(1.0, math.nan), "rate"),
        (lambda: Normal(math.inf, 1.0), "mean"),
        (lambda: Normal(0.0, -1.0), "precision"),
    ],
)
def test_settings_that_are_refused(make, words):
    with pytest.raises(SettingError, match=words):
        make()
