"""Iteratively reweighted least squares as in the authors' scripts, on rows of a contiguous design."""

import math

from bgnlm.kernels._jit import inlined_jit, jit
from bgnlm.kernels.families import LOGIT, POISSON, linear_predictor
from bgnlm.kernels.glm_algebra import accumulate, cholesky, dot, solve

_MAX_STEPS = 25
_ENOUGH = 1e-8
# R's families: beyond these predictors a mean or its slope is as good as 0 or 1, but no closer than `_EPSILON`.
_EPSILON = 2.0**-52
_FARTHEST_LOGIT = 30.0
_FARTHEST_PROBIT = 8.125890664701906
_FARTHEST_LOG = 340.0  # R has no such limit: there the square of a mean is soon no number
# Share of a column's sum of squares that those before it leave; below, inner products have lost too many digits.
_PIVOT = 1e-7
# The same of its norm, below which R's `glm` takes a column for a combination of those before it.
_ALIASED = 1e-11
_ROOT_HALF = math.sqrt(0.5)
_ROOT_2PI = math.sqrt(2.0 * math.pi)


@jit
def fitted(family, eta):
    """Mean of the response, for shares also what it lacks to 1, and its slope in the linear predictor."""
    if family == LOGIT:
        if abs(eta) > _FARTHEST_LOGIT:
            near, far = _EPSILON / (1.0 + _EPSILON), 1.0 / (1.0 + _EPSILON)
            return (far, near, _EPSILON) if eta > 0.0 else (near, far, _EPSILON)
        odds = math.exp(eta)
        lack = 1.0 / (1.0 + odds)
        return odds * lack, lack, odds * lack * lack
    if family == POISSON:
        mean = max(math.exp(min(eta, _FARTHEST_LOG)), _EPSILON)
        return mean, 1.0, mean
    x = min(max(eta, -_FARTHEST_PROBIT), _FARTHEST_PROBIT) * _ROOT_HALF
    return 0.5 * math.erfc(-x), 0.5 * math.erfc(x), max(math.exp(-0.5 * eta * eta) / _ROOT_2PI, _EPSILON)


@jit
def working_rows(family, y, weights, eta, score, information):
    """Deviance; fills the working weights, and their products with the working residuals."""
    deviance = 0.0
    for i in range(len(eta)):
        mean, lack, slope = fitted(family, eta[i])
        residual = y[i] - mean
        term = -residual
        if family != POISSON:
            residual = y[i] * lack - (1.0 - y[i]) * mean
            term = (1.0 - y[i]) * math.log((1.0 - y[i]) / lack) if y[i] < 1.0 else 0.0
        if y[i] > 0.0:
            term += y[i] * math.log(y[i] / mean)
        deviance += weights[i] * term
        factor = weights[i] * slope / (mean * lack)
        score[i], information[i] = factor * residual, factor * slope
    return 2.0 * deviance


@jit
def _subtract(factor, row, out):
    for i in range(len(out)):
        out[i] -= factor * row[i]


@jit
def orthogonal_step(design, columns, size, score, information, triangle, norms, right, rows, out):
    """Solve weighted least squares by the modified Gram-Schmidt process, the right-hand side going along.

    As good as the data where inner products are not. A column that depends on those before it gets 0, as in R.
    """
    target = rows[size + 1]
    for i in range(len(score)):
        root = math.sqrt(information[i])
        target[i] = score[i] / root if root > 0.0 else 0.0
        rows[0, i] = root
    for a in range(size):
        column, row = design[columns[a]], rows[a + 1]
        for i in range(len(row)):
            row[i] = rows[0, i] * column[i]
    for a in range(size + 1):
        norms[a] = math.sqrt(dot(rows[a], rows[a]))
    for a in range(size + 1):
        row = rows[a]
        norm = math.sqrt(dot(row, row))
        triangle[a, a] = norm if norm > _ALIASED * norms[a] else 0.0
        if triangle[a, a] == 0.0:
            continue
        for i in range(len(row)):
            row[i] /= norm
        for b in range(a + 1, size + 1):
            triangle[a, b] = dot(row, rows[b])
            _subtract(triangle[a, b], row, rows[b])
        right[a] = dot(row, target)
        _subtract(right[a], row, target)
    for a in range(size, -1, -1):
        out[a] = 0.0
        if triangle[a, a] > 0.0:
            total = right[a]
            for b in range(a + 1, size + 1):
                total -= triangle[a, b] * out[b]
            out[a] = total / triangle[a, a]


@jit
def smallest_share(matrix, factor, size):
    """Least share of a column's sum of squares that those before it leave."""
    smallest = 1.0
    for a in range(size):
        smallest = min(smallest, factor[a, a] ** 2 / matrix[a, a])
    return smallest


@inlined_jit
def _fill_step(data, columns, size, work, rows):
    accumulate(
        data.design, columns, size, work.score, work.information, work.moments, work.gradient, work.matrix, work.block
    )
    if (
        work.moments[0] > 0.0
        and cholesky(work.matrix, size, work.factor)
        and smallest_share(work.matrix, work.factor, size) > _PIVOT
    ):
        solve(work.moments, work.factor, size, work.gradient, work.step)
        return
    orthogonal_step(
        data.design,
        columns,
        size,
        work.score,
        work.information,
        work.matrix,
        work.moments,
        work.gradient,
        rows,
        work.step,
    )


@jit
def fit_as_scripts(data, included, start, columns, coefficients, work, rows, deviances, steps):
    """Deviances of models, given as rows of Booleans, where the iterations stop; `steps` of each.

    All begin at the linear predictor `start`. What is left in `coefficients` and `work` is that of the last model.
    """
    n = len(start)
    for model in range(len(included)):
        size = 0
        for column in range(included.shape[1]):
            if included[model, column]:
                columns[size] = column
                size += 1
        for a in range(size + 1):
            coefficients[a] = 0.0
        for i in range(n):
            work.eta[i] = start[i]
        deviance = working_rows(data.family, data.y, data.weights, work.eta, work.score, work.information)
        for i in range(n):  # where it starts is no combination of the columns
            work.score[i] += work.information[i] * (start[i] - data.offset[i])
        steps[model] = 0
        while steps[model] < _MAX_STEPS:
            _fill_step(data, columns, size, work, rows)
            for a in range(size + 1):
                coefficients[a] += work.step[a]
            linear_predictor(data.design, data.offset, columns, size, coefficients, work.eta)
            previous = deviance
            deviance = working_rows(data.family, data.y, data.weights, work.eta, work.score, work.information)
            steps[model] += 1
            if abs(deviance - previous) < _ENOUGH * (abs(deviance) + 0.1):
                break
        deviances[model] = deviance
