"""Random numbers of the Polya-Gamma distribution (Polson, Scott and Windle 2013).

PG(b, z) is a sum of infinitely many Gamma variables, and has the mean b tanh(z / 2) / (2 z). For b = 1 draws are exact:
of a mixture of a truncated inverse Gaussian and an exponential distribution, accepted by an alternating series.
"""

import math

from bgnlm.kernels._jit import jit

_JOINT = 0.64  # where the two proposals meet
_N_TERMS = 200  # of the sum; the rest of it is replaced by its mean
_MOST_ADDED = 30.0
_SMALLEST = 1e-300


@jit
def draw_all(rng, weights, predictor, out):
    """PG(weight, predictor) for every row."""
    for i in range(len(out)):
        # Variables of whole weights are sums of those of weight 1; a few of these are quicker than the series.
        n_whole = int(weights[i]) if weights[i] <= _MOST_ADDED else 0
        total = 0.0
        for _ in range(n_whole):
            total += draw_one(rng, predictor[i])
        rest = weights[i] - n_whole
        out[i] = total + (draw_sum(rng, rest, predictor[i]) if rest > 0.0 else 0.0)


@jit
def draw_sum(rng, b, z):
    """PG(b, z) for any b above 0, as a sum of its first terms and the mean of the others: up to |z| of 100."""
    total, means, tilt = 0.0, 0.0, 0.25 * (z / math.pi) ** 2
    for k in range(_N_TERMS):
        term = 0.5 / (math.pi**2 * ((k + 0.5) ** 2 + tilt))
        total += term * rng.standard_gamma(b)
        means += term
    return total + b * max(mean_of_one(z) - means, 0.0)


@jit
def mean_of_one(z):
    """Mean of PG(1, z)."""
    return 0.25 if abs(z) < 1e-6 else 0.5 * math.tanh(0.5 * z) / z


@jit
def draw_one(rng, z):
    """PG(1, z), by the method of Devroye."""
    z = 0.5 * abs(z)
    rate = 0.125 * math.pi**2 + 0.5 * z * z
    right = _share_of_right(z, rate)
    while True:
        x = _JOINT + rng.standard_exponential() / rate if rng.random() < right else _truncated_inverse_gaussian(rng, z)
        total = _coefficient(0, x)
        level = rng.random() * total
        n = 0
        while True:
            n += 1
            if n % 2 == 1:
                total -= _coefficient(n, x)
                if level <= total:
                    return 0.25 * x
            else:
                total += _coefficient(n, x)
                if level > total:
                    break


@jit
def _coefficient(n, x):
    """Term of the alternating series of the density."""
    k = (n + 0.5) * math.pi
    if x > _JOINT:
        return k * math.exp(-0.5 * k * k * x)
    return k * math.exp(-1.5 * math.log(0.5 * math.pi * max(x, _SMALLEST)) - 2.0 * (n + 0.5) ** 2 / max(x, _SMALLEST))


@jit
def _share_of_right(z, rate):
    """Probability of a proposal from the exponential distribution."""
    root = math.sqrt(1.0 / _JOINT)
    shift = math.log(rate) + rate * _JOINT
    left = math.exp(shift - z) * _normal_cdf(root * (_JOINT * z - 1.0))
    left += math.exp(shift + z) * _normal_cdf(-root * (_JOINT * z + 1.0))
    return 1.0 / (1.0 + 4.0 / math.pi * left)


@jit
def _normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@jit
def _truncated_inverse_gaussian(rng, z):
    """Inverse Gaussian of mean 1 / z, up to where the proposals meet."""
    if z < 1.0 / _JOINT:
        while True:
            a, b = rng.standard_exponential(), rng.standard_exponential()
            while a * a > 2.0 * b / _JOINT:
                a, b = rng.standard_exponential(), rng.standard_exponential()
            x = _JOINT / (1.0 + a * _JOINT) ** 2
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        y = rng.standard_normal() ** 2
        x = mean + 0.5 * mean * mean * y - 0.5 * mean * math.sqrt(4.0 * mean * y + (mean * y) ** 2)
        if rng.random() > mean / (mean + x):
            x = mean * mean / x
        if x <= _JOINT:
            return x
