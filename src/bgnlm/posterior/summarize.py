"""Posterior probabilities of models and features over the models visited (sections 3 and 3.2)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.features import Feature
from bgnlm.search.union import FoundModels
from bgnlm.search.visited import log_sum


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Probabilities of the models found, the most probable first, and of their features, likewise.

    Attributes
    ----------
    features
        Simplest known forms.
    inclusion_probabilities
        Of each feature.
    found
        The models behind the probabilities.
    model_probabilities
        Of each model of `found`, in its order.
    log_mass
        Log of the summed p(y | m) p(m) of the models.
    discarded
        Upper bound of the share of models that were scored but not stored.
    counts
        Where models were drawn from the posterior and count as often: how often each of `found` was, 0 for those that
        were only visited; otherwise empty.
    """

    features: tuple[Feature, ...]
    inclusion_probabilities: FloatArray
    found: FoundModels
    model_probabilities: FloatArray
    log_mass: float
    discarded: float
    counts: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def features_of(self, model: int) -> tuple[Feature, ...]:
        """Return the features of the model at place `model`, 0 the most probable."""
        return tuple(self.found.features[c] for c in self.found.rows.members_of(model))

    def probability_of(self, feature: Feature) -> float:
        """Inclusion probability of a feature in the form it has here; 0 if it is not among them."""
        return float(dict(zip(self.features, self.inclusion_probabilities, strict=True)).get(feature, 0.0))

    def inclusion_of_classes(self) -> FloatArray:
        """Inclusion probabilities in the order of the features of `found`."""
        return self.found.rows.sum_by_member(self.model_probabilities, len(self.found.features))

    def __len__(self) -> int:
        return len(self.model_probabilities)

    def __repr__(self) -> str:
        return f"<Posterior: {len(self):,} models of {len(self.features):,} features>"

    def __str__(self) -> str:
        lines = [f"{len(self):,} models of {len(self.features):,} features", "", "probability  feature"]
        lines += [
            f"{probability:11.4f}  {feature}"
            for feature, probability in zip(self.features[:10], self.inclusion_probabilities[:10], strict=True)
        ]
        lines += ["", "probability  log joint  model"]
        log_joint = self.found.log_joint
        for model in range(min(5, len(self))):
            what = " + ".join(map(str, self.features_of(model))) or "(intercept only)"
            lines.append(f"{self.model_probabilities[model]:11.4f}  {log_joint[model]:9.3f}  {what}")
        if len(self.counts):
            return "\n".join([*lines, "", f"probabilities are shares of {self.counts.sum():,} draws"])
        lines += ["", f"at most {self.discarded:.1g} of the probability is in models that were scored but not stored"]
        return "\n".join(lines)


def summarize(found: FoundModels, counts: IntArray | None = None) -> Posterior:
    """Renormalise over the models found; with `counts`, models were drawn and count as often."""
    log_joint = found.log_joint
    order = np.argsort(-log_joint, kind="stable") if counts is None else np.lexsort((-log_joint, -counts))
    found = FoundModels(found.features, found.costs, found.rows.take(order), found.log_discarded)
    log_joint = log_joint[order]
    log_mass = log_sum(log_joint)
    counts = np.empty(0, np.int64) if counts is None else counts[order]
    probabilities = counts / counts.sum() if len(counts) else _renormalised(log_joint, log_mass)
    inclusion = np.minimum(found.rows.sum_by_member(probabilities, len(found.features)), 1.0)
    by_probability = np.argsort(-inclusion, kind="stable")
    used = by_probability[np.bincount(found.rows.members, minlength=len(found.features))[by_probability] > 0]
    return Posterior(
        features=tuple(found.features[c] for c in used),
        inclusion_probabilities=inclusion[used],
        found=found,
        model_probabilities=probabilities,
        log_mass=log_mass,
        discarded=float(np.exp(min(found.log_discarded - np.logaddexp(found.log_discarded, log_mass), 0.0)))
        if np.isfinite(log_mass)
        else 0.0,
        counts=counts,
    )


class ChainSums(NamedTuple):
    """The memory-lean alternative to a union: each chain by itself, with the weight it has among the others.

    Attributes
    ----------
    weights
        u_b: share of each chain in the mass that all chains found, where a model counts once for every chain.
    inclusion
        (chains, classes): inclusion probabilities, renormalised over the models of one chain.
    """

    weights: FloatArray
    inclusion: FloatArray

    @property
    def weighted(self) -> FloatArray:
        """Inclusion probabilities of the common classes as the paper's weighted sums over the chains."""
        return np.minimum(self.weights @ self.inclusion, 1.0)


def sum_by_chain(parts: Iterable[FoundModels]) -> ChainSums:
    """Sum over the models of each chain; `parts` are in terms of common classes, and need not be there at once."""
    log_masses, inclusion = [], []
    for part in parts:
        log_joint = part.log_joint
        log_masses.append(log_sum(log_joint))
        inclusion.append(part.rows.sum_by_member(_renormalised(log_joint, log_masses[-1]), len(part.features)))
    return ChainSums(_renormalised(np.array(log_masses), np.logaddexp.reduce(log_masses)), np.array(inclusion))


def _renormalised(log_joint: FloatArray, log_mass: float) -> FloatArray:
    """Shares in the mass; 0 where nothing has any."""
    return np.exp(log_joint - log_mass) if np.isfinite(log_mass) else np.zeros(len(log_joint))
