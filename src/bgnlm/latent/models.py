"""All models of a response over columns of features and a choice of latent components."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.kernels import banded
from bgnlm.kernels.families import row_terms
from bgnlm.latent.inner import InnerLaplace, LatentResponse, SlopePrior, standards
from bgnlm.latent.layout import Layout, Placed, lay_out
from bgnlm.latent.nested_laplace import Integrated, integrate
from bgnlm.latent.outer_modes import OuterMode
from bgnlm.latent.place import describe
from bgnlm.likelihood.surrogate import QuadraticSurrogate

OFFSET = "offset"
Components = tuple[int, ...]  # sorted numbers


@dataclass(frozen=True, eq=False)
class LatentModels:
    """Models are pairs: columns of features, and components by their numbers.

    Attributes
    ----------
    response
        What is modelled.
    placed
        The components over their positions.
    slopes
        Prior of the coefficients.
    selects_offset
        Whether the offset is a component too, the one after the others; models without it have none.
    max_components
        R, the number of latent components a model can have; None for all.
    scale
        Unit of a Gaussian response: it was divided by this, and priors are about the quotient.
    """

    response: LatentResponse
    placed: tuple[Placed, ...]
    slopes: SlopePrior
    selects_offset: bool = False
    max_components: int | None = None
    scale: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """The components in words."""
        fields = tuple(describe(component.field) for component in self.placed)
        return (*fields, OFFSET) if self.selects_offset else fields

    @property
    def complexities(self) -> FloatArray:
        """v(delta) of each component: hyperparameters of a process, one for the offset."""
        values = [float(component.field.n_hyperparameters) for component in self.placed]
        return np.array([*values, 1.0] if self.selects_offset else values)

    def exists(self, components: Components) -> bool:
        """Whether a model may have all of these."""
        n_fields = sum(c < len(self.placed) for c in components)
        return self.max_components is None or n_fields <= self.max_components

    def integrated(self, columns: FloatArray, components: Components) -> Integrated:
        """One model with its hyperparameters summed out.

        Every model starts from the modes of the one with the same components and no columns: what comes out depends on
        the model alone, not on others scored before. Where the family has a dispersion, columns that explain much move
        these modes too far for that.
        """
        inner = self.inner(columns, components)
        is_near = columns.shape[1] > 0 and not inner.has_dispersion
        found = integrate(inner, self._known(components) if is_near else ())
        units = float(self.response.weights.sum()) * math.log(self.scale)
        return found._replace(log_marginal=found.log_marginal - units)

    def log_marginal(self, columns: FloatArray, components: Components) -> float:
        """Log p(y | m); -inf where it cannot be computed."""
        return self.integrated(columns, components).log_marginal

    def inner(self, columns: FloatArray, components: Components) -> InnerLaplace:
        """The model given its hyperparameters."""
        layout, response = self._layout(components)
        return InnerLaplace(response, layout, columns, self.slopes)

    def surrogate(
        self, design: FloatArray, components: Components, reference: Sequence[int]
    ) -> QuadraticSurrogate | None:
        """Approximation of all models over the columns of `design` with these components.

        The log-likelihood is expanded at the mode of the model with the columns `reference`, hyperparameters are as
        they are there, and the score of that model comes out exactly. None where it has none.
        """
        places = list(reference)
        inner = self.inner(design[:, places], components)
        found = self.integrated(design[:, places], components)
        if not math.isfinite(found.log_marginal):
            return None
        best = max(found.modes, key=lambda mode: mode.log_integrand)
        there = inner.evaluate(best.place, best.mode)
        parts, dispersion, precision = inner.split(best.place)
        eta = inner.linear_predictor(there.mode)
        score, weights = np.empty_like(eta), np.empty_like(eta)
        row_terms(inner.response.family.code, dispersion, inner.y, inner.weights, eta, score, weights)
        weights = np.maximum(weights, 1e-300)
        layout = inner.layout
        working = eta - inner.offset + score / weights
        centres, scales = standards(design, self.response.weights)
        unit = ((design - centres) / scales)[layout.order]
        everything = np.column_stack([np.ones(len(eta)), layout.beside_columns(), unit, working])
        gram = (everything * weights[:, None]).T @ everything
        n_fields = len(layout.along)
        if n_fields:
            cross = np.zeros((len(there.factors.band), everything.shape[1]))
            for k in range(n_fields):
                weighted = everything * (weights * layout.loadings[:, k])[:, None]
                np.add.at(cross, layout.place * n_fields + k, weighted)
            banded.solve_lower(there.factors.band, cross)
            gram -= cross.T @ cross
        n_first = 1 + layout.n_beside
        prior = inner.prior(parts, dispersion, precision)[1]
        if layout.n_beside:
            gram[1:n_first, 1:n_first] += prior[1 + len(places) :, 1 + len(places) :]
        # Where a field is as good as the intercept, nothing is left of the latter but rounding.
        left = np.linalg.lstsq(gram[:n_first, :n_first], gram[:n_first, n_first:], rcond=None)[0]
        gram = gram[n_first:, n_first:] - gram[n_first:, :n_first] @ left
        own = precision * inner.unit(dispersion) * inner.squares(scales)
        return _as_surrogate(gram, own, places, found.log_marginal)

    def _known(self, components: Components) -> tuple[OuterMode, ...]:
        if components not in self._modes:
            nothing = np.empty((len(self.response.y), 0))
            self._modes[components] = integrate(self.inner(nothing, components)).modes
        return self._modes[components]

    def _layout(self, components: Components) -> tuple[Layout, LatentResponse]:
        if components not in self._layouts:
            fields = [self.placed[c] for c in components if c < len(self.placed)]
            response = self.response
            if self.selects_offset and len(self.placed) not in components:
                response = response._replace(offset=np.zeros_like(response.offset))
            self._layouts[components] = lay_out(fields, len(response.y)), response
        return self._layouts[components]

    @cached_property
    def _layouts(self) -> dict[Components, tuple[Layout, LatentResponse]]:
        return {}

    @cached_property
    def _modes(self) -> dict[Components, tuple[OuterMode, ...]]:
        return {}


def _as_surrogate(
    gram: FloatArray, prior: FloatArray, reference: Sequence[int], log_marginal: float
) -> QuadraticSurrogate:
    """Models with slopes of prior precision `prior`, from their Gram matrix with the working response."""
    matrix = gram[:-1, :-1] + np.diag(prior)
    gradient = gram[:-1, -1]
    scale = 1.0 / np.sqrt(np.diag(matrix))
    gain = float(gradient @ np.linalg.lstsq(matrix, gradient, rcond=None)[0])
    corner = 1.01 * max(gain, 0.0) + 1e-12
    augmented = np.empty_like(gram)
    augmented[:-1, :-1] = matrix * np.outer(scale, scale)
    augmented[-1, :-1] = augmented[:-1, -1] = gradient * scale / math.sqrt(corner)
    augmented[-1, -1] = 1.0
    costs = np.log(scale) + 0.5 * np.log(prior)
    places = list(reference)
    block = matrix[np.ix_(places, places)]
    there = 0.5 * float(gradient[places] @ np.linalg.solve(block, gradient[places])) if places else 0.0
    there += 0.5 * float(np.log(prior[places]).sum() - np.linalg.slogdet(block)[1]) if places else 0.0
    return QuadraticSurrogate(augmented, corner, np.eye(len(prior)), costs, log_marginal - there)
