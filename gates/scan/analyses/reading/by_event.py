"""What a method is handed that is called by its name in a text: `emit("on_epoch", epoch, figures)`."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.reading.code import constant
from gates.scan.program.module import Function, Module
from gates.scan.program.project import Project

Sites = dict[str, list[tuple[ast.Call, Module]]]


def given_by_event(
    project: Project, near: Module, function: Function, name: str
) -> list[tuple[ast.expr | None, Module]]:
    """Return what each call that writes a method's name hands over for a parameter; `None` for one that cannot fit.

    A method of a class whose base stands elsewhere may be called from there.
    """
    owner = project.scope_of(function, near).owner
    if owner is None or any(
        b not in project.classes for i in project.order_of(owner) for b in i.bases if b != "object"
    ):
        return []
    taken = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][1:]
    found: list[tuple[ast.expr | None, Module]] = []
    for call, module in project.once(_by_text)[0].get(function.name, ()):
        given = call.args[1:]
        keyed = {k.arg: k.value for k in call.keywords}
        is_whole = not any(isinstance(arg, ast.Starred) for arg in given) and None not in keyed
        value = keyed.get(name) or next((v for n, v in zip(taken, given, strict=False) if n == name), None)
        found.append((value if is_whole and len(given) <= len(taken) else None, module))
    return found


def _by_text(project: Project) -> Iterator[Sites]:
    """Yield the calls of a program whose first argument is a name in a text, by that text."""
    found: Sites = defaultdict(list)
    for module in project.modules.values():
        for call in (c for calls in module.calls.values() for c in calls if len(c.args) + len(c.keywords) > 1):
            text = constant(call.args[0]) if call.args else None
            if isinstance(text, str) and text.isidentifier():
                found[text].append((call, module))
    yield found
