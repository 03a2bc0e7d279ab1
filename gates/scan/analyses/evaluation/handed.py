"""Callbacks: what a program runs where it calls what it was handed, and whose models these put off."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from gates.scan.analyses.reading.code import is_model_call
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.analyses.reading.outward import Step, root_of, sets_anew, ways
from gates.scan.analyses.reading.targets import Targets
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Body = Function | ast.Lambda


class Handed:
    """Answers which callbacks run where a program calls what it was handed: functions, objects, their methods."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._origins = Origins(project)
        self._targets = Targets(project, self._origins)
        self._asked: dict[ast.Call, tuple[str, ast.expr, Module]] = {}
        self._known: dict[ast.Call, tuple[Body, ...]] = {}
        self._named: dict[str, list[ast.Call]] = defaultdict(list)
        for module in project.modules.values():
            for call in (c for pairs in module.calls.values() for c in pairs):
                asked = _asked(call, module, project)
                if asked is not None:
                    self._asked[call] = (*asked, module)
                    self._named[asked[0]].append(call)

    def runs(self, call: ast.Call) -> tuple[Body, ...]:
        """Return the callbacks that a call may run."""
        if call not in self._asked:
            return ()
        if call not in self._known:
            self._known[call] = ()  # a circle
            name, held, module = self._asked[call]
            scope = self._project.scope_at(held, module)
            found = [self._project.method(o, name or "__call__") for o in self._origins.classes(held, scope)]
            bodies: list[Body] = [method[0] for method in found if method is not None]
            bodies += [] if name else [*self._targets.behind(held, scope), *self._nested(held, scope)]
            self._known[call] = tuple(dict.fromkeys(bodies))
        return self._known[call]

    def _nested(self, held: ast.expr, scope: Scope) -> Iterator[Function]:
        """Yield the functions that a value may be which are defined in others."""
        for origin in self._origins.of(held, scope):
            made = origin.scope.lookup(origin.node.id) if isinstance(origin.node, ast.Name) else None
            for binding in made[1] if made is not None else ():
                if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield binding.node

    def beyond(self, way: list[Step]) -> Iterator[tuple[list[Step], int]]:
        """Yield a way with what is around the calls that run a callback on it, and where these stand on it."""
        for at, step in enumerate(way):
            body = _body(step)
            if body is None or sets_anew(body, step.root):
                continue
            owner = self._project.scope_of(body, step.module).owner
            name = "" if owner is None or body.name == "__call__" else body.name  # type: ignore[union-attr]
            for call in [c for key in dict.fromkeys((name, "")) for c in self._named[key] if body in self.runs(c)]:
                if not _is_told(call, body, bound=owner is not None):
                    continue
                there = self._asked[call][2]
                root = _handed_on(call, body, step.root, bound=owner is not None)
                for rest in ways(self._project, there, call, root):
                    yield [*way[: at + 1], *rest], at + 1

    def is_shared(self, model: ast.expr, way: list[Step], by: int) -> bool:
        """Return whether the model that a callback puts off is known where training goes on around its call."""
        scope = self._project.scope_at(way[0].call, way[0].module)
        for below, step in pairwise(way[: by + 1]):
            body, root = _body(below), root_of(model)
            bound = scope.owner is not None
            if body is None or root is None or (bound and root == scope.self_name):
                continue
            names = {a.arg for a in (*body.args.posonlyargs, *body.args.args)}
            given = argument(step.call, body, root, bound=bound) if _is_whole(step.call, body, bound=bound) else None  # type: ignore[arg-type]  # its arguments are asked for
            if root in names and step is way[by] and given is not None:
                return True
            known = (given, self._project.scope_at(step.call, step.module)) if given is not None else None
            if known is None and step is way[by]:
                known = self._partly(body, root)
            model, scope = known or (model, scope)
        wanted = self._keys(model, scope)
        around = next((step for step in way[by:] if step.loops), None)
        used = self._used(around) if around is not None else ()
        return any(wanted & self._keys(node, there) for node, there in used)

    def _partly(self, body: Body, name: str) -> tuple[ast.expr, Scope] | None:
        """Return what a callback was given beforehand for a parameter: `partial(check, model)`."""
        for call, module in self._project.named.get("partial", ()):
            if call.args and not isinstance(body, ast.Lambda) and tail_of(call.args[0]) == body.name:
                begun = ast.Call(call.args[0], call.args[1:], call.keywords)
                given = argument(begun, body, name, bound=False)
                return (given, self._project.scope_at(call, module)) if given is not None else None
        return None

    def _used(self, step: Step) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield the variables of the loops around a call, and the attributes of the own instance."""
        scope = self._project.scope_at(step.call, step.module)
        for node in (n for loop in step.loops for n in inner(loop, ast.Name)):
            if isinstance(node, ast.Name) and node.id != scope.self_name:
                yield node, self._project.scope_at(node, scope.module)
        for method in scope.owner.methods.values() if scope.owner is not None else ():
            for part in inner(method, ast.Attribute):
                if isinstance(part, ast.Attribute) and tail_of(part.value) == scope.self_name:
                    yield part, self._project.scope_at(part, scope.module)

    def _keys(self, node: ast.expr, scope: Scope) -> set[object]:
        """Return what tells whether two values may be one object: the variables and calls that they came from."""
        found = self._origins.of(node, scope)
        made = {self._project.types.function(o.node, o.scope) for o in found if isinstance(o.node, ast.Call)} - {None}
        return {_key(o) for o in found if o.scope.function not in made} - {None}


def _key(origin: Origin) -> object:
    if isinstance(origin.node, ast.Name):
        found = origin.scope.lookup(origin.node.id)
        return (found[0], origin.node.id) if found is not None else None
    return origin.node if isinstance(origin.node, ast.Call) else None


def handed_of(project: Project) -> Iterator[Handed]:
    """Yield the callbacks of a program, for `Project.once`."""
    yield Handed(project)


def _asked(call: ast.Call, module: Module, project: Project) -> tuple[str, ast.expr] | None:
    """Return the method that is asked for of what a function was handed, and that; no method where it is called."""
    func, name = call.func, ""
    scope = project.scope_at(call, module)
    if is_model_call(call):
        return None
    if isinstance(func, ast.Attribute):
        name = func.attr
        func = func.value
        if name not in project.method_names:
            return ("", call.func) if tail_of(func) == scope.self_name else None
    elif isinstance(func, ast.Call) and tail_of(func.func) == "getattr" and len(func.args) > 1:
        told = func.args[1]
        if not isinstance(told, ast.Constant) or not isinstance(told.value, str):
            return None
        func, name = func.args[0], told.value
    if not isinstance(func, ast.Name) or func.id == scope.self_name:
        return None
    found = scope.lookup(func.id)
    kinds = {b.kind for b in found[1]} if found is not None else set()
    is_handed = (kinds <= {"parameter", "opaque"} and bool(kinds)) or _is_gone_through(func, module)
    return (name, func) if is_handed else None


def _is_gone_through(name: ast.Name, module: Module) -> bool:
    """Return whether a variable is that of a comprehension around it."""
    around = (g for a in module.ancestors(name) for g in getattr(a, "generators", ()))
    return any(isinstance(n, ast.Name) and n.id == name.id for g in around for n in walk(g.target))


def _handed_on(call: ast.Call, body: Body, root: str | None, *, bound: bool) -> str | None:
    """Return what holds at the call of a callback the object that it puts off; the callback, where it has it itself."""
    names = [a.arg for a in (*body.args.posonlyargs, *body.args.args)][bound:]
    if root is None or root not in names or isinstance(body, ast.Lambda) or not _is_whole(call, body, bound=bound):
        return root_of(call.func)
    return root_of(argument(call, body, root, bound=bound))


def _is_whole(call: ast.Call, body: Body, *, bound: bool) -> bool:
    """Return whether a call passes all that a function needs, so that no part of it was handed over before."""
    needed = len(body.args.posonlyargs) + len(body.args.args) - len(body.args.defaults) - bound
    is_open = any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords)
    return is_open or len(call.args) + len(call.keywords) >= needed


def _body(step: Step) -> Body | None:
    """Return the function or the lambda that a step stands in."""
    return next((a for a in step.module.ancestors(step.call) if isinstance(a, Body)), None)


def _is_told(call: ast.Call, body: Body, *, bound: bool) -> bool:
    """Return whether a call of a callback that asks which event it is tells it one that it asks for."""
    if isinstance(body, ast.Lambda):
        return True
    names = {a.arg for a in body.args.args}
    for test in inner(body, ast.Compare):
        asked = test.left if isinstance(test, ast.Compare) else None
        texts = [
            n for n in getattr(test, "comparators", ()) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        if isinstance(asked, ast.Name) and asked.id in names and texts:
            given = argument(call, body, asked.id, bound=bound)
            if given is None or ast.dump(given) not in map(ast.dump, texts):
                return False
    return True
