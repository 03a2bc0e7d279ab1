"""Which code of a program may have to do with events: everything else need not be walked."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from gates.scan.events import Happening, tails_of
from gates.scan.holders import Holder, held
from gates.scan.hooks import hooks_of
from gates.scan.known import is_called
from gates.scan.mention import Mention
from gates.scan.mentions import Sense, mentions_of
from gates.scan.module import Function, Module, is_property, names_of, tail_of
from gates.scan.nodes import below, walk
from gates.scan.parameters import argument
from gates.scan.pattern import Hole, Pattern, match
from gates.scan.project import ClassInfo, Project
from gates.scan.rule import Needs
from gates.scan.scope import Scope
from gates.scan.signatures import Shape, accepts, shape_of

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
        self._spread_names: set[tuple[object, ast.AST]] = set()
        self._mentions = project.once(mentions_of)[0]
        self._attributes: dict[tuple[str, str], bool] = {}
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
                        for other in self._entered(node, module) if pattern in kind.enters else ():
                            todo += self._mark(other.node, other.module, kind.name)
        while todo:
            todo += self._callers(todo.pop())

    def __contains__(self, node: ast.AST) -> bool:
        """Return whether something in a node may be an event or lead to one."""
        return node in self._hot

    def _entered(self, node: ast.AST, module: Module) -> Iterator[Mention]:
        """Yield where a context is entered that a mention is kept as: `self.cast = autocast()`, `with self.cast:`."""
        seen: set[Holder] = set()
        todo = list(_kept_as(node, module, self.project.scope_at(node, module)))
        while todo:
            holder = todo.pop()
            for mention in self._mentions.held_by(holder) if holder not in seen else ():
                if _is_entered(mention):
                    yield mention
                if isinstance(mention.node.ctx, ast.Load):
                    todo += _kept_as(mention.node, mention.module, mention.scope)
            seen.add(holder)

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
        if isinstance(node, ast.Attribute):
            return self._is_attribute(node.attr, wanted)
        if not isinstance(node, ast.Name):
            return False
        found = scope.lookup(node.id)
        if found is None or not any(binding.kind in {"parameter", "opaque", "item"} for binding in found[1]):
            return False
        function = found[0].function
        if any(binding.kind != "parameter" for binding in found[1]):
            taken = (binding.node for binding in found[1] if binding.kind == "item")
            named = (tail_of(n.func) for n in taken if isinstance(n, ast.Call))
            return any(is_called(name, wanted) for name in named) or self._looped(node.id, found[0], wanted)
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

    def _is_attribute(self, name: str, wanted: str) -> bool:
        """Return whether objects of some class of the program have something of a kind under a name."""
        key = (name, wanted)
        if key not in self._attributes:
            having = (info for info in self.project.classes.values() if name in info.attributes)
            kinds = (self.project.types.attribute(info, name) for info in having)
            self._attributes[key] = any(self.project.types.is_a(kind, wanted) for kind in kinds)
        return self._attributes[key]

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
        if function in self.project.once(hooks_of)[0].functions:
            found += self._called_from_lists(function)
        if scope.owner is None:
            return found + self._in_lists(((m.node, m.module) for m in self._meaning(function, scope)), function)
        found += self._by_text(function)
        if function.name in CALLED:
            own = self.project.classes.get(scope.owner.name)
            for info in (*([own] if own else []), *self.project.extending.get(scope.owner.name, ())):
                found += self._instances(info, self._naming(info), function)
                made = ((m.module.parents[m.node], m.module) for m in self._naming(info) if m.is_called)
                found += self._in_lists(made, function)
        return found

    def _meaning(self, function: Function, scope: Scope) -> Iterator[Mention]:
        """Yield the mentions that may mean a function."""
        senses = self._mentions.senses(function.name)
        for sense in senses.meaning(function, scope.owner):
            yield from sense.mentions
        yield from senses.open_mentions if scope.owner is not None else ()

    def _naming(self, info: ClassInfo) -> Iterator[Mention]:
        """Yield the mentions that may name a class."""
        for mention in self._mentions.of(info.node.name):
            named = mention.scope.dotted(mention.node)
            known = named in self.project.classes or named in self.project.functions
            if named == info.name or (not known and (mention.plain[0] or isinstance(mention.node, ast.Attribute))):
                yield mention

    def _under(self, name: str, function: Function, scope: Scope) -> list[ast.AST]:
        if (name, function) in self._spread_names:
            return []
        self._spread_names.add((name, function))
        found: list[ast.AST] = []
        senses = self._mentions.senses(name)
        if scope.owner is not None:
            found += self._open(name, function)
            for attribute in senses.open_attributes:
                found += self._under(attribute, function, scope)
        for sense in senses.meaning(function, scope.owner):
            found += self._led(sense, function)
            for alias in sense.holders:
                found += self._through(alias, function, scope)
        for other in self._mentions.renamed.get(name, set()) - {name} if scope.owner is None else ():
            found += self._under(other, function, scope)
        maker = scope.outer.function if scope.outer else None
        if (
            name == function.name
            and isinstance(maker, ast.FunctionDef | ast.AsyncFunctionDef)
            and _returns(maker, name)
        ):
            found += self._instances(maker, self._meaning(maker, scope.outer), function)  # type: ignore[arg-type]  # it has one
        return found

    def _through(self, alias: Holder, function: Function, scope: Scope) -> list[ast.AST]:
        """Mark what a function is run by under another name: of an attribute, or of a variable of one scope."""
        if isinstance(alias, str):
            return self._under(alias, function, scope)
        if (alias, function) in self._spread_names or scope.owner is not None:
            return []
        self._spread_names.add((alias, function))
        places = ((m.node, m.module, m.around) for m in self._mentions.held_by(alias))
        found = self._lead(alias, places, function)
        for other in self._mentions.passed_from(alias):
            found += self._through(other, function, scope)
        return found

    def _in_lists(self, listed: Iterable[tuple[ast.AST, Module]], function: Function) -> list[ast.AST]:
        """Mark what calls the variable of a loop, where a function, or an object that is one, stands in a list."""
        if not any(_is_listed(node, module) for node, module in listed):
            return []
        return self._called_from_lists(function)

    def _called_from_lists(self, function: Function) -> list[ast.AST]:
        """Mark what calls the variable of a loop, or what stands under a key, as the function can be called."""
        bound = self.project.scope_of(function, self.functions[function]).owner is not None
        found: list[ast.AST] = []
        for shape, places in self.project.once(called_of_lists)[0].items():
            if accepts(function, shape, bound=bound):
                found += self._lead(("lists", shape), places, function)
        return found

    def _by_text(self, function: Function) -> list[ast.AST]:
        """Mark the calls of methods by texts, `getattr(hook, name)(...)`, which may mean a method."""
        found: list[ast.AST] = []
        name = function.name
        for call, module, prefix, texts in self.project.once(called_by_text):
            if not name.startswith(prefix) or not (name in texts or name[len(prefix) :] in texts):
                continue
            if accepts(function, shape_of(call), bound=True):
                around = next(a for a in module.ancestors(call) if isinstance(a, DEFINING))
                self._link(around, function)
                found += self._mark(call, module) if call not in self._hot else []
        return found

    def _led(self, sense: Sense, function: Function) -> list[ast.AST]:
        """Mark mentions that mean a function; as a decorator it runs what it decorates only if it is a context."""
        is_context = any("contextmanager" in tail_of(d) for d in function.decorator_list)
        mentions = (mention for mention in sense.mentions if is_context or not mention.decorates)
        return self._lead((sense, is_context), ((m.node, m.module, m.around) for m in mentions), function)

    def _open(self, name: str, function: Function) -> list[ast.AST]:
        """Mark the calls that may run any method of a name, once for all methods that can be called so."""
        found: list[ast.AST] = []
        for shape, mentions in self._mentions.open_calls(name).items():
            if accepts(function, shape, bound=True):
                places = ((m.node, m.module, m.around) for m in mentions)
                found += self._lead(("open", name, shape), places, function)
        return found

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

    def _instances(self, made: object, mentions: Iterable[Mention], function: Function) -> list[ast.AST]:
        """Mark the places that call what a class makes, or a function returns."""
        return self._lead(("instances", made), self._calls_of(mentions), function)

    def _calls_of(self, mentions: Iterable[Mention]) -> Iterator[tuple[ast.AST, Module, ast.AST]]:
        """Yield what calls an instance of a class, or enters one: by the variables that one is bound to."""
        for mention in mentions:
            parents = mention.module.parents
            call = parents.get(mention.node)
            held = parents.get(call) if isinstance(call, ast.Call) and call.func is mention.node else None
            if isinstance(held, ast.withitem) and call is not None:
                yield call, mention.module, mention.around
            elif isinstance(call, ast.Call) and call.func is mention.node:
                for other in self._mentions.reached_from(call, mention.module, mention.scope):
                    if other.is_called:
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
        return self._possible.get(function, frozenset())

    def sure(self, function: ast.AST) -> frozenset[str]:
        """Return those that a function may come to by itself, where nobody tells of what class its arguments are."""
        return self._sure.get(function, frozenset())

    @cached_property
    def _possible(self) -> dict[ast.AST, frozenset[str]]:
        return self._spread(frozenset())

    @cached_property
    def _sure(self) -> dict[ast.AST, frozenset[str]]:
        opened = (node for key, node in self._any.items() if isinstance(key, tuple) and key[0] == "open")
        return self._spread(frozenset(opened))

    def _spread(self, without: frozenset[ast.AST]) -> dict[ast.AST, frozenset[str]]:
        """Carry events from the functions that have them to all that may run those, or that those are defined in."""
        behind: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        for around, targets in self.leads.items():
            for target in targets if around not in without else ():
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


def _kept_as(node: ast.AST, module: Module, scope: Scope) -> Iterator[Holder]:
    """Yield the variables that are set to what something is a part of: a call, a choice, a table."""
    inside, here = node, module.parents.get(node)
    while isinstance(here, ast.Call | ast.IfExp | ast.Subscript | ast.Dict | ast.Lambda | ast.keyword | ast.Attribute):
        if isinstance(here, ast.Call) and inside is not here.func and tail_of(here.func) not in {"partial", "dict"}:
            return
        inside, here = here, module.parents.get(here)
    if isinstance(here, ast.Return) and isinstance(scope.function, ast.FunctionDef) and is_property(scope.function):
        yield scope.function.name
    targets = here.targets if isinstance(here, ast.Assign) else [here.target] if isinstance(here, ast.AnnAssign) else []
    for target in targets:
        yield from held(target, scope)


def _is_entered(mention: Mention) -> bool:
    """Return whether a mention is what a `with` enters, or whose `__enter__` or `__exit__` is called."""
    around = mention.module.parents.get(mention.node)
    if isinstance(around, ast.Attribute) and around.attr in {"__enter__", "__exit__"}:
        return True
    while isinstance(around, ast.Call | ast.Subscript):
        around = mention.module.parents.get(around)
    return isinstance(around, ast.withitem)


def _is_listed(node: ast.AST, module: Module) -> bool:
    """Return whether a function, or what a call makes, stands in a list or is added to one."""
    around = module.parents.get(node)
    added = isinstance(around, ast.Call) and tail_of(around.func) in {"append", "add", "register", "add_hook"}
    if added or not isinstance(around, ast.List | ast.Tuple | ast.Dict):
        return added
    outer = module.parents.get(around)  # of `isinstance(x, (A, B))`, `except (A, B)` and `Union[A, B]` none is run
    asked = isinstance(outer, ast.Call) and tail_of(outer.func) in {"isinstance", "issubclass"}
    return not asked and not isinstance(outer, ast.Subscript | ast.ExceptHandler)


def called_of_lists(project: Project) -> Iterator[dict[Shape, list[tuple[ast.AST, Module, ast.AST]]]]:
    """Yield where what stands in a list or under a key is called, by how it is called, and the functions around."""
    found: dict[Shape, list[tuple[ast.AST, Module, ast.AST]]] = defaultdict(list)
    for func, module in (*_called_in_loops(project), *_called_by_key(project), *_called_for_events(project)):
        call = module.parents.get(func)
        if isinstance(call, ast.Call):
            around = next(a for a in module.ancestors(func) if isinstance(a, DEFINING))
            found[shape_of(call)].append((func, module, around))
    yield dict(found)


def _called_in_loops(project: Project) -> Iterator[tuple[ast.AST, Module]]:
    """Yield where the variable of a loop is called."""
    for module in project.modules.values():
        for loop in (*module.live.get(ast.For, []), *module.live.get(ast.comprehension, [])):
            name = tail_of(loop.target) if isinstance(loop, ast.For | ast.comprehension) else ""
            whole = loop if isinstance(loop, ast.For) else module.parents.get(loop, loop)
            for call in module.calls.get(name, []) if name else ():
                if isinstance(call.func, ast.Name) and whole in module.ancestors(call):
                    yield call.func, module


def _called_for_events(project: Project) -> Iterator[tuple[ast.AST, Module]]:
    """Yield where the one function that is kept under an event is called by a variable."""
    fired = (each.inside for found in project.once(hooks_of)[0].firing.values() for each in found)
    yield from {call.func: (call.func, module) for call, module in fired if isinstance(call.func, ast.Name)}.values()


def _called_by_key(project: Project) -> Iterator[tuple[ast.AST, Module]]:
    """Yield where what stands under a key is called, directly or by a variable that is set to it."""
    for module in project.modules.values():
        found: list[ast.expr] = [c.func for c in module.calls.get("", []) if isinstance(c.func, ast.Subscript)]
        for node in module.live.get(ast.Assign, []):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                found += [call.func for target in node.targets for call in module.calls.get(tail_of(target), ())]
        yield from ((func, module) for func in found)


def called_by_text(project: Project) -> Iterator[tuple[ast.Call, Module, str, frozenset[str]]]:
    """Yield the calls `getattr(x, name)(...)`, how their names begin, and the texts that they may be or end with."""
    known: frozenset[str] | None = None
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
            known = frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        first = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else None
        first = name.left if isinstance(name, ast.BinOp) else first
        prefix = str(first.value) if isinstance(first, ast.Constant) else ""
        yield call, module, prefix, known


def _returns(maker: Function, name: str) -> bool:
    """Return whether a function returns the one inside of it that has a name."""
    values = [node.value for node in below(maker) if isinstance(node, ast.Return) and node.value is not None]
    parts = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return any(tail_of(part) == name for part in parts)
