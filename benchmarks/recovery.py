"""How often the search finds what is there: ``python -m benchmarks.recovery [SETUP ...] [--runs N] [--jobs J]``.

One line of JSON for each seed and number of chains is appended to the output file as it comes; seeds that are there
already are not run again. A run of k chains is the first k of the chains with its seed. The exoplanet set-ups need
``exoplanets.csv`` in the folder named by BGNLM_DATA.
"""

import argparse
import csv
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import beta

from bgnlm.features import Evaluator, Feature, parse
from bgnlm.posterior.summarize import Posterior, summarize
from bgnlm.search.chains import ChainResult, run_chain
from bgnlm.search.config import Limits, MoveProbabilities, SearchConfig
from bgnlm.search.prior import ModelPrior, logic_complexity
from bgnlm.search.problem import SearchProblem, define_problem
from bgnlm.search.union import unite

KEPLER = [
    f"cbrt_abs({star}*PeriodDays**2)" for star in ("HostStarMassSlrMass", "HostStarRadiusSlrRad", "HostStarTempK")
]
LOGIC = {
    "X7": 1.5,
    "X8": 1.5,
    "X18*X21": 6.6,
    "X2*X9": 3.5,
    "X12*X20*X37": 9.0,
    "X1*X3*X27": 7.0,
    "X4*X10*X17*X30": 7.0,
    "X11*X13*X19*X50": 7.0,
}


@dataclass(frozen=True)
class Setup:
    """A problem for each seed, its true features, and when it counts as solved."""

    problem: Callable[[int], SearchProblem]
    truth: list[str]
    n_chains: tuple[int, ...]
    threshold: float
    any_will_do: bool = False
    bar: float = 1.0  # power that is asked for with the most chains


def exoplanets(response: str, informed: float, **likelihood: object) -> Callable[[int], SearchProblem]:
    def problem(_: int) -> SearchProblem:
        with Path(os.environ["BGNLM_DATA"], "exoplanets.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        names = [name for name in rows[0] if name != response]
        limits = Limits(max_depth=5, max_width=15, max_model_size=15, max_operations=4)
        return define_problem(
            [float(row[response]) for row in rows],
            np.array([[float(row[name]) for name in names] for row in rows]),
            names=names,
            transforms="kepler-g1",
            config=SearchConfig(population_size=15, n_populations=40, informed=informed, limits=limits),
            **(likelihood or {"coefficient_prior": "script", "prior": ModelPrior(complexity="oc+1")}),
        )

    return problem


def logic(*, is_blrm: bool = False, complexity: str = "multiplicity") -> Callable[[int], SearchProblem]:
    def problem(seed: int) -> SearchProblem:
        rng = np.random.default_rng(seed)
        names = [f"X{j + 1}" for j in range(50)]
        X = (rng.random((1000, 50)) < 0.5).astype(float)
        evaluator = Evaluator(X, names)
        mean = 1.0 + sum(weight * evaluator.column(parse(term)) for term, weight in LOGIC.items())
        moves = MoveProbabilities(new_input=1, modification=2, multiplication=10, projection=0)
        limits = Limits(max_depth=4, max_width=40, max_model_size=40, max_operations=3)
        return define_problem(
            mean + rng.normal(size=1000),
            X,
            names=names,
            coefficient_prior="bic",
            transforms="logic" if is_blrm else ["sigmoid", "gauss", "tanh", "atan", "sin", "cos"],
            prior=ModelPrior(penalty=1.0, complexity=logic_complexity(50, 4))
            if is_blrm
            else ModelPrior(complexity=complexity),
            config=SearchConfig(
                population_size=40,
                n_populations=60,
                informed=0.0,
                keep_threshold=0.7,
                moves=moves if is_blrm else MoveProbabilities(),
                limits=limits,
            ),
        )

    return problem


def noise(n_populations: int, complexity: str = "multiplicity") -> Callable[[int], SearchProblem]:
    """Nothing to be found. With "oc" inputs are free, and the exact posterior of some exceeds one half by chance."""

    def problem(seed: int) -> SearchProblem:
        rng = np.random.default_rng(seed)
        return define_problem(
            rng.normal(size=143),
            rng.normal(size=(143, 30)),
            prior=ModelPrior(complexity=complexity),
            config=SearchConfig(n_populations=n_populations),
        )

    return problem


SETUPS = {
    "kepler-plain": Setup(exoplanets("SemiMajorAxisAU", 0.0), KEPLER, (16, 64), 0.25, any_will_do=True, bar=0.99),
    "kepler-informed": Setup(exoplanets("SemiMajorAxisAU", 0.5), KEPLER, (4, 16), 0.25, any_will_do=True, bar=0.99),
    "kepler-floor": Setup(exoplanets("SemiMajorAxisAU", 0.5, noise_floor=0.01), KEPLER[:1], (16,), 0.95, bar=0.95),
    "mass-plain": Setup(exoplanets("PlanetaryMassJpt", 0.0), ["PlanetaryDensJpt*RadiusJpt**3"], (1, 4), 0.25, bar=0.98),
    "mass-informed": Setup(
        exoplanets("PlanetaryMassJpt", 0.5), ["PlanetaryDensJpt*RadiusJpt**3"], (1,), 0.25, bar=0.98
    ),
    "logic": Setup(logic(), list(LOGIC), (1,), 0.5, bar=0.99),
    "logic-oc": Setup(logic(complexity="oc"), list(LOGIC), (1,), 0.5, bar=0.99),
    "logic-oc+1": Setup(logic(complexity="oc+1"), list(LOGIC), (1,), 0.5, bar=0.99),
    "blrm": Setup(logic(is_blrm=True), list(LOGIC), (1,), 0.5, bar=0.95),
    "noise-10": Setup(noise(10), [], (1,), 0.5),
    "noise-40": Setup(noise(40), [], (1,), 0.5),
    "noise-160": Setup(noise(160), [], (1,), 0.5),
    "noise-40-oc": Setup(noise(40, "oc"), [], (1,), 0.5),
}


def run(name: str, seed: int) -> list[dict[str, object]]:
    """Results of one seed, one for each number of chains."""
    setup = SETUPS[name]
    problem = setup.problem(seed)
    results, chains = [], []
    began = time.perf_counter()
    for number, child in enumerate(np.random.SeedSequence(seed).spawn(max(setup.n_chains)), start=1):
        chains.append(run_chain(problem, child))
        if number in setup.n_chains:
            posterior = summarize(unite(problem, chains))
            results.append(
                {"setup": name, "seed": seed, "chains": number, **assess(setup, problem, posterior)}
                | {"seconds": round(time.perf_counter() - began, 3), "models": count_models(chains)}
            )
    return results


def count_models(chains: list[ChainResult]) -> int:
    """Distinct models of each chain, added up."""
    return sum(chain.visited.n_scored for chain in chains)


def assess(setup: Setup, problem: SearchProblem, posterior: Posterior) -> dict[str, object]:
    """Which true features were detected, and what else; features are the same if their columns are."""
    evaluator = Evaluator(problem.X, problem.names)
    probability = {
        text: sum(p for feature, p in leading(posterior) if same(evaluator, feature, parse(text)))
        for text in setup.truth
    }
    false = [
        str(feature)
        for feature, p in leading(posterior)
        if p > setup.threshold and not any(same(evaluator, feature, parse(text)) for text in setup.truth)
    ]
    detected = [text for text, p in probability.items() if p > setup.threshold]
    n_wanted = 1 if setup.any_will_do else len(setup.truth)
    return {
        "power": min(len(detected) / n_wanted, 1.0) if n_wanted else 1.0,
        "false": false,
        "fdr": len(false) / max(len(false) + len(detected), 1),
        "probability": {text: round(float(p), 5) for text, p in probability.items()},
        "highest": round(float(posterior.inclusion_probabilities.max(initial=0.0)), 4),
    }


def leading(posterior: Posterior) -> list[tuple[Feature, float]]:
    """Features that could matter."""
    both = zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True)
    return [(feature, p) for feature, p in both if p > 0.01]


def same(evaluator: Evaluator, a: Feature, b: Feature) -> bool:
    """Whether two features are one function on the data, up to an affine map."""
    return abs(np.corrcoef(evaluator.column(a), evaluator.column(b))[0, 1]) > 1.0 - 1e-10


def report(lines: list[dict]) -> None:
    """Print a table of what is there."""
    header = f"{'set-up':<16} {'chains':>6} {'runs':>5} {'power':>6} {'upper':>6} {'FP':>6} {'FDR':>7} {'highest':>8}"
    print(f"{header} {'s/run':>7}")
    for name, chains in sorted({(line["setup"], line["chains"]) for line in lines}):
        some = [line for line in lines if line["setup"] == name and line["chains"] == chains]
        mean = {key: float(np.mean([line[key] for line in some])) for key in ("power", "fdr", "seconds")}
        n_false = np.mean([len(line["false"]) for line in some])
        print(
            f"{name:<16} {chains:6d} {len(some):5d} {mean['power']:6.3f} {upper_bound(some):6.3f} {n_false:6.3f} "
            f"{mean['fdr']:7.4f} {max(line['highest'] for line in some):8.3f} {mean['seconds']:7.2f}{verdict(some)}"
        )


def upper_bound(lines: list[dict]) -> float:
    """One-sided 95 % upper bound of the power (Clopper and Pearson; whole runs count)."""
    n, k = len(lines), sum(line["power"] == 1.0 for line in lines)
    return 1.0 if k == n else float(beta.ppf(0.95, k + 1, n - k))


def verdict(lines: list[dict]) -> str:
    """Whether the power reaches the bar, for the number of chains it is set for."""
    setup = SETUPS[lines[0]["setup"]]
    if not setup.truth or lines[0]["chains"] != max(setup.n_chains):
        return ""
    reached = max(upper_bound(lines), float(np.mean([line["power"] for line in lines]))) >= setup.bar
    return f"  bar {setup.bar:.2f}: {'reached' if reached else 'missed'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setup", nargs="*", metavar="SETUP", help="all if none is named")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("recovery.jsonl"))
    arguments = parser.parse_args()
    lines = (
        [json.loads(line) for line in arguments.output.read_text().splitlines()] if arguments.output.exists() else []
    )
    done = {(line["setup"], line["seed"]) for line in lines}
    names = arguments.setup or list(SETUPS)
    if unknown := set(names) - set(SETUPS):
        parser.error(f"there is no set-up {sorted(unknown)[0]!r}; choose from {', '.join(SETUPS)}")
    todo = [(name, seed) for name in names for seed in range(arguments.runs) if (name, seed) not in done]
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.output.open("a") as file:
        for number, results in enumerate(pool.map(run, *zip(*todo, strict=True)) if todo else (), start=1):
            for line in results:
                file.write(json.dumps(line) + "\n")
                file.flush()
            lines += results
            print(f"\r{number} of {len(todo)} runs", end="", flush=True)
    print()
    report(lines)


if __name__ == "__main__":
    main()
