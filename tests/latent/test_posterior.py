"""New rows, effects and coefficients of models with given hyperparameters, against dense normal distributions."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import block_diag

from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.inner import Mode, SlopePrior
from bgnlm.latent.models import LatentModels
from bgnlm.latent.nested_laplace import Node
from bgnlm.latent.place import UNKNOWN, place, place_new
from bgnlm.latent.posterior import Entry, LatentPosterior, leading_nodes
from tests.naive_latent import Case, DenseLaplace, covariance, simulate

POISSON, GAUSSIAN = ("poisson", "log"), ("gaussian", "identity")
N = 24
POS = np.array([0.0, 1.0, 2.5, 3.0, 4.0, 7.0, 7.5, 8.0, 9.0, 11.0])
# Where it begins, known, two in one gap, twice the same, two before the beginning, three beyond the end.
NEW_POS = np.array([0.0, 7.0, 4.5, 6.0, 6.0, -1.5, -0.5, 11.4, 13.0, 13.0, 20.0])
NEW_SITE = np.array(["a", "d", "new", "b", "new", "other", "a", "c", "c", "d", "new"])
NEW_YEAR = np.array([3.0, 1.0, 2.5, 2.2, 0.0, 4.0, 4.0, 2.0, 1.0, -1.0, 2.0])
# In the band and beside it.
LAYOUTS = {
    "none": ([], []),
    "iid": ([IID("pos")], [0.4]),
    "ar1": ([AR1("pos")], [0.5, 2.0]),
    "rw1": ([RW1("pos")], [1.0]),
    "ou": ([OU("pos")], [0.3, -0.5]),
    "groups": ([Grouped("site")], [0.3]),
    "slopes": ([Grouped("site", slope="z")], [0.3]),
    "intercepts and slopes": ([Grouped("site"), Grouped("site", slope="z")], [0.3, 0.9]),
    "two along": ([AR1("pos"), IID("pos")], [0.5, 1.0, 0.8]),
    "three along": ([RW1("pos"), OU("pos"), IID("pos")], [1.0, 0.3, -0.5, 1.0]),
    "groups beside": ([AR1("pos"), Grouped("site"), Grouped("site", slope="z")], [0.5, 2.0, 0.3, 0.9]),
    "walk beside": ([OU("pos"), RW1("year")], [0.3, -0.5, 0.7]),
    "processes beside": ([RW1("pos"), AR1("year"), IID("site")], [1.0, 0.5, 1.0, 0.4]),
}


class Fitted(NamedTuple):
    """A posterior of one model, its dense twin, and new rows for both."""

    posterior: LatentPosterior
    case: Case
    dense: DenseLaplace
    hyperparameters: np.ndarray
    places: list
    columns: np.ndarray
    offset: np.ndarray

    @property
    def unit(self):
        inner = self.posterior.fit(0)[0]
        return ((self.columns[:, [0, 2]] - inner.centres) / inner.scales).T


def _fit(layout, pair, scale=1.0):
    rng = np.random.default_rng(3)
    components, parts = LAYOUTS[layout]
    known = {"pos": POS[rng.permutation(N) % len(POS)], "year": 1.0 + rng.permutation(N) % 3, "z": rng.normal(size=N)}
    known["site"] = np.array(list("abcd"))[rng.permutation(N) % 4]
    n_new = len(NEW_POS)
    new = {"pos": NEW_POS, "site": NEW_SITE, "year": NEW_YEAR, "z": rng.normal(size=n_new)}
    placed, places = [], []
    for component in components:
        slopes = [None, None] if component.slope is None else [known[component.slope], new[component.slope]]
        here, positions = place(component, known[component.column], slopes[0])
        placed.append(here)
        places.append(place_new(positions, new[component.column], slopes[1]))
    columns = 3.0 + rng.normal(size=(N, 3))
    weights, offset = rng.integers(1, 4, size=N).astype(float), 0.3 * rng.normal(size=N)
    y = simulate(rng, pair, 0.5 + offset + np.sin(known["pos"]) + 0.4 * (columns[:, 0] - 3.0), weights)
    slopes = SlopePrior(precision=0.1)
    case = Case(pair, y, tuple(placed), columns[:, [0, 2]], weights, offset, slopes)
    hyperparameters = np.array([*parts, math.log(2.0)] if pair == GAUSSIAN else parts)
    models = LatentModels(case.response, case.components, slopes, scale=scale)
    entry = Entry((0, 2), tuple(range(len(components))), tuple(hyperparameters))
    posterior = LatentPosterior(models, columns, (entry,))
    dense = DenseLaplace(case, hyperparameters)
    new_columns, new_offset = 3.0 + rng.normal(size=(n_new, 3)), scale * 0.3 * rng.normal(size=n_new)
    return Fitted(posterior, case, dense, hyperparameters, places, new_columns, new_offset)


def _covariance(field, hyperparameters, one, other):
    """Between the field at two sets of times."""
    variance, distance = math.exp(-hyperparameters[0]), np.abs(one[:, None] - other)
    match field:
        case AR1():
            return variance * math.tanh(0.5 * hyperparameters[1]) ** distance
        case OU():
            return variance * np.exp(-math.exp(hyperparameters[1]) * distance)
        case RW1():  # from the time 0 on, to both sides
            away = np.minimum(np.abs(one)[:, None], np.abs(other))
            return variance * np.where(one[:, None] * other > 0, away, 0.0)
        case _:
            return variance * (distance == 0)


def _elsewhere(component, hyperparameters, new):
    """Weights of all known values in those of new rows, and what these do not tell."""
    field, first = component.field, int(component.field.is_pinned)
    known, times = component.positions[first:], new.times
    if first:
        known, times = known - component.positions[0], times - component.positions[0]
    if field.by_label:  # elsewhere than all known ones
        times = np.where(new.place == UNKNOWN, 1e6 + times, 0.0)
    own = covariance(field, hyperparameters, component.positions)[first:, first:]
    cross = _covariance(field, hyperparameters, times, known)
    among = _covariance(field, hyperparameters, times, times)
    is_known = new.place != UNKNOWN
    cross[is_known] = 0.0
    for row in np.flatnonzero(is_known):
        if new.place[row] >= first:
            cross[row] = own[new.place[row] - first]
    weights = np.linalg.solve(own, cross.T).T
    rest = among - weights @ cross.T
    rest[is_known] = rest[:, is_known] = 0.0
    return weights * new.loading[:, None], rest * np.outer(new.loading, new.loading)


def _dense(fitted):
    """Mean and covariance of the linear predictors of new rows, without offset and scale."""
    case, dense = fitted.case, fitted.dense
    parts = case.split(fitted.hyperparameters)[0]
    rest = np.zeros((len(fitted.offset),) * 2)
    loads = [np.ones((len(rest), 1)), fitted.columns[:, [0, 2]]]
    for component, part, new in zip(case.components, parts, fitted.places, strict=True):
        weights, beyond = _elsewhere(component, part, new)
        loads.append(weights)
        rest += beyond
    loads = np.column_stack(loads)
    inverse = np.linalg.inv(dense.hessian(dense.mode))
    return loads @ dense.mode, loads @ inverse @ loads.T + rest


EVERY = [*((layout, POISSON, 1.0) for layout in LAYOUTS), *((layout, GAUSSIAN, 5.0) for layout in LAYOUTS)]


@pytest.mark.parametrize(("layout", "pair", "scale"), EVERY)
def test_locate(layout, pair, scale):
    fitted = _fit(layout, pair, scale)
    mean, variance = fitted.posterior.locate(0, fitted.unit, fitted.offset, fitted.places)
    expected, spread = _dense(fitted)
    exact = 1e-6 if pair == GAUSSIAN else 1e-3
    assert mean == pytest.approx(fitted.offset + scale * expected, abs=exact * scale)
    assert variance == pytest.approx(scale**2 * np.diag(spread), rel=exact)


@pytest.mark.parametrize(("layout", "pair", "scale"), EVERY)
def test_draw(layout, pair, scale):
    """Means and all covariances: of rows at one new position, in one gap, and beyond an end."""
    fitted, n_draws = _fit(layout, pair, scale), 20000
    draws = fitted.posterior.draw(
        np.random.default_rng(0), 0, n_draws, fitted.unit, fitted.offset, [p.part(slice(None)) for p in fitted.places]
    )
    mean, variance = fitted.posterior.locate(0, fitted.unit, fitted.offset, fitted.places)
    deviation = np.sqrt(variance)
    assert draws.shape == (n_draws, len(mean))
    assert (draws.mean(axis=0) - mean) / deviation == pytest.approx(np.zeros(len(mean)), abs=5 / math.sqrt(n_draws))
    spread = scale**2 * _dense(fitted)[1] / np.outer(deviation, deviation)
    found = np.cov(draws.T) / np.outer(deviation, deviation)
    assert found == pytest.approx(spread, abs=5 * math.sqrt(2 / n_draws))


@pytest.mark.parametrize(("layout", "pair", "scale"), EVERY)
def test_effects(layout, pair, scale):
    fitted = _fit(layout, pair, scale)
    inverse = np.linalg.inv(fitted.dense.hessian(fitted.dense.mode))
    first = 3
    for c, component in enumerate(fitted.case.components):
        pinned = int(component.field.is_pinned)
        last = first + len(component.positions) - pinned
        effect = fitted.posterior.effect(0, c)
        mean = [0.0] * pinned + list(scale * fitted.dense.mode[first:last])
        deviation = [0.0] * pinned + list(scale * np.sqrt(np.diag(inverse)[first:last]))
        exact = 1e-6 if pair == GAUSSIAN else 1e-3
        assert effect.mean == pytest.approx(np.array(mean), abs=exact * scale)
        assert effect.deviation == pytest.approx(np.array(deviation), rel=exact)
        first = last


@pytest.mark.parametrize(("layout", "pair", "scale"), EVERY)
def test_coefficients(layout, pair, scale):
    """Of standardised columns; the factor is in units of the noise."""
    fitted = _fit(layout, pair, scale)
    inner = fitted.posterior.fit(0)[0]
    to_unit = block_diag([[1.0]], np.diag(inner.scales))
    to_unit[0, 1:] = inner.centres
    inverse = np.linalg.inv(fitted.dense.hessian(fitted.dense.mode))[:3, :3]
    found = fitted.posterior.coefficients(0)
    exact = 1e-6 if pair == GAUSSIAN else 1e-3
    assert found.mode == pytest.approx(scale * to_unit @ fitted.dense.mode[:3], abs=exact * scale)
    assert found.dispersion == (pytest.approx(scale**2 / 2.0) if pair == GAUSSIAN else 1.0)
    spread = found.factor @ found.factor.T * (found.dispersion if pair == GAUSSIAN else 1.0)
    assert spread == pytest.approx(scale**2 * to_unit @ inverse @ to_unit.T, rel=exact, abs=1e-9)


def test_hyperparameters_in_natural_units():
    posterior = _fit("processes beside", GAUSSIAN, 5.0).posterior
    found = posterior.hyperparameters(0)
    natural = {posterior.models.names[c]: posterior.natural(c, values) for c, values in found.items()}
    assert natural == {
        "RW1(pos)": {"sd of increments": pytest.approx(5.0 * math.exp(-0.5))},
        "AR1(year)": {"sd": pytest.approx(5.0 * math.exp(-0.25)), "correlation": pytest.approx(math.tanh(0.5))},
        "IID(site)": {"sd": pytest.approx(5.0 * math.exp(-0.2))},
    }


def test_some_of_the_entries_components_and_columns():
    fitted = _fit("groups beside", POISSON)
    whole = fitted.posterior
    part, none = Entry((2,), (1,), (0.3,)), Entry((), (), ())
    posterior = LatentPosterior(whole.models, whole.columns, (*whole.entries, part, part, none))
    assert posterior.n_models == 3
    assert posterior.effect(1, 0) is None
    assert [posterior.models.names[c] for c in posterior.hyperparameters(1)] == ["Grouped(site)"]
    assert posterior.hyperparameters(3) == {}
    few = posterior.between(1, 4).with_columns(np.array([2]))
    assert [entry.columns for entry in few.entries] == [(0,), (0,), ()]
    inner = few.fit(0)[0]
    unit = ((fitted.columns[:, [2]] - inner.centres) / inner.scales).T
    for one, other in zip(
        few.locate(0, unit, fitted.offset, fitted.places),
        posterior.locate(1, unit, fitted.offset, fitted.places),
        strict=True,
    ):
        assert (one == other).all()
    nothing = np.empty((0, len(fitted.offset)))
    mean, variance = posterior.locate(3, nothing, fitted.offset, fitted.places)
    assert mean - fitted.offset == pytest.approx(np.full(len(mean), mean[0] - fitted.offset[0]))
    assert variance == pytest.approx(np.full(len(mean), variance[0]))


def test_an_offset_that_was_not_chosen():
    fitted = _fit("ar1", POISSON)
    models = LatentModels(fitted.case.response, fitted.case.components, fitted.case.slopes, selects_offset=True)
    entries = [Entry((0, 2), components, (0.5, 2.0)) for components in ((0,), (0, 1))]
    posterior = LatentPosterior(models, fitted.posterior.columns, tuple(entries))
    for number, share in enumerate((0.0, 1.0)):
        zero = posterior.locate(number, fitted.unit, np.zeros_like(fitted.offset), fitted.places)[0]
        given = posterior.locate(number, fitted.unit, fitted.offset, fitted.places)[0]
        assert given - zero == pytest.approx(share * fitted.offset)
        rng = np.random.default_rng(0)
        drawn = posterior.draw(rng, number, 2000, fitted.unit, fitted.offset, fitted.places)
        assert drawn.mean(axis=0) == pytest.approx(given, abs=0.15)


def test_fits_are_computed_again_where_there_is_no_room(monkeypatch):
    fitted = _fit("ar1", POISSON)
    kept = fitted.posterior.fit(0)
    assert fitted.posterior.fit(0) is kept
    monkeypatch.setattr("bgnlm.latent.posterior._HELD", 10)
    fresh = _fit("ar1", POISSON).posterior
    assert fresh.fit(0) is not fresh.fit(0)
    assert fresh.fit(0)[1].log_integrand == kept[1].log_integrand


def test_leading_nodes():
    nothing = Mode(np.empty(0), np.empty(0))

    def nodes(weights):
        return [Node(np.array([float(j)]), math.log(weight), nothing) for j, weight in enumerate(weights)]

    found = leading_nodes(nodes([0.004, 0.6, 0.001, 0.395]))
    assert [(place.tolist(), weight) for place, weight in found] == [
        ([1.0], pytest.approx(0.6 / 0.995)),
        ([3.0], pytest.approx(0.395 / 0.995)),
    ]
    many = leading_nodes(nodes([0.01] * 100))
    assert len(many) == 12
    assert sum(weight for _, weight in many) == pytest.approx(1.0)
