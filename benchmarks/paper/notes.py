"""Words under the tables: what is measured, and what settings mean."""

from typing import NamedTuple


class Words(NamedTuple):
    """Which measure orders a table (+1 for the least first), and what its columns are."""

    main: str
    sign: float
    words: str


MEASURES = {
    "classification": Words(
        "ACC",
        -1.0,
        "Median (min, max) over runs of the measures of the test rows. FNR and FPR are as the text defines them, "
        "errors by members of the class; FNR* and FPR* as the authors' scripts computed and the tables print them, "
        "with the errors added to the denominator.",
    ),
    "regression": Words("RMSE", 1.0, "Median (min, max) over runs of the measures of the test rows."),
    "detection": Words(
        "Pow",
        -1.0,
        "Means over runs: share of runs with a true feature of probability above {threshold:g}, Pow, number of false "
        "features (FP), share of false ones among those found (FDR). A feature is a true one if it is the same "
        "function on the data up to an affine map.",
    ),
    "probability": Words(
        "", 1.0, "Median (min, max) over runs of the posterior probabilities that the paper prints (CG is its CGH)."
    ),
    "frequency": Words(
        "", 1.0, "1: depth 5. 2: depth 300, no products. 3: the same, and all features have the same prior probability."
    ),
}
_LENGTHS = "number of populations, steps in each, models or steps in the last, threshold to keep features, moves"
_DIFFERENT = (
    "Not theirs: where there are more inputs than a population holds, the first one has those that explain most alone; "
    "projections join two features or more; all models visited take part, and predictions average over the 1000 most "
    "probable of a chain; with weights of projections as parameters (BGNLM_4) over 300, of whatever number the "
    "populations gave."
)
_CHAINS = (
    "In classification chains count by the mass they have found, u_b; elsewhere models of several chains are one set."
)
_FILTER = (
    "In classification inputs that stepwise selection and a first walk of the chain favour stay in all of its "
    f"populations, as in the scripts (not in appendix C). {_CHAINS}"
)
SETTINGS = {
    "script, mjmcmc": f"likelihood, prior, G and limit on operations of the authors' scripts, as are {_LENGTHS}, "
    f"and the way probabilities of features of several chains are put together. {_FILTER} {_DIFFERENT}",
    "script, plain": f"likelihood, prior, G and limit on operations of the authors' scripts, as are {_LENGTHS}. Where "
    f"a population is small enough its models are all scored, or drawn by a quadratic approximation. {_FILTER} "
    f"{_DIFFERENT}",
    "script, informed": "likelihood, prior, G and limit on operations of the scripts; the library's own search.",
    "paper, mjmcmc": f"Jeffreys' prior, free inputs, a, G, D, L and Q of the text; {_LENGTHS} of the scripts. "
    f"{_CHAINS} {_DIFFERENT}",
    "paper, plain": f"Jeffreys' prior, free inputs, a, G, D, L and Q of the text; {_LENGTHS} of the scripts. Where a "
    f"population is small enough its models are all scored, or drawn by a quadratic approximation. "
    f"{_CHAINS} {_DIFFERENT}",
    "paper, informed": "Jeffreys' prior, free inputs, a, G, D, L and Q of the text; the library's own search.",
    "paper, inputs cost, informed": "priors of coefficients and processes, a, G, D, L and Q of the text, and log n "
    "for each input too; the library's own search.",
    "default": "the library's defaults, given data (as they are, not standardised) and family; for planets also G "
    "where the table names it, for methylation the processes, and the offset is always in.",
    "predict": 'the same with penalty="predict", which the docs advise where predictions are what counts.',
    "ensemble": 'penalty="predict", chains that count alike; by cross-validation among the training rows for abalone '
    'projection_weights="conditional", for spam slopes of standard deviation 0.5, and 10 populations before 200 models '
    "are drawn from a pool.",
    "script": "linear models, likelihood and prior of the scripts; all are scored up to 16 inputs, else MJMCMC.",
    "paper": "linear models, likelihood and prior of the text; all are scored up to 16 inputs, else MJMCMC.",
    "library": "other libraries with their own settings; networks have two layers of 200 and scaled inputs; gplearn "
    "has population, generations, functions and inputs of the paper.",
    "library, tuned": "settings chosen by five-fold cross-validation within the training rows, scaled inputs, early "
    "stopping.",
}
