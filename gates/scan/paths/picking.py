"""Calls that may run one of several functions: the sides of a choice, the classes of an object, what a key picks."""

import ast

from gates.scan.paths.candidates import candidates
from gates.scan.paths.conditions import branch
from gates.scan.paths.place import Place
from gates.scan.paths.running import Running
from gates.scan.paths.stacks import Run
from gates.scan.paths.state import State
from gates.scan.paths.values import Value
from gates.scan.program.nodes import kept
from gates.scan.program.scope import Scope
from gates.scan.program.types import is_choice

Paths = list[State]


class Picking(Running):
    """Forks paths by which function a call runs."""

    def of_choice(self, node: ast.Call, chosen: ast.IfExp, paths: Paths, scope: Scope) -> Run:
        """Run the method of what is chosen of two: `(scaler.scale(loss) if scaler else loss).backward()`."""
        found: Run = []
        for path in paths:
            for side, truth in branch(chosen.test, path, self.place(path, scope)):
                found += self.call(kept(node, _sides)[not truth], [side], scope)
        return found

    def sorted_by(self, func: ast.expr, path: State, scope: Scope) -> Paths:
        """Fork by the classes that the object of a method may be of, where it is one of several."""
        held = func.value if isinstance(func, ast.Attribute) else None
        if not isinstance(held, ast.Name | ast.Attribute):
            return [path]
        place = self.place(path, scope)
        known = place.find(held)
        made = known.node if known is not None else None
        chosen = isinstance(made, ast.Call) and known.place is not None and is_choice(made.func, known.place.scope)  # type: ignore[union-attr]  # it made something
        chosen = chosen or (isinstance(made, ast.Name) and known is not None and known.type is None)
        if known is not None and (known.owner is not None or (made is not None and not chosen)):
            return [path]
        kinds = self.project.alternatives.of(held, scope)
        found: Paths = []
        for kind in kinds:
            value = Value(f"{place.key(held)}.as_{kind.node.name}", owner=kind)
            if isinstance(held, ast.Name):
                found.append(path.binds(held.id, value))
            else:
                found.append(path.stores(f"{place.key(held.value)}.{held.attr}", value))
        return found or [path]

    def picked(self, func: ast.expr, path: State, scope: Scope) -> Paths:
        """Fork by the functions of which a key that nobody tells picks one; those without events stay together."""
        place = self.place(path, scope)
        value = place.find(func) or (Value("", func, place) if isinstance(func, ast.Subscript | ast.Call) else None)
        known = candidates(value.node, value.place) if value is not None and value.closure is None else None
        if known is None:
            return [path]
        picks = {f"{known[0]} == {name!r}": function for name, function in known[1].items()}
        told = {about: function for about, function in picks.items() if path.assumed.get(about)} or picks
        hot = [about for about in told if path.assumed.get(about) is not False and self._is_hot(told[about], path)]
        found: Paths = []
        for about in hot:
            found.append(_called_as(func, told[about], path.assumes(about, truth=True), place))
            path = path.assumes(about, truth=False)
        return found if found and len(found) == len(told) else [*found, path]

    def _is_hot(self, function: Value, path: State) -> bool:
        """Return whether a value is a function that may come to an event."""
        made, place = function.node, function.place
        closure = self.behind(made, place, path) if made is not None and place is not None else None
        return closure is not None and closure.node in self.hot


def _sides(node: ast.Call) -> tuple[ast.Call, ast.Call]:
    """Return the calls of a method of the one and of the other side of a choice."""
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.IfExp)
    one, other = (
        ast.copy_location(ast.Attribute(part, node.func.attr, ast.Load()), node.func)
        for part in (node.func.value.body, node.func.value.orelse)
    )
    return tuple(ast.copy_location(ast.Call(func, node.args, node.keywords), node) for func in (one, other))  # type: ignore[return-value]  # two


def _called_as(func: ast.expr, function: Value, path: State, place: Place) -> State:
    """Return the path on which what a call names is one function."""
    if isinstance(func, ast.Name):
        return path.binds(func.id, function)
    key = f"{place.key(func.value)}.{func.attr}" if isinstance(func, ast.Attribute) else place.key(func)
    return path.stores(place.spot(func) if isinstance(func, ast.Call) else key, function)
