"""`bgnlm show`: what a saved model says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bgnlm.cli.options import DESCRIBED

if TYPE_CHECKING:
    import argparse

_EXAMPLES = """\
examples:
  bgnlm show axis.bgnlm
  bgnlm show axis.bgnlm --using median --latex > formula.tex
  bgnlm show axis.bgnlm --json | jq '.features[0]'
"""


def add_show(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "show",
        help="print what a saved model says: features with their probabilities, models, the formula",
        description="Prints the summary of a saved model and its formula.",
        epilog=_EXAMPLES,
        formatter_class=DESCRIBED,
    )
    parser.add_argument("model", metavar="MODEL", help="a file that `bgnlm fit` wrote")
    parser.add_argument(
        "--using", choices=("best", "median", "average"), default="best", help="the model whose formula is written"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON document, as `bgnlm fit --json` does")
    form.add_argument("--latex", action="store_true", help="print the formula alone, in LaTeX")
    parser.set_defaults(run=run_show)


def run_show(options: argparse.Namespace) -> int:
    """Load and describe a model."""
    from bgnlm.cli.model_files import describe, load_model

    model = load_model(options.model)
    if options.json:
        print(json.dumps({**describe(model, options.using), "file": options.model}, indent=2), flush=True)
    elif options.latex:
        print("\n".join(_formulas(model, options.using, "latex")), flush=True)
    else:
        formulas = "\n".join(_formulas(model, options.using, "text"))
        print(f"{model.summary()}\n\nformula ({options.using})\n{formulas}", flush=True)
    return 0


def _formulas(model: Any, using: str, form: str) -> list[str]:
    """One formula, or one for each class under its name."""
    written = model.expression(using=using, format=form)
    if not isinstance(written, dict):
        return [written]
    comment = "%" if form == "latex" else "class"
    return [line for one, formula in written.items() for line in (f"{comment} {one}", formula)]
