"""Timers of a program's own, and what is timed with them: blocks, and stretches between two calls."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.benchmarks.benching import BENCH
from gates.scan.analyses.benchmarks.work import CUDA
from gates.scan.analyses.reading.code import calls, function_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project


@dataclass(frozen=True)
class Timed:
    """Code that a timer is around, and the calls in it in their order."""

    node: ast.AST
    module: Module
    calls: tuple[ast.Call, ...]

    @property
    def place(self) -> str:
        """Return where it begins, as far as it is known: the head of its block, or the first call in it."""
        first = self.node if isinstance(self.node, ast.With | ast.AsyncWith) or not self.calls else self.calls[0]
        return f"{self.module.path}:{getattr(first, 'lineno', 1)}"


def blocks(project: Project, origins: Origins, owner: ClassInfo) -> Iterator[Timed]:
    """Yield the blocks of `with` that enter an object of a class."""
    for module in project.modules.values():
        for node in module.live.get(ast.With, []):
            for item in node.items if isinstance(node, ast.With) else ():
                if owner in origins.classes(item.context_expr, project.scope_at(item.context_expr, module)):
                    yield Timed(node, module, _inside(node.body))  # type: ignore[attr-defined]  # a block


def blocks_of(origins: Origins, function: Function) -> Iterator[Timed]:
    """Yield the blocks of `with` that enter a context manager which is written as a generator."""
    for call, module in origins.called(function):
        around = module.parents.get(module.parents.get(call, call))
        if isinstance(around, ast.With | ast.AsyncWith) and any(call is item.context_expr for item in around.items):
            yield Timed(around, module, _inside(around.body))


def stretches(project: Project, origins: Origins, owner: ClassInfo, begin: str, end: str) -> Iterator[Timed]:
    """Yield the code between the calls of two methods of an object of a class."""
    for module in project.modules.values():
        for call in module.calls.get(end, ()):
            if not isinstance(call.func, ast.Attribute):
                continue
            around = function_of(call, module) or module.tree
            begun = [
                one.lineno for one in calls(around)
                if tail_of(one.func) == begin and one.lineno <= call.lineno and isinstance(one.func, ast.Attribute)
                and tail_of(one.func.value) == tail_of(call.func.value)
            ]  # fmt: skip
            if begun and owner in origins.classes(call.func.value, project.scope_at(call, module)):
                held = (one for one in calls(around) if max(begun) < one.lineno < call.lineno)
                yield Timed(call, module, tuple(sorted(held, key=lambda one: one.lineno)))


def is_timer_of_device(owner: ast.ClassDef) -> bool:
    """Return whether a timer is meant for work on a device: by its name, or as it asks whether there is one."""
    return BENCH.search(owner.name) is not None or CUDA.search(text_of(owner)) is not None


def _inside(body: list[ast.stmt]) -> tuple[ast.Call, ...]:
    found = {one for statement in body for one in calls(statement)}
    return tuple(sorted(found, key=lambda one: (one.lineno, one.col_offset)))
