"""What a program writes to files as dictionaries, and where it reads them back."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import constant, function_of, named
from gates.scan.analyses.reading.flow import passed, spine
from gates.scan.analyses.reading.keys import Keys, keys_of, keys_returned
from gates.scan.analyses.reading.running import run_by
from gates.scan.analyses.reading.texts import fits
from gates.scan.program.module import Module
from gates.scan.program.nodes import kept
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

SAVES = {"torch.save": "torch", "pickle.dump": "pickle", "json.dump": "json", "json.dumps": "json"}
LOADS = {"torch.load": "torch", "pickle.load": "pickle", "json.load": "json", "json.loads": "json"}
HOPS = 3
FEW = 2
Saved = tuple[Keys, ast.Call, Module]


def keys_on_file(project: Project, module: Module, node: ast.expr) -> Saved | None:
    """Return what the dictionary that a variable has from a file was written with, where all but one of its reads fit.

    Files may come from elsewhere: at least two other keys that are read must be among those that the program writes.
    """
    if not isinstance(node, ast.Name):
        return None
    kind = _loaded(project, project.scope_at(node, module), node)
    saved = [each for written, each in project.once(_saved)[0] if written == kind]
    if kind is None or any(keys is None for keys, *_ in saved):
        return None
    read = _read_of(node, module)
    written = frozenset[str]().union(*(keys for keys, *_ in saved if keys is not None))
    fitting = [(keys, call, there) for keys, call, there in saved if keys is not None and len(read & keys) >= FEW]
    return fitting[0] if len(fitting) == 1 and sum(not fits(written, key) for key in read) == 1 else None


def _loaded(project: Project, scope: Scope, node: ast.Name, hops: int = HOPS) -> str | None:
    """Return the format of the file that a variable is read from, wherever it is read; `None` where it may be more."""
    values = [(each.node, each.scope) for each in spine(project, node, scope, node.lineno, 1)][1:]
    values = values or [(value, there) for value, there, _ in passed(project, node.id, scope)]
    found: set[str | None] = set()
    for value, there in values:
        if isinstance(value, ast.Call):
            found.add(LOADS.get(there.dotted(value.func) or ""))
        else:
            found.add(_loaded(project, there, value, hops - 1) if isinstance(value, ast.Name) and hops else None)
    return found.pop() if len(found) == 1 else None


def _read_of(node: ast.Name, module: Module) -> Keys:
    """Return the keys that a function reads of a variable, whether or not they are there."""
    uses = kept(function_of(node, module) or module.tree, named).get(node.id, [])
    around = (module.parents.get(use) for use in uses)
    read = (constant(each.slice) for each in around if isinstance(each, ast.Subscript) and each.slice not in uses)
    return frozenset(key for key in read if isinstance(key, str))


def _saved(project: Project) -> Iterator[list[tuple[str, tuple[Keys | None, ast.Call, Module]]]]:
    """Yield all that a program writes to files, with its keys: `None` where they are not known."""
    found: list[tuple[str, tuple[Keys | None, ast.Call, Module]]] = []
    for module in project.modules.values():
        for call in (c for name in ("save", "dump", "dumps") for c in module.calls.get(name, ())):
            kind = SAVES.get(project.scope_at(call, module).dotted(call.func) or "")
            if kind is not None and call.args and not _is_state(call.args[0]):
                found.append((kind, (_keys(project, module, call.args[0]), call, module)))
    yield found


def _keys(project: Project, module: Module, node: ast.expr) -> Keys | None:
    made = run_by(project, module, node) if isinstance(node, ast.Call) else None
    if made is None:
        return keys_of(project, module, node)
    return keys_returned(project, made[0], project.scope_of(made[0], module).module)


def _is_state(node: ast.expr) -> bool:
    """Return whether it is the state of one object, which is loaded as a whole: `model.state_dict()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
