"""The pictures of the page: SVG as images within the file, so that nothing in them can act on the page."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bgnlm.errors import BgnlmError, MissingExtraError
from bgnlm.features import Component, Input
from bgnlm.latent.place import describe
from bgnlm.page.data import PageData
from bgnlm.page.html import Markup, join, tag
from bgnlm.page.sections import events_of

_MOST_EFFECTS = 6
_MOST_CLASSES = 6
_LEAST = 0.05  # probability of a feature that is drawn as a tree
_N_DRAWS, _N_ROWS, _N_GRID = 300, 80, 30
Picture = tuple[str, Callable[[], Any]]


def pictures(model: Any, data: PageData | None, inputs: list[str]) -> Markup:
    """All pictures that can be drawn of what there is; `inputs` are the most important columns."""
    drawn, failed = [], []
    for words, draw in _wanted(model, data, inputs):
        try:
            drawn.append(_figure(words, draw))
        except MissingExtraError as error:
            return tag("p", str(error), class_="note")
        except BgnlmError as error:
            failed.append(tag("p", f"{words} could not be drawn: {error}", class_="note"))
    notes = [] if data is not None else [
        tag("p", "Effects of inputs, residuals and calibration are drawn if data are given.", class_="note")
    ]  # fmt: skip
    return join([tag("div", *drawn, class_="pictures"), *failed, *notes])


def _figure(words: str, draw: Callable[[], Any]) -> Markup:
    source = base64.b64encode(svg(draw)).decode()
    image = tag("img", src=f"data:image/svg+xml;base64,{source}", alt=words)
    return tag("figure", image, tag("figcaption", words))


def svg(draw: Callable[[], Any]) -> bytes:
    """What a function draws, as SVG: texts as texts, always the same bytes."""
    from bgnlm.plot.canvas import axes_for

    axes_for(None)  # says so if matplotlib is not there
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "bgnlm"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a browser has other fonts
        file = io.BytesIO()
        draw().figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _wanted(model: Any, data: PageData | None, inputs: list[str]) -> Iterator[Picture]:
    from bgnlm import plot

    targets = [None] if len(model.searches_) == 1 else model.classes_.tolist()[:_MOST_CLASSES]
    for target, about in zip(targets, _abouts(model), strict=False):
        yield f"Probabilities of features{about}", partial(plot.inclusion, model, target=target)
    if data is not None:
        yield from _of_data(model, data, inputs)
    for target, about in zip(targets, _abouts(model), strict=False):
        words = f"Models{about}, as wide as they are probable, and their features"
        yield words, partial(plot.model_space, model, target=target)
        yield f"What models explain, against their complexity{about}", partial(plot.front, model, target=target)
    for field in model.latent_columns_.fields:
        name = describe(field)
        yield f"Latent component {name}", partial(plot.latent, model, name)
    yield "What each chain had found, by populations", partial(plot.search, model)
    if len(model.searches_[0].diagnostics.history) > 1:
        yield "Probabilities of features in each chain", partial(plot.chains, model)
    posterior = model.searches_[0].posterior
    each = zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True)
    made = [one for one, p in each if p >= _LEAST and not isinstance(one, Input | Component)]
    if made:
        yield "The most probable feature that is no input, as a tree", partial(plot.tree, model, made[0])


def _abouts(model: Any) -> list[str]:
    return [f" of class {event}" if len(model.searches_) > 1 else "" for event in events_of(model)]


def _of_data(model: Any, data: PageData, inputs: list[str]) -> Iterator[Picture]:
    from bgnlm import plot

    frame, y, offset = data.frame, data.y, data.offset
    if y is not None and hasattr(model, "classes_"):
        yield "Calibration: observed against predicted", partial(plot.calibration, model, frame, y, offset=offset)
        yield "Receiver operating characteristic", partial(plot.roc, model, frame, y, offset=offset)
    elif y is not None:
        yield "Observed against predicted", partial(plot.predictions, model, frame, y, offset=offset)
        yield "Residuals against predicted", partial(plot.residuals, model, frame, y, offset=offset)
    names = model.coding_.input_names
    size = {"n_draws": _N_DRAWS, "n_rows": _N_ROWS, "n_grid": _N_GRID, "offset": offset}
    for name in inputs[:_MOST_EFFECTS]:
        yield f"Effect of {name}", partial(plot.effect, model, frame, names.index(name), **size)
