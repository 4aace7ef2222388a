"""Models over columns and components: their names, scores that do not depend on order, and the surrogate."""

import itertools
import math

import numpy as np
import pytest

from bgnlm.errors import DataError
from bgnlm.latent import layout as layouts
from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.inner import SlopePrior
from bgnlm.latent.models import LatentModels
from bgnlm.latent.nested_laplace import integrate
from tests.naive_latent import Case, placed, simulate

POISSON, GAUSSIAN, BINOMIAL = ("poisson", "log"), ("gaussian", "identity"), ("binomial", "logit")


def _models(pair=POISSON, n=60, slopes=SlopePrior(precision=0.1), **settings):  # noqa: B008
    rng = np.random.default_rng(5)
    design = rng.normal(size=(n, 4))
    site, z = rng.integers(5, size=n), rng.normal(size=n)
    weights, offset = np.full(n, 4.0 if pair == BINOMIAL else 1.0), 0.2 * rng.normal(size=n)
    eta = 0.4 + offset + np.sin(np.arange(n) / 5) + design @ [0.3, -0.2, 0.0, 0.1] + 0.5 * rng.normal(size=5)[site]
    y = simulate(rng, pair, eta, weights, dispersion=4.0)
    components = (
        placed(AR1("pos"), np.arange(n)),
        placed(RW1("pos"), np.arange(n)),
        placed(Grouped("site"), site),
        placed(Grouped("site", slope="z"), site, z),
    )
    case = Case(pair, y, components, design, weights, offset, slopes)
    return LatentModels(case.response, components, slopes, **settings), design


def test_names_and_complexities():
    models, _ = _models(selects_offset=True, max_components=2)
    assert models.names == ("AR1(pos)", "RW1(pos)", "Grouped(site)", "Grouped(site, slope=z)", "offset")
    assert models.complexities.tolist() == [2.0, 1.0, 1.0, 1.0, 1.0]
    assert models.exists((0, 1, 4))  # the offset is not a process
    assert not models.exists((0, 1, 2))
    models, _ = _models()
    assert len(models.names) == len(models.complexities) == 4
    assert models.exists((0, 1, 2, 3))


def test_units_of_the_response():
    """Of the density of values that were divided by a scale."""
    models, design = _models(GAUSSIAN)
    scaled = LatentModels(models.response, models.placed, models.slopes, scale=3.0)
    for components in ((), (2,)):
        assert scaled.log_marginal(design[:, :1], components) == pytest.approx(
            models.log_marginal(design[:, :1], components) - 60 * math.log(3.0)
        )


@pytest.mark.parametrize("components", [(), (0,), (2,), (0, 2)])
def test_offset_as_a_component(components):
    chosen, design = _models(selects_offset=True)
    given, _ = _models()
    none = LatentModels(given.response._replace(offset=np.zeros(60)), given.placed, given.slopes)
    columns = design[:, :2]
    with_offset, without = chosen.log_marginal(columns, (*components, 4)), chosen.log_marginal(columns, components)
    assert with_offset == given.log_marginal(columns, components)
    assert without == none.log_marginal(columns, components)
    assert with_offset != without


@pytest.mark.parametrize("pair", [POISSON, GAUSSIAN], ids="-".join)
def test_scores_do_not_depend_on_what_was_scored_before(pair):
    wanted = list(itertools.product([(), (0,), (1, 3), (0, 1, 2)], [(), (0,), (2,), (1, 2)]))
    found = []
    for order in (1, -1):
        models, design = _models(pair)
        found.append({key: models.log_marginal(design[:, list(key[0])], key[1]) for key in wanted[::order]})
    assert found[0] == found[1]
    alone, design = _models(pair)
    assert alone.log_marginal(design[:, [1, 3]], (0,)) == pytest.approx(
        _models(pair)[0].log_marginal(design[:, [1, 3]], (0,)), abs=0
    )
    again = [alone.log_marginal(design[:, [1, 3]], (0,)) for _ in range(2)]
    assert again[0] == again[1]


def test_scores_do_not_depend_on_the_order_of_rows():
    models, design = _models()
    order = np.random.default_rng(0).permutation(60)
    response = models.response
    shuffled = LatentModels(
        response._replace(y=response.y[order], weights=response.weights[order], offset=response.offset[order]),
        tuple(c._replace(place=c.place[order], loading=c.loading[order]) for c in models.placed),
        models.slopes,
    )
    for components in ((0,), (2, 3), (1, 2)):
        assert shuffled.log_marginal(design[order, :2], components) == pytest.approx(
            models.log_marginal(design[:, :2], components), abs=1e-6
        )


@pytest.mark.parametrize("components", [(), (0,), (1,), (2,), (0, 2), (2, 3)])
@pytest.mark.parametrize("pair", [POISSON, GAUSSIAN, BINOMIAL], ids="-".join)
def test_modes_of_the_model_without_columns_are_good_starts(pair, components):
    models, design = _models(pair)
    for places in ([0], [0, 1, 2]):
        found = models.integrated(design[:, places], components)
        everywhere = integrate(models.inner(design[:, places], components))
        assert found.log_marginal == pytest.approx(everywhere.log_marginal, abs=0.1)


@pytest.mark.parametrize("component", [AR1("pos"), OU("pos")])
def test_a_column_that_explains_what_a_process_did(component):
    rng = np.random.default_rng(100)
    n = 100
    x = 2.0 * np.sin(np.arange(n) * 4 * np.pi / n)
    process = np.zeros(n)
    for i in range(1, n):
        process[i] = 0.8 * process[i - 1] + 0.6 * rng.normal()
    y = 0.5 + x + 0.5 * process + rng.normal(size=n) / math.sqrt(2.0)
    case = Case(GAUSSIAN, y, (placed(component, np.arange(n)),), x[:, None], slopes=SlopePrior(precision=0.01))
    models = LatentModels(case.response, case.components, case.slopes)
    everywhere = integrate(case.inner()).log_marginal
    assert models.log_marginal(case.columns, (0,)) == pytest.approx(everywhere, abs=0.1)


SURROGATES = [(), (0,), (1,), (2,), (2, 3), (0, 2)]


def _masks(n_columns):
    return [[j for j in range(n_columns) if mask >> j & 1] for mask in range(2**n_columns)]


@pytest.mark.parametrize("slopes", [SlopePrior(precision=0.1), SlopePrior(precision=1.0, standardised=True)])
@pytest.mark.parametrize("components", SURROGATES)
@pytest.mark.parametrize("pair", [POISSON, GAUSSIAN, BINOMIAL], ids="-".join)
def test_surrogate(pair, components, slopes):
    """Exact where it was expanded, close one column away; less so where process and noise can change places."""
    models, design = _models(pair, slopes=slopes)
    close = 9.0 if pair == GAUSSIAN and components else 1.5
    for reference in ([], [0, 1, 3]):
        scores = models.surrogate(design, components, reference).scores()
        assert np.isfinite(scores).all()
        for mask, places in enumerate(_masks(4)):
            away = len(set(places) ^ set(reference))
            if away <= 1:
                exact = models.log_marginal(design[:, places], components)
                assert scores[mask] == pytest.approx(exact, abs=close if away else 1e-7)


@pytest.mark.parametrize("components", SURROGATES)
def test_surrogate_with_an_integrated_precision(components):
    models, design = _models(slopes=SlopePrior(precision=None))
    scores = models.surrogate(design, components, [0, 1]).scores()
    assert scores[3] == pytest.approx(models.log_marginal(design[:, :2], components), abs=1e-7)


def test_surrogate_of_the_null_model_with_an_integrated_precision():
    models, design = _models(slopes=SlopePrior(precision=None))
    scores = models.surrogate(design, (0,), []).scores()
    assert scores[0] == pytest.approx(models.log_marginal(design[:, :0], (0,)), abs=1e-7)
    assert np.isfinite(scores).all()


def test_layout():
    """Over the column with the most positions in the band, others beside; rows sorted by the former."""
    rng = np.random.default_rng(1)
    n = 20
    pos, site = rng.permutation(n) // 2, rng.integers(3, size=n)
    z = rng.normal(size=n)
    components = [placed(Grouped("site", slope="z"), site, z), placed(RW1("pos"), pos), placed(IID("pos"), pos)]
    layout = layouts.lay_out(components, n)
    assert (layout.along, layout.beside, layout.n_positions) == ((1, 2), (0,), 10)
    assert (np.diff(layout.place) >= 0).all()
    assert (pos[layout.order] == layout.place).all()
    assert (layout.starts == 2 * np.arange(11)).all()
    assert (layout.loadings == np.column_stack([layout.place > 0, np.ones(n)])).all()
    expected = np.zeros((n, 3))
    expected[np.arange(n), site] = z
    assert (layout.beside_columns() == expected[layout.order]).all()
    nothing = layouts.lay_out([], n)
    assert (nothing.n_positions, nothing.beside_columns().shape, nothing.loadings.shape) == (0, (n, 0), (n, 0))


def test_too_many_effects_beside_the_band(monkeypatch):
    monkeypatch.setattr(layouts, "LARGEST_BORDER", 4)
    components = [placed(IID("pos"), np.arange(20)), placed(Grouped("site"), np.arange(20) % 5)]
    with pytest.raises(DataError, match=r"over site have 5 effects beside those along pos; at most 4 are possible"):
        layouts.lay_out(components, 20)


@pytest.mark.parametrize("pair", [POISSON, GAUSSIAN], ids=["poisson", "gaussian"])
@pytest.mark.parametrize("component", [AR1("pos"), OU("pos"), RW1("pos")], ids=["ar1", "ou", "rw1"])
@pytest.mark.parametrize("seed", [4, 23])
def test_columns_that_explain_much_cost_no_mode(pair, component, seed):
    """Modes of the model without these columns are no substitute for a search from all starts."""
    rng = np.random.default_rng(seed)
    n = 70
    process = np.zeros(n)
    for i in range(1, n):
        process[i] = 0.9 * process[i - 1] + 0.43 * rng.normal()
    design = rng.normal(size=(n, 2))
    eta = 0.3 + design @ [1.5, -1.2] + process
    y = rng.poisson(np.exp(eta)).astype(float) if pair == POISSON else eta + 0.1 * rng.normal(size=n)
    components, slopes = (placed(component, np.arange(n)),), SlopePrior(standardised=True, precision=1.0)
    y = y if pair == POISSON else y / y.std()
    models = LatentModels(
        Case(pair, y, components, design, np.ones(n), np.zeros(n), slopes).response, components, slopes
    )
    cold = integrate(models.inner(design, (0,))).log_marginal
    assert models.log_marginal(design, (0,)) == pytest.approx(cold, abs=0.1)
