"""In the reference, give each of several parameters that are described together its own annotation and default."""

from typing import Any

import griffe

_BY_THE_DATA = "_BY_THE_DATA"  # how the settings of the search write a None that is filled in later


class OwnDefaults(griffe.Extension):
    """Griffe takes those of the first name for all names of "low, high"."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:  # noqa: ARG002
        """Correct all docstrings of the package."""
        visit(pkg)


def visit(parent: griffe.Object) -> None:
    """Correct the docstrings of an object and of what it defines."""
    for member in parent.members.values():
        if not isinstance(member, griffe.Alias):
            if isinstance(member, griffe.Function | griffe.Class) and member.docstring:
                correct(member)
            visit(member)


def correct(described: griffe.Function | griffe.Class) -> None:
    """Look every parameter of a docstring up in the signature, or among the fields of a dataclass."""
    assert described.docstring is not None
    signature = {parameter.name: parameter for parameter in described.parameters}
    for section in described.docstring.parsed:
        if section.kind is not griffe.DocstringSectionKind.parameters:
            continue
        for parameter in section.value:
            own: Any = signature.get(parameter.name) or described.members.get(parameter.name)
            if own is not None:
                parameter.annotation = own.annotation
                value = own.default if isinstance(own, griffe.Parameter) else own.value
                parameter.value = "None" if str(value) == _BY_THE_DATA else None if value is None else str(value)
