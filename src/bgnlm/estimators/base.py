"""What regressor and classifier share: from a table and settings to a search, and from its result to predictions."""

import warnings
from collections.abc import Container, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self, cast, get_args

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, column_or_1d

from bgnlm._typing import AnyArray, FloatArray
from bgnlm._validation import check_choice, check_count, check_number, check_offset
from bgnlm.errors import DataError, MissingOffsetWarning, ModelStatusWarning, SettingError
from bgnlm.estimators.display import ReportMixin
from bgnlm.estimators.export_methods import ExportsMixin
from bgnlm.estimators.fitted import FittedSearch, fitted, rescored
from bgnlm.estimators.inputs import Ranges, TableCoding, learn_coding, ranges_of
from bgnlm.estimators.latent_columns import LatentColumns, check_different, learn_latent
from bgnlm.estimators.progress import CallbackSupportMixin, progress_of
from bgnlm.features import inputs_of, parse
from bgnlm.features.new_data import NewColumns
from bgnlm.find import SearchResult, search, warn_of_data
from bgnlm.latent.fields import LatentField
from bgnlm.latent.layout import Placed
from bgnlm.latent.place import check_fields
from bgnlm.latent.place import describe as describe_field
from bgnlm.posterior.predict import Rows, draw_predictive, predict_quantiles
from bgnlm.report.expressions import expression
from bgnlm.report.summary import joined, summarize_fit
from bgnlm.report.tables import by_class, components_table, effects_table, features_table, models_table
from bgnlm.search.config import ProjectionWeights, SearchConfig, Strategy
from bgnlm.search.description import describe, differences
from bgnlm.search.interrupts import Interrupts
from bgnlm.search.prior import model_prior
from bgnlm.search.problem import SearchProblem, define_problem
from bgnlm.search.runner import INTERRUPTED

_HALF = 0.5


class LearntTable(NamedTuple):
    """The training data: their coding, the coded inputs and their ranges, the response's name, components, places."""

    coding: TableCoding
    design: FloatArray
    response: str
    latent: LatentColumns
    placed: tuple[Placed, ...]
    ranges: Ranges


class BGNLMEstimator(ExportsMixin, ReportMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; see `BGNLMRegressor` for the parameters."""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> LearntTable:
        """Learn how the table is coded and return it coded; the estimator is as before until a search has ended."""
        name = type(self).__name__
        if y is None:
            raise DataError(f"This {name} estimator requires y to be passed, but the target y is None.")
        fields = check_fields(self.latent)
        coding = learn_coding(
            X,
            missing=self.missing,
            sample_weight=sample_weight,
            positions=[field.column for field in fields],
            kept=self._kept_inputs() if fields else (),
            estimator_name=name,
        )
        design = coding.encode(X, estimator_name=name)
        if len(design) == 1:
            raise DataError(f"{name} needs more than one row; got n_samples = 1.")
        check_different(fields, coding)
        latent = learn_latent(fields, X, coding)
        response = getattr(y, "name", None)
        name_of_y = response if isinstance(response, str) and response else "y"
        placed, ranges = latent.placed(X, coding), ranges_of(coding, design)
        return LearntTable(coding, design, name_of_y, latent, placed, ranges)

    def _kept_inputs(self) -> set[str]:
        """Inputs that features to keep are made of."""
        features = (parse(feature) if isinstance(feature, str) else feature for feature in self.keep)
        return {name for feature in features for name in inputs_of(feature)}

    def _take_over(
        self, coding: TableCoding, response: str, latent: LatentColumns, ranges: Ranges, *, has_offset: bool
    ) -> None:
        """Keep what is known about inputs and response."""
        self.coding_ = coding
        self.input_ranges_ = ranges
        self.latent_columns_ = latent
        self.response_name_ = response
        self.has_offset_ = has_offset
        self.n_features_in_ = len(coding.columns)
        if coding.has_names:
            self.feature_names_in_ = np.array(coding.input_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _problem(
        self, table: LearntTable, y: FloatArray, sample_weight: Any, offset: Any, family: str
    ) -> SearchProblem:
        """Everything the search needs, from the settings of the estimator."""
        self._check_settings_known()
        max_depth = check_count(self.max_depth, "max_depth")
        config = SearchConfig() if self.search is None else self.search
        if not isinstance(config, SearchConfig):
            raise SettingError(f"search must be a SearchConfig or None; got {self.search!r}.")
        if config.limits.max_depth is None:
            config = replace(config, limits=replace(config.limits, max_depth=max_depth))
        if config.projection_weights is None:
            config = replace(config, projection_weights=_weight_settings(self.projection_weights))
        if self.max_seconds is not None:
            config = replace(config, max_seconds=check_number(self.max_seconds, "max_seconds", low=0.0))
        return define_problem(
            y,
            table.design,
            family=family,
            link=self.link,
            coefficient_prior=self.coefficient_prior,
            noise_floor=self.noise_floor,
            sample_weight=sample_weight,
            offset=offset,
            names=table.coding.names,
            transforms=self.transforms,
            prior=model_prior(self.penalty),
            keep=self.keep,
            config=config,
            latent=table.placed or None,
        )

    def _run(self, table: LearntTable, problems: Sequence[SearchProblem]) -> None:
        """Search, and keep what was found; with `warm_start` go on where the last fit of the same data ended."""
        n_chains = check_count(self.n_chains, "n_chains", low=1)
        runs: Sequence[SearchResult | None] = getattr(self, "_runs", None) if self.warm_start else None  # type: ignore[assignment]
        if runs is None:
            runs = [None] * len(problems)
        elif self.checkpoint is not None:
            raise SettingError("A search that goes on with warm_start=True has no checkpoint. Use checkpoint=None.")
        problems = [_continued(problem, run) for problem, run in zip(problems, _matching(runs, problems), strict=True)]
        results: list[SearchResult] = []
        interrupts = Interrupts()
        with interrupts.held_back(), progress_of(self, _most_populations(problems, n_chains)) as report:
            for number, (problem, run) in enumerate(zip(problems, runs, strict=True)):
                if interrupts.count or any(INTERRUPTED in result.diagnostics.endings for result in results):
                    problem = replace(problem, config=replace(problem.config, max_seconds=0.0))  # one population each
                with warnings.catch_warnings():
                    if number:  # it is the same table
                        warnings.simplefilter("ignore")
                    warn_of_data(problem)
                results.append(
                    search(
                        problem,
                        n_chains,
                        self._seed(number),
                        n_jobs=self.n_jobs,
                        checkpoint=self._checkpoint(number, len(problems)),
                        report=report,
                        previous=() if run is None else run.chains,
                    )
                )
            self.searches_ = tuple(map(fitted, results))
        has_offset = any(problem.likelihood.offset.any() for problem in problems)
        self._take_over(table.coding, table.response, table.latent, table.ranges, has_offset=has_offset)
        if self.warm_start:
            self._runs = results
        elif hasattr(self, "_runs"):
            del self._runs

    def _seed(self, number: int) -> np.random.SeedSequence | None:
        """Seed of one of several searches."""
        state = self.random_state
        if state is None:
            return None
        if isinstance(state, np.random.RandomState):
            state = int(state.randint(2**31))
        elif isinstance(state, np.random.Generator):
            state = int(state.integers(2**31))
        elif isinstance(state, bool) or not isinstance(state, int | np.integer) or state < 0:
            raise SettingError(
                f"random_state must be a whole number of 0 or more, a RandomState, a Generator or None; got {state!r}."
            )
        return np.random.SeedSequence(int(state), spawn_key=(number,) if number else ())

    def _checkpoint(self, number: int, n_searches: int) -> Path | None:
        if self.checkpoint is None:
            return None
        if not isinstance(self.checkpoint, str | PathLike):
            raise SettingError(f"checkpoint must be the path of a folder, or None; got {self.checkpoint!r}.")
        return Path(self.checkpoint) if n_searches == 1 else Path(self.checkpoint) / f"class-{number}"

    @property
    def posterior_(self) -> Any:
        """Probabilities of models and features; one for each class if there are more than two."""
        return _one_or_all(tuple(found.posterior for found in self._found))

    @property
    def diagnostics_(self) -> Any:
        """How far the search can be trusted; one for each class if there are more than two."""
        return _one_or_all(tuple(found.diagnostics for found in self._found))

    @property
    def features_(self) -> Any:
        """Features by probability: expression, probability, complexity, depth, coefficient, sd."""
        tables = [features_table(found.posterior, found.average) for found in self._found]
        return tables[0] if len(tables) == 1 else by_class(tables, self.classes_)

    @property
    def components_(self) -> Any:
        """Latent components by probability; mean, standard deviation and 90 % interval of their hyperparameters."""
        tables = [components_table(found.posterior, found.average) for found in self._found]
        return tables[0] if len(tables) == 1 else by_class(tables, self.classes_)

    def latent_effects(self, component: str | LatentField, level: float = 0.9) -> Any:
        """A latent component over its positions or groups: posterior mean, standard deviation and interval.

        Parameters
        ----------
        component
            The component, or its name in `components_`. Models without it do not count.
        level
            Probability of the interval from "lower" to "upper".

        Examples
        --------
        >>> import bgnlm, numpy as np
        >>> from bgnlm.latent import Gamma, Grouped
        >>> rng = np.random.default_rng(1)
        >>> group, x = np.arange(60) % 3, rng.normal(size=60)
        >>> groups = Grouped(1, precision_prior=Gamma(1, 0.5))
        >>> quick = bgnlm.SearchConfig(n_populations=1, population_size=3)
        >>> model = bgnlm.BGNLMRegressor(latent=[groups], search=quick, n_chains=1, random_state=1)
        >>> model = model.fit(np.column_stack([x, group]), x + group + 0.1 * rng.normal(size=60))
        >>> model.components_["component"][0]
        'Grouped(1)'
        >>> model.latent_effects("Grouped(1)")["mean"].round(0).tolist()
        [-1.0, 0.0, 1.0]
        """
        check_is_fitted(self, "searches_")
        low, high = central(level)
        names = [describe_field(field) for field in self.latent_columns_.fields]
        if not names:
            raise SettingError("The model has no latent components: it was fitted with latent=().")
        name = describe_field(component) if isinstance(component, LatentField) else component
        number = names.index(check_choice(name, "component", names))
        values = self.latent_columns_.positions[number].values
        tables = [effects_table(found.average, number, values, high - low) for found in self._found]
        return tables[0] if len(tables) == 1 else by_class(tables, self.classes_)

    @property
    def models_(self) -> Any:
        """The most probable models, at most 1,000: features, probability, log posterior (not normalised), size."""
        tables = [models_table(found.posterior, found.weight_errors) for found in self._found]
        return tables[0] if len(tables) == 1 else by_class(tables, self.classes_)

    def summary(self) -> str:
        """Describe the fit: features and models with their probabilities, what predictions rest on, advice."""
        parts = [
            summarize_fit(found.posterior, found.diagnostics, found.average, found.weight_errors, found.weight_shapes)
            for found in self._found
        ]
        found = self._found[0]
        family = found.average.family
        header = (
            f"{type(self).__name__}: {family.name} response, {family.link} link; {found.n_obs:,.10g} observations, "
            f"{self.n_features_in_} inputs in {found.n_inputs} columns\n{found.likelihood}; {found.prior}\n"
            f"{self._subject}\n"
        )
        return header + (parts[0] if len(parts) == 1 else joined(parts, self.classes_))

    def expression(self, using: str = "best", format: str = "text", digits: int = 6) -> Any:  # noqa: A002
        """Write the model as a formula with its coefficients.

        Parameters
        ----------
        using
            "best", the most probable model; "median", the median probability model; "average" over models.
        format
            "text", "latex" or "sympy" (needs the extra ``sympy``): the mean of the response as an expression.
        digits
            Significant digits in text and LaTeX.

        Returns
        -------
        str or SymPy expression
            A dictionary of these by class if there are more than two.
        """
        each = [
            expression(found.formula(using), format, self.response_name_, digits, event)
            for found, event in zip(self._found, self._events, strict=True)
        ]
        return each[0] if len(each) == 1 else dict(zip(self.classes_.tolist(), each, strict=True))

    @property
    def _events(self) -> tuple[str | None, ...]:
        """Whose probability each search is about; None for the mean of a number."""
        return (None,)

    @property
    def _subject(self) -> str:
        """A line about what coefficients are about, where that is not plain."""
        return ""

    def rescore(
        self,
        X: Any,
        y: Any,
        coefficient_prior: Any = None,
        penalty: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        max_models: int = 20_000,
    ) -> Self:
        """Return a copy in which the models that were visited have the probabilities that other priors give them.

        There is no new search: features that another prior would have led to are not there.

        Parameters
        ----------
        X, y, sample_weight, offset
            The training data.
        coefficient_prior, penalty
            As in the constructor; None to leave it.
        max_models
            How many models are scored again, the most probable; all are kept if only the price of an operation changes.
        """
        found = self._found
        changes = {"coefficient_prior": coefficient_prior, "penalty": penalty}
        changes = {name: value for name, value in changes.items() if value is not None}
        self._check_settings_known(changes)
        other = clone(self).set_params(**changes)
        known = self.coding_, self.response_name_, self.latent_columns_, self.input_ranges_
        other._take_over(*known, has_offset=self.has_offset_)
        design = self.coding_.encode(X, estimator_name=type(self).__name__)
        placed = self.latent_columns_.placed(X, self.coding_)
        table = LearntTable(self.coding_, design, self.response_name_, self.latent_columns_, placed, self.input_ranges_)
        problems = other._problems_again(self, table, check_target(y, len(design)), sample_weight, offset)
        n = check_count(max_models, "max_models", low=1)
        other.searches_ = tuple(rescored(problem, search, n) for problem, search in zip(problems, found, strict=True))
        return cast("Self", other)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as all estimators of scikit-learn do."""
        super().set_params(**params)
        if hasattr(self, "_settings_lost"):
            self._settings_lost -= params.keys()
        return self

    def _check_settings_known(self, given: Container[str] = ()) -> None:
        """Refuse to go on with defaults in place of settings that a file could not hold."""
        lost = sorted(name for name in getattr(self, "_settings_lost", ()) if name not in given)
        if lost:
            raise SettingError(
                f"The file that this model was loaded from could not hold {', '.join(lost)} (functions and generators "
                f"are not stored). Set it again first: model.set_params({lost[0]}=...)."
            )

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file, whole or not at all; `bgnlm.load` reads it."""
        from bgnlm.estimators.files import save_estimator

        check_is_fitted(self, "searches_")
        save_estimator(self, path)

    @property
    def _found(self) -> tuple[FittedSearch, ...]:
        check_is_fitted(self, "searches_")
        return self.searches_

    def _rows(self, X: Any, offset: Any = None, trials: Any = None, *, needs_offset: bool = True) -> Rows:
        """Check and code new rows."""
        check_is_fitted(self, "searches_")
        if needs_offset and self.has_offset_ and offset is None:
            warnings.warn(
                "This model was fitted with an offset; without one the new rows are predicted as if it were 0. "
                "Give offset=..., or offset=0 if that is meant.",
                MissingOffsetWarning,
                stacklevel=4,
            )
        design = self.coding_.encode(X, estimator_name=type(self).__name__)
        n_trials = np.ones(len(design)) if trials is None else _check_trials(trials, len(design))
        places = self.latent_columns_.places(X, self.coding_)
        return Rows(design, self.coding_.names, check_offset(offset, len(design)), n_trials, places)

    def _quantiles(self, rows: Rows, levels: Any, of: str, using: str) -> list[FloatArray]:
        try:
            wanted = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        except (TypeError, ValueError):
            raise SettingError(f"levels must be numbers between 0 and 1; got {levels!r}.") from None
        if wanted.ndim != 1 or not ((wanted > 0.0) & (wanted < 1.0)).all():
            raise SettingError(f"levels must lie strictly between 0 and 1; got {levels!r}.")
        check_choice(of, "of", ("response", "mean"))
        return [predict_quantiles(found.models(using), rows, wanted.tolist(), of) for found in self._found]

    def _draws(self, rows: Rows, n_draws: int, of: str, using: str, random_state: Any) -> list[FloatArray]:
        check_choice(of, "of", ("response", "mean"))
        n = check_count(n_draws, "n_draws", low=1)
        rng = generator(random_state)
        return [draw_predictive(rng, found.models(using), rows, n, of) for found in self._found]

    def _selected(self) -> list[tuple[Any, Any]]:
        """Features of probability at least one half, or the most probable one, with their ranges; each once."""
        chosen: dict[Any, Any] = {}
        for found in self._found:
            posterior = found.posterior
            ranges = dict(zip(found.average.features, found.average.ranges, strict=True))
            each = zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True)
            known = [(feature, probability) for feature, probability in each if feature in ranges]
            probable = [feature for j, (feature, probability) in enumerate(known) if probability >= _HALF or j == 0]
            chosen.update((feature, ranges[feature]) for feature in probable)
        return list(chosen.items())

    def transform(self, X: Any) -> Any:
        """Return the selected features as columns: those of probability at least one half, or the most probable one."""
        rows = self._rows(X, needs_offset=False)
        chosen = self._selected()
        if not chosen:
            warnings.warn(
                "There is no feature to return as a column: the only model that was kept has none. "
                "A lower penalty, or a larger window of the search, keeps others.",
                ModelStatusWarning,
                stacklevel=2,
            )
        with NewColumns([feature for feature, _ in chosen], [seen for _, seen in chosen]) as new:
            return np.ascontiguousarray(new.evaluate(rows.X, rows.names))

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the texts of the selected features."""
        check_is_fitted(self, "searches_")
        if input_features is not None:
            self._check_input_features(input_features)
        return np.array([str(feature) for feature, _ in self._selected()], dtype=object)

    def _check_input_features(self, input_features: Any) -> None:
        given = list(input_features)
        if len(given) != self.n_features_in_:
            raise DataError(f"input_features should have length equal to {self.n_features_in_}; got {len(given)}.")
        if self.coding_.has_names and given != list(self.coding_.input_names):
            raise DataError("input_features is not equal to feature_names_in_.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def used_inputs(self) -> tuple[str, ...]:
        """Names of the coded inputs that the averaged models use."""
        names = {name for found in self._found for feature in found.average.features for name in inputs_of(feature)}
        return tuple(name for name in self.coding_.names if name in names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "searches_")


def central(level: Any) -> tuple[float, float]:
    """Levels of the ends of a central interval."""
    share = check_number(level, "level", above=0.0, high=1.0)
    if share == 1.0:
        raise SettingError("level must be less than 1.")
    return 0.5 - share / 2, 0.5 + share / 2


def _check_trials(trials: Any, n_rows: int) -> FloatArray:
    try:
        values = np.broadcast_to(np.asarray(trials, dtype=np.float64), (n_rows,))
    except (TypeError, ValueError):
        raise DataError(f"trials must be a whole number, or one for each of the {n_rows} rows.") from None
    if not ((values >= 1.0) & (values == np.floor(values)) & (values < 2.0**53)).all():
        raise DataError("trials must be whole numbers of 1 or more, one for each row.")
    return np.array(values)


def _one_or_all(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _matching(runs: Sequence[SearchResult | None], problems: Sequence[SearchProblem]) -> Sequence[SearchResult | None]:
    """Check that searches that go on are about the same data and settings."""
    if len(runs) != len(problems):
        raise DataError("warm_start=True goes on with a search of the same data; there are other classes now.")
    for run, problem in zip(runs, problems, strict=True):
        if run is not None:
            there, here = describe(run.problem), describe(problem)
            different = [text for text in differences(there, here) if not text.startswith("n_populations")]
            if different:
                raise DataError(
                    f"warm_start=True goes on with a search of the same data and settings; {'; '.join(different)}. "
                    "Use warm_start=False to begin anew."
                )
    return runs


def _continued(problem: SearchProblem, run: SearchResult | None) -> SearchProblem:
    """Return the problem with as many more populations."""
    if run is None:
        return problem
    n_before = run.problem.config.n_populations
    return replace(problem, config=replace(problem.config, n_populations=n_before + problem.config.n_populations))


def _weight_settings(given: Any) -> ProjectionWeights:
    if isinstance(given, ProjectionWeights):
        return given
    return ProjectionWeights(strategy=check_choice(given, "projection_weights", get_args(Strategy)))  # type: ignore[arg-type]


def _most_populations(problems: Sequence[SearchProblem], n_chains: int) -> int | None:
    """Return how many populations there are at most, None if nobody knows."""
    if any(problem.config.min_models for problem in problems):
        return None
    return n_chains * sum(problem.config.n_populations for problem in problems)


def generator(random_state: Any) -> np.random.Generator:
    """Turn a seed, or what NumPy draws from, into a generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise SettingError(
            f"random_state must be a whole number of 0 or more, a Generator or None; got {random_state!r}."
        ) from None


def check_target(y: Any, n_rows: int) -> AnyArray:
    """Turn the response into a vector, with scikit-learn's warning about columns."""
    try:
        values = np.asarray(column_or_1d(y, warn=True))
    except ValueError as error:
        raise DataError(str(error)) from None
    if len(values) != n_rows:
        raise DataError(
            f"X and y have inconsistent numbers of rows: {n_rows} and {len(values)}. Give one response for each row."
        )
    return values
