"""Steps of the sampler of pools against determinants and solutions of each model by itself."""

import numpy as np
import pytest

from bgnlm.kernels import gibbs as kernels
from tests.search.goodness import all_models, fit_p_value, mask_of, symmetry_p_value

N_COLUMNS, PRECISION = 4, 0.7
COSTS = np.array([0.3, 1.0, 0.1, 0.6])
SIZES = np.array([0.0, 0.4, 0.5, 0.2, -0.3])
PAIRS = np.array([[0, 1], [1, 3]])


@pytest.fixture(scope="module")
def precision():
    """Precision of slopes and intercept, with the linear term of the log-likelihood as last row and column."""
    rng = np.random.default_rng(1)
    design = np.column_stack([rng.normal(size=(40, N_COLUMNS)) + 0.7 * rng.normal(size=(40, 1)), np.ones(40)])
    matrix = np.zeros((N_COLUMNS + 2, N_COLUMNS + 2))
    matrix[:-1, :-1] = (design * rng.random(40)[:, None]).T @ design
    matrix[np.arange(N_COLUMNS), np.arange(N_COLUMNS)] += PRECISION
    matrix[-1, :-1] = matrix[:-1, -1] = design.T @ rng.normal(size=40) * 0.5
    return matrix


def _log_marginal(matrix, included):
    """By solving the equations of the model."""
    chosen = np.append(np.flatnonzero(included), N_COLUMNS)
    block, linear = matrix[np.ix_(chosen, chosen)], matrix[chosen, -1]
    explained = linear @ np.linalg.solve(block, linear)
    return 0.5 * (explained - np.linalg.slogdet(block)[1] + included.sum() * np.log(PRECISION))


def _swept(matrix, included):
    swept = matrix.copy()
    for k in (N_COLUMNS, *np.flatnonzero(included)):
        kernels.sweep(swept, k, True)
    return swept


def _log_posterior(matrix):
    models = all_models(N_COLUMNS)
    values = np.array([_log_marginal(matrix, model) - model @ COSTS + SIZES[model.sum()] for model in models])
    return values - np.logaddexp.reduce(values)


def test_a_sweep_gives_covariance_and_mean_and_can_be_taken_back(precision):
    included = np.array([True, False, True, False])
    chosen, swept = [0, 2, N_COLUMNS], _swept(precision, included)
    covariance = np.linalg.inv(precision[np.ix_(chosen, chosen)])
    assert swept[np.ix_(chosen, chosen)] == pytest.approx(-covariance)
    assert swept[chosen, -1] == pytest.approx(covariance @ precision[chosen, -1])
    for k in (0, N_COLUMNS, 2):
        kernels.sweep(swept, k, False)
    assert swept == pytest.approx(precision)


def test_gains_are_differences_of_log_marginals(precision):
    for included in all_models(N_COLUMNS):
        swept, here = _swept(precision, included), _log_marginal(precision, included)
        for k in range(N_COLUMNS):
            other = included.copy()
            other[k] = not included[k]
            sign = -1.0 if included[k] else 1.0
            difference = sign * (_log_marginal(precision, other) - here)
            assert kernels.gain(swept, k, np.log(PRECISION)) == pytest.approx(difference)
            for j in np.flatnonzero(~included) if included[k] else ():
                other[j] = True
                gained = kernels.gain_in_place_of(swept, k, j, np.log(PRECISION))
                gained -= kernels.gain(swept, k, np.log(PRECISION))
                assert gained == pytest.approx(_log_marginal(precision, other) - here)
                other[j] = False


def _one_step(precision, costs, max_size=N_COLUMNS, n_steps=1):
    """Masks before and after one move, from models drawn from the posterior."""
    rng = np.random.default_rng(5)
    models, log_posterior = all_models(N_COLUMNS), _log_posterior(precision)
    allowed = models.sum(axis=1) <= max_size
    probabilities = np.where(allowed, np.exp(log_posterior), 0.0)
    probabilities /= probabilities.sum()
    before = rng.choice(len(models), size=20_000, p=probabilities)
    after, n_taken = np.empty_like(before), 0
    swept = [_swept(precision, model) for model in models]
    for number, mask in enumerate(before):
        included = models[mask].copy()
        arguments = (costs, SIZES, np.log(PRECISION), max_size, PAIRS, n_steps)
        n_taken += kernels.move(rng, swept[mask].copy(), included, *arguments)
        after[number] = mask_of(included)
    return before, after, probabilities, n_taken / len(before)


@pytest.mark.parametrize("max_size", [N_COLUMNS, 2])
def test_a_move_leaves_the_posterior_as_it_is(precision, max_size):
    before, after, probabilities, rate = _one_step(precision, COSTS, max_size)
    assert fit_p_value(np.bincount(after, minlength=16), probabilities) > 1e-3
    assert symmetry_p_value(before, after, 16) > 1e-3
    assert rate > 0.1


def test_wrong_prices_would_be_noticed(precision):
    _, after, probabilities, _ = _one_step(precision, COSTS + np.array([0.5, 0.0, 0.0, 0.0]), n_steps=3)
    assert fit_p_value(np.bincount(after, minlength=16), probabilities) < 1e-6
