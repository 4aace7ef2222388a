"""Informed generation: candidates ranked by what they would add to the best model and by what they explain alone.

Every candidate costs one projection onto what the best model leaves unexplained, on at most so many rows. Beyond the
paper; the other replacements are drawn as there, so that every feature keeps a positive probability. Some candidates
can be projections that were fitted to that residual (`pursuit`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np

from bgnlm._typing import BoolArray, FloatArray
from bgnlm._validation import LARGEST
from bgnlm.errors import FeatureError
from bgnlm.features import Evaluator, Feature, Projection, learn_cut_points
from bgnlm.kernels.families import row_terms
from bgnlm.kernels.score_table import table_values
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.model_fit import ModelFit
from bgnlm.search.explore import Models
from bgnlm.search.generation import Urn, make_generator
from bgnlm.search.problem import SearchProblem
from bgnlm.search.pursuit import FEWEST, LEFT, Pursuit, Unexplained

_CACHED_BYTES = 2**27
_INFORMATIVE = 1e-10  # share of the largest information of a row
_STARTS = 2  # of weights that are fitted


Gains = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def unexplained(root: FloatArray, residual: FloatArray, columns: FloatArray) -> Unexplained:
    """Orthonormalise an intercept and the columns of a model."""
    design = np.column_stack([np.ones(len(root)), columns]) * root[:, None]
    scale = np.linalg.norm(design, axis=0)
    basis = np.linalg.qr(design / np.where(scale > 0, scale, 1.0))[0]
    largest = float(np.abs(residual).max(initial=0.0)) or 1.0
    left = residual / largest - basis @ (basis.T @ (residual / largest))
    norm = float(np.linalg.norm(left))
    return Unexplained(root, left / (norm or 1.0), norm * largest, basis)


def explained_shares(columns: FloatArray, rest: Unexplained) -> FloatArray:
    """Share of the squared residual that each column would explain on top of the model."""
    scaled = columns / np.abs(columns).max(axis=0) * rest.root[:, None]
    norms = np.square(scaled).sum(axis=0)
    left = scaled - rest.basis @ (rest.basis.T @ scaled)
    squared = np.square(left).sum(axis=0)
    useful = (squared > LEFT * norms) & (squared > 0)
    along = rest.residual @ left
    return np.where(useful, np.square(along) / np.where(useful, squared, 1.0), 0.0)


class CandidateRanking:
    """Makes candidates and ranks them, on at most `candidate_rows` rows."""

    def __init__(self, problem: SearchProblem, evaluator: Evaluator) -> None:
        self._problem = problem
        likelihood = problem.guide
        rows = np.flatnonzero(likelihood.weights > 0) if problem.latent is None else np.arange(len(problem.X))
        if problem.latent is None and len(rows) > problem.config.candidate_rows:
            rows = np.sort(np.random.default_rng(7).choice(rows, problem.config.candidate_rows, replace=False))
        if len(rows) < len(problem.X):
            likelihood = replace(
                likelihood, y=likelihood.y[rows], weights=likelihood.weights[rows], offset=likelihood.offset[rows]
            )
            evaluator = Evaluator(problem.X[rows], problem.names, max_cached_bytes=_CACHED_BYTES)
        self._likelihood, self._evaluator = likelihood, evaluator
        self._weights = None if (likelihood.weights == 1.0).all() else likelihood.weights
        self._generator = make_generator(problem, likelihood, evaluator)
        self._null = self._rest((), None)

    def best(
        self,
        rng: np.random.Generator,
        models: Models,
        best_model: Sequence[Feature],
        fit: ModelFit | None,
        parents: Urn[Feature],
    ) -> Iterator[Feature]:
        """Candidates by what they add to the best model and by what they explain alone, in turns."""
        rest = self._rest(best_model, fit)

        def gains(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
            added = self._gains(models, len(best_model), rest, columns)
            return added, self._gains(models, 0, self._null, columns)

        fitted: list[Feature] = []
        is_conditional = self._problem.config.projection_weights.strategy == "conditional"
        if is_conditional and self._generator.makes_projections:
            yield from self._fitted_again(rng, best_model)
            fitted = list(self._fitted(rng, rest, parents))
        yield from self.by(rng, parents, gains, fitted)

    def by(
        self, rng: np.random.Generator, parents: Urn[Feature], gains: Gains, others: Sequence[Feature] = ()
    ) -> Iterator[Feature]:
        """Candidates, `others` among them, by the nats they add to a model and those they add to nothing, in turns."""
        candidates, columns = self._candidates(rng, parents, others)
        if candidates:
            costs = np.array([self._problem.cost(candidate) for candidate in candidates])
            added, alone = gains(columns)
            yield from best_of_both(added - costs, alone - costs, candidates)

    def _fitted(self, rng: np.random.Generator, rest: Unexplained, parents: Urn[Feature]) -> Iterator[Feature]:
        """Projections of inputs and of features, with weights that explain what a model leaves."""
        pursuit = self._pursuit(rest)
        for operands in (self._generator.some_inputs(rng), self._generator.some_parents(rng, parents)):
            transform = self._generator.transform_to_fit(rng)
            with suppress(FeatureError):  # too large to be of any use, or a function that fails
                usable = [operand for operand in operands if self._is_usable(operand)]
                if transform is None or len(usable) < FEWEST:
                    continue
                starts = rng.normal(size=(_STARTS, 1 + len(usable))) / np.sqrt(len(usable))
                feature = pursuit.best(transform, usable, starts)
                if feature is not None and self._generator.allows(feature):
                    yield feature

    def _fitted_again(self, rng: np.random.Generator, best_model: Sequence[Feature]) -> Iterator[Feature]:
        """One projection of a model with weights that explain what the rest of the model leaves."""
        places = [k for k, feature in enumerate(best_model) if self._generator.can_be_fitted(feature)]
        if places:
            place = places[int(rng.random() * len(places))]
            projection = best_model[place]
            assert isinstance(projection, Projection)
            others = [*best_model[:place], *best_model[place + 1 :]]
            with suppress(FeatureError):
                again = self._pursuit(self._rest(others, None)).again(projection)
                if again is not None:
                    yield again

    def _pursuit(self, rest: Unexplained) -> Pursuit:
        problem, n_obs = self._problem, self._problem.n_obs
        of_all = 0.5 * n_obs / float(self._likelihood.weights.sum()) * rest.norm**2

        def gaussian_gain(share: float) -> tuple[float, float]:
            return -0.5 * n_obs * math.log1p(-share), 0.5 * n_obs / (1.0 - share)

        def cost(feature: Feature) -> float:
            return problem.cost(feature) if self._generator.allows(feature) else math.inf

        return Pursuit(
            self._evaluator,
            self._likelihood.weights,
            rest,
            gaussian_gain if problem.is_gaussian else lambda share: (of_all * share, of_all),
            cost,
            problem.config.projection_weights.weight_variance,
        )

    def _is_usable(self, operand: Feature) -> bool:
        return bool(can_enter_models(self._evaluator.column(operand)[:, None])[0])

    def _candidates(
        self, rng: np.random.Generator, parents: Urn[Feature], others: Sequence[Feature]
    ) -> tuple[list[Feature], FloatArray]:
        """Random features, one to three operations from their parents, with columns that can enter a model.

        What a longer one is made of is a candidate too.
        """
        made: dict[Feature, FloatArray] = {}
        for other in others:
            self._evaluate(other, made)
        n_made, n_wanted = 0, self._problem.config.n_candidates
        while n_made < n_wanted:
            feature = None
            for _ in range(1 + int(3 * rng.random())):
                if feature is None:
                    feature = self._generator.draw(rng, parents)
                else:
                    feature = self._generator.extend(rng, feature, parents)
                n_made += 1
                if feature is None:
                    break
                self._evaluate(feature, made)
        columns = np.column_stack(list(made.values())) if made else np.empty((0, 0))
        usable = can_enter_models(columns if self._weights is None else columns[self._weights > 0])
        return [feature for feature, is_usable in zip(made, usable, strict=True) if is_usable], columns[:, usable]

    def _evaluate(self, feature: Feature, made: dict[Feature, FloatArray]) -> None:
        if feature not in made:
            try:
                learnt = learn_cut_points(feature, self._evaluator, self._weights)
                made[feature] = self._evaluator.column(learnt)
            except FeatureError:
                return

    def _rest(self, features: Sequence[Feature], fit: ModelFit | None) -> Unexplained:
        """What a model leaves: the residual of least squares, or the score in the metric of the information."""
        likelihood = self._likelihood
        columns = self._evaluator.matrix(features)
        if likelihood.family.name == "gaussian":
            root = np.sqrt(likelihood.weights)
            return unexplained(root, root * (likelihood.y - likelihood.offset), columns)
        if fit is None:
            fit = likelihood.population(columns).fit(list(range(columns.shape[1])))
        eta = likelihood.offset + fit.coefficients[0] + columns @ fit.coefficients[1:]
        score, information = np.empty((2, len(eta)))
        row_terms(likelihood.family.code, fit.dispersion, likelihood.y, likelihood.weights, eta, score, information)
        # Rows that are fitted to the last digit say nothing about what is missing.
        open_rows = information > _INFORMATIVE * information.max()
        root = np.sqrt(np.where(open_rows, information, 0.0))
        return unexplained(root, np.where(open_rows, score, 0.0) / np.where(open_rows, root, 1.0), columns)

    def _gains(self, models: Models, size: int, rest: Unexplained, columns: FloatArray) -> FloatArray:
        """Nats that each candidate adds to the log marginal of a model of `size` columns."""
        shares = explained_shares(columns, rest)
        if not isinstance(models, GaussianPopulation):
            scale = self._problem.n_obs / float(self._likelihood.weights.sum())
            return np.asarray(0.5 * scale * rest.norm**2 * shares - 0.5 * np.log(self._problem.n_obs))
        score = models.score
        if not score.exact.is_defined(size + 1):
            return np.full(len(shares), -np.inf)
        lowest = models.statistics.lowest_residual
        total = self._null.norm if size else rest.norm
        before = min(max((rest.norm / total) ** 2, lowest), 1.0) if total > 0.0 else 1.0
        after = np.maximum(before * (1.0 - shares), lowest)
        values = np.empty(len(after))
        table_values(score.table(size + 1, lowest), size + 1, np.log(after), values)
        return values


def can_enter_models(columns: FloatArray) -> BoolArray:
    """Whether each column is finite, not too large, and varies."""
    largest, smallest = columns.max(axis=0, initial=-np.inf), columns.min(axis=0, initial=np.inf)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite fails the comparisons
        size = np.maximum(np.abs(largest), np.abs(smallest))
        return np.asarray((size <= LARGEST) & (largest - smallest > 1e-13 * size))


def best_of_both(added: FloatArray, alone: FloatArray, candidates: list[Feature]) -> Iterator[Feature]:
    """Candidates by what they add and by what they explain alone, in turns."""
    orders = [np.argsort(-values, kind="stable") for values in (added, alone)]
    seen: set[Feature] = set()
    for j in chain.from_iterable(zip(*orders, strict=True)):
        if candidates[j] not in seen:
            seen.add(candidates[j])
            yield candidates[j]
