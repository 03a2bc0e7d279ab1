"""What a container of a function holds, where that is what calls return: `rows = [run(n) for n in names]`."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from gates.scan.analyses._code import callee, function_of
from gates.scan.analyses._keys import LEAVES, READS, only_reads
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner, kept, walk
from gates.scan.project import Project
from gates.scan.types import argument

EMPTY = frozenset({"dict", "list", "OrderedDict", "defaultdict"})
VIEWS = frozenset({"values", "items", "keys", "copy"})
PASSES = frozenset({"enumerate", "sorted", "reversed", "zip", "tqdm", "list", "track"})
NUMBERS = frozenset({"abs", "float", "int", "round", "isclose"})
MAX_CALLERS = 20
Uses = dict[str, list[ast.AST]]
Made = tuple[ast.Call, Module]


def held(project: Project, name: str, body: ast.AST, module: Module, hops: int = 2) -> list[Made]:
    """Return the calls whose results a variable of a function holds; none where it may hold others.

    What gives the results more keys, each of them written out, leaves them otherwise as they are.
    """
    found: list[Made] = []
    uses = kept(body, named)
    for node in uses.get(name, []):
        if isinstance(node, ast.arg):
            given = _given(project, module, body, name, hops - 1) if hops else []
            if not given:
                return []
            found += given
            continue
        if not isinstance(node, ast.Name) or node not in module.parents:
            return []
        more = _stored(node, module) if isinstance(node.ctx, ast.Store) else _used(node, uses, module)
        part = module.parents[node]
        whole = part if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) else node
        if more is None and not leaves_alone(project, module, whole):
            return []
        found += [(call, module) for call in more or ()]
    return found


def _given(project: Project, module: Module, body: ast.AST, name: str, hops: int) -> list[Made]:
    """Return the calls whose results all callers of a function hand it in a container; none where one is not known."""
    if not isinstance(body, ast.FunctionDef) or body.decorator_list:
        return []
    found: list[Made] = []
    bound = project.scope_of(body, module).owner is not None
    for call, there in project.named.get(body.name, [])[:MAX_CALLERS]:
        value = argument(call, body, name, bound=bound)
        if callee(project, there, call) is not body or value is None:
            return []
        if isinstance(value, ast.Name):
            around = function_of(call, there) or there.tree
            more = held(project, value.id, around, there, hops)
        else:
            more = [(made, there) for made in _held_by(value) or ()]
        if not more:
            return []
        found += more
    return found


def bound_to_element(name: ast.Name, module: Module) -> str | None:
    """Return the container that a variable goes through: of `for k, row in rows.items()`, `rows`."""
    around: ast.AST | None = module.parents.get(name)
    index = 0
    if isinstance(around, ast.Tuple):
        index, around = around.elts.index(name), module.parents.get(around)
    if not isinstance(around, ast.For | ast.comprehension):
        return None
    iterated, is_pair = around.iter, isinstance(around.target, ast.Tuple)
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute) and not iterated.args:
        wanted = {"items": (True, 1), "values": (False, 0)}.get(iterated.func.attr)
        return tail_of(iterated.func.value) if wanted == (is_pair, index) and _is_name(iterated.func.value) else None
    if isinstance(iterated, ast.Call) and tail_of(iterated.func) in PASSES - {"zip"} and iterated.args:
        wanted_index = 1 if tail_of(iterated.func) == "enumerate" else 0
        fits = (is_pair, index) == (wanted_index == 1, wanted_index)
        return tail_of(iterated.args[0]) if fits and _is_name(iterated.args[0]) else None
    return tail_of(iterated) if _is_name(iterated) and not is_pair else None


def leaves_alone(project: Project, module: Module, node: ast.AST, hops: int = 2) -> bool:
    """Return whether a variable is handed to a function of the program that only reads it."""
    parent = module.parents.get(node)
    call = module.parents.get(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is node or not hops:
        return False
    target = callee(project, module, call)
    if target is None or target.decorator_list:
        return False
    scope = project.scope_of(target, module)
    names = [a.arg for a in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs)]
    taken = [n for n in names if argument(call, target, n, bound=scope.owner is not None) is node]
    if len(taken) != 1:
        return False
    uses = kept(target, named)
    inside = [n for n in uses.get(taken[0], []) if isinstance(n, ast.Name)]
    return all(
        n in scope.module.parents and isinstance(n.ctx, ast.Load)
        and (_used(n, uses, scope.module) == [] or leaves_alone(project, scope.module, n, hops - 1))
        for n in inside
    )  # fmt: skip


def named(body: ast.AST) -> dict[str, list[ast.AST]]:
    """Return the names and the parameters in a body, by what they are called."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for node in walk(body):
        if isinstance(node, ast.Name):
            found[node.id].append(node)
        elif isinstance(node, ast.arg):
            found[node.arg].append(node)
    return found


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _stored(node: ast.Name, module: Module) -> list[ast.Call] | None:
    """Return the calls in what a container is set to; `None` for anything else."""
    parent = module.parents[node]
    return _held_by(parent.value if isinstance(parent, ast.Assign | ast.AnnAssign) else None)


def _held_by(value: ast.expr | None) -> list[ast.Call] | None:
    """Return the calls whose results a container is made of; `None` for anything else."""
    if isinstance(value, ast.ListComp):
        return _calls([value.elt])
    if isinstance(value, ast.DictComp):
        return _calls([value.value])
    if isinstance(value, ast.List):
        return _calls(value.elts)
    if isinstance(value, ast.Dict):
        return _calls(value.values)
    return [] if isinstance(value, ast.Call) and tail_of(value.func) in EMPTY and not value.keywords else None


def _calls(values: Iterable[ast.expr]) -> list[ast.Call] | None:
    given = list(values)
    found = [value for value in given if isinstance(value, ast.Call)]
    return found if len(found) == len(given) else None


def _used(node: ast.Name, uses: Uses, module: Module) -> list[ast.Call] | None:
    """Return what one use of a container puts into it; `None` for a use that may put in, or change, anything."""
    parent = module.parents[node]
    above = module.parents.get(parent)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if isinstance(parent.ctx, ast.Load):
            return [] if _is_left(parent, uses, module) else None
        is_set = isinstance(parent.ctx, ast.Store) and isinstance(above, ast.Assign)
        return _calls([above.value]) if is_set and isinstance(above, ast.Assign) else None
    if isinstance(parent, ast.Attribute) and isinstance(above, ast.Call) and above.func is parent:
        if parent.attr == "append" and len(above.args) == 1:
            return _calls(above.args)
        if parent.attr in VIEWS:
            return [] if _are_left(above, uses, module) else None
        return [] if parent.attr in READS | {"sort", "reverse", "index"} and parent.attr != "get" else None
    if isinstance(parent, ast.For | ast.comprehension):
        return [] if _are_left(node, uses, module) else None
    if isinstance(parent, ast.Call) and tail_of(parent.func) in PASSES:
        return [] if _are_left(parent, uses, module) else None
    return [] if isinstance(parent, ast.Return | ast.Compare) or only_reads(parent, node, module) else None


def _is_left(node: ast.expr, uses: Uses, module: Module) -> bool:
    """Return whether one use of an element leaves it as it is."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Assign) and all(isinstance(target, ast.Name) for target in parent.targets):
        return all(_only_read(target.id, uses, module) for target in parent.targets if isinstance(target, ast.Name))
    is_reckoned = isinstance(parent, ast.BinOp | ast.UnaryOp | ast.JoinedStr)
    is_number = isinstance(parent, ast.Call) and tail_of(parent.func) in NUMBERS
    return is_reckoned or is_number or only_reads(parent, node, module)


def _are_left(node: ast.expr, uses: Uses, module: Module) -> bool:
    """Return whether a loop over all elements leaves them as they are."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Call) and tail_of(parent.func) in PASSES:
        return _are_left(parent, uses, module)
    if isinstance(parent, ast.Call):
        return tail_of(parent.func) in LEAVES
    if not isinstance(parent, ast.For | ast.comprehension):
        return False
    return all(_only_read(name, uses, module) for name in _names(parent.target))


def _names(node: ast.AST) -> Iterator[str]:
    yield from (n.id for n in walk(node) if isinstance(n, ast.Name))


def _only_read(name: str, uses: Uses, module: Module) -> bool:
    loads = (n for n in uses.get(name, []) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return all(n in module.parents and _reads(module.parents[n], n, module) for n in loads)


def _reads(parent: ast.AST, node: ast.Name, module: Module) -> bool:
    plain = (ast.BinOp, ast.Tuple, ast.List, ast.JoinedStr, ast.UnaryOp, ast.IfExp, ast.BoolOp)
    is_index = isinstance(parent, ast.Subscript) and (parent.slice is node or adds_key(parent, node))
    is_key = isinstance(parent, ast.DictComp) and parent.key is node
    return is_index or is_key or isinstance(parent, plain) or only_reads(parent, node, module)


def adds_key(node: ast.AST, container: ast.AST) -> bool:
    """Return whether a node sets a key that is written out: `row["share"] = ...`."""
    return (
        isinstance(node, ast.Subscript)
        and node.value is container
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Constant)
    )


def values_under(function: ast.AST, key: str) -> list[ast.Call]:
    """Return the calls that stand under a key in what a function returns, where each of it is written out."""
    found: list[ast.Call] = []
    for node in inner(function, ast.Return):
        value = node.value if isinstance(node, ast.Return) else None
        if not isinstance(value, ast.Dict):
            return []
        keyed = zip(value.keys, value.values, strict=True)
        under = [v for k, v in keyed if isinstance(k, ast.Constant) and k.value == key]
        if len(under) != 1 or not isinstance(under[0], ast.Call):
            return []
        found.append(under[0])
    return found
