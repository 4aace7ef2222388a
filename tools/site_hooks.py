"""What the documentation site needs beyond MkDocs: documents from outside `docs/`, and formulas as MathML.

Formulas become MathML while the site is built, so that its pages need no script and no network.
"""

import html
import os
import re
from pathlib import PurePosixPath

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE = {
    "CONTRIBUTING.md": "developing/contributing.md",
    "CHANGELOG.md": "developing/changelog.md",
    "benchmarks/README.md": "developing/figures.md",
}
"""Documents of the repository that are pages of the site, and where."""

_HOME = {page: document for document, page in OUTSIDE.items()}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
# Names of functions need a space before what is not a bracket.
_NAME = re.compile(r"<mi>(?:log|exp|min|max|dim)</mi>(?=<m(?:i|n|sup|sub|frac|over|subsup)\b)")
_THIN_SPACE = '<mspace width="0.17em"/>'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents from outside."""
    for document, page in OUTSIDE.items():
        text = PurePosixPath(config.config_file_path).parent.joinpath(document)
        with open(text, encoding="utf-8") as file:  # noqa: PTH123
            files.append(File.generated(config, page, content=file.read()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let links between documents lead to their pages."""
    return _LINK.sub(lambda match: link_in_site(match[1], page.file.src_uri), markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Write formulas as MathML."""
    return _FORMULA.sub(lambda match: mathml(match[2], match[1] == "div", page.file.src_uri), content)


def link_in_site(target: str, page: str) -> str:
    """Return a link as the page needs it that holds in the document which the page was made of.

    Examples
    --------
    >>> link_in_site("../../benchmarks/README.md", "how-to/slow.md")
    '../developing/figures.md'
    >>> link_in_site("docs/how-to/slow.md", "developing/contributing.md")
    '../how-to/slow.md'
    """
    document = _HOME.get(page, f"docs/{page}")
    there = os.path.normpath(PurePosixPath(document).parent / target).replace(os.sep, "/")
    where = "index.md" if there == "README.md" else OUTSIDE.get(there, there.removeprefix("docs/"))
    return os.path.relpath(where, PurePosixPath(page).parent).replace(os.sep, "/")


def mathml(formula: str, display: bool, page: str) -> str:
    """Return a formula of a page as MathML; one that is not understood stops the build."""
    latex = html.unescape(formula).strip()
    written: str = convert(latex, display="block" if display else "inline")
    if "\\" in html.unescape(written):
        raise PluginError(f"{page}: there is a command in this formula that MathML is not made of: {latex}")
    return _NAME.sub(r"\g<0>" + _THIN_SPACE, written)
