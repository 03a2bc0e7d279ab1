"""Lines that a function shares with its definition: in which contexts it was called, and in which that is not known."""

from collections.abc import Iterable, Mapping

from gates.evidence.public_code import Body, innermost

Ran = Mapping[int, frozenset[str]]


def called(body: Body, line: int, ran: Ran, defining: frozenset[str] | None) -> frozenset[str]:
    """Return the contexts in which a line ran because its function was called."""
    if line > body.signature or body.compiled:
        return ran[line]
    return frozenset() if defining is None else ran[line] - defining


def defining(body: Body, bodies: Iterable[Body], ran: Ran) -> frozenset[str] | None:
    """Return the contexts in which a function may have been defined; `None` where nothing tells.

    The code around it has run there from its first line on: for a function of a module, the module was imported.
    """
    others = [other for other in bodies if other is not body]
    owner = innermost(others, body.head)
    outside = (line for line in ran if not body.first <= line <= body.last)
    around = [line for line in outside if innermost(others, line) is owner]
    return ran[min(around)] if around else None


def is_defined(body: Body, ran: Ran) -> bool:
    """Return whether a line of a function's definition ran, so that the function came to life."""
    return any(line in ran for line in range(body.head, max(body.first, body.line + 1)))
