"""What takes a step of a training: the names of the calls that lead to one, and blocks that hold a whole update."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from gates.scan.analyses.reading.code import callee, calls, function_of, is_backward, loop_of
from gates.scan.analyses.training.seldom import is_optimizer_step
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import BUILTINS

NAMES = frozenset({"backward", "manual_backward", "step"})
CALLED = "__call__"
MAX_DEPTH = 3
ASIDE = re.compile(r"(?i)(^|_|\b)(log|report|print|verbose|debug|eval|val|test|probe|save|check|plot)")


def leading(project: Project) -> frozenset[str]:
    """Return the names of calls that may take a step, or lead to one."""
    return project.once(_names)[0]


def _names(project: Project) -> Iterator[frozenset[str]]:
    found, edge = set(NAMES), set(NAMES)
    for _ in range(MAX_DEPTH):
        around = {
            function.name
            for tail in edge for call, module in project.named.get(tail, ()) if (function := function_of(call, module))
        }  # fmt: skip
        edge = {other for name in around - found for other in (project.names_for(name) or {name})} - found
        if CALLED in edge:  # an object that is called goes by any name
            edge |= project.named.keys() - project.method_names.keys() - BUILTINS - found
        found |= edge
    yield frozenset(found | set(_kept_under(project, found)))


def _kept_under(project: Project, names: set[str]) -> Iterator[str]:
    """Yield the attributes that keep what a constructor is passed, of classes that are made with some function."""
    for info in project.classes.values():
        kept = [
            name for name, bound in info.attributes.items()
            if name not in project.method_names and any(isinstance(b.node, ast.Name) for b, _ in bound)
        ]  # fmt: skip
        made = project.named.get(info.node.name, ()) if kept else ()
        if any(tail_of(each) in names for call, _ in made for each in (*call.args, *(k.value for k in call.keywords))):
            yield from kept


def step_inside(project: Project, module: Module, body: Iterable[ast.AST]) -> bool:
    """Return whether a block steps an optimizer, itself or in a function that it calls."""
    return _does(project, module, (call for part in body for call in calls(part)), is_optimizer_step)


def is_update(project: Project, module: Module, body: list[ast.stmt], branch: ast.If) -> bool:
    """Return whether a block that a branch parts off has the update of its loop, beside which there is no other.

    `if turn % 4 == 0` around the step says when there is a step, not what most steps leave out.
    """
    own = {call for part in body for call in calls(part)}
    around = loop_of(branch, module) or function_of(branch, module)
    beside = [call for call in calls(around) if call not in own] if around is not None else []
    if ASIDE.search(text_of(branch.test)) or not _does(project, module, (*own, *beside), is_backward):
        return False
    is_alone = around is not None and not _does(project, module, beside, is_optimizer_step)
    return is_alone and step_inside(project, module, body)


def _does(project: Project, module: Module, found: Iterable[ast.Call], asked: Callable[[ast.Call], bool]) -> bool:
    return any(asked(call) or _runs(project, module, call, asked) for call in found)


def _runs(project: Project, module: Module, call: ast.Call, asked: Callable[[ast.Call], bool]) -> bool:
    target = callee(project, module, call) if tail_of(call.func) in leading(project) else None
    return target is not None and any(asked(inside) for inside in calls(target))
