"""What the names of a module are bound to, by its syntax alone."""

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from .asserting import blocks_of

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.Match)
MADE_AT_ONCE = (ast.Assign, ast.AnnAssign, *Function, ast.ClassDef, ast.Import, ast.ImportFrom)
WAYS = (ast.If, ast.Try, ast.While, ast.With, ast.AsyncWith, ast.Match, ast.Return, ast.Break, ast.Continue, ast.IfExp)
Value = ast.AST | None  # `None` where nobody can tell


@dataclass(frozen=True)
class Each:
    """One element of something that is gone through."""

    of: ast.expr


Bound = Value | Each
Names = dict[str, list[Bound]]


class Bindings:
    """The names of one module: where each is bound, and to what."""

    def __init__(self, module: ast.Module) -> None:
        self._module = module
        self.parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
        spread = (node for node in self.parents if isinstance(node, ast.Global | ast.Nonlocal))
        self._spread = {name for node in spread for name in node.names}
        self._kept: dict[ast.AST, Names] = {}
        self._stated: dict[ast.AST, Names] = {}
        self._loaded: dict[ast.AST, dict[str, list[ast.Name]]] = {}
        self._all_names = "*" in self._of(module)

    def values(self, name: ast.Name) -> list[Bound] | None:
        """Return all that a name may stand for where it is read; nothing for one that the module never binds.

        `None` says that this cannot be told.
        """
        if name.id in self._spread or self._all_names:
            return None
        first = True
        for child, node in self.up(name):
            if isinstance(node, COMPREHENSIONS):
                for generator in node.generators:
                    if name.id in names_in(generator.target):
                        return [Each(generator.iter)]
            elif isinstance(node, ast.Lambda | ast.ClassDef):
                of_class = self._of(node) if isinstance(node, ast.ClassDef) and first else ()
                if name.id in of_class or (child is node.body and name.id in parameters(node)):
                    return None
            elif isinstance(node, (*Function, ast.Module)) and any(child is statement for statement in node.body):
                found = self._in(node, name, first=first)
                if found is not None:
                    return found
                first = False
        return []

    def loads(self, name: ast.Name) -> list[ast.Name]:
        """Return the places in which a name is read, in the function or module that binds it and all inside of it."""
        scope = self.scope(name)
        if scope not in self._loaded:
            found: dict[str, list[ast.Name]] = {}
            for node in ast.walk(scope):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node in self.parents:
                    found.setdefault(node.id, []).append(node)
            self._loaded[scope] = found
        return self._loaded[scope].get(name.id, [])

    def scope(self, name: ast.Name) -> ast.AST:
        """Return the function that binds a name, or the module."""
        for child, node in self.up(name):
            inside = isinstance(node, Function) and any(child is statement for statement in node.body)
            if inside and (name.id in self._of(node) or name.id in parameters(node)):
                return node
        return self._module

    def assigned(self, attribute: ast.Attribute) -> ast.expr | None:
        """Return what a statement before it, in the same function, has put in the place of an attribute."""
        wanted = ast.unparse(attribute)
        for child, node in self.up(attribute):
            for block in (block for block in blocks_of(node) if any(child is one for one in block)):
                for statement in reversed(block[: next(i for i, one in enumerate(block) if one is child)]):
                    if isinstance(statement, ast.Assign) and wanted in map(ast.unparse, statement.targets):
                        return statement.value
            if isinstance(node, Function):
                break
        return None

    def up(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield each step from a node to the module: the node that is left, and the one around it."""
        while node in self.parents:
            yield node, self.parents[node]
            node = self.parents[node]

    def _in(self, scope: ast.AST, name: ast.Name, *, first: bool) -> list[Bound] | None:
        own = self._of(scope).get(name.id)
        if own is None:
            if not isinstance(scope, ast.Module) and name.id in parameters(scope):
                return self._given(scope, name.id)
            return None
        if first and (reaching := self._reaching(name, scope)) is not None:
            return [reaching]
        given = parameters(scope) if not isinstance(scope, ast.Module) else {}
        return own if len(own) == 1 and name.id not in given and self._is_certain(name, scope, own[0]) else [None]

    def _is_certain(self, name: ast.Name, scope: ast.AST, value: Bound) -> bool:
        """Return whether the only binding of a name is made whatever happens: what the code does may choose a way."""
        if isinstance(value, Each):
            within = any(isinstance(node, ast.For) and node.iter is value.of for _, node in self.up(name))
            return within and is_straight(scope)
        made = (statement for statement in getattr(scope, "body", ()) if isinstance(statement, MADE_AT_ONCE))
        return any(bound is value for statement in made for n, bound in _bound_by(statement) if n == name.id)

    def _given(self, function: ast.AST, name: str) -> list[Bound]:
        """Return what a parameter of a test is given by `parametrize`; of all else nobody can tell."""
        for decorator in getattr(function, "decorator_list", ()):
            called = isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "parametrize"
            if called and len(decorator.args) >= 2 and name in _parametrized(decorator.args[0]):
                return [Each(decorator.args[1]) if is_straight(function) else None]
        return [None]

    def _reaching(self, name: ast.Name, scope: ast.AST) -> Bound:
        """Return what the last assignment before a name gives it, where that can be told."""
        for child, node in self.up(name):
            for block in (block for block in blocks_of(node) if any(child is one for one in block)):
                before = block[: next(i for i, one in enumerate(block) if one is child)]
                for statement in reversed(before):
                    if name.id in (bound := self._bound_in(statement)):
                        plain = isinstance(statement, ast.Assign | ast.AnnAssign)
                        return bound[name.id][-1] if plain else None
            if node is scope:
                return None
            if isinstance(node, LOOPS) and name.id in self._bound_in(node):
                return None
        return None

    def _bound_in(self, statement: ast.AST) -> Names:
        if statement not in self._stated:
            self._stated[statement] = _of_statement(statement)
        return self._stated[statement]

    def _of(self, scope: ast.AST) -> Names:
        """Return what is bound in a function, class or module, and not in what is defined inside of it."""
        if scope not in self._kept:
            found: Names = {}
            for statement in getattr(scope, "body", ()):
                for name, values in self._bound_in(statement).items():
                    found.setdefault(name, []).extend(values)
            self._kept[scope] = found
        return self._kept[scope]


def is_straight(scope: ast.AST) -> bool:
    """Return whether there is one way only through a function, apart from loops and what is raised."""
    return not any(isinstance(node, WAYS) for statement in getattr(scope, "body", ()) for node in ast.walk(statement))


def parameters(function: ast.AST) -> dict[str, ast.arg]:
    """Return the parameters of a function by name."""
    given = getattr(function, "args", None)
    if not isinstance(given, ast.arguments):
        return {}
    stars = [star for star in (given.vararg, given.kwarg) if star]
    return {one.arg: one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *stars)}


def names_in(target: ast.AST) -> set[str]:
    """Return the names that a target binds."""
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _of_statement(statement: ast.AST) -> Names:
    """Return what a statement binds, and what the statements in its blocks do."""
    found: Names = {}
    edge = deque([statement])
    while edge:
        node = edge.popleft()
        for name, value in _bound_by(node):
            found.setdefault(name, []).append(value)
        if isinstance(node, (*Function, ast.ClassDef, ast.Lambda)):
            continue  # what these bind inside is theirs
        edge.extend(ast.iter_child_nodes(node))
    return found


def _bound_by(node: ast.AST) -> Iterator[tuple[str, Bound]]:
    """Yield the names that a node itself binds, each with what it stands for then."""
    if isinstance(node, ast.Assign):
        yield from ((name, node.value) for target in node.targets for name in names_in(target))
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
    elif isinstance(node, ast.For):
        yield from ((name, Each(node.iter)) for name in names_in(node.target))
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (((alias.asname or alias.name).split(".")[0], node) for alias in node.names)
    else:
        yield from ((name, None) for name in _bound_to_something(node))


def _bound_to_something(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds to what nobody can tell."""
    if isinstance(node, ast.AsyncFor):
        yield from names_in(node.target)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from names_in(node.optional_vars)
    elif isinstance(node, ast.Delete):
        yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    elif isinstance(node, ast.AsyncFunctionDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping):
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        yield from [name] if name else []


def _parametrized(names: ast.expr) -> set[str]:
    """Return the names that the first argument of `parametrize` holds."""
    parts = names.elts if isinstance(names, ast.List | ast.Tuple) else [names]
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return {name.strip() for text in texts for name in text.split(",")}
