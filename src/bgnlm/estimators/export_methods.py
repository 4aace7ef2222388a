"""Methods of estimators that hand over models to other programs; what writes them is loaded when it is asked for."""

from typing import Any

from sklearn.utils.validation import check_is_fitted


class ExportsMixin:
    """What estimators give to other programs."""

    def export(
        self, kind: str, using: str = "average", of: str = "mean", *, without_latent: bool = False, **options: Any
    ) -> Any:
        """Write what `predict` computes, or for a classifier `predict_proba`, for other programs.

        The export takes the columns of the training data as they were given: categories, Booleans and missing values
        are coded as in `predict`. Values that `predict` refuses are refused: by an error in Python and NumPy, as NULL
        in SQL and NaN in ONNX.

        Parameters
        ----------
        kind
            "python", a module with a function of a row that needs the standard library alone; "numpy", the same for
            whole columns; "sql", an expression or a query; "json", a document for other languages; "onnx" (needs the
            extra ``onnx``); "text", "latex" or "sympy", the formulas of `expression`.
        using
            "average" over models, as `predict` does; "best", the most probable model; "median", the median
            probability model.
        of
            "mean" of the response, for a classifier the probability of each class; or "linear_predictor", averaged
            over models.
        without_latent
            Whether to leave out latent components, which are not exported.
        **options
            "python" and "numpy": `name` of the function. "sql": `table`, for a query over this table in place of an
            expression; `keep`, names of columns that the query returns too; `offset`, the column of the offset.
            "json": `with_uncertainty`, whether covariances of coefficients are there, for intervals. Formulas:
            `digits`.

        Returns
        -------
        str or bytes
            Bytes for ONNX; for "sympy" an expression.

        Examples
        --------
        >>> import bgnlm, numpy as np
        >>> X = np.arange(20.0).reshape(10, 2) ** 0.5
        >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
        >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1).fit(X, X[:, 0] ** 2 + X[:, 1])
        >>> names = {}
        >>> exec(model.export("python"), names)
        >>> bool(abs(names["predict"](X[3]) - model.predict(X)[3]) < 1e-12)
        True
        """
        from bgnlm.estimators.exports import export_model

        check_is_fitted(self, "searches_")
        return export_model(self, kind, using, of, without_latent, options)

    def to_arviz(
        self,
        X: Any = None,
        y: Any = None,
        *,
        n_draws: int = 1000,
        n_chains: int = 4,
        using: str = "average",
        offset: Any = None,
        random_state: Any = None,
    ) -> Any:
        """Draw from the posterior into the container of ArviZ: InferenceData, since its version 1 a DataTree.

        Needs the extra ``arviz``. The group "posterior" has the number of the drawn model (in the order of
        `models_`; of entries with weights or hyperparameters of their own where these are averaged over), which
        features it has ("inclusion"), their coefficients on the scale of the features (0 for those it lacks; not with
        latent components), the intercept, and "sigma", "shape" or "size" where the family has one. Draws are
        independent: chains are there because ArviZ counts them.

        Parameters
        ----------
        X
            Rows for "posterior_predictive": responses drawn with the same models and coefficients; for a classifier
            the numbers of classes in `classes_`. The variable has the name of the response, with "_" for a slash,
            and after the names of dimensions ("chain", "draw", "row").
        y
            The response at these rows, for "observed_data".
        n_draws, n_chains
            How many draws there are in each chain, and how many chains.
        using
            "average" over models, "best" or "median".
        offset
            Known part of the linear predictor of the rows.
        random_state
            Seed or generator.

        Examples
        --------
        >>> import bgnlm, numpy as np
        >>> X = np.arange(20.0).reshape(10, 2) ** 0.5
        >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
        >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1).fit(X, X[:, 0] ** 2 + X[:, 1])
        >>> draws = model.to_arviz(X, n_draws=50, random_state=1)
        >>> draws["posterior"]["inclusion"].dims
        ('chain', 'draw', 'feature')
        >>> draws["posterior_predictive"]["y"].shape
        (4, 50, 10)
        """
        from bgnlm.estimators.arviz_draws import to_arviz

        check_is_fitted(self, "searches_")
        return to_arviz(self, X, y, n_draws, n_chains, using, offset, random_state)
