"""What a schedule was sized in: what its lengths are divided by, and which names these came through."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.known import OPTIMIZER, SCHEDULER, is_called
from gates.scan.program.module import is_property, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_HOPS = 12
RATE = re.compile(r"(?i)(^|_)(lr|lrs|rate|rates|eta|factor|gamma|decay|momentum|optimizer|params|last_epoch)(_|$)")
ROUNDS = frozenset({"int", "max", "min", "ceil", "floor", "round", "abs"})


@dataclass
class Size:
    """What the lengths of a schedule come from; `whole` where one is a number of batches, not divided."""

    divided: bool = False
    whole: bool = False
    names: set[str] = field(default_factory=set)


class Reckoning:
    """Follows the lengths that a schedule is made with; `is_part` says what names the micro-batches of a step."""

    def __init__(self, project: Project, is_part: Callable[[str], bool]) -> None:
        self._origins = Origins(project)
        self._project = project
        self._is_part = is_part
        self._seen: set[tuple[ast.AST, bool]] = set()
        self.size = Size()

    def made(self, call: ast.Call, scope: Scope) -> None:
        """Reckon what a schedule, or a function that makes one, is handed."""
        for arg in call.args:
            if not is_called(tail_of(arg), OPTIMIZER) and not RATE.search(tail_of(arg)):
                self.size.whole |= not isinstance(arg, ast.Constant) and self._holds_parts(arg, scope)
                self._follow(arg, scope, MAX_HOPS, divided=False)
        for given in call.keywords:
            if given.arg is not None and not RATE.search(given.arg):
                self.size.whole |= not isinstance(given.value, ast.Constant) and self._holds_parts(given.value, scope)
                self._follow(given.value, scope, MAX_HOPS, divided=False)

    def _follow(self, node: ast.expr, scope: Scope, hops: int, *, divided: bool) -> None:
        if (node, divided) in self._seen or hops <= 0:
            return
        self._seen.add((node, divided))
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            self._named(node, scope, hops, divided=divided)
        elif isinstance(node, ast.BinOp):
            self._reckoned(node, scope, hops, divided=divided)
        elif isinstance(node, ast.Call):
            self._called(node, scope, hops, divided=divided)
        elif isinstance(node, ast.Lambda):
            self._inside(node, scope, hops)
        elif isinstance(node, ast.IfExp | ast.BoolOp | ast.UnaryOp | ast.List | ast.Tuple | ast.NamedExpr):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr) and part is not getattr(node, "test", None):
                    self._follow(part, scope, hops, divided=divided)

    def _named(self, node: ast.expr, scope: Scope, hops: int, *, divided: bool) -> None:
        """Follow a variable, an attribute or an element to what it was set to, and a function to what it reads."""
        self.size.names |= {tail_of(node), text_of(node)}
        found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
        for binding in found[1] if found is not None else ():
            if isinstance(binding.node, ast.FunctionDef):
                self._inside(binding.node, scope, hops)
        for value, there in self._property(node, scope):
            self._follow(value, there, hops - 1, divided=divided)
        for origin in self._origins.of(node, scope)[1:]:
            self._follow(origin.node, origin.scope, hops - 1, divided=divided)

    def _property(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield what a property returns that an attribute is."""
        owner = scope.class_of(node.value) if isinstance(node, ast.Attribute) else None
        found = self._project.method(owner, tail_of(node)) if owner is not None else None
        for result in inner(found[0], ast.Return) if found is not None and is_property(found[0]) else ():
            if found is not None and isinstance(result, ast.Return) and result.value is not None:
                yield result.value, self._project.scope_of(found[0], found[1])

    def _inside(self, function: ast.FunctionDef | ast.Lambda, scope: Scope, hops: int) -> None:
        """Follow what a function reads that is not its own."""
        there = self._project.scope_of(function, scope.module)
        fields = [n for n in inner(function, ast.Attribute) if isinstance(n, ast.Attribute)]
        held = {field.value for field in fields}
        names = [n for n in inner(function, ast.Name) if isinstance(n, ast.Name)]
        for node in (*fields, *(n for n in names if n not in held and not _is_own(n, there))):
            self.size.whole |= self._holds_parts(node, there)  # it may well reckon its updates itself
            self._follow(node, there, hops - 1, divided=False)

    def _reckoned(self, node: ast.BinOp, scope: Scope, hops: int, *, divided: bool) -> None:
        if isinstance(node.op, ast.Pow):
            return
        by_parts = isinstance(node.op, ast.Div | ast.FloorDiv) and self._holds_parts(node.right, scope)
        if by_parts:
            self.size.divided |= _is_length(node)
            self._follow(node.left, scope, hops - 1, divided=True)
            return
        if isinstance(node.op, ast.Mult) and not divided:
            self.size.whole |= any(self._holds_parts(side, scope) for side in (node.left, node.right))
        for side in (node.left, node.right):
            self._follow(side, scope, hops - 1, divided=divided)

    def _holds_parts(self, node: ast.expr, scope: Scope, hops: int = 4) -> bool:
        """Return whether micro-batches are a factor of a number: `batch * accumulate`, `max(1, parts)`."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return any(self._holds_parts(side, scope, hops) for side in (node.left, node.right))
        if isinstance(node, ast.Call) and tail_of(node.func) in ROUNDS:
            return any(self._holds_parts(arg, scope, hops) for arg in node.args)
        if isinstance(node, ast.Constant):
            return self._is_part(f"={node.value!r}")
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return False
        key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
        if self._is_part(str(key) if key is not None else tail_of(node)):
            return True
        behind = self._origins.of(node, scope)[1:] if hops else []
        return any(self._holds_parts(o.node, o.scope, hops - 1) for o in behind if not isinstance(o.node, ast.Constant))

    def _called(self, node: ast.Call, scope: Scope, hops: int, *, divided: bool) -> None:
        """Follow what a call is handed, and what the program's function returns."""
        if tail_of(node.func) == "len":
            self.size.whole |= not divided
            return
        target = self._project.types.function(node, scope)
        if target is None:
            is_schedule = self._project.types.is_a(scope.dotted(node.func), SCHEDULER)
            if not is_schedule and tail_of(node.func) not in ROUNDS | {"partial"}:
                return
            for arg in (*node.args, *(k.value for k in node.keywords if k.arg and not RATE.search(k.arg))):
                if not is_called(tail_of(arg), OPTIMIZER):
                    self._follow(arg, scope, hops - 1, divided=divided)
            return
        for origin in self._origins.of(node, scope)[1:]:
            self._follow(origin.node, origin.scope, hops - 1, divided=divided)


def _is_length(node: ast.BinOp) -> bool:
    """Return whether a quotient may be of a number of batches, and not of a rate: `len(loader) // parts`."""
    if isinstance(node.right, ast.Constant):
        return "len(" in text_of(node.left)
    is_rate = any(RATE.search(tail_of(n)) for n in walk(node.left) if isinstance(n, ast.Name | ast.Attribute))
    return not is_rate and not (isinstance(node.left, ast.Constant) and isinstance(node.op, ast.Div))


def _is_own(node: ast.Name, scope: Scope) -> bool:
    """Return whether a name is bound in a function itself."""
    found = scope.lookup(node.id)
    return found is None or found[0] is scope
