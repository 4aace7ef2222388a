"""How far a search can be trusted: mass found over time, agreement of chains, what the kernels did."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.posterior.summarize import Posterior, sum_by_chain
from bgnlm.search.chains import ChainResult, Progress
from bgnlm.search.mjmcmc import ACCEPTED, KERNELS, USED
from bgnlm.search.union import FoundModels


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics:
    """What the chains of a search did.

    Attributes
    ----------
    history
        Progress of each chain after each population: mass found, models, seconds.
    endings
        Why each chain ended.
    chain_weights
        u_b: share of each chain in the mass that all chains found.
    chain_probabilities
        (chains, features): inclusion probabilities of the features of the posterior in each chain by itself.
    weighted_probabilities
        Of each feature, the paper's weighted sum over the chains, in which a model counts once for every chain.
    disagreement
        Of each feature, the standard deviation of its probability between chains, weighted by u_b.
    tally
        (2, kernels): how often each kernel of Algorithm 1 was used, and accepted.
    kernels
        Names of the kernels.
    n_models, n_scored
        Distinct models stored of all chains together, and models scored, repetitions included.
    seconds
        Of all chains, added up.
    """

    history: tuple[tuple[Progress, ...], ...]
    endings: tuple[str, ...]
    chain_weights: FloatArray
    chain_probabilities: FloatArray
    weighted_probabilities: FloatArray
    disagreement: FloatArray
    tally: IntArray
    kernels: tuple[str, ...]
    n_models: int
    n_scored: int
    seconds: float

    def __repr__(self) -> str:
        return f"<Diagnostics: {len(self.history)} chains, {self.n_models:,} models, {self.seconds:.1f} s>"

    def __str__(self) -> str:
        lines = ["chain  populations     models   log mass   weight  seconds  end"]
        for history, weight, ending in zip(self.history, self.chain_weights, self.endings, strict=True):
            last = history[-1]
            lines.append(
                f"{last.chain:5d}  {last.n_explored:11d}  {last.n_models:9,d}  {last.log_mass:9.2f}  {weight:7.4f}"
                f"  {last.seconds:7.2f}  {ending}"
            )
        rate = self.n_scored / max(self.seconds, 1e-9)
        lines += ["", f"{self.n_scored:,} models scored, {rate:,.0f} a second; {self.n_models:,} distinct ones stored"]
        largest = float(self.disagreement.max(initial=0.0))
        lines.append(f"largest standard deviation of a feature's probability between chains: {largest:.2g}")
        if self.tally[USED].sum():
            lines += ["", "kernel            used  accepted"]
            lines += [
                f"{name:<12}  {used:8,d}  {accepted:8,d}"
                for name, used, accepted in zip(self.kernels, self.tally[USED], self.tally[ACCEPTED], strict=True)
            ]
        return "\n".join(lines)


def diagnose(chains: Sequence[ChainResult], parts: Iterable[FoundModels], posterior: Posterior) -> Diagnostics:
    """Compare chains with each other; `parts` are their models in terms of the first classes of the posterior."""
    place = {feature: j for j, feature in enumerate(posterior.found.features)}
    columns = np.array([place[feature] for feature in posterior.features], dtype=np.int64)
    sums = sum_by_chain(parts)
    n_further = len(place) - len(sums.weighted)  # in no model of the chains
    each = np.pad(sums.inclusion, ((0, 0), (0, n_further)))[:, columns]
    mean = np.pad(sums.weighted, (0, n_further))[columns]
    return Diagnostics(
        history=tuple(tuple(chain.history) for chain in chains),
        endings=tuple(chain.ending or "" for chain in chains),
        chain_weights=sums.weights,
        chain_probabilities=each,
        weighted_probabilities=mean,
        disagreement=np.sqrt(sums.weights @ np.square(each - mean)),
        tally=np.sum([chain.tally for chain in chains], axis=0),
        kernels=KERNELS,
        n_models=len(posterior),
        n_scored=sum(chain.n_scored for chain in chains) + int((posterior.counts > 0).sum()),
        seconds=sum(chain.history[-1].seconds for chain in chains),
    )
