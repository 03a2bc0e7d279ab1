"""Functions that a program may fetch by a name that is not written out: `getattr(x, name)`, `globals()[name]`."""

import ast
from collections.abc import Sequence

from gates.evidence._members import Members, Unit
from gates.scan.program.scope import Scope

ANY = frozenset({"eval", "exec"})  # an import runs only what stands in the module
FETCHES = frozenset({"getattr", "inspect.getmembers"})
NAMES = frozenset({"globals", "vars", "locals"})


def hidden_names(call: ast.Call, scope: Scope, members: Members) -> Sequence[Unit]:
    """Return what a call may fetch; nothing for a call that fetches nothing by name, or only from a library."""
    named = scope.dotted(call.func)
    if named in ANY:
        return _all(members)
    if named == "inspect.getmembers" and call.args:
        return _of(call.args[0], scope, members)
    if named in NAMES:
        return _all(members)
    if named != "getattr" or len(call.args) < 2:
        return ()
    owner, name = call.args[:2]
    if isinstance(name, ast.Constant):
        return members.named.get(name.value, ()) if isinstance(name.value, str) else ()
    fixed = _fixed(name)
    found = [unit for unit in _of(owner, scope, members) if all(part in unit.name for part in fixed)]
    return found if _is_called(call, scope) else ()


def is_kept(call: ast.Call, scope: Scope) -> bool:
    """Return whether what is fetched from an object of a known class may be called later, and by others."""
    if scope.dotted(call.func) not in FETCHES or not call.args or scope.class_of(call.args[0]) is None:
        return False
    around = scope.module.parents.get(call)
    return not (isinstance(around, ast.Call) and around.func is call)


def _all(members: Members) -> list[Unit]:
    return [unit for units in members.named.values() for unit in units]


def _of(owner: ast.expr, scope: Scope, members: Members) -> list[Unit]:
    """Return the functions that an object may have: the methods of its class, or the functions of a module."""
    info = scope.class_of(owner)
    if info is not None:
        return [unit for name in {*members.named} for unit in members.of(info, (name,))]
    named = scope.dotted(owner)
    if named is not None and named not in scope.project.by_name:
        return []
    return _all(members)


def _fixed(name: ast.expr) -> list[str]:
    """Return the parts of a name that are written out: `do_` of `f"do_{kind}"`."""
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _is_called(call: ast.Call, scope: Scope) -> bool:
    """Return whether what is fetched is called, passed on, kept or given back, not only compared or shown."""
    around = scope.module.parents.get(call)
    return not isinstance(around, ast.Compare | ast.FormattedValue | ast.Expr | ast.BinOp | ast.BoolOp | ast.If)
