"""What a loop goes over, as far as annotations tell: `for param in self.get_params()` with `-> list[Param]`."""

import ast
from collections.abc import Iterator

from gates.scan.program.classes import ClassInfo
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.syntax import Comprehension

HOLDS_MANY = frozenset({
    "list", "List", "Sequence", "MutableSequence", "Iterable", "Iterator", "Generator", "set", "Set", "frozenset",
    "FrozenSet", "AbstractSet", "Collection", "tuple", "Tuple", "deque", "Deque", "AsyncIterator", "AsyncIterable",
})  # fmt: skip
MAPS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict"})
AS_THEY_ARE = frozenset({"reversed", "sorted", "list", "tuple", "iter", "set"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Elements:
    """Tells the class of a loop's variable."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def of(self, name: ast.Name, scope: Scope) -> ClassInfo | None:
        """Return the class of what a variable stands for, where only loops give it a value, and all agree."""
        found = {self._element(over, many, scope) for over, many in _loops(name, scope)}
        kinds = {info.name for info in found if info is not None}
        return next(iter(found)) if len(kinds) == 1 and None not in found else None

    def _element(self, over: ast.expr, place: int | None, scope: Scope) -> ClassInfo | None:
        """Return the class of an element, or of the part of it at a place."""
        if isinstance(over, ast.Call) and over.args and isinstance(over.func, ast.Name):
            if over.func.id == "enumerate":
                return self._element(over.args[0], None, scope) if place == 1 else None
            if over.func.id in AS_THEY_ARE:
                return self._element(over.args[0], place, scope)
        told = next(self._told(over, scope), None)
        if told is None:
            return None
        annotation, where = told
        held = _held(annotation, maps=self._part_of_map(over), place=place)
        return self._class(held, where) if held is not None else None

    def _part_of_map(self, over: ast.expr) -> str:
        name = over.func.attr if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else ""
        return name if name in {"keys", "values", "items"} else ""

    def _told(self, over: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield the annotation of what a loop goes over, and the scope that it is written in."""
        if self._part_of_map(over) and isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
            yield from self._told(over.func.value, scope)
        elif isinstance(over, ast.Call):
            yield from self._of_call(over, scope)
        elif isinstance(over, ast.Name):
            found = scope.lookup(over.id)
            if found:
                yield from ((note, found[0]) for note in _noted(over.id, found[0].function or found[0].module.tree))
        elif isinstance(over, ast.Attribute):
            owner = scope.class_of(over.value)
            for info in [owner, *self._project.ancestors_of(owner)] if owner else ():
                yield from ((note, info.scope) for note in _attribute(over.attr, info.node))

    def _of_call(self, call: ast.Call, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        named = scope.dotted(call.func)
        if named in self._project.functions:
            function, module = self._project.functions[named]
        elif isinstance(call.func, ast.Attribute) and (owner := scope.class_of(call.func.value)):
            method = self._project.method(owner, call.func.attr)
            if method is None:
                return
            function, module = method[:2]
        else:
            return
        if function.returns is not None:
            yield function.returns, self._project.scope_of(module.tree, module)

    def _class(self, node: ast.expr, scope: Scope) -> ClassInfo | None:
        """Return the class that an annotation names, `None` beside it left out."""
        node = _read(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [side for side in (node.left, node.right) if not _is_none(side)]
            return self._class(sides[0], scope) if len(sides) == 1 else None
        if isinstance(node, ast.Subscript):
            node = node.value  # a class with parameters of its own
        return self._project.classes.get(scope.dotted(node) or "")


def _loops(name: ast.Name, scope: Scope) -> Iterator[tuple[ast.expr, int | None]]:
    """Yield what the loops that bind a name go over, and the place of the name among what they give; else nothing."""
    for around in scope.module.ancestors(name):
        for part in around.generators if isinstance(around, Comprehension) else ():
            if (place := _place(part.target, name.id)) is not False:
                yield part.iter, place
                return
        if isinstance(around, Function | ast.Lambda):
            break
    found = scope.lookup(name.id)
    body = found[0].function if found else None
    if found is None or not isinstance(body, Function):
        return
    loops = [node for node in ast.walk(body) if isinstance(node, ast.For | ast.AsyncFor)]
    bound = [(node.iter, place) for node in loops if (place := _place(node.target, name.id)) is not False]
    if len(bound) == len(found[1]):
        yield from bound


def _place(target: ast.expr, name: str) -> int | bool | None:
    """Return `None` where a target is the name, its place in a tuple, or `False` where it is not there."""
    if isinstance(target, ast.Name):
        return None if target.id == name else False
    for place, part in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
        if isinstance(part, ast.Name) and part.id == name:
            return place
    return False


def _held(annotation: ast.expr, *, maps: str, place: int | None) -> ast.expr | None:
    """Return the annotation of what a container holds."""
    node = _read(annotation)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [side for side in (node.left, node.right) if not _is_none(side)]
        return _held(sides[0], maps=maps, place=place) if len(sides) == 1 else None
    if not isinstance(node, ast.Subscript):
        return None
    kind = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if kind in MAPS and len(parts) == 2:
        return parts[1] if maps == "values" or (maps == "items" and place == 1) else parts[0] if not place else None
    if kind in HOLDS_MANY and not maps:
        inner = _read(parts[0])
        return inner if place is None else _of_tuple(inner, place)
    return None


def _of_tuple(node: ast.expr, place: int) -> ast.expr | None:
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    return parts[place] if place < len(parts) else None


def _noted(name: str, body: ast.AST) -> Iterator[ast.expr]:
    """Yield the annotations that a function or module gives a name."""
    arguments = getattr(body, "args", None)
    if isinstance(arguments, ast.arguments):
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        yield from (arg.annotation for arg in every if arg.arg == name and arg.annotation)
    for node in ast.walk(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            yield node.annotation


def _attribute(name: str, owner: ast.ClassDef) -> Iterator[ast.expr]:
    """Yield the annotations that a class gives an attribute, or the parameter that it is set to."""
    for node in owner.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            yield node.annotation
        if isinstance(node, Function) and node.name == name and node.returns and node.decorator_list:
            yield node.returns  # a property
    for method in (node for node in owner.body if isinstance(node, Function)):
        for inner in ast.walk(method):
            if isinstance(inner, ast.AnnAssign) and _is_set(inner.target, name):
                yield inner.annotation
            elif isinstance(inner, ast.Assign) and any(_is_set(target, name) for target in inner.targets):
                yield from _noted(inner.value.id, method) if isinstance(inner.value, ast.Name) else ()


def _is_set(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == name


def _read(node: ast.expr) -> ast.expr:
    """Return an annotation that is written as a text as what it says."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return node
    try:
        return ast.parse(node.value, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
