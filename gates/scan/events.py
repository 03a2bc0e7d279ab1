"""Events: the calls, blocks and statements of a path that rules of order speak of."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.known import MODULE, OPTIMIZER, SCALER, SCHEDULER, is_called
from gates.scan.module import names_of, tail_of
from gates.scan.pattern import Hole, Holes, Pattern, match
from gates.scan.project import Project
from gates.scan.rule import EventKind, Need, Needs
from gates.scan.values import ITSELF, Event, Place, State, Value

PARAMETERS = "PARAMETERS"
FRESH = "FRESH"  # what an optimizer is made for where that, too, was made in the same turn of a loop
MAX_HOPS = 4
LISTED = re.compile(r"(.+)\.lr_schedulers\(\)(\[\d+\])")  # Lightning returns both lists in the order of each other
CREATING = frozenset(
    {
        "Parameter",
        "clone",
        "deepcopy",
        "detach",
        "empty",
        "empty_like",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "tensor",
        "zeros",
        "zeros_like",
    }
)


@dataclass(frozen=True)
class Happening:
    """The events that a walk looks for, and what their metavariables must be."""

    kinds: tuple[tuple[EventKind, Needs], ...]

    @property
    def tails(self) -> frozenset[str]:
        """Return the last names of which code with an event has one, before import resolution."""
        found: set[str] = set()
        for kind, _ in self.kinds:
            for pattern in (*kind.calls, *kind.enters, *kind.leaves):
                found |= set(tails_of(pattern))
        return frozenset(found)

    def of_call(self, node: ast.expr, place: Place, state: State) -> tuple[Event, bool] | None:
        """Return the event that a call is, the first that fits, and whether the class of an object makes it sure."""
        for kind, needs in self.kinds:
            for pattern in kind.calls:
                found = self._fit(pattern, node, place, needs)
                if found is not None and not _is_guarded(kind, state):
                    sure = any(_meets(needs[n], h.node, h.names) for n, h in found.items() if n in needs)
                    return event(kind.name, node, found, place), sure or not found
        return None

    def of_statement(self, node: ast.stmt, place: Place, state: State) -> Event | None:
        """Return the event that a statement is, such as `p.grad = None`."""
        for kind, needs in self.kinds:
            for pattern in kind.calls:
                if isinstance(pattern.body, tuple) and type(pattern.body[0]) is type(node):
                    found = match(pattern, node, place)
                    if found is not None and fits(needs, found) and not _is_guarded(kind, state):
                        return event(kind.name, node, found, place)
        return None

    def entering(self, node: ast.expr, place: Place, at: ast.AST) -> Iterator[Event]:
        """Yield the events of a block that begins."""
        for kind, needs in self.kinds:
            for pattern in kind.enters:
                found = self._fit(pattern, node, place, needs)
                if found is not None:
                    yield event(kind.name, at, found, place)
                    break

    def leaving(self, node: ast.expr, place: Place, at: ast.AST) -> Iterator[Event]:
        """Yield the events of a block that ends."""
        for kind, needs in self.kinds:
            for pattern in kind.leaves:
                found = self._fit(pattern, node, place, needs)
                if found is not None:
                    yield event(kind.name, at, found, place)
                    break

    def _fit(self, pattern: Pattern, node: ast.expr, place: Place, needs: Needs) -> Holes | None:
        if pattern.tail is not None and isinstance(node, ast.Call) and tail_of(node.func) != pattern.tail:
            return None
        found = match(pattern, node, place)
        return found if found is not None and fits(needs, found) else None


def tails_of(pattern: Pattern) -> Iterator[str]:
    """Yield the names that code may be known by to fit a pattern."""
    if pattern.tail is not None:
        yield pattern.tail
        return
    body = pattern.body if isinstance(pattern.body, tuple) else (pattern.body,)
    for part in body:
        for node in ast.walk(part):
            if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
                yield node.attr
                break


def _is_guarded(kind: EventKind, state: State) -> bool:
    return kind.unless is not None and any(kind.unless.search(guard) for guard in state.guards)


def event(name: str, node: ast.AST, holes: Holes, place: Place) -> Event:
    """Make an event of what fits."""
    bound = {hole: found.key for hole, found in holes.items()}
    if "H" in bound and "O" not in bound and (driven := _driven(holes["H"])) is not None:
        bound["O"] = driven
    handed = [found for found in (_handed(h.node, h.names) for h in holes.values()) if found is not None]
    owned = next((k for k in (_owned(*found) for found in handed) if k), None)
    if owned is None and isinstance(node, ast.Call) and node.args and "S" not in bound:
        owned = _owned(node.args[0], place)
    if owned is not None:
        bound[PARAMETERS] = owned
    fresh = next((k for k in (_fresh(*found) for found in handed) if k), None)
    if fresh is not None:
        bound[FRESH] = fresh
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
    if isinstance(node, ast.Call):
        first = _line_of(node)
    return Event(name, tuple(sorted(bound.items())), place.scope.module.path, first, max(first, last or first))


def _line_of(node: ast.Call) -> int:
    """Return the line that a call's own name stands in, which a chain of calls may have far below its first."""
    func = node.func
    return func.end_lineno or node.lineno if isinstance(func, ast.Attribute) else node.lineno


def _driven(hole: Hole) -> str | None:
    """Return the optimizer whose learning rate a scheduler sets: what it was made with, or the one of its place."""
    node, place = hole.node, hole.names
    for _ in range(MAX_HOPS):
        if not isinstance(place, Place) or not isinstance(node, ast.Name | ast.Attribute):
            break
        beside = LISTED.fullmatch(place.key(node))
        if beside is not None:
            return f"{beside[1]}.optimizers(){beside[2]}"
        behind = place.through(node)
        node, place = (behind[0], _of_instance(behind[1], node, place)) if behind is not None else (None, None)
    if not isinstance(node, ast.Call) or not isinstance(place, Place):
        return None
    is_scheduler = place.project.types.is_a(place.dotted(node.func), SCHEDULER)
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "optimizer")] if is_scheduler else []
    return place.key(given[0]) if given and _is_told(given[0], place, hole.names) else None


def _of_instance(behind: Place, node: ast.expr, place: Place) -> Place:
    """Return the place where an attribute was set, with the instance that it is read from."""
    name = behind.scope.self_name
    if not isinstance(node, ast.Attribute) or name is None or name in behind.names:
        return behind
    return Place(behind.project, behind.scope, {name: place.value(node.value)}, behind.heap, behind.turns)


def _is_told(node: ast.expr, place: Place, here: object) -> bool:
    """Return whether a variable is one of the path, and not of a function that the path has not come through."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return place is here or (isinstance(node, ast.Name) and node.id in place.names)


def _handed(node: ast.AST, names: object) -> tuple[ast.expr, Place] | None:
    """Return what an optimizer was made for, and its place."""
    if not isinstance(node, ast.expr) or not isinstance(names, Place):
        return None
    behind: tuple[ast.expr, Place] | None = (node, names)
    for _ in range(MAX_HOPS):
        if behind is None:
            return None
        made, place = behind
        if isinstance(made, ast.Call):
            is_optimizer = place.project.types.is_a(place.dotted(made.func), OPTIMIZER)
            return (made.args[0], place) if is_optimizer and made.args else None
        behind = place.through(made)
    return None


def _fresh(written: ast.expr, place: Place) -> str | None:
    """Return the tensors or the module that an optimizer is for, where each turn of a loop makes new ones."""
    if not place.turns:
        return None
    behind = place.through(written) if isinstance(written, ast.Name) else None
    tensors, where = behind or (written, place)
    if isinstance(tensors, ast.Call) and isinstance(tensors.func, ast.Attribute) and tensors.func.attr == "parameters":
        parts = [tensors.func.value]
    else:
        parts = list(tensors.elts) if isinstance(tensors, ast.List | ast.Tuple) else []
    values = [where.value(part) for part in parts]
    is_new = bool(values) and all(_is_new(value, place.turns) for value in values)
    return ", ".join(value.key for value in values) if is_new else None


def _is_new(value: Value, turns: str) -> bool:
    """Return whether a value was made in a turn, without a gradient: `zeros(3)`, `x.detach().to(device)`, `Net()`."""
    made, place = value.node, value.place
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in ITSELF:
        made = made.func.value
    if not isinstance(made, ast.Call) or place is None or place.turns != turns:
        return False
    is_module = tail_of(made.func)[:1].isupper() and place.project.types.is_a(place.dotted(made.func), MODULE)
    return tail_of(made.func) in CREATING or bool(is_module)


def _owned(node: ast.expr, place: Place) -> str | None:
    """Return the module of `module.parameters()`."""
    behind: tuple[ast.expr, Place] | None = (node, place)
    for _ in range(MAX_HOPS):
        if behind is None:
            return None
        made, where = behind
        if isinstance(made, ast.Call):
            is_it = isinstance(made.func, ast.Attribute) and made.func.attr == "parameters"
            return where.key(made.func.value) if is_it and isinstance(made.func, ast.Attribute) else None
        behind = where.through(made)
    return None


def fits(needs: Needs, holes: Holes) -> bool:
    """Return whether every metavariable is what it must be; one of unknown class passes beside one that is sure."""
    sure = False
    doubtful = False
    for name, hole in holes.items():
        need = needs.get(name)
        if _is_module(hole):
            return False
        if need is None:
            continue
        verdict = _meets(need, hole.node, hole.names)
        if verdict is False:
            return False
        sure = sure or verdict is True
        doubtful = doubtful or verdict is None
    return sure or not doubtful


def _is_module(hole: Hole) -> bool:
    if not isinstance(hole.node, ast.Name | ast.Attribute) or not isinstance(hole.names, Place):
        return False
    return hole.names.project.is_module(hole.node, hole.names.scope)


def _meets(need: Need, node: ast.AST, names: object) -> bool | None:
    if not isinstance(node, ast.expr) or not isinstance(names, Place):
        return False if need.types else None
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    if need.equals and text not in need.equals:
        return False
    if need.regex and not need.regex.search(text):
        return False
    if need.names and names.dotted(node) not in need.names:
        return False
    if need.never is not None and _meets(need.never, node, names):
        return False
    if not need.types:
        return True
    verdicts = {_is_type(node, names, wanted) for wanted in need.types}
    return True if True in verdicts else None if None in verdicts else False


def _is_type(node: ast.expr, place: Place, wanted: str) -> bool | None:
    """Return whether an object is of a kind, by its class or else by what it is called; `None` where neither tells."""
    if place.value(node).constant is None:
        return False
    known = place.project.types.is_a(place.type_of(node), wanted)
    if known is not None:
        return known
    called = [*names_of(node), place.key(node).partition("(")[0].partition("@")[0].rpartition(".")[2].partition("[")[0]]
    if any(is_called(name, wanted) for name in called if name):
        return True
    return False if wanted == SCALER and any(place.project.once(own_steps)) else None


def own_steps(project: Project) -> Iterator[str]:
    """Yield the program's classes whose objects take a step with an optimizer, as a scaler does."""
    for info in project.classes.values():
        method = info.methods.get("step")
        if method is not None and any(is_called(arg.arg, OPTIMIZER) for arg in method.args.args[1:]):
            yield info.name
