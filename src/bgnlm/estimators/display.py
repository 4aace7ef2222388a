"""What people see of a fitted estimator: the report page, and what notebooks show."""

from typing import Any

from sklearn.utils.validation import check_is_fitted


class ReportMixin:
    """Pages about a fitted estimator."""

    def report(
        self, X: Any = None, y: Any = None, path: Any = None, *, offset: Any = None, title: str | None = None
    ) -> str | None:
        """Write a page about the fit: one HTML file that needs no server and no network.

        The laws as typeset formulas, tables of features and models that sort and filter, advice, pictures (with the
        extra ``plot``), inputs that can be changed to see the prediction and its interval move, the settings, and
        the Python that fits the model again.

        Parameters
        ----------
        X, y
            Rows to show: the training data, or new ones. Without them there are fewer pictures.
        path
            The file to write the page to; without it the page is returned as a text.
        offset
            Known part of the linear predictor of the rows.
        title
            Heading of the page.

        Returns
        -------
        str or None
            The page, if it is not written to a file.

        Examples
        --------
        >>> import bgnlm, numpy as np
        >>> X = np.arange(20.0).reshape(10, 2) ** 0.5
        >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
        >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1).fit(X, X[:, 0] ** 2 + X[:, 1])
        >>> model.report().startswith("<!DOCTYPE html>")
        True
        """
        from bgnlm.estimators.report_page import report_of

        check_is_fitted(self, "searches_")
        return report_of(self, X, y, path, offset, title)

    def _repr_html_inner(self) -> str:
        """What notebooks show: the law, features and advice above scikit-learn's diagram."""
        return self._with_card(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._with_card(bundle["text/html"])
        return bundle

    def _with_card(self, diagram: str) -> str:
        if not self.__sklearn_is_fitted__():  # type: ignore[attr-defined]
            return diagram
        from bgnlm.page.notebook import card

        return f"{card(self)}{diagram}"
