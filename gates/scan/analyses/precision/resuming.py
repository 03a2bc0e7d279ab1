"""What a program saves of its scalers against what it loads: the states that only one of the two deals with."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.keepers import NAMED, asked_name, deals, is_of_scaler, names_scaler
from gates.scan.analyses.precision.parts import saved_together
from gates.scan.analyses.precision.precision import scalers
from gates.scan.analyses.reading.code import functions
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.project import Project

SAVE, LOAD = "state_dict", "load_state_dict"


def saves_unloaded(project: Project, module: Module) -> bool:
    """Return whether a file saves a scaler's state, by its name or in a loop, and loads none."""
    loaded = any(NAMED.search(asked_name(call)) for call in module.calls.get(LOAD, []))
    return not loaded and (
        any(NAMED.search(asked_name(call)) for call in module.calls.get(SAVE, []))
        or any(names_scaler(project, name) for name in asked_in_loops(project, module, SAVE))
    )


def loads_unsaved(project: Project, module: Module) -> bool:
    """Return whether a file loads a scaler's state, in a program where all that is saved is known, and none of one."""
    asked = (call for call in module.calls.get(LOAD, []) if is_of_scaler(call, project.scope_at(call, module)))
    return any(True for _ in asked) and project.once(_saves_none)[0]


def _saves_none(project: Project) -> Iterator[bool]:
    """Yield whether a program makes a scaler, and each state that it saves is that of another thing by its name."""
    modules = project.modules.values()
    made = any(True for module in modules for _ in scalers(project, module))
    yield made and not any(
        deals(project, m, m.tree, SAVE) or _saves_unknown(m) or _names_for_saving(project, m) for m in modules
    )


def _saves_unknown(module: Module) -> bool:
    """Return whether a file saves the state of what a loop goes through, or of what has no name of its own."""
    for call in module.calls.get(SAVE, []):
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(held, ast.Name | ast.Attribute) or _is_looped(held, module):
            return True
    return False


def _is_looped(held: ast.expr, module: Module) -> bool:
    names = {node.id for node in walk(held) if isinstance(node, ast.Name)}
    for around in module.ancestors(held):
        loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", ())
        if any(names & {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} for loop in loops):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False


def _names_for_saving(project: Project, module: Module) -> bool:
    """Return whether a file names a scaler by a text where it does not load one."""
    texts = (n for n in module.live.get(ast.Constant, []) if isinstance(n, ast.Constant))
    named = (n for n in texts if names_scaler(project, n.value))
    return any(not is_for(node, module, LOAD) for node in named)


def is_for(node: ast.AST, module: Module, verb: str) -> bool:
    """Return whether the function around a node only saves states, or only loads them."""
    around = (a for a in module.ancestors(node) if isinstance(a, ast.FunctionDef | ast.AsyncFunctionDef))
    function = next(around, None)
    asked = (n for n in inner(function, ast.Call) if isinstance(n, ast.Call)) if function is not None else ()
    return {tail_of(call.func) for call in asked} & {SAVE, LOAD} == {verb}


def asked_in_loops(project: Project, module: Module, verb: str) -> Iterator[str]:
    """Yield the names of what the loops of a file ask for states, or give states to."""
    for body in functions(module):
        for parts in saved_together(project, module, body, verb):
            yield from (name for name, _, _ in parts)
