"""`bgnlm demo`: Kepler's third law from a table of solar-system bodies."""

from time import perf_counter

from bgnlm.datasets import load_solar_system
from bgnlm.find import SearchResult, find_features
from bgnlm.posterior.average import average_models
from bgnlm.report.expressions import expression
from bgnlm.search.config import Limits, SearchConfig

RESPONSE = "semi_major_axis"
TRANSFORMS = ("sqrt_abs", "cbrt_abs", "log1p_abs", "inverse")
N_CHAINS = 4
# The table states its facts to about three digits: noise of a thousandth of the spread is no news.
NOISE_FLOOR = 1e-3
CONFIG = SearchConfig(population_size=12, n_populations=15, limits=Limits(max_depth=4, max_operations=4))


def run_demo() -> str:
    """Search for the law behind the table and describe what was found."""
    start = perf_counter()
    table = load_solar_system()
    X = table.drop(columns=RESPONSE)
    found = find_features(
        table[RESPONSE],
        X,
        noise_floor=NOISE_FLOOR,
        transforms=TRANSFORMS,
        config=CONFIG,
        n_chains=N_CHAINS,
        random_state=1,
    )
    n_features = sum(chain.history[-1].n_features for chain in found.chains)
    n_scored = found.diagnostics.n_scored
    header = [
        f"{len(table)} bodies of the solar system; response: {RESPONSE} (AU)",
        f"inputs: {', '.join(X.columns)}",
        f"functions: {', '.join(TRANSFORMS)}, products and projections",
        f"{N_CHAINS} chains of {CONFIG.n_populations} populations: {n_features:,} features, {n_scored:,} models scored",
        "prior: robust mixture of g-priors; log(n m) nats per operation, log((m - k + 2) / k) for feature k, m inputs",
        f"noise floor: {NOISE_FLOOR:g} of sd({RESPONSE})",
        "",
    ]
    footer = [
        "",
        f"{perf_counter() - start:.1f} seconds, compilation included; in Python: help(bgnlm.find_features)",
    ]
    return "\n".join([*header, *_report(found), *footer])


def _report(found: SearchResult) -> list[str]:
    posterior = found.posterior
    law = expression(average_models(found.problem, posterior, max_models=1), "text", RESPONSE)
    lines = ["the law", f"  {law}", f"  probability {posterior.model_probabilities[0]:.4f}", ""]
    lines += ["runner-up models", "  probability  features"]
    for model in range(1, min(6, len(posterior))):
        features = " + ".join(map(str, posterior.features_of(model))) or "(none)"
        lines.append(f"  {posterior.model_probabilities[model]:11.2g}  {features}")
    lines += ["", "features by probability"]
    for feature, probability in list(zip(posterior.features, posterior.inclusion_probabilities, strict=True))[:5]:
        lines.append(f"  {probability:11.2g}  {feature}")
    return lines
