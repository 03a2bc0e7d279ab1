"""Training in float16 whose loss nothing scales."""

import ast
from collections.abc import Iterator

from gates.scan.analyses._code import broken, calls, constant, function_of, inner, is_backward, keyword, nodes
from gates.scan.analyses._precision import HALF, context_of, dtype_of, knows_scaling
from gates.scan.module import Module, tail_of
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("autocast",)


def look(project: Project) -> Iterator[Site]:
    """Yield each plain backward pass of a loss computed under float16 autocast, where nothing scales."""
    for module in project.modules.values():
        if "backward" not in module.calls or (knows_scaling(module) and not _off(module)):
            continue
        if any(knows_scaling(other) for other in _around(project, module)):
            continue
        for node in nodes(module, ast.With):
            if isinstance(node, ast.With) and any(_is_half(project, module, item) for item in node.items):
                yield from _unscaled(module, node)


def _off(module: Module) -> bool:
    """Return whether the one thing that could scale is a framework told not to."""
    made = [c for name in ("Accelerator", "Fabric") for c in module.calls.get(name, [])]
    told = [constant(keyword(c, "mixed_precision") or keyword(c, "precision")) for c in made]
    return bool(told) and set(told) <= {"no", "32", "32-true", 32} and not any("caler" in tail for tail in module.calls)


def _around(project: Project, module: Module) -> Iterator[Module]:
    """Yield the files of the program that this one imports."""
    for dotted in module.aliases.values():
        parts = dotted.split(".")
        for at in range(len(parts), 0, -1):
            found = project.find_module(".".join(parts[:at]), module)
            if found is not None and found is not module:
                yield found
                break


def _is_half(project: Project, module: Module, item: ast.withitem) -> bool:
    made = context_of(item, project.scope_at(item.context_expr, module))
    return made is not None and dtype_of(*made) == HALF and not _optional(made[0])


def _optional(call: ast.Call) -> bool:
    return constant(keyword(call, "enabled")) is False


def _unscaled(module: Module, node: ast.With) -> Iterator[Site]:
    """Find the backward passes of what is computed in a block."""
    made = {
        t.id
        for n in inner(node, ast.Assign)
        if isinstance(n, ast.Assign)
        for target in n.targets
        for t in ast.walk(target)
        if isinstance(t, ast.Name)
    }
    for call in calls(function_of(node, module) or module.tree):
        if is_backward(call) and call.lineno >= node.lineno and isinstance(call.func, ast.Attribute):
            loss = call.args[0] if call.args else call.func.value
            if tail_of(loss) in made:
                yield broken(module, call, "the loss is computed in float16 and nothing scales it")
