"""What a method is handed that a program runs as the hook of an event: `emit("on_epoch", epoch, figures)`."""

import ast

from gates.scan.program.module import Function, Module
from gates.scan.program.project import Project
from gates.scan.ways.hooks import Fired, hooks_of

Given = tuple[ast.expr | None, Module]


def given_by_event(project: Project, near: Module, function: Function, name: str) -> list[Given]:
    """Return what each call that fires a method hands over for a parameter; `None` where that is not known.

    A method of a class whose base stands elsewhere may be called from there.
    """
    owner = project.scope_of(function, near).owner
    bases = [b for i in project.order_of(owner) for b in i.bases] if owner is not None else []
    taken = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)][1:]
    if owner is None or name not in taken or any(b not in project.classes and b != "object" for b in bases):
        return []
    return [_given(each, taken.index(name), name) for each in project.once(hooks_of)[0].firing.get(function, ())]


def _given(fired: Fired, at: int, name: str) -> Given:
    """Return what stands at a place, or under a name, of the call inside, or of the one which fires, by `*args`."""
    inside, there = fired.inside
    told = next((k.value for k in inside.keywords if k.arg == name), None)
    star = next((place for place, arg in enumerate(inside.args) if isinstance(arg, ast.Starred)), len(inside.args))
    if at < star or told is not None:
        return told or inside.args[at], there
    rest = fired.call.args[1:]  # behind the event
    keyed = next((k.value for k in fired.call.keywords if k.arg == name), None)
    if keyed is None and star < len(inside.args) and not any(isinstance(arg, ast.Starred) for arg in rest):
        keyed = rest[at - star] if at - star < len(rest) else None
    return keyed, fired.module
