"""The whole search in one call: chains, their union, probabilities and diagnostics."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bgnlm._validation import check_count, check_response
from bgnlm.errors import ModelStatusWarning, SearchStoppedWarning, SettingError
from bgnlm.features import Evaluator, Feature, Transform, reject_reason
from bgnlm.latent.marginal import place_all
from bgnlm.latent.place import check_fields
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.likelihood.model_fit import ModelFit
from bgnlm.likelihood.status import ModelStatus, advice
from bgnlm.posterior.diagnostics import Diagnostics, diagnose
from bgnlm.posterior.summarize import Posterior, summarize
from bgnlm.progress import ProgressBar
from bgnlm.search.chains import ChainResult
from bgnlm.search.config import SearchConfig
from bgnlm.search.pooling import draw_from_pool
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import SearchProblem, define_problem
from bgnlm.search.runner import Report, RunProgress, run_chains
from bgnlm.search.union import CommonClasses, by_chain, common_classes, unite
from bgnlm.search.workers import one_thread


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What was found: `posterior` has the probabilities, `diagnostics` how far to trust them."""

    problem: SearchProblem
    chains: list[ChainResult]
    posterior: Posterior
    diagnostics: Diagnostics

    def fit(self, model: int) -> ModelFit:
        """Return coefficients, covariance factor and dispersion of the model at place `model`, 0 the most probable."""
        if self.problem.latent is not None:
            raise SettingError("fit is for models without latent components; use problem.latent.integrated for others.")
        columns = Evaluator(self.problem.X, self.problem.names).matrix(self.posterior.features_of(model))
        return self.problem.likelihood.plain.population(columns).fit(list(range(columns.shape[1])))

    def __repr__(self) -> str:
        return f"<SearchResult: {len(self.posterior):,} models, {len(self.chains)} chains>"

    def __str__(self) -> str:
        return f"{self.posterior}\n\n{self.diagnostics}"


def find_features(
    y: Any,
    X: Any,
    *,
    family: str = "gaussian",
    link: str | None = None,
    coefficient_prior: str | CoefficientPrior = "auto",
    noise_floor: float = 0.0,
    sample_weight: Any = None,
    offset: Any = None,
    latent: Any = (),
    positions: Any = None,
    names: Sequence[str] | None = None,
    transforms: str | Iterable[str | Transform] = "default",
    prior: ModelPrior | None = None,
    keep: Iterable[str | Feature] = (),
    config: SearchConfig | None = None,
    n_chains: int = 4,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    random_state: int | None = None,
    progress: bool | Callable[[RunProgress], None] | None = None,
) -> SearchResult:
    """Search for the features that explain the response, by GMJMCMC (section 3.2 of the paper).

    Parameters
    ----------
    y, family, link, coefficient_prior, noise_floor, sample_weight, offset
        As in `log_marginal`.
    latent, positions
        Latent components that models can have, and the columns that they name, as in `bgnlm.latent.log_marginal`.
    X, names
        The inputs; a data frame's names are kept, those of an array are x1, x2, ... by default.
    transforms
        The set G: a preset's name, or a list of names and `Transform` objects.
    prior
        p(m); by default log n + log m nats for each operation, and log((m - k + 2) / k) for the k-th feature, m the
        number of inputs.
    keep
        Features, or their texts, that stay in every population.
    config
        Settings of the search.
    n_chains
        B.
    n_jobs
        How many chains run at a time, -1 for as many as there are cores; None for 1, or what
        ``joblib.parallel_config`` says, which also chooses threads, processes or a Dask cluster.
    checkpoint
        A folder to which every population is written. If the search is stopped, by whatever means, the same call goes
        on from there and ends with the same result.
    random_state
        A seed; the result depends on it and the settings alone.
    progress
        Whether to draw a bar; None for a bar where there is a terminal. A function is called after each population.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm import SearchConfig, find_features
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> found = find_features(y, X, config=SearchConfig(n_populations=3), n_chains=2, random_state=1)
    >>> [str(feature) for feature in found.posterior.features_of(0)]
    ['x1*x2']
    >>> round(float(found.fit(0).coefficients[1]), 1)
    1.0
    """
    fields = check_fields(latent)
    placed = place_all(fields, positions, len(check_response(y))) if fields else None
    problem = define_problem(
        y,
        X,
        latent=placed,
        family=family,
        link=link,
        coefficient_prior=coefficient_prior,
        noise_floor=noise_floor,
        sample_weight=sample_weight,
        offset=offset,
        names=names,
        transforms=transforms,
        prior=prior,
        keep=keep,
        config=config,
    )
    warn_of_data(problem)
    with reporting(progress) as report:
        return search(problem, n_chains, random_state, n_jobs=n_jobs, checkpoint=checkpoint, report=report)


def search(
    problem: SearchProblem,
    n_chains: int,
    random_state: int | np.random.SeedSequence | None = None,
    *,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    report: Report | None = None,
    previous: Sequence[ChainResult] = (),
) -> SearchResult:
    """Run chains and put together what they found; the arguments are those of `run_chains`."""
    chains = run_chains(
        problem,
        check_count(n_chains, "n_chains", low=1),
        random_state,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        report=report,
        previous=previous,
    )
    chains = [chain for chain in chains if chain.history]
    common = common_classes(problem, chains)
    posterior = summarize(unite(problem, chains, common))
    if problem.config.n_pool_draws:
        posterior = _pooled(problem, chains, common, posterior)
    return SearchResult(problem, chains, posterior, diagnose(chains, by_chain(chains, common), posterior))


def _pooled(
    problem: SearchProblem, chains: Sequence[ChainResult], common: CommonClasses, posterior: Posterior
) -> Posterior:
    """Draw models over what was found; whatever happens, what was visited is not lost."""
    generator = np.random.PCG64()
    generator.state = dict(chains[0].state.random_state)  # type: ignore[assignment]
    rng = np.random.Generator(generator.jumped())  # far behind the random numbers of the chain
    try:
        with one_thread():
            drawn = draw_from_pool(rng, problem, common, posterior.found, posterior.inclusion_of_classes())
    except (KeyboardInterrupt, MemoryError, np.linalg.LinAlgError) as error:
        what = "was interrupted" if isinstance(error, KeyboardInterrupt) else f"failed ({error!r})"
        message = f"Drawing models from the pool {what}: probabilities are renormalised over the models visited."
        warnings.warn(message, SearchStoppedWarning, stacklevel=3)
        return posterior
    return posterior if drawn is None else summarize(drawn.found, drawn.counts)


@contextmanager
def reporting(progress: bool | Callable[[RunProgress], None] | None) -> Iterator[Callable[[RunProgress], None] | None]:
    """Provide what is to be called after each population."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
        with closing(ProgressBar()) as bar:
            yield bar
    else:
        yield None


def warn_of_data(problem: SearchProblem) -> None:
    """Say once what concerns the answer as a whole."""
    messages = []
    if problem.builder.response.norm == 0.0:
        status = ModelStatus.CONSTANT_RESPONSE
        messages.append(f"All models have the status {status.name}: {advice(status)}.")
    useless = [
        name for j, name in enumerate(problem.names) if reject_reason(problem.X[:, j], problem.likelihood.weights)
    ]
    if useless:
        messages.append(f"Constant columns are in no model: {', '.join(useless)}. Leave them out.")
    for message in messages:
        warnings.warn(message, ModelStatusWarning, stacklevel=3)
