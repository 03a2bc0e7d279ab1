"""Events: the calls, blocks and statements of a path that rules of order speak of."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gates.scan.matches import match, may_meet
from gates.scan.paths.place import Place
from gates.scan.paths.state import Event, State
from gates.scan.pattern import Hole, Holes, Pattern
from gates.scan.program.known import OPTIMIZER, SCALER, SCHEDULER, is_called
from gates.scan.program.module import names_of, tail_of
from gates.scan.program.nodes import kept, lines_of
from gates.scan.program.project import Project
from gates.scan.rule import Constraint, EventKind, Needs

MAX_HOPS = 4
LISTED = re.compile(r"(.+)\.lr_schedulers\(\)(\[\d+\])")  # Lightning returns both lists in the order of each other


def _driven(hole: Hole) -> str | None:
    """Return the optimizer whose learning rate a scheduler sets: what it was made with, or the one of its place."""
    node, place = hole.node, hole.names
    for _ in range(MAX_HOPS):
        if not isinstance(place, Place) or not isinstance(node, ast.Name | ast.Attribute):
            break
        if (beside := LISTED.fullmatch(place.key(node))) is not None:
            return f"{beside[1]}.optimizers(){beside[2]}"
        if (behind := place.through(node)) is None:
            return None
        node, place = behind
    if not isinstance(node, ast.Call) or not isinstance(place, Place):
        return None
    is_scheduler = place.project.types.is_a(place.dotted(node.func), SCHEDULER)
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "optimizer")] if is_scheduler else []
    return place.key(given[0]) if given and _is_told(given[0], place, hole.names) else None


def _is_told(node: ast.expr, place: Place, here: object) -> bool:
    """Return whether a variable is one of the path, and not of a function that the path has not come through."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return place is here or (isinstance(node, ast.Name) and node.id in place.names)


@dataclass(frozen=True)
class Happening:
    """The events that a walk looks for, and what their metavariables must be."""

    kinds: tuple[EventKind, ...]
    needs: Needs
    _by_tail: dict[str, list[tuple[EventKind, Pattern]]] = field(default_factory=dict, compare=False)

    def of_call(self, node: ast.Call, place: Place, state: State) -> tuple[Event, bool] | None:
        """Return the event that a call is, the first that fits, and whether the class of an object makes it sure."""
        for kind, pattern in self._called(tail_of(node.func)):
            if (found := self._fit(pattern, node, place)) is not None and _is_so(kind, state):
                sure = any(_meets(self.needs[n], h) for n, h in found.items() if n in self.needs)
                return event(kind.name, node, found, place), sure or not found
        return None

    def _called(self, tail: str) -> list[tuple[EventKind, Pattern]]:
        """Return the patterns that a call by a name may fit, in their order; they are few of many."""
        if tail not in self._by_tail:
            every = ((kind, pattern) for kind in self.kinds for pattern in kind.code.any)
            self._by_tail[tail] = [each for each in every if each[1].tail in {None, tail}]
        return self._by_tail[tail]

    def of_statement(self, node: ast.stmt, place: Place, state: State) -> Event | None:
        """Return the event that a statement is, such as `p.grad = None`."""
        for kind in self.kinds:
            for pattern in kind.code.any:
                found = self._fit(pattern, node, place) if type(pattern.body) is type(node) else None
                if found is not None and _is_so(kind, state):
                    return event(kind.name, node, found, place)
        return None

    def of_block(self, node: ast.expr, place: Place, at: ast.AST) -> tuple[list[Event], list[Event]]:
        """Return the events of a block that begins, and those of one that ends."""

        def found(name: str, patterns: tuple[Pattern, ...]) -> Iterator[Event]:
            fitting = (self._fit(pattern, node, place) for pattern in patterns)
            holes = next((holes for holes in fitting if holes is not None), None)
            yield from () if holes is None else (event(name, at, holes, place),)

        begun = [each for kind in self.kinds for each in found(kind.name, kind.code.enter)]
        return begun, [each for kind in self.kinds for each in found(kind.name, kind.code.leave)]

    def _fit(self, pattern: Pattern, node: ast.AST, place: Place) -> Holes | None:
        if pattern.tail is not None and isinstance(node, ast.Call) and tail_of(node.func) != pattern.tail:
            return None
        found = match(pattern, node, place)
        return found if found is not None and fits(self.needs, found) else None


def tails_of(pattern: Pattern) -> Iterator[str]:
    """Yield the names that code may be known by to fit a pattern."""
    if pattern.tail is not None:
        yield pattern.tail
        return
    nodes = list(ast.walk(pattern.body))
    named = [n.attr for n in nodes if isinstance(n, ast.Attribute)]
    named += [n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]  # a plain function
    yield from [name for name in named if not name.startswith("__")][:1]


def _is_so(kind: EventKind, state: State) -> bool:
    """Return whether the code is an event under the conditions that a path has come through."""
    unless, when = kind.code.unless, kind.code.when
    denied = unless is not None and any(map(unless.search, state.guards))
    return not denied and (when is None or any(map(when.search, state.guards)))


def event(name: str, node: ast.AST, holes: Holes, place: Place) -> Event:
    """Make an event of what fits; that of a scheduler is about the optimizer that it drives."""
    bound = {hole: found.key for hole, found in holes.items()}
    if "H" in holes and "O" not in holes and (driven := _driven(holes["H"])) is not None:
        bound["O"] = driven
    return Event(name, tuple(sorted(bound.items())), place.scope.module.path, *lines_of(node))


def fits(needs: Needs, holes: Holes) -> bool:
    """Return whether every metavariable is what it must be; one of unknown class passes beside one that is sure."""
    verdicts = set[bool | None]()
    for name, hole in holes.items():
        need = needs.get(name)
        verdict = False if _is_module(hole) else True if need is None else _meets(need, hole)
        if verdict is False:
            return False
        verdicts |= set() if need is None else {verdict}
    return True in verdicts or None not in verdicts


def _is_module(hole: Hole) -> bool:
    if not isinstance(hole.node, ast.Name | ast.Attribute) or not isinstance(hole.names, Place):
        return False
    return hole.names.project.is_module(hole.node, hole.names.scope)


def _meets(need: Constraint, hole: Hole) -> bool | None:
    """Return whether an object is what it must be, by its class or else by its name; `None` where neither tells."""
    node, place, verdict = hole.node, hole.names, may_meet(need, hole)
    if not need.type or not isinstance(node, ast.expr) or not isinstance(place, Place):
        return verdict
    if place.value(node).constant is None:
        return False
    if verdict is not None:
        return verdict
    called = [*names_of(node), place.key(node).partition("(")[0].partition("@")[0].rpartition(".")[2].partition("[")[0]]
    if any(is_called(name, wanted) for name in called if name for wanted in need.type):
        return True
    return False if SCALER in need.type and kept(place.project, has_own_step) else None


def has_own_step(project: Project) -> bool:
    """Return whether objects of some class of the program take a step with an optimizer, as a scaler does."""
    steps = [info.methods["step"] for info in list(project.classes.values()) if "step" in info.methods]
    return any(is_called(arg.arg, OPTIMIZER) for step in steps for arg in step.args.args[1:])
