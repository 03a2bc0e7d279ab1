"""Definitions that do nothing, told as such."""

import ast

from gates.evidence._other_ways import lines_of
from gates.model import Location
from gates.stub import refuses
from gates.syntax import Definition, SourceModule


class Promised(str):
    """Why a symbol is not implemented: a definition that does nothing, and that refuses nothing either."""

    __slots__ = ("place",)
    place: Location


def promised(module: SourceModule, stub: ast.stmt, name: str) -> str:
    """Say of a name that it stands for nothing."""
    kind = "its body does nothing" if isinstance(stub, Definition) else "it is set to what does nothing"
    told = f"{module.path}:{stub.lineno} only promises {name!r}: {kind}"
    if not isinstance(stub, Definition) or refuses(stub):
        return told
    found = Promised(told)
    found.place = lines_of(module, [stub])
    return found
