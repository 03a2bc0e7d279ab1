"""The place that code stands in on a path: what names mean there, which object it is, and how conditions fork."""

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gates.scan.paths.state import Closure, State, Value
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import children
from gates.scan.program.project import Project
from gates.scan.program.scope import ClassInfo, Scope

MAX_KEY, KEPT_KEY = 2000, 200
MAX_HOPS = 4
ITSELF = frozenset({"to", "cuda", "cpu", "train", "eval", "requires_grad_"})  # what a module's method returns
NAMED = ast.Name | ast.Attribute | ast.Subscript
SETTLED = re.compile(r"_*(uses?|supports?)_|\w*(available|installed|supported)$")  # asked so, it is one in a whole loop
PARTIAL = "functools.partial"
STABLE = re.compile(
    "bool|enumerate|find_spec|float|getenv|hasattr|int|isinstance|items|keys|len|list|optimizers|parameters|range|"
    "reversed|sorted|str|tuple|values|zip"
)


@dataclass(eq=False)
class Place:
    """A place on a path: what names mean there, and what made them. Not `frozen`, which takes three times as long."""

    project: Project
    scope: Scope
    names: Mapping[str, Value]
    heap: Mapping[str, Value]
    turns: str = ""

    def find(self, node: ast.expr) -> Value | None:
        """Return the value that a variable or an attribute was given on this path."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id) or self.heap.get(f"{self.scope.module.name}.{node.id}")
        if isinstance(node, ast.Attribute):
            return self.heap.get(f"{self.key(node.value)}.{node.attr}")
        if isinstance(node, ast.Subscript):  # what this path has put there
            return self.heap.get("".join(self._texts(node))) if self.heap else None
        return None

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression without running it."""
        if (found := self.find(node)) is not None:
            return found
        if isinstance(node, ast.Constant):
            return Value(repr(node.value), node, self, node.value)
        if isinstance(node, ast.Lambda):
            return Value(f"lambda@{node.lineno}", node, self, closure=self.lambda_(node))
        if isinstance(node, ast.NamedExpr | ast.Await):
            return self.value(node.value)
        if isinstance(node, ast.Call) and len(node.args) == 2 and tail_of(node.func) == "cast":
            return self.value(node.args[1]) if self.scope.dotted(node.func) == "typing.cast" else self._unrun(node)
        return self._unrun(node)

    def _unrun(self, node: ast.expr) -> Value:
        return Value(self.key(node), node, self)

    def lambda_(self, node: ast.Lambda) -> Closure:
        """Return a lambda with what it sees."""
        return Closure(node, self.project.scope_of(node, self.scope.module), self.names)

    def key(self, node: ast.AST) -> str:
        """Return which object an expression is: its text, its variables replaced by what they are."""
        if isinstance(node, NAMED) and (found := self.find(node)) is not None:
            return found.key
        if isinstance(node, ast.Name):
            if (named := self.scope.lookup(node.id)) and named[0][1].function is None:
                return self.scope.dotted(node) or f"{self.scope.module.name}.{node.id}"
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self.key(node.value)}.{node.attr}"
        if isinstance(node, ast.Subscript):
            return "".join(self._texts(node))
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ITSELF:
            return self.key(node.func.value)
        if isinstance(node, ast.Call):
            inside = ", ".join([*map(self.key, node.args), *(f"{k.arg}={self.key(k.value)}" for k in node.keywords)])
            name = tail_of(node.func)
            again = self.turns and not STABLE.fullmatch(name) and not SETTLED.match(name)
            return _bounded(f"{self.key(node.func)}({inside})" + (f"#{self.turns}" if again else ""))
        if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr):
            return self.key(node.value)
        return _bounded("".join(self._texts(node)))

    def _texts(self, node: ast.AST) -> list[str]:
        found = [type(node).__name__, "("]
        for child in children(node):
            found += [self.key(child) if isinstance(child, ast.expr) else type(child).__name__, ","]
        return [*found, ")"]

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full name of what an expression names."""
        found = self.find(node)
        if found is not None and found.node is not None and found.place is not None and found.node is not node:
            named = _behind_partial(found.node, found.place)
            return found.place.dotted(named) if isinstance(named, ast.Name | ast.Attribute) else None
        return self.scope.dotted(node)

    def through(self, node: ast.expr) -> "tuple[ast.expr, Place] | None":
        """Return the expression that a variable was made by, and its place."""
        if (found := self.find(node)) is not None:
            same = found.node is node or found.node is None or found.place is None
            return None if same else (found.node, found.place)  # type: ignore[return-value]  # neither is None here
        if isinstance(node, ast.Name) and node.id in self.scope.bindings and self.scope.function is not None:
            return None  # a variable of this function that this path did not set
        if (behind := self.scope.through(node)) is None:
            return None
        own = behind[1].self_name if isinstance(node, ast.Attribute) and behind[1].owner is not None else None
        names = {own: self.value(node.value)} if own is not None and isinstance(node, ast.Attribute) else {}
        return behind[0], Place(self.project, behind[1], names, self.heap, self.turns)

    def made_by(self, node: ast.expr) -> "tuple[ast.Call | None, Place]":
        """Return the call that made what a variable stands for, and where it is written."""
        place = self
        for _ in range(MAX_HOPS):
            if isinstance(node, ast.Call):
                return node, place
            if (behind := place.through(node)) is None:
                break
            node, place = behind
        return None, place

    def type_of(self, node: ast.expr) -> str | None:
        """Return the full name of an object's class."""
        if (found := self.find(node)) is not None and found.node is not node:
            return found.type
        if isinstance(node, ast.Attribute) and (owner := self.owner_of(node.value)) is not None:
            return self.project.types.attribute(owner, node.attr)
        return self.project.types.of(node, self.scope)

    def owner_of(self, node: ast.expr) -> ClassInfo | None:
        """Return the project's class that an object is of."""
        if (found := self.find(node)) is not None and found.owner is not None:
            return found.owner
        return self.project.classes.get(self.type_of(node) or "")


def apart(value: Value, node: ast.expr) -> Value:
    """Return a value that tells what two equal constructors of a tuple or a mapping made."""
    if not isinstance(node, ast.Call) or value.node is not node or value.place is None:
        return value
    name, place = tail_of(node.func), value.place
    turn = f"#{place.turns}" if place.turns else ""
    at = f"{place.scope.module.path}:{node.lineno}:{node.col_offset}"
    return replace(value, key=f"{name}@{at}{turn}") if name[:1].isupper() else value


def _bounded(key: str) -> str:
    """Return a key, or one as telling of its begin and its digest: `x = x + f(x)` doubles a key with each line."""
    return key if len(key) <= MAX_KEY else f"{key[:KEPT_KEY]}...{hashlib.sha256(key.encode()).hexdigest()}"


def _behind_partial(node: ast.expr, place: Place) -> ast.expr:
    is_partial = isinstance(node, ast.Call) and tail_of(node.func) == "partial" and place.dotted(node.func) == PARTIAL
    return node.args[0] if is_partial and isinstance(node, ast.Call) and node.args else node


REST = "**"  # options of which it is not known which they are


def passed_on(call: ast.Call, place: Place) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """Return what a call passes; nothing where that is not written out."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    values = () if starred else tuple(map(place.value, call.args))
    return values, {keyword.arg or REST: place.value(keyword.value) for keyword in call.keywords}


# a comparison, and what is its opposite
COMPARED = (("==", ast.Eq, ast.NotEq), ("==", ast.Is, ast.IsNot), ("<", ast.Lt, ast.GtE), (">", ast.Gt, ast.LtE))
SIGNS: dict[type[ast.cmpop], tuple[str, bool]] = {ast.In: ("in", True), ast.NotIn: ("in", False)}
SIGNS |= {kind: (sign, kind is so) for sign, so, opposite in COMPARED for kind in (so, opposite)}
Branches = Iterator[tuple[State, bool]]


def branch(test: ast.expr, state: State, place: Place, hops: int = 0) -> Branches:
    """Yield the path for each side that a condition can take."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from ((after, not truth) for after, truth in branch(test.operand, state, place, hops))
    elif isinstance(test, ast.BoolOp):
        yield from _either(test, state, place, hops)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        yield from _compared(test, state, place)
    else:
        value = place.value(test)
        made = value.node
        is_plain = isinstance(made, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Name | ast.Attribute)
        if made is not None and made is not test and value.place is not None and is_plain and hops < MAX_HOPS:
            yield from branch(made, state, value.place, hops + 1)
        else:
            yield from _truth_of(value, state)


def _either(test: ast.BoolOp, state: State, place: Place, hops: int) -> Branches:
    """Go through the parts from left to right, as Python does."""
    decided = isinstance(test.op, ast.Or)
    pending = [state]
    for part in test.values:
        after: list[State] = []
        for each in pending:
            for result, truth in branch(part, each, place, hops):
                if truth is decided:
                    yield result, truth
                else:
                    after.append(result)
        pending = after
    yield from ((each, not decided) for each in pending)


def _compared(test: ast.Compare, state: State, place: Place) -> Branches:
    left, right = place.value(test.left), place.value(test.comparators[0])
    sign, positive = SIGNS[type(test.ops[0])]
    if sign == "==" and right.is_known and right.constant is None:
        yield from ((after, truth is not positive) for after, truth in _truth_of(left, state))
        return
    if sign == "==" and left.is_known and right.is_known:
        yield state, (left.constant == right.constant) is positive
        return
    yield from ((after, truth is positive) for after, truth in _assumed(f"{left.key} {sign} {right.key}", state))


def _truth_of(value: Value, state: State) -> Branches:
    if value.is_known:
        yield state, bool(value.constant)
    elif value.closure is not None:
        yield state, True
    else:
        yield from _assumed(value.key, state)


def _assumed(key: str, state: State) -> Branches:
    known = state.assumed.get(key)
    for truth in (True, False) if known is None else (known,):
        yield (state.but(assumed={**state.assumed, key: truth}) if known is None else state), truth
