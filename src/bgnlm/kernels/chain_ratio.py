"""What a Laplace approximation leaves out along a chain of effects, by quadrature.

Under the normal approximation the effects at successive positions are a Markov chain with normal marginals. The ratio
of the posterior to it is a product with one factor for each row, so its mean over the chain is a filter: functions of
one effect, known at the nodes of a Gauss-Hermite rule, are multiplied by the factors of a position and carried over to
the next, which multiplies the coefficient of the j-th Hermite polynomial by the j-th power of the correlation (Mehler).
"""

import math

import numpy as np

from bgnlm.kernels import banded
from bgnlm.kernels._jit import jit, reordering_jit
from bgnlm.kernels.families import row_value


@jit
def chain_moments(band, rows, lengths, deviations, correlations):
    """Standard deviations of the effects, and the correlation of each with the one before."""
    n = len(band)
    for r in range(len(lengths)):
        lengths[r] = 0
    for i in range(n - 1, -1, -1):
        banded.inverse_row(band, i, rows, lengths)
        lengths[i % len(rows)] = min(lengths[i % len(rows)], band.shape[1])
        deviations[i] = math.sqrt(rows[i % len(rows), 0])
        if i + 1 < n:
            known = lengths[i % len(rows)] > 1
            shared = rows[i % len(rows), 1] / (deviations[i] * deviations[i + 1]) if known else 0.0
            correlations[i + 1] = max(-1.0, min(1.0, shared))


@jit
def _log_factors(family, dispersion, y, weights, eta, expansion, shift, loadings, reach, nodes, first, last, logs):
    """Logarithms of the factors of one position at the nodes; `expansion`: value, slope and curvature of each row."""
    for k in range(len(nodes)):
        logs[k] = 0.0
    for i in range(first, last):
        for k in range(len(nodes)):
            away = shift[i] + loadings[i] * reach * nodes[k]
            value = row_value(family, dispersion, y[i], weights[i], eta[i] + away)[0] - expansion[0, i]
            logs[k] += value - away * (expansion[1, i] - 0.5 * expansion[2, i] * away)


@jit
def _times_factors(logs, message):
    """Multiply a message by the factors; the largest is taken out and its logarithm returned."""
    largest = -math.inf
    for k in range(len(logs)):
        largest = max(largest, logs[k])
    for k in range(len(logs)):
        message[k] *= math.exp(logs[k] - largest)
    return largest


@reordering_jit
def _carry_over(correlation, rule, basis, message, coefficients):
    """Mean of a message given the effect next to it."""
    size = len(message)
    power = 1.0
    if correlation == 0.0:
        total = 0.0
        for k in range(size):
            total += rule[k] * message[k]
        for k in range(size):
            message[k] = total
        return
    for k in range(size):
        message[k] *= rule[k]
    for j in range(size):
        total = 0.0
        for k in range(size):
            total += basis[j, k] * message[k]
        coefficients[j] = total * power
        power *= correlation
    for k in range(size):
        message[k] = 0.0
    for j in range(size):
        for k in range(size):
            message[k] += coefficients[j] * basis[j, k]


@jit
def _scaled(message):
    """Divide a message by its largest value, whose logarithm is returned."""
    largest = 0.0
    for k in range(len(message)):
        message[k] = max(message[k], 0.0)  # below 0 by the error of the expansion alone
        largest = max(largest, message[k])
    if not largest > 0.0:
        return -math.inf
    for k in range(len(message)):
        message[k] /= largest
    return math.log(largest)


@jit
def log_mean_ratio(
    family,
    dispersion,
    y,
    weights,
    eta,
    expansion,
    shift,
    loadings,
    starts,
    deviations,
    correlations,
    nodes,
    rule,
    basis,
    slopes,
):
    """Logarithm of the mean of the ratio, with the linear predictors moved by `shift`.

    `slopes` becomes its derivative in `shift`, if it has a place for each row. `nodes`, `rule` and `basis` are those of
    the quadrature: nodes, weights that add up to 1, orthonormal polynomials (j, node).
    """
    size, n_positions = len(nodes), len(starts) - 1
    wants_slopes = len(slopes) > 0
    message, coefficients, logs = np.ones(size), np.empty(size), np.empty(size)
    kept = np.empty((n_positions if wants_slopes else 0, size))
    total = 0.0
    for t in range(n_positions - 1, -1, -1):
        if wants_slopes:
            for k in range(size):
                kept[t, k] = message[k]
        _log_factors(
            *(family, dispersion, y, weights, eta, expansion, shift, loadings),
            *(deviations[t], nodes, starts[t], starts[t + 1], logs),
        )
        total += _times_factors(logs, message)
        if t > 0:
            _carry_over(correlations[t], rule, basis, message, coefficients)
            total += _scaled(message)
    mean = 0.0
    for k in range(size):
        mean += rule[k] * message[k]
    if not mean > 0.0 or not math.isfinite(total):
        return -math.inf
    if wants_slopes:
        for k in range(size):
            message[k] = 1.0
        for t in range(n_positions):
            _log_factors(
                *(family, dispersion, y, weights, eta, expansion, shift, loadings),
                *(deviations[t], nodes, starts[t], starts[t + 1], logs),
            )
            _times_factors(logs, message)
            whole = 0.0
            for k in range(size):
                coefficients[k] = rule[k] * message[k] * kept[t, k]
                whole += coefficients[k]
            for i in range(starts[t], starts[t + 1]):
                slope = 0.0
                for k in range(size):
                    away = shift[i] + loadings[i] * deviations[t] * nodes[k]
                    own = row_value(family, dispersion, y[i], weights[i], eta[i] + away)[1]
                    slope += coefficients[k] * (own - expansion[1, i] + expansion[2, i] * away)
                slopes[i] = slope / whole
            if t + 1 < n_positions:
                _carry_over(correlations[t + 1], rule, basis, message, coefficients)
                _scaled(message)
    return total + math.log(mean)
