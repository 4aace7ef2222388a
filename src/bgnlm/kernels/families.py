"""Log-likelihoods of generalized linear models row by row, with two derivatives in the linear predictor.

All of them are concave in the linear predictor, so that Newton's method with step halving finds the mode.
Terms that depend on the response and the dispersion alone are left to `log_constants`.
"""

import math

from bgnlm.kernels._jit import jit, reordering_jit

LOGIT, PROBIT, CLOGLOG, POISSON, GAMMA, NEGATIVE_BINOMIAL = range(6)
GAUSSIAN = -1

_ROOT_2 = math.sqrt(2.0)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_SIXTH, _24TH, _120TH, _720TH, _5040TH, _40320TH = (1.0 / math.factorial(k) for k in range(3, 9))
_FACTORS = 512  # factors between 1 and 2 whose product does not overflow
# Its exp and products with it are normal numbers: with denormal ones arithmetic takes many times as long.
_SMALLEST_EXPONENT = -600.0
# exp of more overflows soon; no fitted linear predictor of use is beyond.
_LARGEST_PREDICTOR = 500.0


@jit
def log_normal_cdf(x):
    """Log of the standard normal distribution function and the ratio of density to it."""
    if x > -30.0:
        cdf = 0.5 * math.erfc(-x / _ROOT_2)
        return math.log(cdf), math.exp(-0.5 * x * x - _LOG_ROOT_2PI) / cdf
    # Continued fraction of the tail, five terms: good to the last digit here.
    t = -x
    ratio = t + 1.0 / (t + 2.0 / (t + 3.0 / (t + 4.0 / (t + 5.0 / t))))
    return -0.5 * t * t - _LOG_ROOT_2PI - math.log(ratio), ratio


@reordering_jit
def _logit(y, weights, eta, score, information):
    # Loops without branches or calls, so that the compiler works on several rows at a time.
    for i in range(len(eta)):
        # exp(-|eta|): a polynomial on a thousandth of the exponent, squared ten times; good to 1e-12
        x = max(-abs(eta[i]), _SMALLEST_EXPONENT) * (1.0 / 1024.0)
        z = 1.0 + x * (
            1.0 + x * (0.5 + x * (_SIXTH + x * (_24TH + x * (_120TH + x * (_720TH + x * (_5040TH + x * _40320TH))))))
        )
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        information[i] = z
    total = 0.0
    unit_weights = True
    for i in range(len(eta)):
        total += weights[i] * (y[i] * eta[i] - max(eta[i], 0.0))
        unit_weights &= weights[i] == 1.0
    if unit_weights:
        for low in range(0, len(eta), _FACTORS):
            product = 1.0
            for i in range(low, min(low + _FACTORS, len(eta))):
                product *= 1.0 + information[i]
            total -= math.log(product)
    else:
        for i in range(len(eta)):
            total -= weights[i] * math.log1p(information[i])
    for i in range(len(eta)):
        z = information[i]
        inverse = 1.0 / (1.0 + z)
        # Both probabilities to all their digits: y - mean has none left where classes separate.
        yes = inverse if eta[i] >= 0.0 else z * inverse
        no = z * inverse if eta[i] >= 0.0 else inverse
        score[i] = weights[i] * (y[i] * no - (1.0 - y[i]) * yes)
        information[i] = weights[i] * z * inverse * inverse
    return total


@jit
def _probit(y, weights, eta, score, information):
    total = 0.0
    for i in range(len(eta)):
        log_yes, ratio_yes = log_normal_cdf(eta[i])
        log_no, ratio_no = log_normal_cdf(-eta[i])
        yes, no = weights[i] * y[i], weights[i] * (1.0 - y[i])
        total += yes * log_yes + no * log_no
        score[i] = yes * ratio_yes - no * ratio_no
        information[i] = yes * ratio_yes * (ratio_yes + eta[i]) + no * ratio_no * (ratio_no - eta[i])
    return total


@jit
def _cloglog(y, weights, eta, score, information):
    total = 0.0
    for i in range(len(eta)):
        m = math.exp(min(eta[i], _LARGEST_PREDICTOR))
        a = 0.0 if m > 700.0 else (m / math.expm1(m) if m > 1e-8 else 1.0 - 0.5 * m)
        # a + m - 1 loses its digits where m is small
        curvature = a * (m + a - 1.0 if m > 1e-3 else m * (0.5 + m / 12.0))
        yes, no = weights[i] * y[i], weights[i] * (1.0 - y[i])
        total -= no * m
        if yes > 0.0:
            total += yes * (math.log(-math.expm1(-m)) if m > 1e-8 else eta[i] - 0.5 * m)
        score[i] = yes * a - no * m
        information[i] = yes * curvature + no * m
    return total


@jit
def _poisson(y, weights, eta, score, information):
    total = 0.0
    for i in range(len(eta)):
        mean = math.exp(min(eta[i], _LARGEST_PREDICTOR))
        total += weights[i] * (y[i] * eta[i] - mean)
        score[i] = weights[i] * (y[i] - mean)
        information[i] = weights[i] * mean
    return total


@jit
def _gamma(shape, y, weights, eta, score, information):
    total = 0.0
    for i in range(len(eta)):
        ratio = y[i] * math.exp(-max(eta[i], -_LARGEST_PREDICTOR))
        w = weights[i] * shape
        total -= w * (eta[i] + ratio)
        score[i] = w * (ratio - 1.0)
        information[i] = w * ratio
    return total


@jit
def _negative_binomial(size, y, weights, eta, score, information):
    total = 0.0
    for i in range(len(eta)):
        e = min(eta[i], _LARGEST_PREDICTOR)
        mean = math.exp(e)
        share = mean / (size + mean)
        total += weights[i] * (y[i] * e - (y[i] + size) * math.log1p(mean / size))
        score[i] = weights[i] * (y[i] - (y[i] + size) * share)
        information[i] = weights[i] * (y[i] + size) * share * (size / (size + mean))
    return total


@jit
def _gaussian(precision, y, weights, eta, score, information):
    total = 0.0
    for i in range(len(eta)):
        w, residual = weights[i] * precision, y[i] - eta[i]
        total -= 0.5 * w * residual * residual
        score[i] = w * residual
        information[i] = w
    return total


@jit
def row_terms(family, dispersion, y, weights, eta, score, information):
    """Log-likelihood without constants; fills its first derivative and negative second derivative in eta."""
    if family == LOGIT:
        return _logit(y, weights, eta, score, information)
    if family == PROBIT:
        return _probit(y, weights, eta, score, information)
    if family == CLOGLOG:
        return _cloglog(y, weights, eta, score, information)
    if family == POISSON:
        return _poisson(y, weights, eta, score, information)
    if family == GAMMA:
        return _gamma(dispersion, y, weights, eta, score, information)
    if family == GAUSSIAN:
        return _gaussian(dispersion, y, weights, eta, score, information)
    return _negative_binomial(dispersion, y, weights, eta, score, information)


@jit
def row_value(family, dispersion, y, weight, eta):
    """Log-likelihood of one row without constants, and its derivative in eta."""
    if family == POISSON:
        mean = math.exp(min(eta, _LARGEST_PREDICTOR))
        return weight * (y * eta - mean), weight * (y - mean)
    if family == LOGIT:
        z = math.exp(-min(abs(eta), -_SMALLEST_EXPONENT))
        p = 1.0 / (1.0 + z) if eta >= 0.0 else z / (1.0 + z)
        return weight * (y * eta - max(eta, 0.0) - math.log1p(z)), weight * (y - p)
    if family == PROBIT:
        log_yes, ratio_yes = log_normal_cdf(eta)
        log_no, ratio_no = log_normal_cdf(-eta)
        return weight * (y * log_yes + (1.0 - y) * log_no), weight * (y * ratio_yes - (1.0 - y) * ratio_no)
    if family == CLOGLOG:
        m = math.exp(min(eta, _LARGEST_PREDICTOR))
        a = 0.0 if m > 700.0 else (m / math.expm1(m) if m > 1e-8 else 1.0 - 0.5 * m)
        value = -(1.0 - y) * m
        if y > 0.0:
            value += y * (math.log(-math.expm1(-m)) if m > 1e-8 else eta - 0.5 * m)
        return weight * value, weight * (y * a - (1.0 - y) * m)
    if family == GAMMA:
        ratio = y * math.exp(-max(eta, -_LARGEST_PREDICTOR))
        return -weight * dispersion * (eta + ratio), weight * dispersion * (ratio - 1.0)
    if family == GAUSSIAN:
        residual = y - eta
        return -0.5 * weight * dispersion * residual * residual, weight * dispersion * residual
    e = min(eta, _LARGEST_PREDICTOR)
    mean = math.exp(e)
    value = y * e - (y + dispersion) * math.log1p(mean / dispersion)
    return weight * value, weight * (y - (y + dispersion) * mean / (dispersion + mean))


@jit
def row_values(family, dispersion, y, weights, eta, out):
    """Log-likelihoods of all rows without constants."""
    for i in range(len(eta)):
        out[i] = row_value(family, dispersion, y[i], weights[i], eta[i])[0]


@jit
def higher_terms(family, dispersion, y, weights, eta, third, fourth):
    """Third and fourth derivative of the log-likelihood in eta."""
    for i in range(len(eta)):
        w = weights[i]
        if family in (LOGIT, NEGATIVE_BINOMIAL):
            shift = 0.0
            if family == NEGATIVE_BINOMIAL:
                w, shift = w * (y[i] + dispersion), math.log(dispersion)
            z = math.exp(-min(abs(eta[i] - shift), -_SMALLEST_EXPONENT))
            p = 1.0 / (1.0 + z) if eta[i] >= shift else z / (1.0 + z)
            variance = z / ((1.0 + z) * (1.0 + z))
            third[i] = -w * variance * (1.0 - 2.0 * p)
            fourth[i] = -w * variance * (1.0 - 6.0 * variance)
        elif family == PROBIT:
            third_yes, fourth_yes = _higher_log_normal_cdf(eta[i])
            third_no, fourth_no = _higher_log_normal_cdf(-eta[i])
            third[i] = w * (y[i] * third_yes - (1.0 - y[i]) * third_no)
            fourth[i] = w * (y[i] * fourth_yes + (1.0 - y[i]) * fourth_no)
        elif family == CLOGLOG:
            m = math.exp(min(eta[i], _LARGEST_PREDICTOR))
            a = 0.0 if m > 700.0 else (m / math.expm1(m) if m > 1e-8 else 1.0 - 0.5 * m)
            c = 1.0 - m - a if m > 1e-3 else -m * (0.5 + m / 12.0)
            second = a * c
            slope = -m - second
            yes = second * c + a * slope
            third[i] = w * (y[i] * yes - (1.0 - y[i]) * m)
            fourth[i] = w * (y[i] * (yes * c + 2.0 * second * slope - a * (m + yes)) - (1.0 - y[i]) * m)
        elif family == POISSON:
            third[i] = fourth[i] = -w * math.exp(min(eta[i], _LARGEST_PREDICTOR))
        elif family == GAMMA:
            third[i] = w * dispersion * y[i] * math.exp(-max(eta[i], -_LARGEST_PREDICTOR))
            fourth[i] = -third[i]
        else:
            third[i] = fourth[i] = 0.0


@jit
def _higher_log_normal_cdf(x):
    """Third and fourth derivative of the log of the standard normal distribution function."""
    ratio = log_normal_cdf(x)[1]
    second = -ratio * (x + ratio)
    third = -second * (x + ratio) - ratio * (1.0 + second)
    return third, -third * (x + 2.0 * ratio) - 2.0 * second * (1.0 + second)


@jit
def log_constants(family, dispersion, y, weights):
    """The part of the log-likelihood that does not depend on the linear predictor.

    `dispersion` is the shape of the Gamma, the size of the negative binomial and the precision of the normal
    distribution.
    """
    total = 0.0
    for i in range(len(y)):
        w = weights[i]
        if family == GAUSSIAN:
            total += w * (0.5 * math.log(dispersion) - _LOG_ROOT_2PI)
        elif family <= CLOGLOG:
            # y is the share of w trials
            total += math.lgamma(w + 1.0) - math.lgamma(w * y[i] + 1.0) - math.lgamma(w * (1.0 - y[i]) + 1.0)
        elif family == POISSON:
            total -= w * math.lgamma(y[i] + 1.0)
        elif family == GAMMA:
            total += w * (
                dispersion * math.log(dispersion) + (dispersion - 1.0) * math.log(y[i]) - math.lgamma(dispersion)
            )
        else:
            total += w * (log_rising_factorial(dispersion, y[i]) - math.lgamma(y[i] + 1.0))
    return total


@jit
def log_rising_factorial(size, y):
    """Compute log Gamma(size + y) - log Gamma(size) - y log(size), also where the first two are nearly the same."""
    if size < 1e4:
        return math.lgamma(size + y) - math.lgamma(size) - y * math.log(size)
    correction = (1.0 / (size + y) - 1.0 / size) / 12.0  # Stirling; the next term is below 1e-14
    return (size + y - 0.5) * math.log1p(y / size) - y + correction


@jit
def digamma(x):
    """Derivative of log Gamma for x > 0."""
    total = 0.0
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    tail = s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s * (1.0 / 240.0 - s / 132.0))))
    return total + math.log(x) - 0.5 / x - tail


@jit
def trigamma(x):
    """Second derivative of log Gamma for x > 0."""
    total = 0.0
    while x < 10.0:
        total += 1.0 / (x * x)
        x += 1.0
    s = 1.0 / (x * x)
    tail = s * (1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s * (1.0 / 30.0 - s * 5.0 / 66.0))))
    return total + 1.0 / x + 0.5 * s + tail / x


@jit
def dispersion_terms(family, dispersion, y, weights, eta, cross):
    """First and negative second derivative of the log-likelihood in log(dispersion), and the mixed one with eta."""
    d = dispersion
    first, second = 0.0, 0.0
    for i in range(len(y)):
        w = weights[i]
        if family == GAMMA:
            ratio = y[i] * math.exp(-max(eta[i], -_LARGEST_PREDICTOR))
            slope = math.log(d) + 1.0 - digamma(d) - eta[i] - ratio + math.log(y[i])
            curvature = 1.0 / d - trigamma(d)
            cross[i] = w * d * (ratio - 1.0)
        else:
            mean = math.exp(min(eta[i], _LARGEST_PREDICTOR))
            sum_ = d + mean
            slope = digamma(y[i] + d) - digamma(d) + math.log(d / sum_) + 1.0 - (y[i] + d) / sum_
            curvature = trigamma(y[i] + d) - trigamma(d) + 1.0 / d - 2.0 / sum_ + (y[i] + d) / (sum_ * sum_)
            cross[i] = w * d * mean * (y[i] - mean) / (sum_ * sum_)
        first += w * d * slope
        second -= w * (d * d * curvature + d * slope)
    return first, second


@jit
def linear_predictor(design, offset, columns, size, coefficients, eta):
    """Add up offset + intercept + sum of coefficient * column; the intercept comes first in `coefficients`."""
    add_columns(design, columns, size, coefficients, eta)
    for i in range(len(eta)):
        eta[i] += offset[i]


@jit
def add_columns(design, columns, size, coefficients, eta):
    """The same without the offset."""
    for i in range(len(eta)):
        eta[i] = coefficients[0]
    for a in range(size):
        b = coefficients[a + 1]
        column = design[columns[a]]
        if b != 0.0:
            for i in range(len(eta)):
                eta[i] += b * column[i]
