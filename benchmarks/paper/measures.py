"""What the paper's tables show, as it defines them, and as its authors' scripts computed them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

MOST_COMPLEX = 10  # the last row of the paper's tables of complexity is "10 or more"


class Spread(NamedTuple):
    """Median, least and largest value over runs."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.4f} ({self.low:.4f}, {self.high:.4f})" if self.low < self.high else f"{self.median:.4f}"


class Found(NamedTuple):
    """A feature with its probability, its operation count, and the true feature it is the same function as."""

    text: str
    probability: float
    operations: int
    truth: str | None = None


def spread(values: Iterable[float]) -> Spread:
    """Summarise runs."""
    array = np.array(list(values), dtype=float)
    return Spread(float(np.median(array)), float(array.min()), float(array.max()))


def confusion(actual: np.ndarray, predicted: np.ndarray) -> dict[str, int]:
    """Errors among positives and negatives, and how many of these there are."""
    actual, predicted = np.asarray(actual, bool), np.asarray(predicted, bool)
    return {
        "FN": int((actual & ~predicted).sum()),
        "FP": int((predicted & ~actual).sum()),
        "positives": int(actual.sum()),
        "negatives": int((~actual).sum()),
    }


def rates(counts: dict[str, int]) -> dict[str, float]:
    """ACC, FNR and FPR by their definitions; as the scripts computed and the tables print them with a star.

    The scripts divide by the errors and the class together, so that a rate t is printed as t / (1 + t).
    """
    wrong, positives, negatives = counts["FN"] + counts["FP"], counts["positives"], counts["negatives"]
    return {
        "ACC": 1.0 - wrong / (positives + negatives),
        "FNR": counts["FN"] / positives,
        "FPR": counts["FP"] / negatives,
        "FNR*": counts["FN"] / (counts["FN"] + positives),
        "FPR*": counts["FP"] / (counts["FP"] + negatives),
    }


def errors(actual: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """RMSE, MAE and CORR."""
    difference = np.asarray(predicted, float) - np.asarray(actual, float)
    return {
        "RMSE": float(np.sqrt(np.square(difference).mean())),
        "MAE": float(np.abs(difference).mean()),
        "CORR": float(np.corrcoef(predicted, actual)[0, 1]),
    }


def detection(found: Sequence[Found], truths: Sequence[str], threshold: float, any_will_do: bool) -> dict[str, float]:
    """Which true features have probability above the threshold, Pow, FP and FDR of one run.

    A true feature counts once, whatever number of its forms is above the threshold. Pow is the share of true features
    found, or whether any of them is; FDR is 0 where nothing is found (paper: 0/0).
    """
    reported = [feature for feature in found if feature.probability > threshold]
    detected = {feature.truth for feature in reported if feature.truth is not None}
    n_false = sum(feature.truth is None for feature in reported)
    power = float(bool(detected)) if any_will_do else len(detected) / max(len(truths), 1)
    return {text: float(text in detected) for text in truths} | {
        "Pow": power,
        "FP": float(n_false),
        "FDR": n_false / max(n_false + len(detected), 1),
    }


def mean_complexities(runs: Sequence[Sequence[Found]], threshold: float) -> list[float]:
    """Mean number of reported features of complexity 1, 2, ..., 10 or more; the complexity of an input is 1."""
    counts = np.zeros(MOST_COMPLEX)
    for run in runs:
        for feature in run:
            if feature.probability > threshold:
                counts[min(feature.operations + 1, MOST_COMPLEX) - 1] += 1.0
    return (counts / max(len(runs), 1)).tolist()


def frequencies(runs: Sequence[Sequence[Found]], threshold: float) -> list[tuple[str, int, int]]:
    """Features with the number of runs that report them and their operation counts, the most frequent first."""
    counts: Counter[str] = Counter()
    operations = {}
    for run in runs:
        reported = {feature.text: feature for feature in run if feature.probability > threshold}
        counts.update(reported.keys())
        operations |= {text: feature.operations for text, feature in reported.items()}
    return [(text, n, operations[text]) for text, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def found_in(line: dict[str, Any]) -> list[Found]:
    """Features of a stored run."""
    return [Found(*feature) for feature in line.get("features", ())]
