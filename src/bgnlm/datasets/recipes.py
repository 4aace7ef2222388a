"""Which raw files make up which table, and the checksums of both.

The raw files are those that the authors publish with the paper, at one commit of their repository.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bgnlm.datasets import derive


@dataclass(frozen=True)
class RawFile:
    """A file in the authors' folder, named by its path there."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Recipe:
    """How a table is made.

    Attributes
    ----------
    file : str
        The table's file name; one that ends in ``.gz`` is compressed.
    sha256 : str
        Checksum of the table's text. It is not that of the compressed file, because compressors differ.
    raw : tuple of RawFile
        What `derive` takes, in this order.
    derive : callable
        From the contents of the raw files to the text of the table.
    """

    file: str
    sha256: str
    raw: tuple[RawFile, ...]
    derive: Callable[..., str]


RECIPES = {
    "breast_cancer": Recipe(
        file="breast_cancer.csv",
        sha256="fbf34b00982e94c55d50ea2c257a2ad8b70706cbefdc0eb18a0a72cd3cffdef3",
        raw=(
            RawFile("breast cancer/train.csv", "7445bca80754e568f4b55d5f67e09140b3bc4b8b65fb67eb5b7ced798f8793cd"),
            RawFile("breast cancer/test.csv", "030363b156b64818d83c13fb1da1ba0718ca958b2e464824c74466b98ed82a84"),
        ),
        derive=derive.breast_cancer,
    ),
    "spam": Recipe(
        file="spam.csv.gz",
        sha256="15ec66ee4362c7d23b6e2411603bec69597f34033900672f9ac9e2074a9c108e",
        raw=(
            RawFile("spam/spam.data", "3713db45216898c90b939f058343a8b2317a401e5f018c9a5d7673f7d70a591e"),
            RawFile("spam/spam.traintest", "ba6718589db52bc72324e3edb5dc458c547675088aa114a81afa84d972d35ba5"),
        ),
        derive=derive.spam,
    ),
    "abalone": Recipe(
        file="abalone.csv",
        sha256="9b6c8d3320ea417a75c6d89d3637bdd2eb2528e2c02e90c6c348ce6f80f536cd",
        raw=(
            RawFile("abalone age/abalone.data", "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f"),
            RawFile("abalone age/teid.csv", "0426f8adb5f6145fabecc0f664d307d297ddbdeb30a9678a24deef7afb6bc49c"),
        ),
        derive=derive.abalone,
    ),
    "asteroids": Recipe(
        file="asteroids.csv.gz",
        sha256="862e73b6f601d1f7dff8d38e09a239163b82b8afbd3da78c5703d39b18ef9c34",
        raw=(
            RawFile(
                "asteroids/Teach/NotNeo-Type7.txt", "6bc7a544233434fd5cd1806a683b1253b20a982e76233ab28cf3c0c05bdae0e6"
            ),
            RawFile("asteroids/Teach/NeoPHA.txt", "8e52f270dc0be43a564c9cfadd29b73ae85f90a4c9b4b2f846db1f65815ad712"),
            RawFile(
                "asteroids/Recognize/NotNeas8+.txt", "ea24074193445d81d5b47c19007af6d1658cb98e0f5394b3661e4399a7b347b8"
            ),
            RawFile("asteroids/Recognize/NEAs.txt", "5157b321df82ed5ea627d20fea35077c8779ffb0a2544b9375cf837735fc979f"),
        ),
        derive=derive.asteroids,
    ),
    "exoplanets": Recipe(
        file="exoplanets.csv",
        sha256="7e66a6ba07c21f12b589c1f5d9b1fbce0c8c331d28b1231605d29d3d7eeb04e4",
        raw=(RawFile("kepler and mass/exa1.csv", "8f14501301767f39ad916d9ece63cec08e008052af15e80a7fbc304713497ac9"),),
        derive=derive.exoplanets,
    ),
    "epigenetic": Recipe(
        file="epigenetic.csv",
        sha256="49d94cd2bdeb92f0e96333a8e8c24c0a14a936d40c377dd67dfe3e853a442077",
        raw=(
            RawFile(
                "epigenetic modifications/epigen.txt",
                "7696ff41102c04d52b242f40e100f4dc2392e263fa22b82baa4d295d20ae87a9",
            ),
        ),
        derive=derive.epigenetic,
    ),
}
