"""The data of Example 5 of the paper: methylation counts along the genome, with an offset and positions."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bgnlm._validation import check_choice
from bgnlm.datasets.dataset import Dataset
from bgnlm.datasets.storage import read_table

DESCRIPTION = """\
Methylation at 1502 cytosines of Arabidopsis thaliana, in three genes on chromosomes 1, 2 and 5 (Example 5).

methylated_bases   how many reads are methylated; the response, a count
total_bases        how many reads there are; its logarithm is the offset
pos                number of the site within its gene, counted from 1, 7000 and 10000: an order, not a distance in bases
base_dist          distance to the previous cytosine in bases
CG, CHG, CHH       genetic context, exactly one is 1; the text of the paper calls the first one CGH
DT1 - DT5, DT6_20, DT20_inf
                   base_dist is 1 - 5, 6 to 19, 20 or more
M_alpha, M_gamma, M_delta
                   group of the gene; exactly one is 1
coding             whether the site lies in a coding region
express_noisy, eg3000, eg10000
                   expression level, and whether it exceeds 3000 and 10000

sample500 marks the 500 rows that the authors analyse. They drew them at random after seed 1 with an R older than 3.6,
though the paper speaks of consecutive sites; sample500_r36 marks what later versions of R draw.
Source: NCBI GEO, through the authors; no licence is stated.
"""
_DISTANCES = ("DT2", "DT3", "DT4", "DT5", "DT6_20")
_GROUPS_AND_LEVELS = ("M_alpha", "M_gamma", "M_delta", "eg3000", "eg10000")
_INPUTS = {
    "script": ["base_dist", "CHG", "CG", "DT1", *_DISTANCES, *_GROUPS_AND_LEVELS],
    "text": ["CG", "CHG", *_DISTANCES, "DT20_inf", *_GROUPS_AND_LEVELS],
}
_SAMPLES = ("paper", "r36", "first500", "all")


def load_epigenetic(
    sample: Literal["paper", "r36", "first500", "all"] = "paper",
    inputs: Literal["script", "text"] = "script",
) -> Dataset:
    """Load Example 5: methylated reads at cytosines, with an offset and positions for latent processes.

    Parameters
    ----------
    sample : {"paper", "r36", "first500", "all"}
        The rows: those the authors analyse, those the same draw gives in R 3.6 and later, the first 500 (consecutive
        sites, as the text of the paper has it), or all 1502.
    inputs : {"script", "text"}
        The inputs of the authors' script (14) or of the paper's text (13). With an intercept only two of the three
        gene groups are free in either.

    Returns
    -------
    Dataset
        Inputs and the count of methylated reads, with `offset`, the log of the number of reads, and `position`. The
        index of each points to the rows of `table`.

    Examples
    --------
    >>> from bgnlm.datasets import load_epigenetic
    >>> data = load_epigenetic()  # downloaded once
    >>> len(data.X), data.offset is not None, data.position is not None
    (500, True, True)
    """
    check_choice(sample, "sample", _SAMPLES)
    check_choice(inputs, "inputs", tuple(_INPUTS))
    table = read_table("epigenetic")
    match sample:
        case "paper":
            rows = table[table["sample500"] == 1]
        case "r36":
            rows = table[table["sample500_r36"] == 1]
        case "first500":
            rows = table.iloc[:500]
        case "all":
            rows = table
    return Dataset(
        name="epigenetic",
        X=rows[_INPUTS[inputs]].astype("float64"),
        y=rows["methylated_bases"],
        table=table,
        description=DESCRIPTION,
        offset=np.log(rows["total_bases"]).rename("log_total_bases"),
        position=rows["pos"],
    )
