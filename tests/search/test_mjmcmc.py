"""Algorithm 1: every kernel leaves the exact posterior as it is, and a wrong ratio would be noticed.

Models are drawn from the exact posterior, one step is taken, and what comes out is tested against the posterior again.
"""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import bgnlm
from bgnlm.errors import SettingError
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.likelihood.surrogate import quadratic_surrogate
from bgnlm.search import mjmcmc, optimizers, proposals
from bgnlm.search.explore import exact_score
from bgnlm.search.mjmcmc import KERNELS, MjmcmcSettings, run, run_compiled, run_mjmcmc
from bgnlm.search.target import FunctionTarget, gram_target, log_joint, surrogate_target
from tests.search.goodness import all_models, fit_p_value, mask_of, symmetry_p_value

N_COLUMNS = 5
MODELS = all_models(N_COLUMNS)
COSTS = np.array([0.6, 0.0, 0.9, 0.3, 0.0])
WEIGHTS = np.array([0.2, 1.2, 0.5, 1.0, 0.3])  # unequal, so that the ratios of ordinary moves matter
ALONE = {
    "flip": {"jump_probability": 0.0, "moves": (1, 0, 0, 0)},
    "swap": {"jump_probability": 0.0, "moves": (0, 1, 0, 0)},
    "add and delete": {"jump_probability": 0.0, "moves": (0, 0, 0.3, 0.7)},
    "annealing": {"jump_probability": 1.0, "optimizers": (1, 0, 0)},
    "greedy": {"jump_probability": 1.0, "optimizers": (0, 1, 0)},
    "multiple_try": {"jump_probability": 1.0, "optimizers": (0, 0, 1)},
}
MOVES, JUMPS = list(ALONE)[:3], list(ALONE)[3:]


@cache
def _data(family):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, N_COLUMNS))
    X[:, 3] = X[:, 1] + 0.5 * X[:, 3]
    X[:, 4] = X[:, 0] - X[:, 2] + 0.7 * X[:, 4]
    eta = 0.4 * X[:, 1] + 0.3 * X[:, 4]
    if family == "gaussian":
        return eta + rng.normal(size=60), X
    return (rng.random(60) < 1 / (1 + np.exp(-1.7 * eta))).astype(float), X


@cache
def _posterior(kind):
    """Log joint and probability of every model, in the order of their masks."""
    if kind == "two modes":  # none and all of the columns
        sizes = MODELS.sum(axis=1)
        log_joint = np.logaddexp(-2.0 * sizes, np.log(4.0) - 2.0 * (N_COLUMNS - sizes))
        return log_joint, np.exp(log_joint) / np.exp(log_joint).sum()
    models = bgnlm.enumerate_models(*_data(kind), family=kind, penalty=1.0, complexity=COSTS)
    order = np.argsort(models.masks)
    return models.log_joint[order], models.model_probabilities[order]


def _population(family="gaussian"):
    y, X = _data(family)
    return check_likelihood(y, family=family).population(X)


def _gram_target(capacity=4096, max_size=N_COLUMNS):
    return gram_target(_population(), COSTS, max_size, capacity)


def _table_target(kind):
    """Interpreted target that looks up the exact values; for the logistic models with an approximation as guide."""
    table = _posterior(kind)[0]
    return FunctionTarget(lambda included: table[mask_of(included)], _guide() if kind == "binomial" else None)


@cache
def _guide():
    statistics = _population("binomial").score.statistics
    precision = statistics.data.null_information / 60.0
    return surrogate_target(quadratic_surrogate(statistics, np.array([1]), precision), COSTS, N_COLUMNS)


class Steps:
    """Models drawn from the posterior, those one step later, and use and acceptance of the kernels."""

    def __init__(self, form, target, kind, settings, n_draws, seed=1):
        rng = np.random.default_rng(seed)
        self.probabilities = _posterior(kind)[1]
        self.before = rng.choice(len(MODELS), size=n_draws, p=self.probabilities)
        self.tally = np.zeros((2, len(KERNELS)), np.int64)
        numbers = MjmcmcSettings(**settings).compiled(N_COLUMNS)
        visits = np.zeros(N_COLUMNS, np.int64)
        ends = [
            form(rng, target, numbers, MODELS[mask], np.nan, 0, 1, 0, WEIGHTS, visits, self.tally)[0]
            for mask in self.before
        ]
        self.after = np.array(ends) @ (1 << np.arange(N_COLUMNS))

    @property
    def p_value(self):
        return fit_p_value(np.bincount(self.after, minlength=len(MODELS)), self.probabilities)

    @property
    def symmetry(self):
        return symmetry_p_value(self.before, self.after, len(MODELS))

    @property
    def acceptance(self):
        used = self.tally[0] > 0
        return (self.tally[1, used] / self.tally[0, used]).min()


def _interpreted(kind, settings, n_draws):
    return Steps(run, _table_target(kind), kind, settings, n_draws)


@pytest.mark.parametrize("kernel", list(ALONE))
def test_gaussian_models_one_step_later(kernel):
    steps = Steps(run_compiled, _gram_target(), "gaussian", ALONE[kernel], 15_000)
    assert steps.p_value > 1e-3
    assert steps.symmetry > 1e-3
    assert steps.acceptance > 0.05


@pytest.mark.parametrize("kernel", list(ALONE))
def test_logistic_models_one_step_later(kernel):
    """Interpreted: climbs are guided by the approximation, ordinary moves are tried on it first."""
    steps = _interpreted("binomial", ALONE[kernel], 8000)
    assert steps.p_value > 1e-3
    assert steps.symmetry > 1e-3
    assert steps.acceptance > 0.05


def test_all_kernels_together_one_step_later():
    steps = Steps(run_compiled, _gram_target(), "gaussian", {"jump_probability": 0.3}, 20_000)
    assert steps.p_value > 1e-3
    assert steps.symmetry > 1e-3
    assert steps.acceptance > 0.05
    assert (steps.tally[0] > 1000).all()


def test_logistic_models_scored_one_by_one():
    """The same with the score that a search uses in place of a table of enumerated ones."""
    score = exact_score(_population("binomial"), COSTS, N_COLUMNS)
    target = FunctionTarget(score, _guide())
    values = [log_joint(target, included) for included in MODELS]
    assert values == pytest.approx(_posterior("binomial")[0], abs=1e-3)
    assert Steps(run, target, "binomial", {"jump_probability": 0.3}, 5000).p_value > 1e-3


@pytest.mark.parametrize("kind", ["gaussian", "binomial"])
@pytest.mark.parametrize("kernel", ["swap", "add and delete"])
def test_a_move_without_its_ratio_is_noticed(kernel, kind, monkeypatch):
    def without_ratio(*arguments):
        proposal, log_ratio = proposals.ordinary_move(*arguments)
        return proposal, log_ratio if log_ratio == -np.inf else 0.0

    monkeypatch.setattr(mjmcmc, "ordinary_move", without_ratio)
    assert _interpreted(kind, ALONE[kernel], 8000).p_value < 1e-4


@pytest.mark.parametrize("kind", ["gaussian", "binomial"])
def test_flips_that_prefer_columns_of_the_model_are_noticed(kind, monkeypatch):
    """The ratio of a flip is one only because the weights do not depend on the model."""

    def preferring(rng, included, weights, move, probabilities):
        return proposals.ordinary_move(rng, included, weights * (1.0 + 2.0 * included), move, probabilities)

    monkeypatch.setattr(mjmcmc, "ordinary_move", preferring)
    assert _interpreted(kind, ALONE["flip"], 8000).p_value < 1e-4


@pytest.mark.parametrize("kind", ["gaussian", "binomial"])
@pytest.mark.parametrize("kernel", JUMPS)
def test_a_jump_without_the_density_of_the_randomisation_is_noticed(kernel, kind, monkeypatch):
    monkeypatch.setattr(mjmcmc, "log_randomize", lambda *_: 0.0)
    assert _interpreted(kind, ALONE[kernel], 2000).p_value < 1e-4


def _every_second_time(function, otherwise):
    """Call `function` the first, third, ... time, and `otherwise` with its last answer the others."""
    answers = []

    def alternating(*arguments):
        answers.append(otherwise(answers[-1], *arguments) if len(answers) % 2 else function(*arguments))
        return answers[-1]

    return alternating


# Jumps of one flip and short climbs: a path ends at the mode where it starts.
LOCAL = {"smallest_jump": 0.0, "largest_jump": 0.0, "randomize_rate": 0.2}
SHORT = {"HOTTEST": 0.5, "STEPS_PER_TEMPERATURE": 0.4, "MULTIPLE_TRY_STEPS": 0.3}


@pytest.mark.parametrize("kernel", JUMPS)
def test_a_backward_path_that_is_the_forward_one_is_noticed(kernel, monkeypatch):
    for name, value in SHORT.items():
        monkeypatch.setattr(optimizers, name, value)
    assert _interpreted("two modes", ALONE[kernel] | LOCAL, 6000).p_value > 1e-3
    reused = _every_second_time(mjmcmc.climb_guided, lambda peak, *_: peak)
    monkeypatch.setattr(mjmcmc, "climb_guided", reused)
    assert _interpreted("two modes", ALONE[kernel] | LOCAL, 6000).p_value < 1e-4


def test_a_backward_path_without_its_jump_is_noticed(monkeypatch):
    settings = ALONE["greedy"] | LOCAL | {"randomize_rate": 0.1}
    assert _interpreted("two modes", settings, 8000).p_value > 1e-3
    missing = _every_second_time(mjmcmc.large_jump, lambda *arguments: arguments[2])
    monkeypatch.setattr(mjmcmc, "large_jump", missing)
    assert _interpreted("two modes", settings, 8000).p_value < 1e-4


@pytest.mark.parametrize("kernel", list(ALONE))
def test_the_approximation_in_place_of_exact_values_is_noticed(kernel, monkeypatch):
    """For ordinary moves this is delayed acceptance without its second stage."""
    monkeypatch.setattr(mjmcmc, "log_joint", mjmcmc.log_guide)
    assert _interpreted("binomial", ALONE[kernel], 4000 if kernel in JUMPS else 8000).p_value < 1e-4


@pytest.mark.parametrize("kernel", MOVES)
def test_a_second_stage_that_counts_the_first_again_is_noticed(kernel, monkeypatch):
    """With the approximation added, what the second stage takes off is put back."""
    monkeypatch.setattr(mjmcmc, "log_joint", lambda *model: log_joint(*model) + mjmcmc.log_guide(*model))
    assert _interpreted("binomial", ALONE[kernel], 8000).p_value < 1e-4


@pytest.mark.parametrize("kernel", list(ALONE))
def test_steps_that_do_not_see_the_scores_are_noticed(kernel, monkeypatch):
    monkeypatch.setattr(mjmcmc, "log_joint", lambda *_: 0.0)
    assert _interpreted("gaussian", ALONE[kernel], 2000).p_value < 1e-4


def _batches(form, target, settings, n_batches, n_steps):
    """Shares of the steps in which each column was in the model, for stretches of a chain."""
    rng, weights, visits = np.random.default_rng(5), np.ones(N_COLUMNS), np.zeros(N_COLUMNS, np.int64)
    tally = np.zeros((2, len(KERNELS)), np.int64)
    numbers = MjmcmcSettings(**settings).compiled(N_COLUMNS)
    state, seen = (MODELS[0], np.nan, 0), [visits.copy()]
    for batch in range(n_batches):
        n_done = (batch + 1) * n_steps
        state = form(rng, target, numbers, *state, n_done, n_steps, weights, visits, tally)
        assert state[2] == n_done
        seen.append(visits.copy())
    assert tally[0].sum() == n_batches * n_steps
    return np.diff(seen, axis=0) / n_steps


@pytest.mark.parametrize(
    ("kind", "form", "n_steps"),
    [("gaussian", run_compiled, 5000), ("binomial", run, 500)],
    ids=["gaussian", "logistic"],
)
def test_visits_of_a_long_run(kind, form, n_steps):
    target = _gram_target() if kind == "gaussian" else _table_target(kind)
    shares = _batches(form, target, {"jump_probability": 0.1}, 41, n_steps)[1:]  # the first is burn-in
    exact = _posterior(kind)[1] @ MODELS
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    assert (error < 0.02).all()
    assert (np.abs(shares.mean(axis=0) - exact) < 4.5 * error).all()


def _wide_target(capacity, n_columns=10, max_size=None):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, n_columns))
    y = X[:, : min(3, n_columns)].sum(axis=1) * 0.4 + rng.normal(size=50)
    most = n_columns if max_size is None else max_size
    return gram_target(check_likelihood(y).population(X), np.full(n_columns, 0.3), most, capacity)


def _outcome(result):
    store = result.target.store
    n_models = int(store.count[0])
    return (
        result.model.tolist(),
        result.log_model,
        result.visits.tolist(),
        result.tally.tolist(),
        store.bits[:n_models].tolist(),
        store.values[:n_models].tolist(),
    )


def test_interpreted_equals_compiled_draw_for_draw(monkeypatch):
    settings = MjmcmcSettings(jump_probability=0.2)
    rngs = np.random.default_rng(11), np.random.default_rng(11)
    compiled = run_mjmcmc(rngs[0], _wide_target(2000), settings, np.zeros(10, np.bool_), 400)
    monkeypatch.setattr(mjmcmc, "run_compiled", run)
    interpreted = run_mjmcmc(rngs[1], _wide_target(2000), settings, np.zeros(10, np.bool_), 400)
    assert (compiled.tally[0] > 0).all()
    assert compiled.target.store.count.tolist() == interpreted.target.store.count.tolist()
    ours, theirs = _outcome(interpreted), _outcome(compiled)
    assert ours[0] == theirs[0]
    assert ours[2:5] == theirs[2:5]
    assert ours[5] == pytest.approx(theirs[5], abs=1e-10)
    assert rngs[0].random() == rngs[1].random()


def test_a_store_that_grows_on_the_way_changes_nothing():
    outcomes, sizes = [], []
    for capacity in (1, 5000):
        target = _wide_target(capacity)
        result = run_mjmcmc(np.random.default_rng(2), target, MjmcmcSettings(), np.zeros(10, np.bool_), 2000)
        outcomes.append(_outcome(result))
        sizes.append(len(result.target.store.values))
    assert outcomes[0] == outcomes[1]
    room_to_start = 2 * optimizers.most_models_of_a_climb(10) + 1
    assert sizes[0] > 2 * room_to_start
    assert len(outcomes[0][4]) > 2 * room_to_start


class _EverHigher:
    """Target in which every model is better than all before, so that climbs go on for as long as they can."""

    guide = None
    n_asked = 0

    def log_joint(self, _):
        self.n_asked += 1
        return float(self.n_asked)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 12])
@pytest.mark.parametrize("kernel", JUMPS)
def test_a_step_scores_no_more_models_than_there_must_be_room_for(kernel, n_columns):
    target, tally = _EverHigher(), np.zeros((2, len(KERNELS)), np.int64)
    numbers = MjmcmcSettings(**ALONE[kernel]).compiled(n_columns)
    model, weights = np.zeros(n_columns, np.bool_), np.ones(n_columns)
    mjmcmc.step(np.random.default_rng(1), target, numbers, weights, model, 0.0, tally)
    most = optimizers.most_models_of_a_climb(n_columns)
    assert n_columns < target.n_asked <= 2 * most + 1
    if kernel == "greedy":
        assert target.n_asked == 2 * (1 + optimizers.PASSES * n_columns) + 1


def test_weights_adapt_until_the_end_of_burn_in():
    target, rng = _wide_target(5000), np.random.default_rng(4)
    weights, visits, tally = np.ones(10), np.zeros(10, np.int64), np.zeros((2, len(KERNELS)), np.int64)
    numbers = MjmcmcSettings().compiled(10)
    arguments = (1000, 200, weights, visits, tally)
    state = run_compiled(rng, target, numbers, np.zeros(10, np.bool_), np.nan, 0, 200, *arguments[1:])
    shares = (visits + 1.0) / 202.0
    assert weights == pytest.approx(0.2 + 4.0 * shares * (1.0 - shares))
    assert np.ptp(weights) > 0.1
    at_the_end = weights.copy()
    run_compiled(rng, target, numbers, *state, *arguments)
    assert weights.tolist() == at_the_end.tolist()


def test_without_burn_in_the_weights_stay_as_they_are():
    weights = np.ones(10)
    numbers = MjmcmcSettings().compiled(10)
    visits, tally = np.zeros(10, np.int64), np.zeros((2, len(KERNELS)), np.int64)
    rng, start = np.random.default_rng(4), np.zeros(10, np.bool_)
    run_compiled(rng, _wide_target(5000), numbers, start, np.nan, 0, 500, 0, weights, visits, tally)
    assert (weights == 1.0).all()
    assert visits.any()


def test_the_same_seed_gives_the_same_run():
    runs = [
        run_mjmcmc(np.random.default_rng(seed), _wide_target(5000), MjmcmcSettings(), np.zeros(10, np.bool_), 500)
        for seed in (1, 1, 2)
    ]
    assert _outcome(runs[0]) == _outcome(runs[1])
    assert runs[0].tally.tolist() != runs[2].tally.tolist()


def test_where_a_run_ends():
    target, start = _wide_target(5000), np.ones(10, np.bool_)
    result = run_mjmcmc(np.random.default_rng(1), target, MjmcmcSettings(), start, 300)
    assert start.all()
    assert result.log_model == log_joint(result.target, result.model)
    assert result.tally[0].sum() == 300
    assert (result.tally[1] <= result.tally[0]).all()
    stayed = run_mjmcmc(np.random.default_rng(1), target, MjmcmcSettings(), start, 0)
    assert stayed.model.all()
    assert stayed.log_model == log_joint(target, start)


@pytest.mark.parametrize("settings", [{"jump_probability": 0.0}, {"jump_probability": 1.0}, {}])
def test_a_start_that_does_not_exist_is_left(settings):
    target = _wide_target(5000, max_size=2)
    start = np.arange(10) < 3
    result = run_mjmcmc(np.random.default_rng(1), target, MjmcmcSettings(**settings), start, 500)
    assert np.isfinite(result.log_model)
    assert result.model.sum() <= 2


@pytest.mark.parametrize("n_columns", [0, 1, 2])
def test_few_columns(n_columns):
    settings = MjmcmcSettings(jump_probability=0.5)
    start = np.zeros(n_columns, np.bool_)
    gram = run_mjmcmc(np.random.default_rng(1), _wide_target(10, n_columns), settings, start, 4000)
    function = FunctionTarget(lambda included: -0.5 * float(included.sum()))
    plain = run_mjmcmc(np.random.default_rng(1), function, settings, start, 4000)
    assert gram.target.store.count[0] == len(function.values) == 2**n_columns
    assert gram.model.shape == (n_columns,)
    assert plain.visits / 4000 == pytest.approx(np.full(n_columns, 1 / (1 + np.exp(0.5))), abs=0.06)


def test_no_model_but_the_null_model():
    target, settings = _wide_target(100, max_size=0), MjmcmcSettings(jump_probability=0.5)
    result = run_mjmcmc(np.random.default_rng(1), target, settings, np.zeros(10, np.bool_), 500)
    assert not result.model.any()
    assert not result.visits.any()
    values = result.target.store.values[: result.target.store.count[0]]
    assert np.isfinite(values).sum() == 1


ANOTHER_PROCESS = """
import numpy as np
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search.mjmcmc import MjmcmcSettings, run_compiled, run_mjmcmc
from bgnlm.search.target import gram_target
X = np.random.default_rng(8).normal(size=(50, 4))
target = gram_target(check_likelihood(X[:, 0] + X[:, 1] ** 2).population(X), np.zeros(4), 4, 100)
run_mjmcmc(np.random.default_rng(1), target, MjmcmcSettings(), np.zeros(4, np.bool_), 100)
print(sum(run_compiled.stats.cache_hits.values()), sum(run_compiled.stats.cache_misses.values()))
"""


def test_a_second_process_does_not_compile_again():
    run_mjmcmc(np.random.default_rng(1), _wide_target(100), MjmcmcSettings(), np.zeros(10, np.bool_), 10)
    done = subprocess.run([sys.executable, "-c", ANOTHER_PROCESS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jump_probability": 1.5}, "jump_probability must be"),
        ({"jump_probability": "often"}, "jump_probability must be"),
        ({"burn_in": -0.1}, "burn_in must be"),
        ({"smallest_jump": 2.0}, "smallest_jump must be"),
        ({"smallest_jump": 0.5, "largest_jump": 0.3}, "must not exceed largest_jump; got 0.5 and 0.3"),
        ({"randomize_rate": 0.0}, "between 0 and 1, both excluded; got 0.0"),
        ({"randomize_rate": 1.0}, "between 0 and 1, both excluded; got 1.0"),
        ({"moves": (1.0, 1.0)}, "moves must be 4 probabilities, for flip, swap, add, delete"),
        ({"moves": (0.0, 0.0, 0.0, 0.0)}, "not all zero"),
        ({"moves": (1.0, -1.0, 0.0, 0.0)}, "moves must be"),
        ({"optimizers": (1.0,)}, "optimizers must be 3 probabilities, for annealing, greedy, multiple_try"),
        ({"optimizers": (np.nan, 1.0, 1.0)}, "optimizers must be"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        MjmcmcSettings(**settings)


def test_probabilities_of_kernels_are_divided_by_their_sum():
    settings = MjmcmcSettings(moves=(2, 1, 1, 0), optimizers=(3, 0, 1))
    assert settings.moves == (0.5, 0.25, 0.25, 0.0)
    assert settings.optimizers == (0.75, 0.0, 0.25)
    rng, picked = np.random.default_rng(1), np.zeros(4)
    for _ in range(4000):
        picked[mjmcmc.pick(rng, np.array(settings.moves))] += 1
    assert fit_p_value(picked, np.array(settings.moves)) > 1e-3


@pytest.mark.parametrize(("n_columns", "rate"), [(0, 0.1), (1, 0.1), (10, 0.1), (40, 0.025)])
def test_the_randomisation_flips_one_column_on_average_at_most_a_tenth(n_columns, rate):
    assert MjmcmcSettings().compiled(n_columns).randomize_rate == pytest.approx(rate)
    assert MjmcmcSettings(randomize_rate=0.3).compiled(n_columns).randomize_rate == 0.3
