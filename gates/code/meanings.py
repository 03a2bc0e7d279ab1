"""What gives a name its meaning: the statement that counts among all that speak of it; and what stands for nothing."""

import ast
from collections.abc import Iterator

from gates.code.syntax import Definition, SourceModule, constant_truth, leaves, live_nodes, live_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef
# These change how a function is seen or run, never what it does: under any other decorator a body may be elsewhere.
ABSTRACT = {"abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"}
_PLAIN = (
    "staticmethod classmethod property cached_property cache lru_cache override final typechecked deprecated "
    "no_grad inference_mode enable_grad autocast compile jit script wraps runtime_checkable dataclass"
)
PLAIN = ABSTRACT | {*_PLAIN.split()}
EMPTY_BASES = {"object", "ABC", "Protocol", "Generic"}


def is_hollow(node: Function | ast.ClassDef) -> bool:
    """Return whether a definition is only a promise: an `@overload`, or a body that is nothing but a refusal."""
    return is_overload(node) or (not isinstance(node, ast.ClassDef) and refuses(node))


def is_stub(node: ast.stmt) -> bool:
    """Return whether a definition is `pass`, `...`, a text, a refusal or `return None` alone, or a class of such."""
    if isinstance(node, Function):
        return is_plain(node) and does_nothing(node)
    if isinstance(node, ast.ClassDef):
        bare = all(last_name(base) in EMPTY_BASES for base in node.bases)
        bare &= all(word.arg == "metaclass" and last_name(word.value) == "ABCMeta" for word in node.keywords)
        return is_plain(node) and bare and all(map(is_stub, _members(node)))
    return False


def refuses(node: ast.stmt) -> bool:
    """Return whether a definition, or a method of it that is not abstract, says by an error that it is not there."""
    if isinstance(node, ast.ClassDef):
        return any(map(refuses, node.body))
    return isinstance(node, Function) and not decorators_of(node) & ABSTRACT and _refuses(node.body)


def is_overload(node: ast.stmt) -> bool:
    """Return whether a definition only tells the types of another one of its name."""
    return isinstance(node, Function) and "overload" in decorators_of(node)


def is_accessor(node: ast.stmt) -> bool:
    """Return whether a definition is the setter or deleter of a property of its name, which keeps its getter."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(part, ast.Attribute) and part.attr in {"setter", "deleter"} and last_name(part.value) == node.name
        for part in node.decorator_list
    )


def stands_for_nothing(value: ast.expr) -> bool:
    """Return whether an expression is `None`, or a function of one that does nothing: `lambda x: None`."""
    if isinstance(value, ast.Lambda):
        return stands_for_nothing(value.body)
    return isinstance(value, ast.Constant) and (value.value is None or value.value is Ellipsis)


def _told(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that are neither a text, nor `...`, nor `pass`."""
    for node in body:
        if not isinstance(node, ast.Pass) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def does_nothing(node: Function) -> bool:
    """Return whether the body of a function is empty, refuses, or gives back nothing."""
    first = next(_told(node.body), None)
    is_empty = isinstance(first, ast.Return) and (first.value is None or stands_for_nothing(first.value))
    return first is None or is_empty or _refuses(node.body)


def _refuses(body: list[ast.stmt]) -> bool:
    match [*_told(body)]:
        case [ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)))]:
            return name == "NotImplementedError"
    return False


def _members(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield what a class holds; a name with a type and no value is something only where a decorator makes it so."""
    for inner in _told(node.body):
        if not isinstance(inner, ast.AnnAssign) or inner.value is not None or node.decorator_list:
            yield inner


def is_plain(node: Function | ast.ClassDef) -> bool:
    """Return whether no decorator may make of a definition something else than what is written."""
    return decorators_of(node) <= PLAIN


def decorators_of(node: Function | ast.ClassDef) -> set[str]:
    """Return the last names of the decorators of a definition."""
    return {last_name(part) for part in node.decorator_list}


def last_name(node: ast.expr) -> str:
    """Return the last name of a decorator or base: `c` for `a.b.c`, `a.b.c[T]` and `a.b.c(...)`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def member(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the live statement that gives a name its meaning: a definition before an assignment before an import.

    None where it is deleted or stands for nothing in the end (see `stub_of`); of fallbacks the one that does something.
    """
    found = _meanings(body, name)
    return found.get("definition") or found.get("assignment") or found.get("import")


def stub_of(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """Return the statement by which a name stands for nothing: an empty body, a refusal, or `None` after all."""
    return _meanings(body, name).get("stub")


def _meanings(body: list[ast.stmt], name: str) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    settled = {id(node) for node in _settled(body)}
    for node in live_statements(body):
        kind = _meaning(node, name, body)
        if kind == "stub" and id(node) not in settled:
            found.setdefault(kind, node)  # one way among others
        elif kind:
            if kind in {"stub", "deleted"} or (id(node) in settled and _replaces(node, name)):
                found.clear()
            found[kind] = node
            if kind == "definition":
                found.pop("stub", None)
    return found


def _meaning(node: ast.stmt, name: str, body: list[ast.stmt]) -> str:
    """Return what a statement makes of a name, or nothing where it does not speak of it."""
    if isinstance(node, ast.Delete):
        return "deleted" if any(isinstance(target, ast.Name) and target.id == name for target in node.targets) else ""
    if isinstance(node, Definition):
        if node.name != name or is_overload(node) or is_accessor(node):
            return ""
        return "stub" if is_stub(node) else "definition"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "import" if any((alias.asname or alias.name.split(".")[0]) == name for alias in node.names) else ""
    if name not in _assigned(node):
        return ""
    plain = isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) for target in node.targets)
    return "stub" if plain and _is_nothing(node.value, name, body) else "assignment"  # type: ignore[attr-defined]  # it is one


def _is_nothing(value: ast.expr, name: str, body: list[ast.stmt]) -> bool:
    """Return whether a name is set to `None`, or to what does nothing."""
    if isinstance(value, ast.Name) and value.id != name:
        other = [part for part in body if isinstance(part, Definition) and part.name == value.id]
        return bool(other) and is_stub(other[-1])
    return stands_for_nothing(value)


def _settled(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that run in any case."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and (truth := constant_truth(node.test)) is not None:
            yield from _settled(node.body if truth else node.orelse)
        elif isinstance(node, ast.With):
            yield from _settled(node.body)
        if leaves(node):
            return


def ways_to(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """Return what may give a name its meaning, what counts first, but for what a later statement replaces in any case.

    Imports are ways among others, as in `try`/`except`: the last one counts.
    """
    node, settled = member(body, name), {id(one) for one in _settled(body)}
    kinds = {one: _meaning(one, name, body) for one in live_statements(body)}
    if node is None:
        return []
    if kinds.get(node) == "import":
        imports: list[ast.stmt] = []
        for one in (one for one, kind in kinds.items() if kind == "import"):
            imports = [one] if id(one) in settled else [one, *imports]
        return imports
    final = isinstance(node, Definition) and is_plain(node) and id(node) in settled
    ways = [one for one, kind in kinds.items() if kind in {"definition", "assignment", "import"} and one is not node]
    return [node, *(one for one in ways if not (final and one.lineno < node.lineno))]


def accessors_of(body: list[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
    """Return the setter and deleter of a property."""
    if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
        return []
    same = (one for one in live_statements(body) if isinstance(one, ast.FunctionDef) and one.name == node.name)
    return [one for one in same if is_accessor(one)]


def is_exported(body: list[ast.stmt], name: str) -> bool:
    """Return whether `import *` takes a name: one of `__all__`, as far as that is written out, else a public one."""
    if not (found := [n for n in live_statements(body) if "__all__" in _assigned(n)]):
        return not name.startswith("_")
    whole = found[0].value if len(found) == 1 and isinstance(found[0], ast.Assign | ast.AnnAssign) else None
    listed = whole.elts if isinstance(whole, ast.List | ast.Tuple) else None
    return listed is None or any(not isinstance(item, ast.Constant) or item.value == name for item in listed)


def makes_names(body: list[ast.stmt]) -> int:
    """Return the line in which a module gives itself names that are not written out, or 0."""
    for statement in live_statements(body):
        for node in ast.walk(statement) if not isinstance(statement, Definition) else ():
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in {"globals", "vars", "exec", "setattr"}:
                return called.lineno
    return 0


def star_imports(body: list[ast.stmt]) -> list[ast.ImportFrom]:
    """Return the `from x import *` of a body."""
    return [n for n in live_statements(body) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]


def _assigned(node: ast.stmt) -> set[str]:
    """Return the names that a statement itself binds; a bare annotation binds nothing."""
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return set()
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    elif isinstance(node, ast.Expr):
        targets = [inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
    inside = [inner for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
    return {name.id for name in inside if isinstance(name.ctx, ast.Store)}  # `a.b = 1` gives `a` no other value


def _replaces(node: ast.stmt, name: str) -> bool:
    """Return whether a statement gives a name a value that is not made of the old one."""
    made = node.value if isinstance(node, ast.Assign) and name in _assigned(node) else None
    return made is not None and not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(made))


def parts_of(node: ast.expr) -> list[str]:
    """Return the names in `a.b.c` and `a.b.c[T]`; none of any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        parts += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def member_of(module: SourceModule, node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return what a class itself has by a name; a method that has two names is that method."""
    found = member(node.body, name)
    if isinstance(found, ast.Assign) and isinstance(found.value, ast.Name) and found.value.id != name:
        other = member(node.body, found.value.id) or member(module.tree.body, found.value.id)
        return other if isinstance(other, Definition) else found
    return found or _set_on_self(node, name) or _field_of(node, name)


def _field_of(node: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return the annotation that makes a field of a dataclass, a named tuple or a model; a plain class has none."""
    if not node.decorator_list and {parts[-1] if parts else "" for parts in map(parts_of, node.bases)} <= EMPTY_BASES:
        return None
    fields = (part for part in live_statements(node.body) if isinstance(part, ast.AnnAssign) and part.value is None)
    return next((part for part in fields if isinstance(part.target, ast.Name) and part.target.id == name), None)


def _set_on_self(node: ast.ClassDef, name: str) -> ast.stmt | None:
    for method in node.body:
        for inner in live_nodes(method) if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) else ():
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr == name:
                return method
    return None
