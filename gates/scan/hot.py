"""Which code of a program may have to do with events: everything else need not be walked."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from gates.scan.events import Happening, tails_of
from gates.scan.known import is_called
from gates.scan.mentions import Sense, mentions_of
from gates.scan.module import Function, Module, names_of, tail_of
from gates.scan.nodes import below, walk
from gates.scan.pattern import Hole, Pattern, match
from gates.scan.project import Project
from gates.scan.rule import Needs
from gates.scan.scope import Scope
from gates.scan.types import argument

CALLED = {"__call__": 1, "forward": 1, "__enter__": 1, "__exit__": 1}
MAX_CALLERS = 20
DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


class Hot:
    """The code of a program that may be an event, and the functions that lead to some."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self.project = project
        self.functions: dict[ast.AST, Module] = {}
        self.kinds: dict[ast.AST, set[str]] = defaultdict(set)
        self.leads: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        self._hot: set[ast.AST] = set()
        self._reach: dict[ast.AST, frozenset[ast.AST]] = {}
        self._spread_names: set[tuple[str, ast.AST]] = set()
        self._mentions = project.once(mentions_of)[0]
        self._possible: dict[ast.AST, frozenset[str]] | None = None
        self._any: dict[object, ast.AST] = {}  # what stands for all functions that some places may run
        todo: list[ast.AST] = []
        for kind, needs in happening.kinds:
            for pattern in (*kind.calls, *kind.enters, *kind.leaves):
                for tail in tails_of(pattern):
                    for mention in self._mentions.meaning(tail) if pattern.tail is None else self._mentions.of(tail):
                        node, module = mention.node, mention.module
                        if node not in self._hot and self._may_be(pattern, node, module, needs):
                            todo += self._mark(node, module, kind.name)
                        elif node in self._hot:
                            self._count(node, module, kind.name)
        while todo:
            todo += self._callers(todo.pop())

    def __contains__(self, node: ast.AST) -> bool:
        """Return whether something in a node may be an event or lead to one."""
        return node in self._hot

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
            if isinstance(pattern.body.func.value, ast.Attribute):
                return isinstance(node.value, ast.Name) and pattern.body.func.value.attr in node.value.id
            return not isinstance(node.value, ast.Constant) and pattern.body.func.value.__class__ is not ast.Name
        return all(self._may_fit(needs[name].types, hole) for name, hole in holes.items() if name in needs)

    def _may_fit(self, types: tuple[str, ...], hole: Hole) -> bool:
        node, scope = hole.node, hole.names
        if not types or not isinstance(node, ast.expr) or not isinstance(scope, Scope):
            return True
        for wanted in types:
            known = self.project.types.is_a(self.project.types.of(node, scope), wanted)
            if known or (
                known is None
                and (any(is_called(n, wanted) for n in names_of(node)) or self._passed(node, scope, wanted))
            ):
                return True
        return False

    def _passed(self, node: ast.expr, scope: Scope, wanted: str) -> bool:
        """Return whether a parameter is passed something of a kind by any caller."""
        if isinstance(node, ast.Subscript | ast.Call):
            return any(is_called(name, wanted) for name in names_of(node))
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
        for node in below(root):
            if isinstance(node, ast.For) and name in {n.id for n in walk(node.target) if isinstance(n, ast.Name)}:
                return any(
                    is_called(tail_of(n), wanted) for n in walk(node.iter) if isinstance(n, ast.Name | ast.Attribute)
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
        found += self._by_text(function) if scope.owner is not None else self._in_lists(function.name, function)
        if scope.owner is not None and function.name in CALLED:
            own = self.project.classes.get(scope.owner.name)
            for info in (*([own] if own else []), *self.project.extending.get(scope.owner.name, ())):
                found += self._instances(info.node.name, function)
                found += self._in_lists(info.node.name, function)
        return found

    def _under(self, name: str, function: Function, scope: Scope) -> list[ast.AST]:
        if (name, function) in self._spread_names:
            return []
        self._spread_names.add((name, function))
        found: list[ast.AST] = []
        if scope.owner is not None:
            found += self._open(name, function)
        for sense in self._mentions.senses(name).meaning(function, scope.owner):
            if scope.owner is None or not sense.first.is_open:  # those are marked for all methods of this name at once
                found += self._led(sense, function)
            for alias in sense.aliases:
                found += self._under(alias, function, scope)
        for alias in self._mentions.renamed.get(name, set()) - {name}:
            found += self._under(alias, function, scope)
        maker = scope.outer.function if scope.outer else None
        if (
            name == function.name
            and isinstance(maker, ast.FunctionDef | ast.AsyncFunctionDef)
            and _returns(maker, name)
        ):
            found += self._instances(maker.name, function)
        return found

    def _in_lists(self, name: str, function: Function) -> list[ast.AST]:
        """Mark what calls the variable of a loop, where a function, or an object that is one, stands in a list."""
        if not any(_is_listed(mention.node, mention.module) for mention in self._mentions.of(name)):
            return []
        places = (*self.project.once(called_in_loops), *self.project.once(called_by_key))
        return self._lead("lists", places, function)

    def _by_text(self, function: Function) -> list[ast.AST]:
        """Mark the calls of methods by texts, `getattr(hook, name)(...)`, which may mean a method."""
        found: list[ast.AST] = []
        for call, module, prefix, texts in self.project.once(called_by_text):
            if function.name in texts and function.name.startswith(prefix):
                around = next(a for a in module.ancestors(call) if isinstance(a, DEFINING))
                self._link(around, function)
                found += self._mark(call, module) if call not in self._hot else []
        return found

    def _led(self, sense: Sense, function: Function) -> list[ast.AST]:
        """Mark mentions that mean a function."""
        return self._lead(sense, ((m.node, m.module, m.around) for m in sense.mentions), function)

    def _open(self, name: str, function: Function) -> list[ast.AST]:
        """Mark the mentions that may mean any method of a name, once for all of these."""
        places = ((m.node, m.module, m.around) for m in self._mentions.of(name) if m.is_open)
        return self._lead(("open", name), places, function)

    def _lead(self, key: object, places: Iterable[tuple[ast.AST, Module, ast.AST]], function: ast.AST) -> list[ast.AST]:
        """Let places lead to a function by way of what stands for all that they may run; mark them the first time."""
        found: list[ast.AST] = []
        if key not in self._any:
            self._any[key] = ast.Name("any", ast.Load())
            for node, module, around in places:
                self.leads[around].add(self._any[key])
                found += self._mark(node, module) if node not in self._hot else []
        self.leads[self._any[key]].add(function)
        return found

    @cached_property
    def run(self) -> set[ast.AST]:
        """Return the functions that other code may run."""
        found: set[ast.AST] = set()
        arounds: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        groups = {any_one: self.leads[any_one] for any_one in self._any.values()}
        for around, targets in self.leads.items():
            for target in targets if around not in groups else ():
                if target in groups:
                    arounds[target].add(around)
                elif target is not around:
                    found.add(target)
        for any_one, members in groups.items():
            by = arounds[any_one]
            found |= members if len(by) > 1 else {member for member in members if by and member not in by}
        return found

    def _instances(self, name: str, function: Function) -> list[ast.AST]:
        """Mark the places that call instances of a class."""
        return self._lead(("instances", name), self._calls_of(name), function)

    def _calls_of(self, name: str) -> Iterator[tuple[ast.AST, Module, ast.AST]]:
        """Yield what calls an instance of a class, or enters one: by the variables that one is bound to."""
        for mention in self._mentions.of(name):
            parents = mention.module.parents
            call = parents.get(mention.node)
            held = parents.get(call) if isinstance(call, ast.Call) and call.func is mention.node else None
            if isinstance(held, ast.Assign | ast.AnnAssign):
                for target in held.targets if isinstance(held, ast.Assign) else [held.target]:
                    for other in self._mentions.of(tail_of(target)):
                        parent = other.module.parents.get(other.node)
                        if isinstance(parent, ast.Call) and parent.func is other.node:
                            yield other.node, other.module, other.around
            elif isinstance(held, ast.withitem) and call is not None:
                yield call, mention.module, mention.around
            elif isinstance(held, ast.keyword) and held.arg:
                for other in self._mentions.of(held.arg):
                    parent = other.module.parents.get(other.node)
                    if isinstance(parent, ast.Call) and parent.func is other.node:
                        yield other.node, other.module, other.around

    def _link(self, around: ast.AST, function: ast.AST) -> None:
        """Remember that the code around a mention may run a function."""
        if around is not function:
            self.leads[around].add(function)

    def reach(self, function: ast.AST) -> frozenset[ast.AST]:
        """Return the hot functions that a function may run, by whatever it runs."""
        if function not in self._reach:
            seen: set[ast.AST] = set()
            todo = list(self.leads.get(function, ()))
            while todo:
                here = todo.pop()
                if here not in seen:
                    seen.add(here)
                    todo += self.leads.get(here, ())
            self._reach[function] = frozenset(seen)
        return self._reach[function]

    def possible(self, function: ast.AST) -> frozenset[str]:
        """Return the names of the events that a function may come to, by all that it may run."""
        if self._possible is None:
            self._possible = self._spread()
        return self._possible.get(function, frozenset())

    def _spread(self) -> dict[ast.AST, frozenset[str]]:
        """Carry events from the functions that have them to all that may run those, or that those are defined in."""
        behind: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        for around, targets in self.leads.items():
            for target in targets:
                behind[target].add(around)
        for function, module in self.functions.items():
            for around in module.ancestors(function):
                if around in self.functions and not isinstance(around, ast.Module):
                    behind[function].add(around)
        found = {node: frozenset(kinds) for node, kinds in self.kinds.items()}
        todo = list(found)
        while todo:
            here = todo.pop()
            for around in behind.get(here, ()):
                both = found.get(around, frozenset()) | found[here]
                if both != found.get(around):
                    found[around] = both
                    todo.append(around)
        return found


def _is_listed(node: ast.AST, module: Module) -> bool:
    """Return whether a name, or what a call of it makes, stands in a list or is added to one."""
    around = module.parents.get(node)
    around = module.parents.get(around) if isinstance(around, ast.Call) and around.func is node else around
    added = isinstance(around, ast.Call) and tail_of(around.func) in {"append", "add", "register", "add_hook"}
    return added or isinstance(around, ast.List | ast.Tuple | ast.Dict)


def called_in_loops(project: Project) -> Iterator[tuple[ast.AST, Module, ast.AST]]:
    """Yield where the variable of a loop is called, and the function around it."""
    for module in project.modules.values():
        for loop in module.live.get(ast.For, []):
            name = tail_of(loop.target) if isinstance(loop, ast.For) else ""
            for call in module.calls.get(name, []) if name else ():
                if isinstance(call.func, ast.Name) and loop in module.ancestors(call):
                    yield call.func, module, next(a for a in module.ancestors(call) if isinstance(a, DEFINING))


def called_by_key(project: Project) -> Iterator[tuple[ast.AST, Module, ast.AST]]:
    """Yield where what stands under a key is called, directly or by a variable that is set to it."""
    for module in project.modules.values():
        found: list[ast.expr] = [c.func for c in module.calls.get("", []) if isinstance(c.func, ast.Subscript)]
        for node in module.live.get(ast.Assign, []):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                found += [call.func for target in node.targets for call in module.calls.get(tail_of(target), ())]
        for func in found:
            yield func, module, next(a for a in module.ancestors(func) if isinstance(a, DEFINING))


def called_by_text(project: Project) -> Iterator[tuple[ast.Call, Module, str, frozenset[str]]]:
    """Yield the calls `getattr(x, name)(...)`, how their names begin, and the texts that they may be or end with."""
    known: set[str] | None = None
    for found, module in project.named.get("getattr", []):
        call = module.parents.get(found)
        held = tail_of(call.targets[0]) if isinstance(call, ast.Assign) else ""
        if held:
            body = next(a for a in module.ancestors(found) if isinstance(a, DEFINING))
            call = next((c for c in module.calls.get(held, []) if body in module.ancestors(c)), None)
        if not isinstance(call, ast.Call) or (call.func is not found and not held) or len(found.args) < 2:
            continue
        name = found.args[1]
        if isinstance(name, ast.Constant):
            yield call, module, "", frozenset({str(name.value)})
            continue
        if known is None:
            nodes = (n for m in project.modules.values() for n in m.live.get(ast.Constant, []))
            known = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        first = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else None
        first = name.left if isinstance(name, ast.BinOp) else first
        prefix = str(first.value) if isinstance(first, ast.Constant) else ""
        yield call, module, prefix, frozenset(known | {prefix + text for text in known})


def _returns(maker: Function, name: str) -> bool:
    """Return whether a function returns the one inside of it that has a name."""
    values = [node.value for node in below(maker) if isinstance(node, ast.Return) and node.value is not None]
    parts = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return any(tail_of(part) == name for part in parts)
