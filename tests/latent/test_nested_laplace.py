"""Hyperparameters summed out: against fine grids, against quadrature over everything, and reference values."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from bgnlm.latent import nested_laplace
from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.hyperpriors import Gamma
from bgnlm.latent.inner import SlopePrior
from bgnlm.latent.nested_laplace import integrate
from bgnlm.latent.outer_modes import starts_of
from tests.latent.cases import BOXES, series
from tests.naive_latent import Case, DenseLaplace, fine_grid, full_quadrature, placed, simulate

GAUSSIAN, POISSON, BINOMIAL = ("gaussian", "identity"), ("poisson", "log"), ("binomial", "logit")
GAMMA, NEGATIVE_BINOMIAL = ("gamma", "log"), ("negative_binomial", "log")
INTEGRATED = SlopePrior(precision=None)


def _gap(case, box, step):
    """What the sum over nodes has more than a fine grid."""
    found = integrate(case.inner(), corrected=False)
    assert math.exp(found.nodes[0].log_weight) <= 1.0
    assert sum(math.exp(node.log_weight) for node in found.nodes) == pytest.approx(1.0)
    assert found.correction == 0.0
    return found.log_marginal - fine_grid(case.inner(), box, step), found


# With no process the mass is where it is nearly absent, with a strong one where it is present, in between at both.
@pytest.mark.parametrize("sd", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [3, 12, 50])
@pytest.mark.parametrize("pair", [POISSON, BINOMIAL], ids="-".join)
@pytest.mark.parametrize("component", [IID("pos"), RW1("pos"), Grouped("pos")], ids=lambda c: type(c).__name__)
def test_one_hyperparameter(component, pair, n, sd):
    for seed in range(3):
        n_groups = 5 if isinstance(component, Grouped) else None
        gap, _ = _gap(*series(pair, [component], n, sd, seed, n_groups=n_groups), 0.1)
        assert abs(gap) < 0.03


@pytest.mark.parametrize("sd", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("pair", [POISSON, BINOMIAL], ids="-".join)
@pytest.mark.parametrize("component", [AR1("pos"), OU("pos")], ids=lambda c: type(c).__name__)
def test_two_hyperparameters(component, pair, n, sd):
    gap, _ = _gap(*series(pair, [component], n, sd, seed=n), 0.3)
    assert abs(gap) < 0.03


@pytest.mark.parametrize(
    ("pair", "components", "n_columns", "sd"),
    [
        (GAUSSIAN, [], 0, 0.5),
        (GAMMA, [], 2, 0.5),
        (NEGATIVE_BINOMIAL, [], 2, 0.0),
        (NEGATIVE_BINOMIAL, [], 2, 0.5),
        (GAUSSIAN, [Grouped("pos")], 0, 0.0),
        (GAUSSIAN, [Grouped("pos")], 0, 0.5),
        (NEGATIVE_BINOMIAL, [Grouped("pos")], 0, 0.5),
        (NEGATIVE_BINOMIAL, [Grouped("pos")], 0, 0.0),
        (POISSON, [], -1, 0.5),
        (GAUSSIAN, [], -2, 0.0),
        (GAUSSIAN, [], -2, 0.5),
        (POISSON, [RW1("pos")], -2, 0.0),
        (POISSON, [RW1("pos")], -2, 0.5),
    ],
)
def test_dispersions_and_precisions_of_slopes(pair, components, n_columns, sd):
    """A negative number of columns stands for slopes whose precision is integrated out."""
    settings = {"n_columns": abs(n_columns), "slopes": INTEGRATED if n_columns < 0 else SlopePrior()}
    n_groups = 6 if components == [Grouped("pos")] else None
    case, box = series(pair, components, 40, sd, seed=4, n_groups=n_groups, **settings)
    gap, _ = _gap(case, box, 0.1 if len(box) == 1 else 0.25)
    assert abs(gap) < 0.03


def test_two_modes_are_added_up():
    """The process nearly absent, and present."""
    case, box = series(POISSON, [RW1("pos")], 40, 1.0, seed=5)
    gap, found = _gap(case, box, 0.05)
    assert len(found.modes) == 2
    assert abs(gap) < 0.02
    shares = [sum(math.exp(n.log_weight) for n in found.nodes if (n.place[0] > 7.5) == absent) for absent in (0, 1)]
    assert min(shares) > 0.05


def test_nothing_to_be_learned_gives_the_prior():
    """Without a part in any observation the process changes nothing."""
    case, _ = series(POISSON, [RW1("pos")], 20, 0.0, seed=1)
    without = integrate(Case(case.pair, case.y).inner()).log_marginal
    component = placed(AR1("pos"), np.arange(20), np.zeros(20))
    for kind in (AR1("pos"), OU("pos"), IID("pos"), RW1("pos")):
        found = integrate(Case(case.pair, case.y, (component._replace(field=kind),)).inner())
        assert found.log_marginal == pytest.approx(without, abs=0.03)


@pytest.mark.parametrize(
    ("component", "sd"),
    [
        (IID("pos"), 0.5),
        (IID("pos"), 2.0),
        (RW1("pos"), 0.5),
        (RW1("pos"), 2.0),
    ],
)
def test_process_or_noise(component, sd):
    """Which of them it is can be hard to tell: then there are modes with either."""
    carry = 0.0 if isinstance(component, IID) else 0.9
    gaps = [
        _gap(*series(GAUSSIAN, [component], n, sd, seed, carry=carry), 0.2)[0] for n in (5, 30, 100) for seed in (0, 1)
    ]
    assert np.abs(gaps).max() < 0.05


def test_process_that_is_the_noise():
    """Nearly 3 nats are at the mode where an autoregression is all there is."""
    rng = np.random.default_rng(5)
    n = 60
    x = rng.normal(size=(n, 2))
    y = np.sin(np.arange(n) / 5) + x @ [0.6, -0.4] + 0.5 * rng.normal(size=n)
    case = Case(GAUSSIAN, y, (placed(AR1("pos"), np.arange(n)),), x, slopes=SlopePrior(precision=0.1))
    gap, _ = _gap(case, [(-2.0, 13.0), (-5.0, 7.0), (-2.0, 13.0)], 0.3)
    assert abs(gap) < 0.05


def test_plateau_on_the_way_to_the_mode():
    """The process is not there, but starts where it is; on the way to where it is absent there is little slope."""
    rng = np.random.default_rng(3)
    n, x = 300, np.sin(np.arange(300) * 4 * np.pi / 300)
    process = np.zeros(n)
    for i in range(1, n):
        process[i] = 0.8 * process[i - 1] + 0.6 * rng.normal()
    weights = np.full(n, 5.0)
    y = simulate(rng, BINOMIAL, 0.5 + x + 0.35 * process, weights)
    components = (placed(AR1("pos"), np.arange(n)),)
    case = Case(BINOMIAL, y, components, x[:, None], weights, None, SlopePrior(precision=0.01))
    gap, found = _gap(case, BOXES[AR1], 0.4)
    assert abs(gap) < 0.03
    assert found.modes[0].place[0] == pytest.approx(9.9, abs=0.2)


@pytest.mark.parametrize(
    ("pair", "components", "n_columns", "sd"),
    [
        (GAUSSIAN, [AR1("pos")], 0, 0.3),
        (GAUSSIAN, [AR1("pos")], 0, 1.0),
        (GAUSSIAN, [OU("pos")], 0, 0.6),
        (GAUSSIAN, [Grouped("pos")], 2, 1.0),
        (POISSON, [AR1("pos")], 2, 1.0),
        (POISSON, [RW1("pos"), OU("pos")], 0, 0.3),
    ],
)
def test_three_hyperparameters(pair, components, n_columns, sd):
    slopes = INTEGRATED if n_columns else SlopePrior()
    n_groups = 6 if components == [Grouped("pos")] else None
    case, box = series(pair, components, 40, sd, seed=0, n_groups=n_groups, n_columns=n_columns, slopes=slopes)
    gap, found = _gap(case, box, 0.5)
    assert len(found.modes[0].place) == 3
    assert abs(gap) < 0.1


@pytest.mark.parametrize("slope", [None, "z"])
@pytest.mark.parametrize("prior", [Gamma(), Gamma(2.0, 1.0)])
@pytest.mark.parametrize("pair", [POISSON, BINOMIAL], ids="-".join)
@pytest.mark.parametrize(("n_groups", "n", "sd"), [(3, 12, 0.8), (6, 18, 1.5)])
def test_effects_of_groups_against_quadrature_over_everything(pair, prior, slope, n_groups, n, sd):
    rng = np.random.default_rng(n_groups)
    place = np.arange(n) % n_groups
    z = rng.normal(size=n) if slope else np.ones(n)
    weights = np.full(n, 3.0 if pair == BINOMIAL else 1.0)
    y = simulate(rng, pair, 0.7 + sd * rng.normal(size=n_groups)[place] * z, weights)
    component = placed(Grouped("site", slope=slope, precision_prior=prior), place, z)
    case = Case(pair, y, (component,), None, weights)
    assert integrate(case.inner()).log_marginal == pytest.approx(full_quadrature(case), abs=0.03)


@pytest.mark.parametrize(("precision", "allowed"), [(1.0, 0.05), (0.1, 0.3), (1e-3, 0.7)])
@pytest.mark.parametrize("pair", [POISSON, BINOMIAL], ids="-".join)
def test_category_without_a_single_event(pair, precision, allowed):
    """The likelihood of its slope has no mode, its posterior is skew: against a grid of both coefficients.

    Corrections are damped where they do not converge: some of what is missing stays so.
    """
    rng = np.random.default_rng(0)
    n, k = 100, 20
    column = (np.arange(n) < k).astype(float)
    y = simulate(rng, pair, np.full(n, 0.5), np.ones(n))
    y[:k] = 0.0
    case = Case(pair, y, (), column[:, None], slopes=SlopePrior(precision=precision))
    intercepts, h = np.linspace(-3.0, 3.0, 301, retstep=True)
    slopes, step = np.linspace(-6.0, 6.0, 4001, retstep=True)
    log_density = -0.5 * slopes**2 - 0.5 * math.log(2 * math.pi)
    eta = intercepts + np.minimum(slopes * precision**-0.5, 100.0)[:, None]
    log_none = -np.exp(eta) if pair == POISSON else -np.logaddexp(0.0, eta)
    log_rest = integrate(Case(pair, y[k:]).inner()).log_marginal  # to compare with what the grid has of them
    total = y.sum() * intercepts - (n - k) * (np.exp(intercepts) if pair == POISSON else np.logaddexp(0.0, intercepts))
    total -= sum(math.lgamma(v + 1) for v in y) if pair == POISSON else 0.0
    assert np.logaddexp.reduce(total) + math.log(h) == pytest.approx(log_rest, abs=2e-3)
    expected = np.logaddexp.reduce((log_density[:, None] + k * log_none + total).ravel()) + math.log(h * step)
    assert integrate(case.inner()).log_marginal == pytest.approx(expected, abs=allowed)


def test_starts():
    """Present and absent each; of many components all, none, and each alone. Noise, too, with some component."""
    counts = {POISSON: [], GAUSSIAN: []}
    for components in ([], [IID("pos")], [IID("pos"), AR1("pos")], [IID("pos"), AR1("pos"), RW1("pos")]):
        for pair, found in counts.items():
            case, _ = series(pair, components, 5, 0.0, seed=0)
            starts = starts_of(case.inner())
            assert {len(start) for start in starts} == {case.inner().n_hyperparameters}
            found.append(len({tuple(start) for start in starts}))
    assert counts == {POISSON: [1, 2, 4, 5], GAUSSIAN: [1, 4, 8, 10]}


@pytest.mark.parametrize(
    ("pair", "components", "n_columns", "allowed"),
    [
        (POISSON, [AR1("pos"), OU("pos")], 0, 0.08),
        (POISSON, [IID("pos"), AR1("pos")], 2, 0.08),
        (GAUSSIAN, [AR1("pos")], 2, 0.25),
    ],
)
def test_four_hyperparameters(pair, components, n_columns, allowed, monkeypatch):
    """Against a finer grid around the same modes; what is missing most is where process and noise change places."""
    slopes = INTEGRATED if n_columns else SlopePrior()
    case, _ = series(pair, components, 30, 0.8, seed=1, n_columns=n_columns, slopes=slopes)
    coarse = integrate(case.inner(), corrected=False)
    assert len(coarse.modes[0].place) == 4
    monkeypatch.setattr(nested_laplace, "_mesh", lambda _: nested_laplace.Mesh(1.3, 5.0))
    monkeypatch.setattr(nested_laplace, "_MAX_POINTS", 10000)
    fine = integrate(case.inner(), corrected=False)
    assert coarse.log_marginal == pytest.approx(fine.log_marginal, abs=allowed)


def test_nodes_of_three_hyperparameters(monkeypatch):
    """Few, with means and variances along the axes about as those of a fine grid."""
    case, _ = series(POISSON, [RW1("pos"), OU("pos")], 40, 0.3, seed=0)
    few = integrate(case.inner(), corrected=False)
    assert len(few.nodes) == 6
    monkeypatch.setattr(nested_laplace, "_MOST_WITH_ALL", 3)
    monkeypatch.setattr(nested_laplace, "_mesh", lambda _: nested_laplace.Mesh(0.9, 6.0))
    fine = integrate(case.inner(), corrected=False)
    assert len(fine.nodes) > 100
    moments = []
    for found in (few, fine):
        weights = np.exp([node.log_weight for node in found.nodes])
        places = np.array([node.place for node in found.nodes])
        along = np.linalg.solve(few.modes[0].axes, (places - few.modes[0].place).T)
        assert weights.sum() == pytest.approx(1.0)
        moments.append([along @ weights, along**2 @ weights])
    assert moments[0][0] == pytest.approx(moments[1][0], abs=0.3)
    assert moments[0][1] == pytest.approx(moments[1][1], rel=0.3)


@pytest.mark.parametrize("sd", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("components", [[AR1("pos")], [OU("pos")], [RW1("pos"), IID("pos")]], ids=len)
def test_nodes_are_where_there_is_mass(components, sd):
    """Also those of low modes, whose surroundings lead up to other ones."""
    for seed in range(4):
        case, _ = series(GAUSSIAN, components, 60, sd, seed)
        inner = case.inner()
        found = integrate(inner, corrected=False)
        highest = max(mode.log_integrand for mode in found.modes)
        for node in found.nodes:
            if node.log_weight > math.log(1e-3):
                assert inner.evaluate(node.place, node.mode).log_integrand > highest - 20.0


def test_the_same_mode_is_found_once():
    """From all starts, however flat or steep the integrand is there."""
    case, _ = series(GAUSSIAN, [Grouped("pos")], 40, 1.0, seed=2, n_groups=6, n_columns=2, slopes=INTEGRATED)
    inner = case.inner()
    for mode in integrate(inner).modes:
        there = inner.evaluate(mode.place, mode.mode, 1e-14)
        for axis in 0.3 * np.vstack([mode.axes.T, -mode.axes.T]):
            assert inner.evaluate(mode.place + axis, mode.mode, 1e-14).log_integrand < there.log_integrand


def test_known_modes_of_the_same_model():
    case, _ = series(POISSON, [AR1("pos")], 60, 1.0, seed=3, n_columns=2)
    inner = case.inner()
    found = integrate(inner)
    assert integrate(inner, known=found.modes).log_marginal == pytest.approx(found.log_marginal, abs=0.01)


def _epigenetic(rows, component, n=500):
    names = ("methylated_bases", "total_bases", "CG", "CHG")
    columns = {name: np.array([float(row[name]) for row in rows[:n]]) for name in names}
    return Case(
        POISSON,
        columns["methylated_bases"],
        () if component is None else (placed(component, np.arange(n)),),
        np.column_stack([columns["CG"], columns["CHG"]]),
        None,
        np.log(columns["total_bases"]),
        SlopePrior(precision=1e-3),
    )


LATENT = {"none": None, "iid": IID(0), "ar1": AR1(0), "rw1": RW1(0), "ou": OU(0)}


@pytest.mark.parametrize("name", LATENT)
def test_reference_values(epigenetic, name):
    with (Path(__file__).parents[1] / "reference" / "latent.csv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["latent"] == name)
    found = integrate(_epigenetic(epigenetic, LATENT[name]).inner())
    allowed = (0.3 if name == "iid" else 0.1) + 2 * float(row["standard_error"])
    assert found.log_marginal == pytest.approx(float(row["log_marginal"]), abs=allowed)


@pytest.mark.parametrize("name", LATENT)
def test_correction_of_500_rows(epigenetic, name):
    case = _epigenetic(epigenetic, LATENT[name])
    inner = case.inner()
    best = integrate(inner).modes[0]
    there = inner.evaluate(best.place, best.mode)
    dense = DenseLaplace(case, best.place)
    assert there.log_integrand == pytest.approx(dense.log_integrand, abs=1e-4)
    variances = inner.field_variances(there) + np.square(inner.border_scores(there)).sum(axis=1)
    expected, dense_variances = dense.correction()
    assert inner.series(best.place, there).total == pytest.approx(expected, abs=2e-3)
    assert variances[np.argsort(inner.layout.order)] == pytest.approx(dense_variances, rel=1e-5)
