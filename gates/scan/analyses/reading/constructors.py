"""The fields that a class declares, and what a call of it passes for one."""

import ast

from gates.scan.analyses.reading.code import keyword
from gates.scan.program.classes import ClassInfo


def declared(info: ClassInfo) -> list[str]:
    """Return the fields of a class that has no constructor of its own, in the order in which it takes them."""
    if "__init__" in info.methods:
        return []
    return [s.target.id for s in info.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def passed_for(name: str, call: ast.Call, info: ClassInfo) -> ast.expr | None:
    """Return what a constructor is handed for a field, by its name or in its place; nothing where it is spread."""
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    at = declared(info).index(name)
    return keyword(call, name) or (call.args[at] if at < len(call.args) else None)
