"""What can be unusual about a model's score, and what to do about it."""

from enum import IntEnum


class ModelStatus(IntEnum):
    """How the score of a model came about; everything but `OK` deserves a look at `advice`."""

    OK = 0
    RANK_DEFICIENT = 1
    SATURATED = 2
    PERFECT_FIT = 3
    CONSTANT_RESPONSE = 4
    IMPRECISE = 5
    SEPARATED = 6


_ADVICE = {
    ModelStatus.OK: "",
    ModelStatus.RANK_DEFICIENT: (
        "its columns, together with the intercept, are linearly dependent, so it repeats a smaller model; "
        "its log marginal likelihood is -inf. Drop one of the dependent columns"
    ),
    ModelStatus.SATURATED: (
        "it has as many coefficients as there are observations and fits any response; its score says nothing. "
        "Use fewer columns or more observations"
    ),
    ModelStatus.PERFECT_FIT: (
        "its residuals are rounding errors, and the residual sum of squares was set to what these amount to. "
        "If the response is less precise than its digits, say so with noise_floor, for example noise_floor=0.01"
    ),
    ModelStatus.CONSTANT_RESPONSE: (
        "the response is constant, so no column explains anything; every model has R^2 = 0. "
        "Check that the right column was taken as response"
    ),
    ModelStatus.SEPARATED: (
        "some combination of its columns separates the responses, so the maximum likelihood estimate is at infinity. "
        "Use a prior with information='null', the default, under which the estimate is finite"
    ),
    ModelStatus.IMPRECISE: (
        "its score is not known to all digits, because its columns are so nearly dependent, or separate the responses "
        "so far, that rounding takes over. Drop one of the nearly dependent columns, or use a given g"
    ),
}


def advice(status: ModelStatus | int) -> str:
    """Say what the status means and what to do; empty for `OK`."""
    return _ADVICE[ModelStatus(status)]
