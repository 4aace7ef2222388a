"""`BGNLMRegressor`: from a table to features with probabilities and predictions with their uncertainty."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from bgnlm._typing import AnyArray, FloatArray
from bgnlm.estimators.base import BGNLMEstimator, LearntTable, central, check_target
from bgnlm.estimators.progress import with_callbacks
from bgnlm.features import Feature, Transform
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.posterior.predict import predict_cdf, predict_deviation, predict_mean
from bgnlm.search.config import SearchConfig
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import SearchProblem


class BGNLMRegressor(RegressorMixin, BGNLMEstimator):  # type: ignore[misc]
    """Bayesian generalized nonlinear regression.

    Searches for the features (products, functions, projections of the inputs) that explain the response, computes how
    probable each is, and predicts by averaging over models.

    Parameters
    ----------
    family
        "gaussian"; "binomial" (shares of successes, with the number of trials as `sample_weight`); "poisson";
        "gamma"; "negative_binomial".
    link
        "identity" (Gaussian); "logit", "probit" or "cloglog" (binomial); "log" (others); None for the first of these.
    transforms
        The set G of functions: the name of a preset, or a list of names and `Transform` objects.
    coefficient_prior
        A name, or a `CoefficientPrior`. "auto" is the robust mixture of g-priors for the Gaussian family; for the
        others independent normal coefficients of standardised columns with standard deviation 2.5; with latent
        components with standard deviation 1 for all families.
    penalty
        What an operation costs a model, in nats: "bic" (log n), "aic" (2) or a number. "predict" for the paper's prior
        for prediction, where inputs cost nothing and operations 2: it predicts better, and reports more of noise. Or a
        `bgnlm.search.ModelPrior`, for example ``ModelPrior(complexity="oc")``.
    noise_floor
        Gaussian only: the smallest noise standard deviation, as a fraction of that of y.
    max_depth
        D: how deep functions and products may be nested; 0 for linear models. A `search` with limits on the depth
        overrides it.
    projection_weights
        How weights inside projections are set: "naive", by maximum likelihood of the weighted sum as linear predictor;
        "concave", of the function of it; "deep", over the weights of all layers; "bayesian" averages over them instead;
        "conditional" also fits some to what the best model leaves, which predicts better; or
        `bgnlm.search.ProjectionWeights`.
    latent
        Latent components that models can have, for example ``[AR1("time"), Grouped("subject")]``; see `bgnlm.latent`.
        The columns they name are no inputs, unless `keep` has them.
    keep
        Features, or their texts, that stay in every population.
    missing
        "raise", or "impute": a missing value becomes the median, and an indicator says where.
    n_chains
        B: independent searches, whose results are united.
    n_jobs
        How many chains run at a time; -1 for as many as there are cores.
    max_seconds
        Stop searching after so long, whatever `search` says; the result then depends on the speed of the machine.
    search
        A `SearchConfig` with all other settings of the search, None for its defaults.
    checkpoint
        A folder to which every population is written. After an interruption the same fit goes on from there.
    warm_start
        Whether fitting again, the same data with the same settings, goes on with the search for as many more
        populations.
    random_state
        A seed: the result depends on it and the settings alone, not on `n_jobs`.
    verbose
        1 for a progress bar.

    Attributes
    ----------
    features_ : DataFrame
        Expression, probability, complexity (operations), depth, averaged coefficient and its standard deviation.
    models_ : DataFrame
        The most probable models: features, probability, log posterior (not normalised), size.
    components_ : DataFrame
        Latent components: probability, and mean and standard deviation of their hyperparameters.
    posterior_, diagnostics_
        All models that were found, and how far to trust them.
    input_ranges_ : dict
        Smallest value, median and largest value of each numeric column in training.
    coding_
        How the table is turned into numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm import BGNLMRegressor, SearchConfig
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(50, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=50)
    >>> model = BGNLMRegressor(search=SearchConfig(n_populations=5), random_state=1).fit(X, y)
    >>> model.features_["expression"][0]
    'x1*x2'
    >>> model.predict([[2.0, 2.0]]).round(1)
    array([4.])

    What was found, in tables and texts:

    >>> model.models_["features"][0]
    ('x1*x2',)
    >>> print(model.summary().splitlines()[0])
    BGNLMRegressor: gaussian response, identity link; 50 observations, 2 inputs in 2 columns
    >>> model.expression(digits=2)
    'y = -0.017 + 1*x1*x2'
    >>> model.used_inputs()
    ('x1', 'x2')
    >>> len(model.posterior_) == model.diagnostics_.n_models
    True

    Uncertainty: intervals, quantiles, probabilities and draws of new responses, or of their mean.

    >>> new = [[2.0, 2.0], [1.0, 3.0]]
    >>> model.predict_interval(new, level=0.9).round(1)
    array([[3.8, 4.2],
           [2.8, 3.2]])
    >>> model.predict_quantiles(new, [0.5], of="mean").round(1)
    array([[4.],
           [3.]])
    >>> model.predict_cdf(new, [4.0, 2.5]).round(1)
    array([0.5, 0. ])
    >>> model.sample_predictive(new, n_draws=100, random_state=1).shape
    (100, 2)
    >>> round(model.score(X, y), 2)
    1.0

    Features as columns of a pipeline, other priors for what was found, a file:

    >>> model.transform(new)
    array([[4.],
           [3.]])
    >>> model.get_feature_names_out()
    array(['x1*x2'], dtype=object)
    >>> float(model.rescore(X, y, coefficient_prior="bic").features_["probability"][0].round(2))
    1.0
    >>> import bgnlm, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "product.bgnlm")
    >>> model.save(path)
    >>> bgnlm.load(path).features_["expression"][0]
    'x1*x2'
    >>> model.set_params(max_depth=0).fit(X, y).get_feature_names_out()  # linear models
    array(['x1', 'x2'], dtype=object)
    """

    def __init__(
        self,
        family: str = "gaussian",
        link: str | None = None,
        transforms: str | Iterable[str | Transform] = "default",
        coefficient_prior: str | CoefficientPrior = "auto",
        penalty: str | float | ModelPrior = "bic",
        noise_floor: float = 0.0,
        max_depth: int = 5,
        projection_weights: Any = "naive",
        latent: Sequence[Any] = (),
        keep: Iterable[str | Feature] = (),
        missing: str = "raise",
        n_chains: int = 4,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
        search: SearchConfig | None = None,
        checkpoint: str | Path | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.family = family
        self.link = link
        self.transforms = transforms
        self.coefficient_prior = coefficient_prior
        self.penalty = penalty
        self.noise_floor = noise_floor
        self.max_depth = max_depth
        self.projection_weights = projection_weights
        self.latent = latent
        self.keep = keep
        self.missing = missing
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.search = search
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Search for the features that explain `y`, and fit the models made of them.

        Parameters
        ----------
        X
            A table: an array, or a data frame of pandas, polars or anything else that narwhals knows. Columns of texts
            or categories become indicators.
        y
            The response.
        sample_weight
            How often each row was observed; for shares the number of trials.
        offset
            A known part of the linear predictor.
        """
        table = self._learn(X, y, sample_weight)
        target = check_target(y, len(table.design))
        self._run(table, [self._problem(table, target, sample_weight, offset, self.family)])
        return self

    def _problems_again(
        self, _: Self, table: LearntTable, y: AnyArray, sample_weight: Any, offset: Any
    ) -> list[SearchProblem]:
        return [self._problem(table, y, sample_weight, offset, self.family)]

    def predict(
        self,
        X: Any,
        offset: Any = None,
        return_std: bool = False,
        using: str = "average",
        plug_in: bool = True,
        trials: Any = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean of the response.

        Parameters
        ----------
        offset
            Known part of the linear predictor of the new rows.
        return_std
            Whether to return the standard deviation of the response too, in which the uncertainty about models and
            coefficients and the noise come together.
        using
            "average" over models; "best", the most probable model; "median", the median probability model.
        plug_in
            Whether coefficients are at their modes, as in the paper, or averaged over their posterior; the same for the
            Gaussian family.
        trials
            For shares: the number of trials behind the standard deviation, by default 1.
        """
        rows = self._rows(X, offset, trials)
        models = self._found[0].models(using)
        mean = predict_mean(models, rows, plug_in=plug_in)
        return (mean, predict_deviation(models, rows)) if return_std else mean

    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        of: str = "response",
        offset: Any = None,
        using: str = "average",
        trials: Any = None,
    ) -> FloatArray:
        """Central credible interval of the "response" or of its "mean": lower and upper ends as two columns.

        The ends are quantiles of the mixture over models. Weights of projections that were fitted to y count as known,
        so with projections an interval may be too narrow.
        """
        return self.predict_quantiles(X, central(level), of, offset, using, trials)

    def predict_quantiles(
        self,
        X: Any,
        levels: Any = (0.05, 0.5, 0.95),
        of: str = "response",
        offset: Any = None,
        using: str = "average",
        trials: Any = None,
    ) -> FloatArray:
        """Quantiles of the "response" or of its "mean", one column for each of `levels`."""
        return self._quantiles(self._rows(X, offset, trials), levels, of, using)[0]

    def predict_cdf(self, X: Any, y: Any, offset: Any = None, using: str = "average", trials: Any = None) -> FloatArray:
        """P(Y <= y) of a new response of each row; of data from the model these are uniform, but for ties."""
        rows = self._rows(X, offset, trials)
        values = check_target(y, len(rows.X)).astype(np.float64)
        return predict_cdf(self._found[0].models(using), rows, values)

    def sample_predictive(
        self,
        X: Any,
        n_draws: int = 1000,
        of: str = "response",
        offset: Any = None,
        using: str = "average",
        trials: Any = None,
        random_state: Any = None,
    ) -> FloatArray:
        """Draw from the posterior predictive distribution: (n_draws, rows), jointly for all rows."""
        return self._draws(self._rows(X, offset, trials), n_draws, of, using, random_state)[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """R squared of the averaged mean."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family in ("poisson", "gamma", "negative_binomial")
        return tags
