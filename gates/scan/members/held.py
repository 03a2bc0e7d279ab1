"""What a container of a function holds: what calls return, `rows = [run(n) for n in names]`, or what variables do."""

import ast
from collections.abc import Iterable, Iterator, Sequence

from gates.scan.members.code import Comprehension, callee, constant, function_of, named
from gates.scan.members.gone_through import PASSES, source_of
from gates.scan.members.only_read import LEAVES, READS, only_reads
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import kept, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project

EMPTY = frozenset({"dict", "list", "OrderedDict", "defaultdict"})
VIEWS = frozenset({"values", "items", "keys", "copy"})
NUMBERS = frozenset({"abs", "float", "int", "round", "isclose"})
MAX_CALLERS = 20
MAX_NESTING = 5
Uses = dict[str, list[ast.AST]]
Made = tuple[ast.expr, Module]


def held(
    project: Project, name: str, body: ast.AST, module: Module, hops: int = 2, path: Sequence[int] = ()
) -> list[Made]:
    """Return the calls and variables whose values a variable of a function holds; none where it may hold others.

    What gives the results more keys, each of them written out, leaves them otherwise as they are.
    """
    found: list[Made] = []
    uses = kept(body, named)
    for node in uses.get(name, []):
        if isinstance(node, ast.arg):
            given = _given(project, module, body, name, hops - 1, path) if hops else []
            if not given:
                return []
            found += given
            continue
        if not isinstance(node, ast.Name) or node not in module.parents:
            return []
        more = _stored(node, module, path) if isinstance(node.ctx, ast.Store) else _used(node, uses, module, path)
        part = module.parents[node]
        whole = part if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) else node
        is_left = more is not None or leaves_alone(project, module, whole) or is_left_by_turns(project, module, whole)
        if not is_left:
            return []
        found += [(value, module) for value in more or ()]
    return found


def _given(project: Project, module: Module, body: ast.AST, name: str, hops: int, path: Sequence[int]) -> list[Made]:
    """Return what all callers of a function hand it in a container; none where one of them is not known."""
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
            more = held(project, value.id, around, there, hops, path)
        else:
            more = [(made, there) for made in _held_by(value, path) or ()]
        if not more:
            return []
        found += more
    return found


def spread(project: Project, module: Module, call: ast.Call) -> list[Made]:
    """Return what stands in the container that is all that a call passes on: `compare(*rows)`, `compare(**rows)`."""
    alone = [*call.args, *call.keywords]
    star = alone[0] if len(alone) == 1 else None
    value = star.value if isinstance(star, ast.Starred) or (isinstance(star, ast.keyword) and not star.arg) else None
    if isinstance(value, ast.Name):
        return held(project, value.id, function_of(call, module) or module.tree, module)
    return [(made, module) for made in _held_by(value, ()) or ()]


def values_in(node: ast.expr, path: Sequence[int] = ()) -> list[ast.expr]:
    """Return what stands in a container that is written out, or at one place of each of its elements."""
    values = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return _picked(values, path) or []


def _under(value: ast.expr | None, key: str) -> list[ast.expr]:
    if isinstance(value, ast.DictComp):
        return _calls([value.value]) or []
    if not isinstance(value, ast.Dict):
        return []
    under = [v for k, v in zip(value.keys, value.values, strict=True) if constant(k) == key]
    return under if len(under) == 1 and isinstance(under[0], ast.Call) else []


def _picked(values: Iterable[ast.expr], path: Sequence[int]) -> list[ast.expr] | None:
    """Return the part of each value at a place; `None` where one of them has none."""
    found = list(values)
    for at in path:
        rows = [v.elts for v in found if isinstance(v, ast.Tuple | ast.List) and at < len(v.elts)]
        if len(rows) < len(found):
            return None
        found = [row[at] for row in rows]
    return found if not any(isinstance(v, ast.Starred) for v in found) else None


def is_left_by_turns(project: Project, module: Module, node: ast.AST, hops: int = 3) -> bool:
    """Return whether a variable stands in a container, alone or with others, of which each element is only read."""
    if hops <= 0:
        return False
    inside, around = node, module.parents.get(node)
    for _ in range(MAX_NESTING):
        if not isinstance(around, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Call | ast.Attribute):
            break
        if leaves_alone(project, module, inside, hops - 1):
            return True
        inside, around = around, module.parents.get(around)
    uses = kept(function_of(node, module) or module.tree, named)
    if isinstance(around, ast.Assign) and around.value is inside and isinstance(around.targets[0], ast.Name):
        loads = _loads(around.targets[0].id, uses)
        left = [n for n in loads if n in module.parents and _used(n, uses, module) is not None]
    elif isinstance(around, ast.For | ast.comprehension) and around.iter is inside:
        taking = {n.id for n in walk(around.target) if isinstance(n, ast.Name) and _takes(n, node, module)}
        loads = [n for name in taking for n in _loads(name, uses)]
        left = [n for n in loads if taking and n in module.parents and _reads(module.parents[n], n, module)]
    else:
        return False
    return bool(loads) and all(
        n in left or leaves_alone(project, module, n, hops - 1) or is_left_by_turns(project, module, n, hops - 1)
        for n in loads
    )


def _takes(name: ast.Name, node: ast.AST, module: Module) -> bool:
    """Return whether a loop's variable is a thing, or an element of it, in one of the turns."""
    source = source_of(name, module)
    return source is not None and (source[0] is node or any(value is node for value in values_in(*source)))


def _loads(name: str, uses: Uses) -> list[ast.Name]:
    return [n for n in uses.get(name, []) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def leaves_alone(project: Project, module: Module, node: ast.AST, hops: int = 2) -> bool:
    """Return whether a variable is handed to a function of the program that only reads it."""
    parent = module.parents.get(node)
    call = module.parents.get(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is node or hops <= 0:
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
        and (
            _used(n, uses, scope.module) == []
            or leaves_alone(project, scope.module, n, hops - 1)
            or is_left_by_turns(project, scope.module, n, hops)
        )
        for n in inside
    )  # fmt: skip


def _stored(node: ast.Name, module: Module, path: Sequence[int]) -> list[ast.expr] | None:
    """Return the calls and variables in what a container is set to; `None` for anything else."""
    parent = module.parents[node]
    return _held_by(parent.value if isinstance(parent, ast.Assign | ast.AnnAssign) else None, path)


def _held_by(value: ast.expr | None, path: Sequence[int]) -> list[ast.expr] | None:
    """Return the calls and variables that a container is made of; `None` for anything else."""
    if isinstance(value, ast.ListComp):
        return _calls([value.elt], path)
    if isinstance(value, ast.DictComp):
        return _calls([value.value], path)
    if isinstance(value, ast.List | ast.Tuple):
        return _calls(value.elts, path)
    if isinstance(value, ast.Dict):
        return _calls(value.values, path)
    return [] if isinstance(value, ast.Call) and tail_of(value.func) in EMPTY and not value.keywords else None


def _calls(values: Iterable[ast.expr], path: Sequence[int] = ()) -> list[ast.expr] | None:
    given = _picked(values, path)
    known = given is not None and all(isinstance(v, ast.Call | ast.Name | ast.Attribute | ast.Subscript) for v in given)
    return given if known else None


def _used(node: ast.Name, uses: Uses, module: Module, path: Sequence[int] = ()) -> list[ast.expr] | None:
    """Return what one use of a container puts into it; `None` for a use that may put in, or change, anything."""
    parent = module.parents[node]
    above = module.parents.get(parent)
    if isinstance(parent, ast.keyword) and parent.arg is None:
        return []  # `**rows` passes on what stands there, and not the container
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if isinstance(parent.ctx, ast.Load):
            return [] if _is_left(parent, uses, module) else None
        is_set = isinstance(parent.ctx, ast.Store) and isinstance(above, ast.Assign)
        return _calls([above.value], path) if is_set and isinstance(above, ast.Assign) else None
    if isinstance(parent, ast.Attribute) and isinstance(above, ast.Call) and above.func is parent:
        if parent.attr == "append" and len(above.args) == 1:
            return _calls(above.args, path)
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
    is_reckoned = isinstance(parent, ast.BinOp | ast.UnaryOp | ast.JoinedStr | Comprehension)
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
    return all(n in module.parents and _reads(module.parents[n], n, module) for n in _loads(name, uses))


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
