"""Whether the code that a criterion is bound to is called from where the task says that it is."""

import ast
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property

from gates.evidence.call_graph import CallGraph, Step
from gates.evidence.symbols import Resolver
from gates.model import Location, Model
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.program.reading import read_project
from gates.task.code_binding import CodeBinding

SHOWN = 5
Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Reached(StrEnum):
    """Whether code is called from an entry: for certain, not at all, or only as far as nobody can tell."""

    YES = "reached"
    NO = "not reached"
    OPEN = "not decided"


class ReachTrace(Model):
    """Code and the entry that must call it: the calls that lead there, or what calls it in its place."""

    name: str
    entry: str
    at_least: int = 1
    reached: Reached
    way: tuple[str, ...] = ()
    callers: tuple[str, ...] = ()
    problem: str = ""


class Reach:
    """Reads the calls of an implementation, once for all bindings that ask."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._project: Project = read_project(resolver.python_files(), resolver.root)
        self._known: dict[tuple[Unit, ...], dict[Unit, Step | None]] = {}
        self._open: dict[tuple[Unit, ...], dict[Unit, Step | None]] = {}

    @cached_property
    def _graph(self) -> CallGraph:
        return CallGraph.of(self._project)

    def trace(self, binding: CodeBinding, places: Iterable[Location]) -> ReachTrace:
        """Say whether enough of the places of a binding are called from its entry."""
        entry = binding.reached_from or ""
        told = ReachTrace(name=binding.name, entry=entry, at_least=binding.at_least, reached=Reached.OPEN)
        try:
            return self._traced(told, binding, places)
        except RecursionError:
            return told.model_copy(update={"problem": "some of the implementation is nested too deeply to be followed"})

    def _traced(self, told: ReachTrace, binding: CodeBinding, places: Iterable[Location]) -> ReachTrace:
        entry = told.entry
        start = self._resolver.trace(CodeBinding(symbol=entry))
        if start.location is None:
            reached = Reached.NO if start.checked else Reached.OPEN
            return told.model_copy(update={"reached": reached, "problem": f"{entry}: {start.problem}"})
        entries = self._inside(start.location)
        if not entries:
            return told.model_copy(update={"problem": f"{entry} ({start.location}) is no function or class"})
        targets = [self._inside(place) or self._around(place) for place in places]
        if not all(targets) or not targets:
            return told.model_copy(update={"problem": f"{binding.name} is run at import, not by a call"})
        return self._judged(told, binding.at_least, entries, targets)

    def _sure(self, entries: list[Unit]) -> dict[Unit, Step | None]:
        """Return what is called for certain; many bindings ask for one entry."""
        key = tuple(entries)
        if key not in self._known:
            self._known[key] = self._graph.reached(entries)
        return self._known[key]

    def _perhaps(self, entries: list[Unit]) -> dict[Unit, Step | None]:
        key = tuple(entries)
        if key not in self._open:
            self._open[key] = self._graph.perhaps_reached(entries)
        return self._open[key]

    def _judged(self, told: ReachTrace, wanted: int, entries: list[Unit], targets: list[list[Unit]]) -> ReachTrace:
        sure = self._sure(entries)
        ways = [unit for units in targets if (unit := _first(units, sure)) is not None]
        if len(ways) >= wanted:
            return told.model_copy(update={"reached": Reached.YES, "way": self._way(ways[0], sure)})
        maybe = self._perhaps(entries)
        callers = tuple(dict.fromkeys(map(self._said, self._graph.callers(u for units in targets for u in units))))
        open_ = [unit for units in targets if (unit := _first(units, maybe)) is not None]
        unread = next(iter(self._project.unparsed), "")
        problem = unread or (self._doubt(open_[0], maybe) if len(open_) >= wanted else "")
        return told.model_copy(update={
            "reached": Reached.OPEN if problem else Reached.NO, "callers": callers[:SHOWN], "problem": problem,
        })  # fmt: skip

    def _doubt(self, unit: Unit, found: dict[Unit, Step | None]) -> str:
        """Return where reading alone cannot tell what is called, on the way to a function."""
        step, doubt = found[unit], ""
        while step is not None and step.caller is not None:
            if unit not in self._graph.sure.get(step.caller, {}):
                doubt = f"what {step.path}:{step.line} calls is not known"
            unit, step = step.caller, found[step.caller]
        return doubt or f"{self._name(unit)} is registered, kept or called in ways that reading alone cannot follow"

    def _way(self, unit: Unit, found: dict[Unit, Step | None]) -> tuple[str, ...]:
        """Return the calls that lead to a function, from the entry on."""
        steps: list[str] = []
        step = found[unit]
        while step is not None and step.caller is not None:
            steps.append(self._said(step))
            step = found[step.caller]
        return tuple(reversed(steps))

    def _said(self, step: Step) -> str:
        caller = "at import" if step.caller is None else self._name(step.caller)
        return f"{step.path}:{step.line} {caller}"

    def _name(self, unit: Unit) -> str:
        """Return what a function or class is called, its module by the name under which the project imports it."""
        module = next(iter(self._project.modules.values()))
        whole = self._project.qualified(unit, self._project.scope_of(module.tree, module))
        inside = (m for m in self._project.modules.values() if whole.startswith(f"{m.name}."))
        own = max(inside, key=lambda m: len(m.name), default=None)
        if own is None:
            return whole
        return self._resolver.module_name(self._resolver.root / own.path) + whole.removeprefix(own.name)

    def _inside(self, place: Location) -> list[Unit]:
        """Return the function or class that stands at a place, with the methods of a class."""
        module = self._project.modules.get(place.path)
        for node in _definitions(module) if module else ():
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            if first == place.line and node.end_lineno == place.last_line:
                held = [inner for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)]
                return [node, *(held if isinstance(node, ast.ClassDef) else [])]
        return _side_by_side(place, _definitions(module) if module else [])

    def _around(self, place: Location) -> list[Unit]:
        """Return the outermost function that a place lies in."""
        module = self._project.modules.get(place.path)
        line = place.line or 1
        around = [n for n in _definitions(module) if n.lineno <= line <= (n.end_lineno or line)] if module else []
        units: list[Unit] = [node for node in around if not isinstance(node, ast.ClassDef)]
        return units[:1]


def _definitions(module: Module) -> list[Unit]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for kind in kinds for node in module.live.get(kind, []) if isinstance(node, kinds)]
    return sorted(found, key=lambda node: (node.lineno, -(node.end_lineno or 0)))


def _side_by_side(place: Location, units: list[Unit]) -> list[Unit]:
    """Return the definitions of one name that fill a place together: a property with its setter."""
    inside = [n for n in units if n.decorator_list and n.decorator_list[0].lineno >= (place.line or 1)
              and (n.end_lineno or 0) <= (place.last_line or 0)]  # fmt: skip
    names = {node.name for node in inside}
    starts, ends = [n.decorator_list[0].lineno for n in inside], [n.end_lineno for n in inside]
    return inside if len(names) == 1 and place.line in starts and place.last_line in ends else []


def _first(units: list[Unit], found: dict[Unit, Step | None]) -> Unit | None:
    return next((unit for unit in units if unit in found), None)
