"""What a program saves of its scalers against what it loads: the states that only one of the two deals with."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.precision.keepers import (
    NAMED,
    asked_name,
    asks_scaler,
    carries,
    deals,
    is_of_scaler,
    names_scaler,
    passing,
)
from gates.scan.analyses.precision.parts import saved_together
from gates.scan.analyses.precision.precision import scalers
from gates.scan.analyses.reading.code import functions
from gates.scan.program.known import LOADER, MODULE, OPTIMIZER, SCHEDULER, is_called
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
        or (_carries(project, module, SAVE) and project.once(_loads_none)[0])
    )


def loads_unsaved(project: Project, module: Module) -> bool:
    """Return whether a file loads a scaler's state, in a program where all that is saved is known, and none of one."""
    asked = (call for call in module.calls.get(LOAD, []) if is_of_scaler(call, project.scope_at(call, module)))
    if any(call not in _passed_on(project, module, LOAD) for call in asked):
        return project.once(_saves_none)[0]
    return _carries(project, module, LOAD) and project.once(_carries_none)[0]


def _carries(project: Project, module: Module, verb: str) -> bool:
    """Return whether a file saves or loads the state of a scaler by asking what passes that on."""
    return any(carries(project, call, project.scope_at(call, module)) for call in module.calls.get(verb, []))


def _passed_on(project: Project, module: Module, verb: str) -> set[ast.AST]:
    """Return what stands in the methods of a file that pass on the states of scalers."""
    own = (info.methods[verb] for info in project.once(passing) if info.scope.module is module)
    return {node for method in own for node in walk(method)}


def _carries_none(project: Project) -> Iterator[bool]:
    """Yield whether a program is known to save nothing through what passes on the state of a scaler."""
    yield _asks_others(project, SAVE)


def _loads_none(project: Project) -> Iterator[bool]:
    """Yield whether a program is known to load nothing through what passes on the state of a scaler."""
    yield _asks_others(project, LOAD)


def _asks_others(project: Project, verb: str) -> bool:
    """Return whether each state that a program asks for, or gives back, is that of something else than a scaler."""
    for module in project.modules.values():
        own = _passed_on(project, module, verb)
        for call in module.calls.get(verb, []):
            if call not in own and not _is_of_other(project, call, module):
                return False
    return True


def _is_of_other(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether a call asks an object for its state that is no scaler's, by its class or what it is called."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    scope = project.scope_at(call, module)
    if held is None or asks_scaler(project, call, scope) or NAMED.search(asked_name(call)):
        return False
    if isinstance(held, ast.Call):
        return tail_of(held.func) == "super"
    if not isinstance(held, ast.Name | ast.Attribute) or _is_looped(held, module):
        return False
    known = project.types.of(held, scope) is not None or tail_of(held) == scope.self_name
    return known or any(is_called(tail_of(held), kind) for kind in (OPTIMIZER, SCHEDULER, MODULE, LOADER))


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
