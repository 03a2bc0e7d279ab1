"""Which code of a program may have to do with events: everything else need not be walked."""

import ast
from collections import defaultdict

from gates.scan.events import Happening, tails_of
from gates.scan.known import is_called
from gates.scan.module import Function, Module, tail_of
from gates.scan.pattern import Hole, Pattern, match
from gates.scan.project import Project
from gates.scan.rule import Needs
from gates.scan.scope import Scope
from gates.scan.types import argument

CALLED = {"__call__": 1, "forward": 1, "__enter__": 1, "__exit__": 1}
MAX_CALLERS = 20
Mention = tuple[ast.AST, Module]


class Hot:
    """The code of a program that may be an event, and the functions that lead to some."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self.project = project
        self.functions: dict[ast.AST, Module] = {}
        self.kinds: dict[ast.AST, set[str]] = defaultdict(set)
        self.leads: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        self._hot: set[ast.AST] = set()
        self._spread_names: set[tuple[str, ast.AST]] = set()
        self._mentions = _mentions(project)
        self._renamed = _renamed(project)
        todo: list[ast.AST] = []
        for kind, needs in happening.kinds:
            for pattern in (*kind.calls, *kind.enters, *kind.leaves):
                for tail in tails_of(pattern):
                    for node, module in self._meaning(tail, named=pattern.tail is None):
                        if node not in self._hot and self._may_be(pattern, node, module, needs):
                            todo += self._mark(node, module, kind.name)
                        elif node in self._hot:
                            self._count(node, module, kind.name)
        while todo:
            todo += self._callers(todo.pop())

    def __contains__(self, node: ast.AST) -> bool:
        """Return whether something in a node may be an event or lead to one."""
        return node in self._hot

    def _meaning(self, tail: str, *, named: bool) -> list[Mention]:
        """Return where a name is mentioned, under whatever other name it goes where it is that of a library."""
        found = list(self._mentions.get(tail, ()))
        if not named:
            return found
        names, todo = {tail}, [tail]
        while todo:
            name = todo.pop()
            others = {alias for node, module in self._mentions.get(name, ()) for alias in _aliases(node, module)}
            others |= self._renamed.get(name, set())
            for other in others - names:
                names.add(other)
                todo.append(other)
                for node, module in self._mentions.get(other, ()):
                    dotted = self.project.scope_at(node, module).dotted(node)  # type: ignore[arg-type]  # an expression
                    if dotted is not None and dotted.endswith(f".{tail}"):
                        found.append((node, module))
        return found

    def _may_be(self, pattern: Pattern, node: ast.AST, module: Module, needs: Needs) -> bool:
        """Return whether a mention may be the event, by what is known without walking."""
        if pattern.tail is None:
            return True
        call = module.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node or not isinstance(node, ast.Attribute):
            return False
        scope = self.project.scope_at(node, module)
        assert isinstance(pattern.body, ast.expr)
        if not isinstance(pattern.body, ast.Call) or not isinstance(pattern.body.func, ast.Attribute):
            return True
        inner = Pattern(pattern.text, pattern.body.func.value, None)
        holes = match(inner, node.value, scope)
        if holes is None:
            return not isinstance(node.value, ast.Constant) and pattern.body.func.value.__class__ is not ast.Name
        return all(self._may_fit(needs[name].types, hole) for name, hole in holes.items() if name in needs)

    def _may_fit(self, types: tuple[str, ...], hole: Hole) -> bool:
        node, scope = hole.node, hole.names
        if not types or not isinstance(node, ast.expr) or not isinstance(scope, Scope):
            return True
        for wanted in types:
            known = self.project.types.is_a(self.project.types.of(node, scope), wanted)
            if known or (known is None and (is_called(tail_of(node), wanted) or self._passed(node, scope, wanted))):
                return True
        return False

    def _passed(self, node: ast.expr, scope: Scope, wanted: str) -> bool:
        """Return whether a parameter is passed something of a kind by any caller."""
        if isinstance(node, ast.Subscript | ast.Call):
            return is_called(_deep_tail(node), wanted)
        if not isinstance(node, ast.Name):
            return False
        found = scope.lookup(node.id)
        if found is None or not any(binding.kind in {"parameter", "opaque", "item"} for binding in found[1]):
            return False
        function = found[0].function
        if any(binding.kind != "parameter" for binding in found[1]):
            return self._looped(node.id, found[0], wanted)
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return True  # a lambda's
        for call, module in self.project.named.get(function.name, [])[:MAX_CALLERS]:
            value = argument(call, function, node.id, bound=found[0].owner is not None)
            where = self.project.scope_at(call, module)
            if value is not None and (
                is_called(tail_of(value), wanted)
                or self.project.types.is_a(self.project.types.of(value, where), wanted)
            ):
                return True
        return False

    def _looped(self, name: str, scope: Scope, wanted: str) -> bool:
        """Return whether a loop variable goes through something that is called so."""
        root = scope.function or scope.module.tree
        for node in ast.walk(root):
            if isinstance(node, ast.For) and name in {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}:
                return any(
                    is_called(tail_of(n), wanted)
                    for n in ast.walk(node.iter)
                    if isinstance(n, ast.Name | ast.Attribute)
                )
        return False

    def _count(self, node: ast.AST, module: Module, kind: str) -> None:
        for around in (node, *module.ancestors(node)):
            if around in self.functions:
                self.kinds[around].add(kind)
                return

    def _mark(self, node: ast.AST, module: Module, kind: str = "") -> list[ast.AST]:
        """Mark what a mention stands in, up to its function; return the functions that are now known to be hot."""
        found: list[ast.AST] = []
        for here in (node, *module.ancestors(node)):
            self._hot.add(here)
            if isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module):
                if kind:
                    self.kinds[here].add(kind)
                    kind = ""
                if here in self.functions:
                    return found
                self.functions[here] = module
                found.append(here)
                scope = self.project.scope_of(here, module)
                if scope.outer is None or scope.outer.function is None:
                    return found
        return found

    def _callers(self, function: ast.AST) -> list[ast.AST]:
        """Mark the code that may run a hot function."""
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        module = self.functions[function]
        scope = self.project.scope_of(function, module)
        found = self._under(function.name, function, scope)
        if scope.owner is not None and function.name in CALLED:
            for info_name, info in self.project.classes.items():
                if info_name == scope.owner.name or scope.owner.name in info.bases:
                    found += self._instances(info.node.name, function)
        return found

    def _under(self, name: str, function: Function, scope: Scope) -> list[ast.AST]:
        if (name, function) in self._spread_names:
            return []
        self._spread_names.add((name, function))
        found: list[ast.AST] = []
        for node, module in self._mentions.get(name, ()):
            if self._leads(node, module, function, scope):
                self._link(node, module, function)
                found += self._mark(node, module) if node not in self._hot else []
            if node in self._hot:
                for alias in _aliases(node, module):
                    found += self._under(alias, function, scope)
        for alias in self._renamed.get(name, set()) - {name}:
            found += self._under(alias, function, scope)
        return found

    def _instances(self, name: str, function: Function) -> list[ast.AST]:
        """Mark the variables that hold instances of a class whose instances are called."""
        found: list[ast.AST] = []
        for node, module in self._mentions.get(name, ()):
            call = module.parents.get(node)
            held = module.parents.get(call) if isinstance(call, ast.Call) and call.func is node else None
            if isinstance(held, ast.Assign | ast.AnnAssign):
                for target in held.targets if isinstance(held, ast.Assign) else [held.target]:
                    for mention, other in self._mentions.get(tail_of(target), ()):
                        parent = other.parents.get(mention)
                        if isinstance(parent, ast.Call) and parent.func is mention:
                            self._link(mention, other, function)
                            found += self._mark(mention, other) if mention not in self._hot else []
            elif isinstance(held, ast.withitem) and call is not None:
                self._link(call, module, function)
                found += self._mark(call, module) if call not in self._hot else []
        return found

    def _link(self, node: ast.AST, module: Module, function: ast.AST) -> None:
        """Remember that the functions around a mention may run another."""
        for around in module.ancestors(node):
            if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
                if around is not function:
                    self.leads[around].add(function)
                return
        self.leads[module.tree].add(function)

    def possible(self, function: ast.AST) -> frozenset[str]:
        """Return the names of the events that a function may come to, by all that it may run."""
        seen, todo, found = {function}, [function], set()
        while todo:
            here = todo.pop()
            found |= self.kinds.get(here, set())
            around = self.functions.get(here)
            inner = [f for f, m in self.functions.items() if m is around and here in m.ancestors(f)] if around else []
            for other in (*self.leads.get(here, ()), *(inner if not isinstance(here, ast.Module) else ())):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return frozenset(found)

    def _leads(self, node: ast.AST, module: Module, function: Function, scope: Scope) -> bool:
        """Return whether a mention of a hot function's name may mean that function."""
        assert isinstance(node, ast.Name | ast.Attribute)
        here = self.project.scope_at(node, module)
        is_method = scope.owner is not None
        if isinstance(node, ast.Name):
            found = here.lookup(node.id)
            if found is None or is_method:
                return found is None and bool(module.stars) and not is_method
            return any(b.node is function or b.kind in {"import", "value"} for b in found[1])
        named = here.dotted(node)
        if named is not None and self.project.functions.get(named, (None,))[0] is function:
            return True
        if not is_method:
            return self.project.is_module(node.value, here)
        owner = here.class_of(node.value)
        if owner is None and isinstance(node.value, ast.Call) and tail_of(node.value.func) == "super":
            return True
        if owner is None:
            return self.project.types.of(node.value, here) is None and isinstance(node.value, ast.Name | ast.Attribute)
        resolved = self.project.method(owner, node.attr)
        return resolved is None or resolved[0] is function or self._overrides(scope, owner.name)

    def _overrides(self, scope: Scope, owner: str) -> bool:
        """Return whether a method belongs to a class that extends another."""
        return scope.owner is not None and self.project.types.is_a(scope.owner.name, owner) is not False


def _deep_tail(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return tail_of(node)


def _mentions(project: Project) -> dict[str, list[Mention]]:
    """Return every live place where a name is read or an attribute set, by its last name."""
    found: dict[str, list[Mention]] = defaultdict(list)
    for module in project.modules.values():
        for node in module.live.get(ast.Name, []):
            if isinstance(node, ast.Name):
                found[node.id].append((node, module))
        for node in module.live.get(ast.Attribute, []):
            if isinstance(node, ast.Attribute):
                found[node.attr].append((node, module))
        for name, bindings in module.bindings.items():
            for binding in bindings:
                last = binding.dotted.rpartition(".")[2]
                if binding.kind == "import" and last != name:
                    found[last] += [(n, module) for n in module.live.get(ast.Name, []) if getattr(n, "id", "") == name]
    return found


def _aliases(node: ast.AST, module: Module) -> list[str]:
    """Return the variables that are set to a function itself, directly, in a choice or in a partial."""
    here: ast.AST | None = node
    while here is not None:
        around = module.parents.get(here)
        if isinstance(around, ast.Assign):
            return [tail_of(t) for t in around.targets if tail_of(t) and tail_of(t) != tail_of(node)]  # type: ignore[arg-type]  # an expression
        is_partial = isinstance(around, ast.Call) and around.func is not here and tail_of(around.func) == "partial"
        here = around if isinstance(around, ast.IfExp) or is_partial else None
    return []


def _renamed(project: Project) -> dict[str, set[str]]:
    """Return for each name the names that it is imported under."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in project.modules.values():
        for alias, bindings in module.bindings.items():
            for binding in bindings:
                if binding.kind == "import":
                    found[binding.dotted.rpartition(".")[2]].add(alias)
    return found
