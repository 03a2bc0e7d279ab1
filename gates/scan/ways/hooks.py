"""Hooks: functions that a program keeps under the names of events, and the calls that run those of one event."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, Named, tail_of
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.ways.registries import FUNCTIONS, Dispatched, added, dispatched, event_of, filled

MAX_HOPS, MAX_SITES = 3, 40
Site = tuple[ast.Call, Module]


@dataclass(frozen=True)
class Hook:
    """What is kept under an event: a function by the expression that names it, or the method called as the event.

    Its event is empty in a list that has none.
    """

    event: str
    node: ast.expr
    scope: Scope
    is_object: bool = False

    def named(self, event: str) -> ast.expr:
        """Return the expression that names the function for an event."""
        return (
            ast.copy_location(ast.Attribute(self.node, event, ast.Load()), self.node) if self.is_object else self.node
        )


@dataclass(frozen=True)
class Fired:
    """A call that fires an event, the call of the hooks in what it runs, and one of these."""

    call: ast.Call
    module: Module
    inside: Site
    function: Function


class Hooks:
    """Answers which functions a program runs for an event."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._kept: dict[str, list[Hook]] = defaultdict(list)
        calls = list(dispatched(project))
        for kept, event, holder, module in added(project, {holder for *_, holder in calls if holder}):
            for hook in self._found(event, kept, project.scope_at(kept, module), MAX_HOPS):
                self._kept[holder].append(hook)
        self.functions = {f for hooks in self._kept.values() for hook in hooks for f in self._of(hook)}
        self.fired_by: dict[ast.Call, list[Fired]] = defaultdict(list)
        self.firing: dict[ast.AST, list[Fired]] = defaultdict(list)
        self.run_by: dict[ast.Call, list[Function]] = defaultdict(list)
        for each in self._fired(calls):
            self.fired_by[each.call].append(each)
            self.firing[each.function].append(each)
            self.run_by[each.inside[0]].append(each.function)

    def under(self, holder: str, event: str) -> list[Hook]:
        """Return the hooks that a list or mapping of a name holds for an event."""
        return [hook for hook in self._kept.get(holder, ()) if hook.is_object or hook.event == event]

    def held(self, holder: str) -> list[Hook]:
        """Return all that a list or mapping of a name holds."""
        return self._kept.get(holder, [])

    def _found(self, event: ast.expr | None, kept: ast.expr, scope: Scope, hops: int) -> Iterator[Hook]:
        """Yield the hooks that one place adds, followed through the callers of a function that registers."""
        if isinstance(kept, ast.Call) and tail_of(kept.func) == "getattr" and len(kept.args) > 1:
            of_event = event is not None and ast.dump(kept.args[1]) == ast.dump(event)
            for hook in self._found(None, kept.args[0], scope, hops) if of_event else ():
                yield Hook("", hook.node, hook.scope, is_object=True)
            return
        taker, asker = _parameter(kept, scope), _parameter(event, scope)
        asked = asker if asker is not None else taker
        if asked is None:
            name = event_of(event, scope) if event is not None else ""
            yield from (Hook(name, kept, scope),) if name is not None and not isinstance(kept, ast.Constant) else ()
            return
        for call, module in self._calls_of(asked.function, asked) if hops else ():
            where = self._project.scope_at(call, module)
            given, there = (_passed(call, asked, event), where) if asker is asked else (event, scope)
            if asker is None or given is not None:
                for value, at in self._registered(call, module, kept, scope, (taker, asked)):
                    yield from self._either(given, there, value, at, hops)
        for function, module in self._decorated(taker) if taker is not None and taker.outer is not asked else ():
            yield from self._either(event, scope, _naming(function), self._project.scope_at(function, module), 0)

    def _registered(
        self, call: ast.Call, module: Module, kept: ast.expr, scope: Scope, by: tuple[Scope | None, Scope]
    ) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield what a call of a function that registers lets it keep: an argument, what it decorates, its own."""
        (taker, asked), decorated = by, module.parents.get(call)
        value = _passed(call, asked, kept) if taker is asked else None
        if value is not None:
            yield value, self._project.scope_at(call, module)
        elif taker is None:
            yield kept, scope
        elif taker.outer is asked and isinstance(decorated, FUNCTIONS) and call in decorated.decorator_list:
            yield _naming(decorated), self._project.scope_at(decorated, module)

    def _either(self, event: ast.expr | None, at: Scope, held: ast.expr, scope: Scope, hops: int) -> Iterator[Hook]:
        """Yield the hooks of an event that is named in one place and a function that is named in another."""
        if at is scope and hops:
            yield from self._found(event, held, scope, hops - 1)
        elif (name := event_of(event, at) if event is not None else "") is not None:
            yield from (Hook(name, each.node, each.scope) for each in self._found(None, held, scope, max(hops - 1, 0)))

    def _calls_of(self, function: ast.AST | None, scope: Scope) -> Iterator[Site]:
        name = getattr(function, "name", "")
        if name == "__call__" and scope.owner is not None:
            yield from self._calls_of_objects(scope.owner)
        is_sole = scope.owner is not None and self._project.method_names[name] == 1
        for call, module in self._project.named.get(name, [])[:MAX_SITES]:
            target = self._project.types.function(call, self._project.scope_at(call, module))
            if target is function or (target is None and is_sole and isinstance(call.func, ast.Attribute)):
                yield call, module

    def _calls_of_objects(self, owner: ClassInfo) -> Iterator[Site]:
        """Yield the calls of the variables that objects of a class are kept in."""
        made = (module.parents.get(call) for call, module in self._project.named.get(owner.node.name, ()))
        names = {tail_of(target) for node in made if isinstance(node, ast.Assign) for target in node.targets}
        for call, module in (pair for name in sorted(names) for pair in self._project.named.get(name, ())[:MAX_SITES]):
            if self._project.types.of(call.func, self._project.scope_at(call, module)) == owner.name:
                yield call, module

    def _decorated(self, taker: Scope) -> Iterator[tuple[Function, Module]]:
        """Yield the functions that a plain decorator is written at."""
        name = getattr(taker.function, "name", "")
        for module in (m for m in self._project.modules.values() if name in m.words):
            for node in (*module.live.get(ast.FunctionDef, ()), *module.live.get(ast.AsyncFunctionDef, ())):
                for decorator in node.decorator_list if isinstance(node, FUNCTIONS) else ():
                    scope = self._project.scope_at(decorator, module)
                    named = scope.dotted(decorator) if isinstance(decorator, ast.Name | ast.Attribute) else None
                    if named is not None and self._project.functions.get(named, (None,))[0] is taker.function:
                        yield node, module

    def _of(self, hook: Hook, event: str = "") -> Iterator[Function]:
        """Yield the function that a hook is, or the methods of an object."""
        project, node, scope = self._project, hook.node, hook.scope
        owner = scope.class_of(node)
        if isinstance(node, Named):
            yield node.function
        elif hook.is_object and owner is not None:
            methods = owner.methods.values()
            yield from (f for f in methods if not event or f.name == event)
        elif isinstance(node, ast.Name | ast.Attribute) and (named := scope.dotted(node)) in project.functions:
            yield project.functions[named or ""][0]
        elif isinstance(node, ast.Attribute) and (of := scope.class_of(node.value)) is not None:
            found = project.method(of, node.attr)
            yield from (found[0],) if found else ()
        elif owner is not None and (found := project.method(owner, "__call__")) is not None:
            yield found[0]

    def _fired(self, calls: list[Dispatched]) -> Iterator[Fired]:
        """Yield the calls that fire events."""
        for inside, module, event, holder in calls:
            scope = self._project.scope_at(inside, module)
            for call, there, name in self._named(inside, module, event, scope):
                hooks = self.under(holder, name) if holder else ()
                found = [f for hook in hooks for f in self._of(hook, name)] or self._marked.get(name, [])
                for function in dict.fromkeys(found if holder else self._methods(name)):
                    yield Fired(call, there, (inside, module), function)

    def _named(
        self, inside: ast.Call, module: Module, event: ast.expr | None, scope: Scope
    ) -> Iterator[tuple[ast.Call, Module, str]]:
        """Yield the calls that tell which event it is, and its name."""
        known = event_of(event, scope) if event is not None else ""
        if known is not None:
            yield inside, module, known
            return
        names = [n for n in ast.walk(event) if isinstance(n, ast.Name)] if event is not None else []
        for call, there, told in self._told(names[0], scope, MAX_HOPS) if len(names) == 1 else ():
            yield call, there, filled(event, told) if event is not None else told

    def _told(self, name: ast.Name, scope: Scope, hops: int) -> Iterator[tuple[ast.Call, Module, str]]:
        """Yield the calls that say what a parameter is, those of a caller that hands its own one on among them."""
        asker = _parameter(name, scope)
        for call, there in self._calls_of(asker.function, asker) if asker is not None and hops else ():
            where = self._project.scope_at(call, there)
            given = _passed(call, asker, name) if asker is not None else None
            told = event_of(given, where)
            if told is not None:
                yield call, there, told
            elif isinstance(given, ast.Name):
                yield from self._told(given, where, hops - 1)

    @cached_property
    def _marked(self) -> dict[str, list[Function]]:
        """Return the functions that a decorator of the program marks with the names of events: `@on("step", "end")`."""
        found: dict[str, list[Function]] = defaultdict(list)
        for module in self._project.modules.values():
            for node in (*module.live.get(ast.FunctionDef, ()), *module.live.get(ast.AsyncFunctionDef, ())):
                for decorator in node.decorator_list if isinstance(node, FUNCTIONS) else ():
                    texts = [a.value for a in getattr(decorator, "args", ()) if isinstance(a, ast.Constant)]
                    if texts and isinstance(decorator, ast.Call) and isinstance(node, FUNCTIONS):
                        named = self._project.scope_at(decorator, module).dotted(decorator.func)
                        for text in texts if named in self._project.functions else ():
                            found[str(text)].append(node)
        return found

    def _methods(self, name: str) -> Iterator[Function]:
        """Yield the methods that fill in a hook which is asked for by its name."""
        infos = [info for info in self._project.by_method.get(name, ()) if name in info.methods and not info.twice]
        yield from (info.methods[name] for info in infos if "_" in name)


def hooks_of(project: Project) -> Iterator[Hooks]:
    """Yield the hooks of a program, for `Project.once`."""
    yield Hooks(project)


def _parameter(node: ast.expr | None, scope: Scope) -> Scope | None:
    """Return the function of which a name is a parameter."""
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    is_one = found is not None and [b.kind for b in found[1]] == ["parameter"]
    return found[0] if found is not None and is_one and isinstance(found[0].function, FUNCTIONS) else None


def _passed(call: ast.Call, taker: Scope, name: ast.expr | None) -> ast.expr | None:
    assert isinstance(taker.function, FUNCTIONS)
    return argument(call, taker.function, tail_of(name), bound=taker.owner is not None) if name is not None else None


def _naming(function: Function) -> Named:
    return ast.copy_location(Named(function), function)
