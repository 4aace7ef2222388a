"""The data of Examples 1 to 4, 6 and 7 of the paper, as its authors published them.

Inputs are as in the source: where the authors standardise them first, the description says so.
"""

from __future__ import annotations

from typing import Literal

from bgnlm._validation import check_choice
from bgnlm.datasets.dataset import Dataset
from bgnlm.datasets.storage import read_table

_UCI = "Source: UCI Machine Learning Repository; cite the repository and the donors."
_BREAST_CANCER = f"""\
Breast Cancer Wisconsin (Diagnostic): cell nuclei in 569 images of fine-needle aspirates (Example 1).

malignant  1 for a malignant tumour (212), 0 for a benign one (357)
inputs     radius, texture, perimeter, area, smoothness, compactness, concavity, concave_points, symmetry and
           fractal_dimension of the nuclei, each as _mean, _se (standard error) and _worst (mean of the three largest)

A quarter of the rows, drawn once within each class by the authors, is for training. The authors do not standardise.
{_UCI}
"""
_SPAM = f"""\
Spambase: 4601 e-mails (Example 2).

spam       1 for spam (1813), 0 for wanted mail (2788)
x1 - x48   percentage of words equal to make, address, all, 3d, our, over, remove, internet, order, mail, receive,
           will, people, report, addresses, free, business, email, you, credit, your, font, 000, money, hp, hpl,
           george, 650, lab, labs, telnet, 857, data, 415, 85, technology, 1999, parts, pm, direct, cs, meeting,
           original, project, re, edu, table, conference
x49 - x54  percentage of characters equal to ; ( [ ! $ #
x55 - x57  mean, longest and total length of runs of capital letters

The authors train on the rows that the indicator of the "Elements of Statistical Learning" marks for testing. They
first scale all inputs to mean 0 and standard deviation 1 over training and test rows together; here they are raw.
{_UCI}
"""
_ABALONE = f"""\
Abalone: size, weight and age of 4177 animals (Example 3).

Rings           number of rings of the shell; the age in years is 1.5 more
Length, Diameter, Height, WholeWeight, ShuckedWeight, VisceraWeight, ShellWeight
                in mm and g, divided by 200; two animals have Height 0
Male, Female    indicators; an infant has neither

The 1000 test rows are the authors' draw. They do not standardise.
{_UCI}
"""
_ASTEROIDS = """\
Orbits of 20766 asteroids (Example 6).

neo        1 for an object that comes near the Earth (in the training rows: a potentially hazardous one), 0 for another
inputs     absolute_magnitude; mean_anomaly, argument_of_perihelion, longitude_of_the_ascending_node and inclination
           in degrees; eccentricity; mean_motion in degrees per day; semi_major_axis in AU; rms_residual

64 rows, 32 of each kind, are for training; most linear models separate them perfectly. One test row has its fields
shifted (inclination 16814); like the authors we keep it. They do not standardise.
Source: Minor Planet Center, as handed out in the 2016 NASA Space Apps challenge; no licence is stated.
"""
_EXOPLANETS = """\
223 planets, those of our sun among them, of which every column is known (Examples 4 and 7).

SemiMajorAxisAU       semi-major axis of the orbit in AU; median 0.05, largest 67.96
TypeFlag              0 a single star, 1 around two stars, 2 around one star of a binary
RadiusJpt             radius, Jupiter = 1
PeriodDays            period of the orbit in days
PlanetaryMassJpt      mass, Jupiter = 1
Eccentricity          of the orbit
HostStarMassSlrMass, HostStarRadiusSlrRad
                      mass and radius of the star, Sun = 1
HostStarMetallicity   logarithm, relative to the Sun
HostStarTempK         temperature of the star in K
PlanetaryDensJpt      density, Jupiter = 1

Example 4 looks for Kepler's third law, Example 7 for the mass as density times radius cubed. The density was computed
from mass and radius, so the second law holds to rounding error. Neither split nor standardised.
Source: Open Exoplanet Catalogue, Copyright (C) 2012 Hanno Rein. Anyone may deal in the database without restriction,
free of charge, if this notice is included in all copies or substantial portions of it and scientific publications that
use it refer to it; it comes as it is, without warranty.
"""
_LAWS = {
    "SemiMajorAxisAU": "cbrt_abs(HostStarMassSlrMass*PeriodDays**2)",
    "PlanetaryMassJpt": "PlanetaryDensJpt*RadiusJpt**3",
}


def load_breast_cancer() -> Dataset:
    """Load Example 1: malignant and benign tumours, by the look of their cells.

    Returns
    -------
    Dataset
        569 rows, 143 of them for training, and 30 inputs; the response is 0 or 1.

    Examples
    --------
    >>> from bgnlm.datasets import load_breast_cancer
    >>> data = load_breast_cancer()  # downloaded once
    >>> data.train[0].shape, data.test[0].shape
    ((143, 30), (426, 30))
    """
    return _split_dataset("breast_cancer", "malignant", _BREAST_CANCER)


def load_spam() -> Dataset:
    """Load Example 2: spam and wanted e-mails, by their words and characters.

    Returns
    -------
    Dataset
        4601 rows, 1536 of them for training, and 57 inputs; the response is 0 or 1.

    Examples
    --------
    >>> from bgnlm.datasets import load_spam
    >>> data = load_spam()  # downloaded once
    >>> data.train[0].shape, data.test[0].shape
    ((1536, 57), (3065, 57))
    """
    return _split_dataset("spam", "spam", _SPAM)


def load_abalone() -> Dataset:
    """Load Example 3: the rings of abalone shells, by the animals' size and weight.

    Returns
    -------
    Dataset
        4177 rows, 3177 of them for training, and nine inputs; the response is a count.

    Examples
    --------
    >>> from bgnlm.datasets import load_abalone
    >>> data = load_abalone()  # downloaded once
    >>> data.train[0].shape, data.test[0].shape
    ((3177, 9), (1000, 9))
    """
    return _split_dataset("abalone", "Rings", _ABALONE)


def load_asteroids() -> Dataset:
    """Load Example 6: asteroids that come near the Earth and others, by their orbits.

    Returns
    -------
    Dataset
        20766 rows, 64 of them for training, and nine inputs; the response is 0 or 1.

    Examples
    --------
    >>> from bgnlm.datasets import load_asteroids
    >>> data = load_asteroids()  # downloaded once
    >>> data.train[0].shape, data.test[0].shape
    ((64, 9), (20702, 9))
    """
    return _split_dataset("asteroids", "neo", _ASTEROIDS)


def load_exoplanets(target: Literal["SemiMajorAxisAU", "PlanetaryMassJpt"] = "SemiMajorAxisAU") -> Dataset:
    """Load Examples 4 and 7: planets, for Kepler's third law and for their mass.

    Parameters
    ----------
    target : {"SemiMajorAxisAU", "PlanetaryMassJpt"}
        The response: the semi-major axis (Example 4) or the mass (Example 7). The other one is then an input.

    Returns
    -------
    Dataset
        223 rows and ten inputs, without a split; `truth` has the law.

    Examples
    --------
    >>> from bgnlm.datasets import load_exoplanets
    >>> data = load_exoplanets()  # downloaded once
    >>> data.X.shape, data.y.name
    ((223, 10), 'SemiMajorAxisAU')
    """
    check_choice(target, "target", tuple(_LAWS))
    table = read_table("exoplanets")
    return Dataset(
        name="exoplanets",
        X=table.drop(columns=target).astype("float64"),
        y=table[target],
        table=table,
        description=_EXOPLANETS,
        truth=(_LAWS[target],),
    )


def _split_dataset(name: str, response: str, description: str) -> Dataset:
    table = read_table(name)
    return Dataset(
        name=name,
        X=table.drop(columns=["split", response]).astype("float64"),
        y=table[response],
        table=table,
        description=description,
        is_train=(table["split"] == "train").to_numpy(dtype=bool),
    )
