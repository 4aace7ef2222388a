"""The examples: which rows their tables have, and what is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from benchmarks.paper import epigenetic, symbolic
from benchmarks.paper.competitors import CLASSIFIERS, EBM, REGRESSORS, Competitor, compete
from benchmarks.paper.ours import KEPLER, MASS, find_logic, find_planets, predict
from benchmarks.paper.printed import LOGIC_TERMS
from benchmarks.paper.settings import OURS, RECIPES, Score, Search
from bgnlm.features import PRESETS

Kind = Literal["classification", "regression", "detection", "frequency", "probability"]
_BY_DEFAULT = (4,)  # chains of the library
STRATEGIES = ("naive", "concave", "deep", "bayesian")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A row of a table, and what one run of it is.

    Attributes
    ----------
    group
        The table of the example that the row is in.
    method
        Its name in the paper, where it has one.
    settings
        Score and search, or the level of another method.
    run
        From a seed to a result.
    is_random
        Whether the seed matters; if not, one run will do.
    """

    example: str
    group: str
    method: str
    settings: str
    run: Callable[[int], dict[str, Any]]
    is_random: bool = True


Rows = Callable[[Score, Search, Sequence[int] | None], list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example: its rows for a score, a search and numbers of chains, None for those of the paper."""

    title: str
    kind: Kind
    rows: Rows
    threshold: float  # probability above which a feature is reported
    truths: tuple[str, ...] = ()
    any_will_do: bool = False
    search: Search = "mjmcmc"  # by default; "plain" where a step of the scripts scores many models


def settings_name(score: Score, search: Search) -> str:
    """What tables call a score and a search."""
    return score if score in OURS else f"{score}, {search}"


def _name(n_chains: int) -> str:
    return {1: "BGNLM", 32: "BGNLM_PRL"}.get(n_chains, f"BGNLM_PRL{n_chains}")


def _chains_name(n_chains: int) -> str:
    return "1 chain" if n_chains == 1 else f"{n_chains} chains"


def _prediction(example: str, recipes: dict[str, tuple[str, Any]], others: dict[tuple[str, str], Competitor]) -> Rows:
    """BGNLM by recipes, each with the end of its name and the G that it has by default; BGLM; other methods."""

    def rows(score: Score, search: Search, chains: Sequence[int] | None) -> list[Cell]:
        settings = settings_name(score, search)
        n_alike = RECIPES[next(iter(recipes.values()))[0]].n_alike
        numbers = chains or {"default": (1, *_BY_DEFAULT), "predict": (1, *_BY_DEFAULT), "ensemble": (n_alike,)}.get(
            score, (1, 32)
        )
        chosen = {"": next(iter(recipes.values()))} if score in OURS and example == "abalone" else recipes
        cells = [
            Cell(
                example=example,
                group="",
                method=_name(n) + ending,
                settings=settings,
                run=partial(predict, example, recipe, score, search, n, transforms=transforms),
            )
            for ending, (recipe, transforms) in chosen.items()
            for n in numbers
        ]
        if score == "ensemble":
            return cells
        recipe = next(iter(recipes.values()))[0]
        linear = partial(predict, example, recipe, score, search, 1, is_linear=True)
        cells.append(
            Cell(
                example=example,
                group="",
                method="BGLM",
                settings=score,
                run=linear,
                is_random=example in ("breast_cancer", "spam"),  # elsewhere all models are scored
            )
        )
        cells += [
            Cell(
                example=example,
                group="",
                method=method,
                settings=f"library, {level}" if level == "tuned" else "library",
                run=partial(compete, example, method, level),
                is_random=other.is_random,
            )
            for (method, level), other in others.items()
        ]
        return cells

    return rows


def _planets(example: str, target: str, numbers: tuple[int, ...]) -> Rows:
    """Examples 4 and 7: two sets G, and the library's own for its default score."""

    def rows(score: Score, search: Search, chains: Sequence[int] | None) -> list[Cell]:
        sets: dict[str, tuple[str, Any]] = {"G1": ("planets-g1", "kepler-g1"), "G2": ("planets-g2", "kepler-g2")}
        if score in OURS:
            sets["G by default"] = ("planets-g1", None)
        cells = [
            Cell(
                example=example,
                group=group,
                method=_chains_name(n),
                settings=settings_name(score, search),
                run=partial(find_planets, target, recipe, score, search, n, transforms=transforms),
            )
            for group, (recipe, transforms) in sets.items()
            for n in chains or (_BY_DEFAULT if score in OURS else numbers)
        ]
        if example == "kepler":
            cells += [
                Cell(
                    example=example,
                    group=inputs,
                    method="gplearn",
                    settings="library",
                    run=partial(symbolic.regress, inputs),
                )
                for inputs in symbolic.INPUTS
            ]
        return cells

    return rows


def _sigmoid(score: Score, search: Search, chains: Sequence[int] | None) -> list[Cell]:
    """With the defaults there is one setting: depth 5, products allowed."""
    settings = {"setting 1": _BY_DEFAULT[0]} if score in OURS else {"setting 1": 64, "setting 2": 32, "setting 3": 32}
    return [
        Cell(
            example="sigmoid",
            group=group,
            method=_chains_name(n),
            settings=settings_name(score, search),
            run=partial(
                find_planets,
                "SemiMajorAxisAU",
                group.replace("setting ", "sigmoid-"),
                score,
                search,
                n,
                transforms="neural",
            ),
        )
        for group, number in settings.items()
        for n in chains or (number,)
    ]


def _epigenetic(score: Score, search: Search, chains: Sequence[int] | None) -> list[Cell]:
    priors = [name for name in epigenetic.PRIORS if name.startswith(score)] or [score]
    return [
        Cell(
            example="epigenetic",
            group=sample,
            method="BGNLM" if n == 16 else f"BGNLM, {_chains_name(n)}",
            settings=settings_name(score, search) if score in OURS else f"{prior}, {search}",
            run=partial(epigenetic.find_components, sample, score, prior, search, n),
        )
        for sample in epigenetic.SAMPLES
        for prior in priors
        for n in chains or (16,)
    ]


def _logic(score: Score, search: Search, chains: Sequence[int] | None) -> list[Cell]:
    """Bayesian logic regression has a prior of its own, so that there is none by default."""
    models = ("BGNLM",) if score in OURS else ("BGNLM", "BLRM")
    return [
        Cell(
            example="logic",
            group="",
            method=model if n == 32 else f"{model}, {_chains_name(n)}",
            settings=settings_name(score, search),
            run=partial(find_logic, model, score, search, n),
        )
        for model in models
        for n in chains or (_BY_DEFAULT if score in OURS else (32,))
    ]


def _weights(score: Score, search: Search, chains: Sequence[int] | None) -> list[Cell]:
    """Appendix C: the four strategies, numbered as there, with one chain."""
    return [
        Cell(
            example="weights",
            group=data.replace("_", " "),
            method=f"BGNLM_{number}" if n == 1 else f"BGNLM_{number}, {_chains_name(n)}",
            settings=settings_name(score, search),
            run=partial(predict, data, data, score, search, n, strategy=strategy, is_filtered=False),
        )
        for data in ("breast_cancer", "asteroids", "spam")
        for number, strategy in enumerate(STRATEGIES, start=1)
        for n in chains or (1,)
    ]


_THRESHOLDS = (*PRESETS["default"], *PRESETS["trees"])
EXAMPLES: dict[str, Example] = {
    "breast_cancer": Example(
        title="Example 1: breast cancer",
        kind="classification",
        rows=_prediction("breast_cancer", {"": ("breast_cancer", None)}, CLASSIFIERS),
        threshold=0.1,
        search="plain",
    ),
    "spam": Example(
        title="Example 2: spam",
        kind="classification",
        rows=_prediction(
            "spam", {"": ("spam", None), " with thresholds": ("spam+thresholds", _THRESHOLDS)}, CLASSIFIERS | EBM
        ),
        threshold=0.1,
        search="plain",
    ),
    "abalone": Example(
        title="Example 3: age of abalones",
        kind="regression",
        rows=_prediction("abalone", {" (BIC)": ("abalone-bic", None), " (AIC)": ("abalone-aic", None)}, REGRESSORS),
        threshold=0.5,
    ),
    "kepler": Example(
        title="Example 4: Kepler's third law",
        kind="detection",
        rows=_planets("kepler", "SemiMajorAxisAU", (1, 16, 64)),
        threshold=0.25,
        truths=tuple(KEPLER),
        any_will_do=True,
    ),
    "sigmoid": Example(title="Example 4: only the sigmoid in G", kind="frequency", rows=_sigmoid, threshold=0.25),
    "epigenetic": Example(
        title="Example 5: methylation with latent processes",
        kind="probability",
        rows=_epigenetic,
        threshold=0.25,
        search="informed",
    ),
    "asteroids": Example(
        title="Example 6: asteroids",
        kind="classification",
        rows=_prediction("asteroids", {"": ("asteroids", None)}, CLASSIFIERS),
        threshold=0.1,
        search="plain",
    ),
    "mass": Example(
        title="Example 7: mass of planets",
        kind="detection",
        rows=_planets("mass", "PlanetaryMassJpt", (1, 4, 16)),
        threshold=0.25,
        truths=tuple(MASS),
        any_will_do=True,
    ),
    "logic": Example(
        title="Example 8: simulated logic data",
        kind="detection",
        rows=_logic,
        threshold=0.5,
        truths=LOGIC_TERMS,
    ),
    "weights": Example(
        title="Appendix C: ways to set the weights of projections",
        kind="classification",
        rows=_weights,
        threshold=0.1,
        search="plain",
    ),
}
