"""Which texts an expression may be: one written out, each that a loop goes over, one with holes such as `…_loss`."""

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gates.scan.analyses.reading.code import Comprehension, callee, constant, named
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import kept, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

Texts = frozenset[str]
HOLE = "…"
HOPS = 3
MAX_TEXTS = 64
MAX_CALLERS = 20
GROWS = frozenset({"append", "extend", "insert", "add", "remove", "pop", "update", "setdefault", "clear", "popitem"})
SAME = frozenset({"sorted", "list", "tuple", "reversed", "set", "frozenset", "iter", "tqdm", "track", "dict"})
FORM = re.compile(r"%(?:\(\w+\))?[-.\d]*[sdrfge]|\{[^{}]*\}")


def fits(known: Iterable[str], text: str) -> bool:
    """Return whether a text may be one of those known: a hole may be any text."""
    return any(each == text or _overlap(each, text) for each in known)


def _overlap(one: str, other: str) -> bool:
    """Return whether two texts, of which one has holes, may be the same; of two that both have some, they may."""
    if HOLE in one and HOLE in other:
        return True
    if HOLE not in one and HOLE not in other:
        return False
    form, plain = (one, other) if HOLE in one else (other, one)
    return re.fullmatch(".*".join(map(re.escape, form.split(HOLE))), plain, re.DOTALL) is not None


@dataclass(frozen=True)
class Reader:
    """Reads texts in a program; `keyed` says which keys the mapping has that an expression is.

    What a function is passed counts unless `own`: there it may do without some of what its callers pass.
    """

    project: Project
    keyed: Callable[[Module, ast.expr], Texts | None]
    own: bool = False

    def of(self, node: ast.expr, module: Module, hops: int = HOPS) -> Texts | None:
        """Return the texts that an expression may be; `None` where nothing of it is known."""
        if isinstance(node, ast.Constant):
            return frozenset({node.value}) if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, module, hops)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right], module, hops)
        if isinstance(node, ast.IfExp):
            return _all(self.of(each, module, hops) for each in (node.body, node.orelse))
        if isinstance(node, ast.Name):
            return self._of_name(node, module, hops)
        if isinstance(node, ast.Attribute):
            return self._set_once(node, module, hops)
        form = _form(node)
        return frozenset({FORM.sub(HOLE, form)}) if form is not None else None

    def _joined(self, parts: Sequence[ast.expr], module: Module, hops: int) -> Texts | None:
        """Return what texts come to one after the other, with holes for those that are not known."""
        each = [self._part(part, module, hops) for part in parts]
        if all(texts == {HOLE} for texts in each):
            return None
        count = 1
        for texts in each:
            count *= len(texts)
        return frozenset(map("".join, itertools.product(*each))) if count <= MAX_TEXTS else None

    def _part(self, node: ast.expr, module: Module, hops: int) -> Texts:
        is_plain = isinstance(node, ast.FormattedValue) and node.format_spec is None and node.conversion == -1
        inside = node.value if isinstance(node, ast.FormattedValue) and is_plain else node
        return self.of(inside, module, hops) or frozenset({HOLE})

    def _of_name(self, node: ast.Name, module: Module, hops: int) -> Texts | None:
        """Return what a variable goes through in a loop, or what it is set to once, or what callers pass for it."""
        for around in module.ancestors(node):
            loops = around.generators if isinstance(around, Comprehension) else [around]
            for loop in loops:
                path = _path(loop.target, node.id) if isinstance(loop, ast.For | ast.comprehension) else None
                if path is not None and isinstance(loop, ast.For | ast.comprehension):
                    alone = isinstance(loop, ast.comprehension) or _is_set_by_loops(node.id, loop, module)
                    return self.elements(loop.iter, path, module, hops) if alone else None
            if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
                break
        return self._set_once(node, module, hops)

    def _set_once(self, node: ast.Name | ast.Attribute, module: Module, hops: int) -> Texts | None:
        made = self._behind(node, module, hops)
        return _all(self.of(value, there, hops - 1) for value, there in made) if made else None

    def elements(self, node: ast.expr, path: Sequence[int], module: Module, hops: int = HOPS) -> Texts | None:
        """Return the texts at a place of what a loop gets that goes over something."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return _all(self._at(part, path, module, hops) for part in node.elts)
        if isinstance(node, ast.Dict):
            inside = zip(node.keys, node.values, strict=True)
            return _all(
                self.elements(v, path, module, hops) if k is None else self._at(k, path, module, hops)
                for k, v in inside
            )
        if isinstance(node, ast.Call):
            return self._viewed(node, path, module, hops)
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        found = self.keyed(module, node) if not path else None
        if found is not None:
            return found
        made = self._behind(node, module, hops)
        return _all(self.elements(value, path, there, hops - 1) for value, there in made) if made else None

    def _at(self, part: ast.expr, path: Sequence[int], module: Module, hops: int) -> Texts | None:
        if isinstance(part, ast.Starred):
            return self.elements(part.value, path, module, hops)
        for at in path:
            if not isinstance(part, ast.Tuple | ast.List) or at >= len(part.elts):
                return None
            part = part.elts[at]
        return self.of(part, module, hops)

    def _viewed(self, node: ast.Call, path: Sequence[int], module: Module, hops: int) -> Texts | None:
        """Return the texts in a view of a container, or in one that counts or pairs the elements of others."""
        tail = tail_of(node.func)
        if isinstance(node.func, ast.Attribute) and not node.args and tail in {"keys", "items", "values", "copy"}:
            if tail == "values" or (tail == "items" and path[:1] == [1]):
                return self._values(node.func.value, path[1:] if tail == "items" else path, module, hops)
            rest = path if tail != "items" else path[1:]
            return self.elements(node.func.value, rest, module, hops) if tail != "items" or path else None
        if tail in SAME and node.args:
            return self.elements(node.args[0], path, module, hops)
        if tail == "enumerate" and node.args and path[:1] == [1]:
            return self.elements(node.args[0], path[1:], module, hops)
        if tail == "zip" and path and path[0] < len(node.args):
            return self.elements(node.args[path[0]], path[1:], module, hops)
        return self.keyed(module, node) if not path else None

    def _values(self, node: ast.expr, path: Sequence[int], module: Module, hops: int) -> Texts | None:
        """Return the texts at a place of the values of a mapping that is written out."""
        if isinstance(node, ast.Dict):
            return _all(self._at(v, path, module, hops) for v in node.values) if None not in node.keys else None
        made = self._behind(node, module, hops) if isinstance(node, ast.Name | ast.Attribute) else []
        return _all(self._values(value, path, there, hops - 1) for value, there in made) if made else None

    def _behind(self, node: ast.Name | ast.Attribute, module: Module, hops: int) -> list[tuple[ast.expr, Module]]:
        """Return what a name is set to for good, or what all callers pass for it; none where not all is known."""
        scope = self.project.scope_at(node, module)
        if hops <= 0:
            return []
        behind = scope.through(node)
        if behind is not None:
            return [(behind[0], behind[1].module)] if self._stays(node, *behind, scope) else []
        found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
        function = found[0].function if found is not None and [b.kind for b in found[1]] == ["parameter"] else None
        if found is None or not isinstance(node, ast.Name) or not isinstance(function, Function) or self.own:
            return []
        return self._passed(function, node.id, found[0].module, bound=found[0].owner is not None)

    def _stays(self, node: ast.Name | ast.Attribute, made: ast.expr, there: Scope, scope: Scope) -> bool:
        """Return whether what a name is set to stays as it is: no container that grows, no attribute set anew."""
        if isinstance(node, ast.Name):
            return _is_left(node.id, there.function or there.module.tree, there.module)
        owner = scope.class_of(node.value)
        if owner is None or not isinstance(made, ast.Tuple | ast.Constant):
            return False
        return not any(node.attr in info.attributes for info in self.project.below(owner))

    def _passed(self, function: Function, name: str, module: Module, *, bound: bool) -> list[tuple[ast.expr, Module]]:
        """Return what all calls of a function pass for a parameter; none where one of them is not known."""
        found: list[tuple[ast.expr, Module]] = []
        default = parameters(function).get(name)
        for call, there in self.project.named.get(function.name, [])[:MAX_CALLERS]:
            given = argument(call, function, name, bound=bound)
            is_whole = not any(isinstance(a, ast.Starred) for a in call.args) and all(k.arg for k in call.keywords)
            value, where = (given, there) if given is not None else (default if is_whole else None, module)
            if value is None or callee(self.project, there, call) is not function:
                return []
            found.append((value, where))
        return found


def _form(node: ast.expr) -> str | None:
    """Return the text into which others are put: of `"%s_loss" % split`, `"{}_loss".format(split)`."""
    put = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        put = node.func.value
    text = constant(put)
    return text if isinstance(text, str) and FORM.sub("", text) else None


def _all(found: Iterable[Texts | None]) -> Texts | None:
    """Return all texts of several; `None` where those of one are not known, or they are too many."""
    texts: set[str] = set()
    for each in found:
        if each is None or len(texts) > MAX_TEXTS:
            return None
        texts |= each
    return frozenset(texts)


def _path(target: ast.expr, name: str) -> list[int] | None:
    """Return at which place of a loop's target a variable stands."""
    if isinstance(target, ast.Name):
        return [] if target.id == name else None
    for at, part in enumerate(target.elts if isinstance(target, ast.Tuple | ast.List) else ()):
        rest = _path(part, name)
        if rest is not None:
            return [at, *rest]
    return None


def _is_set_by_loops(name: str, loop: ast.AST, module: Module) -> bool:
    """Return whether a variable of a loop is set in it by nothing else."""
    stores = (n for n in walk(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store))
    return all(isinstance(module.parents.get(n), ast.For | ast.comprehension | ast.Tuple) for n in stores)


def _is_left(name: str, body: ast.AST, module: Module) -> bool:
    """Return whether nothing is added to or taken from a container where it is named."""
    for node in kept(body, named).get(name, ()):
        parent = module.parents.get(node)
        is_set = isinstance(parent, ast.Subscript) and parent.value is node and not isinstance(parent.ctx, ast.Load)
        is_grown = isinstance(parent, ast.Attribute) and parent.attr in GROWS
        if is_set or is_grown or isinstance(parent, ast.AugAssign):
            return False
    return True
