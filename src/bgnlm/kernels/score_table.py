"""Evaluation of tabulated scores: for each model size a piecewise polynomial in log(RSS / TSS)."""

from typing import Any, NamedTuple

from bgnlm.kernels._jit import jit

DEGREE = 7


class ScoreTable(NamedTuple):
    """Piecewise polynomials of one variable, one function per model size.

    Panels of all sizes lie one after the other. Panel `i` covers `edges[i]` to `edges[i + 1]`; its
    polynomial in the local coordinate -1..1 has the coefficients `coefficients[i]`, constant first.
    """

    lower: float
    buckets_per_unit: float
    bucket_start: Any  # (sizes, buckets): panel that holds the lower end of the bucket
    edges: Any  # (panels + 1,)
    coefficients: Any  # (panels, DEGREE + 1)
    available: Any  # (sizes,): False where models of that size have no score at all


@jit
def table_value(table, size, log_residual):
    """Score of a model with `size` columns and log(RSS / TSS) = `log_residual`."""
    x = min(max(log_residual, table.lower), 0.0)
    last = table.bucket_start.shape[1] - 1
    bucket = min(int((x - table.lower) * table.buckets_per_unit), last)
    panel = table.bucket_start[size, bucket]
    while x > table.edges[panel + 1]:
        panel += 1
    low = table.edges[panel]
    high = table.edges[panel + 1]
    t = (2.0 * x - low - high) / (high - low)
    c = table.coefficients[panel]
    # Two independent Horner chains (even and odd powers) hide the latency of the multiplications.
    t2 = t * t
    even = ((c[6] * t2 + c[4]) * t2 + c[2]) * t2 + c[0]
    odd = ((c[7] * t2 + c[5]) * t2 + c[3]) * t2 + c[1]
    return even + t * odd


@jit
def table_values(table, size, log_residuals, out):
    """Scores of models of one size."""
    for i in range(len(log_residuals)):
        out[i] = table_value(table, size, log_residuals[i])
