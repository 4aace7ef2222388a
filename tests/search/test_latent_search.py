"""Features and latent components chosen together: against all models one by one, and the same however it is run."""

import math
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from bgnlm.errors import DataError, FeatureError, SettingError
from bgnlm.features import Component, Evaluator, Input, get_transform, modify, multiply, parse, project, render
from bgnlm.latent.fields import IID, RW1
from bgnlm.latent.hyperpriors import Gamma
from bgnlm.latent.inner import SlopePrior
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.likelihood.marginal import log_marginal
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.posterior.rescore import rescore
from bgnlm.posterior.summarize import summarize
from bgnlm.search.chains import run_chain
from bgnlm.search.config import Limits, ProjectionWeights, SearchConfig
from bgnlm.search.description import describe, differences
from bgnlm.search.gmjmcmc import Workspace, advance, start_chain
from bgnlm.search.mjmcmc import KERNELS, MjmcmcSettings, run
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from bgnlm.search.record import decode, encode
from bgnlm.search.runner import run_chains
from bgnlm.search.target import FunctionTarget
from bgnlm.search.union import unite
from tests.search.goodness import all_models, fit_p_value, mask_of, symmetry_p_value
from tests.search.latent_scene import N_INPUTS, N_OBS, NAMES, data, latent, place, problem
from tests.search.scene import backend, digest

COMPONENTS = tuple(map(Component, NAMES))
LINEAR = Limits(max_depth=0)
GROWING = {"population_size": 5, "n_populations": 4, "n_draws": 12}


def seed(number=1):
    return np.random.SeedSequence(number)


def found_by(search, number=1):
    return summarize(unite(search, [run_chain(search, seed(number))]))


def by_brute_force(search):
    """Log joint of every model over the inputs, one by one from the data as they are."""
    models = search.latent
    n_columns, n_components = search.X.shape[1], len(models.names)
    values = {}
    for columns in (c for k in range(n_columns + 1) for c in combinations(range(n_columns), k)):
        for chosen in (c for k in range(n_components + 1) for c in combinations(range(n_components), k)):
            members = [search.inputs[j] for j in columns] + [search.components[k] for k in chosen]
            log_prior = float(log_sizes(len(columns), search.likelihood.n_slots)) - sum(map(search.cost, members))
            values[frozenset(members)] = models.log_marginal(search.X[:, list(columns)], chosen) + log_prior
    return values


def stored(posterior):
    """Log joint of every model stored."""
    return {frozenset(posterior.features_of(m)): value for m, value in enumerate(posterior.found.log_joint.tolist())}


@cache
def exact():
    return by_brute_force(problem())


@pytest.mark.parametrize(
    ("family", "prior"),
    [("poisson", "auto"), ("poisson", "normal"), ("gaussian", "gaussian"), ("poisson", "normal-gamma")],
)
def test_all_models_are_what_they_are_one_by_one(family, prior):
    search = problem("exhaustive", family=family, coefficient_prior=prior)
    values = by_brute_force(search)
    posterior = found_by(search)
    assert stored(posterior).keys() == values.keys()
    for model, value in stored(posterior).items():
        assert value == pytest.approx(values[model], abs=1e-4)
    total = np.logaddexp.reduce(list(values.values()))
    for member in (*search.inputs, *search.components):
        mass = np.logaddexp.reduce([value for model, value in values.items() if member in model])
        assert posterior.probability_of(member) == pytest.approx(math.exp(mass - total), abs=1e-4)


@pytest.mark.parametrize("engine", ["surrogate", "mjmcmc"])
def test_models_that_are_not_all_are_exact_and_the_best(engine):
    """With fewer exact scores than there are models."""
    posterior = found_by(problem(engine, search={"limits": LINEAR, "n_final_steps": 200}))
    total = np.logaddexp.reduce(list(exact().values()))
    assert len(posterior) < len(exact())
    assert posterior.log_mass > total - 0.1
    for model, value in stored(posterior).items():
        assert value == pytest.approx(exact()[model], abs=1e-4)


def test_many_columns():
    """Too many for an enumeration of the approximation."""
    _, X, _ = data()
    others = np.random.default_rng(5).normal(size=(N_OBS, 22))
    search = problem(X=np.column_stack([others, X]), search={"population_size": 25, "limits": LINEAR})
    posterior = found_by(search)
    assert 24 <= len(posterior) < 100
    assert posterior.probability_of(Input("x23")) > 0.5
    assert posterior.probability_of(COMPONENTS[0]) > 0.5


def test_few_models_are_all_scored():
    assert len(found_by(problem(search={"n_draws": 64}))) == 64


@pytest.mark.parametrize("engine", ["exhaustive", "surrogate", "mjmcmc"])
def test_limits_and_prior(engine):
    limits = Limits(max_depth=0, max_model_size=1, max_latent=1)
    prior = ModelPrior(complexity="oc+1", penalty=1.5, latent_penalty="aic")
    search = problem(engine, prior=prior, search={"limits": limits, "n_final_steps": 40})
    posterior = found_by(search)
    for m in range(len(posterior)):
        members = posterior.features_of(m)
        components = [c for c in members if isinstance(c, Component)]
        assert len(members) - len(components) <= 1
        assert len([c for c in components if c.name != "offset"]) <= 1
        cost = 1.5 * (len(members) - len(components)) + 2.0 * len(components)
        difference = posterior.found.rows.log_marginal[m] - posterior.found.log_joint[m]
        assert difference == pytest.approx(cost)


@pytest.mark.parametrize(
    ("prior", "costs"),
    [
        (ModelPrior(), [math.log(N_OBS)] * 3),
        (ModelPrior(latent_penalty=0), [0.0] * 3),
        (ModelPrior(latent_penalty="aic", latent_complexity="equal"), [2.0] * 3),
    ],
)
def test_what_components_cost(prior, costs):
    search = problem(prior=prior)
    assert [search.cost(component) for component in search.components] == pytest.approx(costs)


def test_complexity_is_the_number_of_hyperparameters():
    assert ModelPrior(latent_penalty=3).latent_costs(np.array([2.0, 1.0]), 10.0).tolist() == [6.0, 3.0]
    assert ModelPrior(latent_penalty=3, latent_complexity="equal").latent_costs(np.ones(2), 9.0).tolist() == [3.0, 3.0]


@cache
def kernels_scene():
    """Exact log joint of every model, flattened so that all matter, and the approximation as a guide."""
    work = Workspace(problem())
    state = start_chain(work.problem, seed(), work)
    work.resume(state)
    models = work.models(work.population)
    rows = all_models(N_INPUTS + len(NAMES))
    table = 0.25 * np.array([models.log_joint(row) for row in rows])
    guide = FunctionTarget(models.guide([0]).log_joint)
    return rows, table, FunctionTarget(lambda included: 0.25 * guide.log_joint(included))


@pytest.mark.parametrize(
    ("settings", "n_draws"),
    [
        ({"jump_probability": 0.0}, 6000),
        ({"jump_probability": 1.0, "optimizers": (0, 1, 0)}, 6000),
        ({"jump_probability": 1.0, "optimizers": (1, 0, 1)}, 5000),
    ],
    ids=["moves", "greedy", "other jumps"],
)
def test_one_step_of_algorithm_1_leaves_the_posterior_as_it_is(settings, n_draws):
    rows, table, guide = kernels_scene()
    probabilities = np.exp(table - np.logaddexp.reduce(table))
    rng = np.random.default_rng(4)
    target = FunctionTarget(lambda included: table[mask_of(included)], guide)
    before = rng.choice(len(rows), size=n_draws, p=probabilities)
    n_flags = rows.shape[1]
    numbers = MjmcmcSettings(**settings).compiled(n_flags)
    tally = np.zeros((2, len(KERNELS)), np.int64)
    weights, visits = np.linspace(0.3, 1.2, n_flags), np.zeros(n_flags, np.int64)
    ends = [run(rng, target, numbers, rows[m], np.nan, 0, 1, 0, weights, visits, tally)[0] for m in before]
    after = np.array([mask_of(end) for end in ends])
    assert fit_p_value(np.bincount(after, minlength=len(rows)), probabilities) > 1e-3
    assert symmetry_p_value(before, after, len(rows)) > 1e-3
    assert tally[1].sum() > 0.1 * tally[0].sum()


def test_the_guide_is_exact_where_it_is_expanded():
    work = Workspace(problem())
    work.resume(start_chain(work.problem, seed(), work))
    models = work.models(work.population)
    guide = models.guide([0, 2])
    for components in models.component_sets:
        included = models.flags(np.array([True, False, True]), components)
        assert guide.log_joint(included) == pytest.approx(models.log_joint(included), abs=1e-6)
        assert guide.scores(components)[0b101] == pytest.approx(models.log_joint(included), abs=1e-6)


def test_an_offset_is_chosen_if_it_matters():
    y, X, log_exposure = data(offset=1.0)
    without = data(offset=0.0)[0]
    probabilities = [
        found_by(define_problem(response, X, **settings)).probability_of(Component("offset"))
        for settings in [
            {
                "family": "poisson",
                "offset": 2.0 * log_exposure,
                "config": SearchConfig(select_offset=True, n_populations=1, limits=LINEAR, population_size=3),
            }
        ]
        for response in (np.round(y * np.exp(log_exposure)), without)
    ]
    assert probabilities[0] > 0.95
    assert probabilities[1] < 0.05


@pytest.mark.parametrize("engine", ["auto", "mjmcmc"])
def test_interrupting_a_chain_changes_nothing(engine):
    settings = {**GROWING, "n_initial_steps": 15, "n_explore_steps": 15, "n_final_steps": 15}
    whole, parts = (problem(engine, search=settings) for _ in range(2))
    end, found = advance(whole, start_chain(whole, seed(), Workspace(whole)), 4)
    state, before = advance(parts, start_chain(parts, seed(), Workspace(parts)), 2)
    again = problem(engine, search=settings)  # nothing is remembered
    state, after = advance(again, state, 2)
    assert state.random_state == end.random_state
    assert state.features == end.features
    for here, there in zip(before + after, found, strict=True):
        assert here.models.log_marginal.tobytes() == there.models.log_marginal.tobytes()
        assert here.models.keys.tobytes() == there.models.keys.tobytes()
        assert (here.model == there.model).all()
    # And through a record.
    for discovery in found:
        back = decode(encode(discovery, render), lambda text: parse(text, whole.transforms))
        assert back.features == discovery.features
        assert (back.classes == discovery.classes).all()
        assert (back.model == discovery.model).all()


@pytest.mark.parametrize(("name", "n_jobs"), [("serial", 1), ("threading", 2), ("loky", 2)])
def test_the_same_answer_wherever_chains_run(name, n_jobs, tmp_path):
    """With a checkpoint, and restored from it."""
    expected = expected_digest()
    search = problem(search=GROWING)
    with backend(name, n_jobs):
        assert digest(search, run_chains(search, 2, 3, checkpoint=tmp_path / "here")) == expected
    search = problem(search=GROWING)
    assert digest(search, run_chains(search, 2, 3, checkpoint=tmp_path / "here")) == expected


@cache
def expected_digest():
    search = problem(search=GROWING)
    return digest(search, run_chains(search, 2, 3))


def test_components_are_in_every_population_and_nothing_is_made_of_them():
    search = problem(search=GROWING)
    chain = run_chain(search, seed(3))
    assert chain.classes.representatives[:3] == COMPONENTS
    assert not any(isinstance(feature, Component) for feature in chain.classes.representatives[3:])
    assert not any(isinstance(feature, Component) for feature in chain.state.features)
    assert len(chain.state.model) == len(chain.state.features) + 3
    assert max(map(len, map(str, chain.classes.representatives[3:]))) > 2  # there is more than inputs


def test_rescoring_gives_what_was_found():
    search = problem("surrogate", search={"limits": LINEAR})
    posterior = found_by(search)
    again = rescore(search, posterior, 10**6, same_likelihood=False)
    here, there = stored(posterior), stored(again)
    assert there.keys() == here.keys()
    assert all(there[model] == pytest.approx(value, abs=1e-6) for model, value in here.items())
    cheap = rescore(replace(search, prior=ModelPrior(latent_penalty=0)), posterior, 10, same_likelihood=True)
    assert cheap.probability_of(COMPONENTS[1]) > posterior.probability_of(COMPONENTS[1])


@pytest.mark.parametrize(("prior", "n_same"), [("auto", 2), ("normal", 1), ("normal-gamma", 1)])
def test_affine_maps_are_the_same_where_slopes_are_standardised(prior, n_same):
    """A function of a binary column is an affine map of it, its square is the column itself."""
    X = np.column_stack([np.arange(N_OBS) % 2, np.arange(N_OBS)]).astype(float)
    work = Workspace(problem(X=X, coefficient_prior=prior))
    forms = ["x1", "x1*x1", "sin(x1)"]
    classes = [work.classes.identify(parse(form)).feature_class for form in forms]
    assert classes[0] == classes[1]
    assert (classes[0] == classes[2]) == (n_same == 2)


def test_rows_without_weight_change_nothing():
    y, X, log_exposure = data()
    weights = np.append(np.ones(N_OBS), 0.0)
    X = np.vstack([X, np.full(3, 1e3)])
    config = SearchConfig(select_offset=True, engine="exhaustive", population_size=3, n_populations=1)
    search = define_problem(
        np.append(y, 0.0),
        X,
        family="poisson",
        offset=np.append(log_exposure, 0.1),
        sample_weight=weights,
        latent=[place(IID("t"), N_OBS + 1)],
        config=config,
    )
    values = {model: value for model, value in exact().items() if COMPONENTS[0] not in model}
    for model, value in stored(found_by(search)).items():
        assert value == pytest.approx(values[model], abs=1e-3)


def test_a_component_is_a_value():
    component = Component("AR1(pos)")
    assert component == Component("AR1(pos)") != Input("AR1(pos)")
    assert hash(component) == hash(Component("AR1(pos)"))
    assert str(component) == render(component) == "AR1(pos)"
    assert parse("AR1(pos)", components=["AR1(pos)"]) == component
    assert parse("`AR1(pos)`", components=["AR1(pos)"]) == Input("AR1(pos)")
    with pytest.raises(FeatureError):
        parse("AR1(pos)")
    with pytest.raises(FeatureError, match="no column"):
        Evaluator(np.ones((2, 1))).column(component)
    sine = get_transform("sin")
    for make in (
        lambda: modify(sine, component),
        lambda: multiply(Input("x"), component),
        lambda: project(sine, [Input("x"), component], [1.0, 2.0]),
    ):
        with pytest.raises(FeatureError, match=r"AR1\(pos\) is a latent component"):
            make()
    with pytest.raises(FeatureError, match="name of a component"):
        Component("")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coefficient_prior": "robust"}, "'auto' or one of 'gaussian', 'normal', 'normal-gamma' .* got 'robust'"),
        ({"coefficient_prior": "nonsense"}, "coefficient_prior must be"),
        ({"noise_floor": 0.1, "family": "gaussian"}, "noise_floor is for models without latent components; got 0.1"),
        ({"offset": None}, "select_offset is True, but there is no offset"),
        ({"latent": [RW1("t")]}, "latent must be components placed over their positions; got RW1"),
        ({"latent": RW1("t")}, "latent must be components placed"),
        ({"latent": [*latent(), place(RW1("t"))]}, r"latent has RW1\(t\) twice"),
        ({"names": ["x1", "x2", "offset"]}, "offset is the name of a component and a feature"),
        ({"search": {"projection_weights": ProjectionWeights(strategy="bayesian")}}, "got 'bayesian'"),
        ({"engine": "exhaustive", "search": {"population_size": 12}}, "at most 14 .* got 15"),
    ],
)
def test_what_makes_no_sense(changes, message):
    with pytest.raises(SettingError, match=message):
        problem(**changes)


def test_settings_that_make_no_sense():
    for make, message in [
        (lambda: Limits(max_latent=-1), "max_latent must be 0 or more"),
        (lambda: SearchConfig(select_offset=1), "select_offset must be True or False; got 1"),
        (lambda: ModelPrior(latent_penalty="big"), "latent_penalty must be 'bic', 'aic' or a number"),
        (lambda: ModelPrior(latent_penalty=-1), "latent_penalty must be 0 or more"),
        (lambda: ModelPrior(latent_complexity="v"), "latent_complexity must be one of"),
        (lambda: CoefficientPrior("normal", precision=0), "precision of the prior 'normal' must be"),
    ]:
        with pytest.raises(SettingError, match=message):
            make()
    with pytest.raises(DataError, match="a position for each of the 40 rows; got 39"):
        problem(latent=[place(RW1("t"), N_OBS - 1)])


@pytest.mark.parametrize("prior", ["normal", "normal-gamma"])
def test_priors_of_models_with_latent_components_only(prior):
    y, X, _ = data()
    with pytest.raises(SettingError, match=f"{prior!r} is for models with latent components, and there are none"):
        define_problem(y, X, coefficient_prior=prior)
    with pytest.raises(SettingError, match="is for models with latent components"):
        log_marginal(y, X, coefficient_prior=prior)


@pytest.mark.parametrize(
    ("prior", "slopes"),
    [
        ("auto", SlopePrior(precision=1.0, standardised=True)),
        (CoefficientPrior("gaussian", variance=4.0), SlopePrior(precision=0.25, standardised=True)),
        ("normal", SlopePrior(precision=1e-3)),
        (CoefficientPrior("normal-gamma", rate=0.1), SlopePrior(precision=None, hyperprior=Gamma(1.0, 0.1))),
    ],
)
def test_priors_of_slopes(prior, slopes):
    assert problem(coefficient_prior=prior).latent.slopes == slopes


def test_a_description_has_the_components():
    """Their order, positions, distributions and prices."""
    usual = describe(problem())
    assert not list(differences(usual, describe(problem())))
    others = [
        {"latent": latent()[::-1]},
        {"latent": latent()[:1]},
        {"latent": [place(RW1("t", Gamma(1.0, 1e-3))), place(IID("t"))]},
        {"latent": [place(RW1("t"))._replace(positions=np.arange(N_OBS) ** 2.0), place(IID("t"))]},
        {"prior": ModelPrior(latent_penalty=1.0)},
        {"prior": ModelPrior(latent_complexity="equal")},
        {"search": {"limits": Limits(max_latent=1)}},
        {"coefficient_prior": "normal"},
    ]
    for changes in others:
        assert list(differences(usual, describe(problem(**changes)))), changes
