"""What objects are, as far as reading tells: from constructors through variables, attributes, returns and arguments."""

import ast
from typing import TYPE_CHECKING

from gates.scan.program.known import MODULE, OPTIMIZER, SCHEDULER, is_kind
from gates.scan.program.module import Binding, Function, tail_of
from gates.scan.program.nodes import inner, is_none
from gates.scan.program.scope import PREPARES, SAME, UNKNOWN, ClassInfo, Scope

if TYPE_CHECKING:
    from gates.scan.program.project import Project

MAX_DEPTH = 5
PROPERTIES = frozenset({"property", "cached_property"})
SAY_NOTHING = frozenset({"typing.Any", "typing_extensions.Any", "typing.Protocol", "object"})  # what may be anything
_READ = "torch builtins str int float bool dict list tuple set object abc typing enum collections contextlib"
READ = frozenset(_READ.split())  # all kinds are known
_KINDS = {"dict": (ast.Dict, ast.DictComp), "list": (ast.List, ast.ListComp), "set": (ast.Set, ast.SetComp)}
LITERALS: dict[type[ast.AST], str] = {kind: name for name, kinds in _KINDS.items() for kind in kinds}
UNIONS = {"typing.Optional", "typing.Union", "typing.Annotated"}


class Types:
    """Answers what an expression is, by the full name of its class; `None` where that is not known for sure."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._known: dict[tuple[ast.AST, Scope], str | None] = {}
        self._kinds: dict[tuple[str, str], bool | None] = {}
        self._tried: dict[tuple[ast.AST, Scope], int] = {}  # from how deep something was asked for in vain
        self._depth, self._cut = 0, False

    def of(self, node: ast.expr, scope: Scope) -> str | None:
        """Return the full name of an expression's class."""
        key = (node, scope)
        if key in self._known:
            return self._known[key]
        if self._depth >= self._tried.get(key, MAX_DEPTH + 1):
            self._cut = True
            return None
        if self._depth == 0:
            self._cut = False
        self._depth += 1
        self._known[key] = None  # a circle is not known
        try:
            found = self._of(node, scope)
        finally:
            self._depth -= 1
        if found is None and self._cut and self._depth:
            del self._known[key]  # asked for from nearer by, it may be known
            self._tried[key] = self._depth
        else:
            self._known[key] = found
        return found

    def attribute(self, owner: ClassInfo, name: str) -> str | None:
        """Return the class of an attribute of a class's instances."""
        return self._read(self._project.attribute(owner, name))

    def _read(self, bindings: list[tuple[Binding, Scope]]) -> str | None:
        """Return what reading an attribute gives: where that is a descriptor, what its `__get__` makes of it."""
        found = self._agreed(bindings, None) if bindings else None
        return None if found and self._has_own(found, "__get__") else found

    def is_a(self, name: str | None, wanted: str) -> bool | None:
        """Return whether a class is or extends another; `None` where the name is not known."""
        if name is None or name in SAY_NOTHING:
            return None
        key = (name, wanted)
        if key not in self._kinds:
            self._kinds[key] = None  # a circle is not known
            self._kinds[key] = self._extends(name, wanted)
        return self._kinds[key]

    def _extends(self, name: str, wanted: str) -> bool | None:
        if is_kind(name, wanted):
            return True
        if (info := self._project.classes.get(name)) is None:
            return False if name.partition(".")[0] in READ else None
        if info.twice:
            return None
        found = [self.is_a(base, wanted) for base in info.bases]
        return True if True in found else None if None in found else False

    def _of(self, node: ast.expr, scope: Scope) -> str | None:
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Name):
            if node.id == scope.self_name and scope.self_class:
                return scope.self_class.name
            return self._agreed(scope.lookup(node.id), node.id)
        if isinstance(node, ast.Attribute):
            return self._read(scope.attribute(node))
        if isinstance(node, ast.IfExp | ast.BoolOp):
            sides = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return one({self.of(side, scope) for side in sides if not is_none(side)})
        return self.of(node.value, scope) if isinstance(node, ast.NamedExpr | ast.Await) else LITERALS.get(type(node))

    def _agreed(self, bindings: list[tuple[Binding, Scope]], parameter: str | None) -> str | None:
        """Return the class that all bindings agree on; `None` assigned beside counts for nothing."""
        found = {self._bound(b, scope) for b, scope in bindings if b.kind != "value" or not is_none(b.node)}
        return one(found - {None} if len(found) > 1 and parameter is None else found)

    def _bound(self, binding: Binding, scope: Scope) -> str | None:
        node = binding.node
        if binding.kind == "parameter":
            return self._annotated(node, scope) if isinstance(node, ast.expr) else None
        if binding.kind in {"enter", "value"} and isinstance(node, ast.expr):
            return self.of(node, scope)
        return self.item(node, binding.at, scope) if binding.kind == "item" and isinstance(node, ast.Call) else None

    def item(self, call: ast.Call, index: int, scope: Scope) -> str | None:
        """Return what is at a place of a tuple that a call returns."""
        if tail_of(call.func) in PREPARES and index < len(call.args):
            return UNKNOWN if self._project.method_names[tail_of(call.func)] else self.of(call.args[index], scope)
        if (target := self.function(call, scope)) is None:
            return None
        inner = self._project.scope_of(target, scope.module)
        values = _returned(target)
        items = [value.elts[index] for value in values if isinstance(value, ast.Tuple) and index < len(value.elts)]
        return one({*(self.of(item, inner) for item in items), *([None] if len(items) < len(values) else [])})

    def _annotated(self, node: ast.expr, scope: Scope) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError):
                return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return one({self._annotated(n, scope) for n in (node.left, node.right) if not is_none(n)})
        if isinstance(node, ast.Subscript):
            if (named := scope.dotted(node.value)) in UNIONS:
                inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return one({self._annotated(n, scope) for n in inner if not is_none(n)})
            return named if named is not None and named.partition(".")[0] in READ else None
        return scope.dotted(node) if isinstance(node, ast.Name | ast.Attribute) else None

    def _call(self, node: ast.Call, scope: Scope) -> str | None:
        tail = tail_of(node.func)
        if isinstance(node.func, ast.Attribute) and tail in SAME:
            inner = self.of(node.func.value, scope)
            if inner is not None and not self._has_own(inner, tail):
                return inner
        named = scope.dotted(node.func)
        last = (named or "").rpartition(".")[2]  # a constructor begins with a capital, and a constant has no other
        if named is not None and (named in self._project.classes or (last[:1].isupper() and not last.isupper())):
            return named
        if tail in PREPARES and len(node.args) == 1:
            return self.of(node.args[0], scope)
        if tail == "lr_schedulers" and isinstance(node.func, ast.Attribute):
            return SCHEDULER
        if (target := self.function(node, scope)) is None:
            return named if named and any(is_kind(named, k) for k in (SCHEDULER, OPTIMIZER, MODULE)) else None
        inner_scope = self._project.scope_of(target, scope.module)
        annotated = self._annotated(target.returns, inner_scope) if target.returns else None
        if annotated is not None:  # a scheduler annotated as an optimizer is one by its name
            return SCHEDULER if annotated == OPTIMIZER and "sched" in target.name.lower() else annotated
        return one({self.of(value, inner_scope) for value in _returned(target) if not is_none(value)})

    def _has_own(self, name: str, method: str) -> bool:
        info = self._project.classes.get(name)
        return info is not None and self._project.method(info, method) is not None

    def function(self, call: ast.Call, scope: Scope) -> Function | None:
        """Return the project's function that a call runs."""
        if (named := scope.dotted(call.func)) in self._project.functions:
            return self._project.functions[named][0]
        if isinstance(call.func, ast.Attribute):
            owner = scope.class_of(call.func.value)
            found = self._project.method(owner, call.func.attr) if owner else None
            if found and not any(tail_of(each) in PROPERTIES for each in found[0].decorator_list):
                return found[0]  # of a property, what it returns is called
        return None


def _returned(function: Function) -> list[ast.expr]:
    return [node.value for node in inner(function, ast.Return) if node.value is not None]


def one(found: set[str | None]) -> str | None:
    """Return the one class that several answers agree on; what a method of the program may have made is of none."""
    return UNKNOWN if UNKNOWN in found else next(iter(found)) if len(found) == 1 else None
