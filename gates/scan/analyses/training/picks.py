"""Batches that Python takes out of a memory with each step, sample after sample, and makes tensors of as lists."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import function_of
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.training.hot import is_hot
from gates.scan.analyses.training.rows import Rows, is_across, is_window, rows_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project

TENSORS = frozenset({"tensor", "as_tensor", "asarray", "from_numpy", "Tensor", "FloatTensor", "LongTensor",
                     "IntTensor", "BoolTensor", "DoubleTensor"})  # fmt: skip
STACKS = frozenset({"stack", "vstack", "row_stack"})
ARRAYS = frozenset({"array", "asarray"})
JOINS = frozenset({"stack", "vstack", "cat", "concat"})
AS_IS = frozenset({"tolist", "numpy", "astype", "copy", "cpu", "detach", "item", "float", "int", "long", "bool"})
CASTS = frozenset({"float", "int", "bool", "list"})
DRAWS = frozenset({"sample", "choices", "choice", "randint", "randperm", "permutation", "integers"})
DRAWERS = ("random.", "numpy.random.", "torch.")
GENERATORS = frozenset({"rng", "random", "generator", "gen", "random_state"})
MAX_HOPS = 3


def picked(project: Project, module: Module) -> Iterator[ast.AST]:
    """Yield where each batch is made of a list of samples that a training draws, or cuts out, with each step."""
    found = []
    for tail in sorted((TENSORS | JOINS) & module.calls.keys()):
        for call in module.calls[tail]:
            if call.args and (project.scope_at(call, module).dotted(call.func) or "").startswith("torch."):
                found += [(call, *each) for each in _lists(project, module, call)]
    for call, rows, is_array in found:
        beside = (other for one, other, _ in found if one is not call)
        is_batch = is_array or _has_fields(rows, module) or any(_is_beside(rows, other, module) for other in beside)
        if is_batch and is_hot(project, module, call) and _is_taken(project, module, rows):
            yield rows.place


def _lists(project: Project, module: Module, call: ast.Call) -> Iterator[tuple[Rows, bool]]:
    """Yield the lists of samples that a tensor is made of, and whether each of these has more than one number."""
    is_join = tail_of(call.func) in JOINS
    if is_join and is_across(call):
        return
    node, is_array = (call.args[0], False) if is_join else _inside(project, module, call.args[0])
    for rows in rows_of(call, node, module):
        each = _of_host(project, module, rows.each) if is_join else rows.each
        if each is not None and len(rows.turns) == 1 and not is_window(rows) and _is_read(each, _turning(rows)):
            yield rows, is_array or is_join or _is_listed(each)


def _inside(project: Project, module: Module, node: ast.expr, hops: int = MAX_HOPS) -> tuple[ast.expr, bool]:
    """Return the list that an array is made of, and whether it is one of arrays."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in AS_IS:
        if (project.scope_at(node, module).dotted(node.func) or "").startswith("numpy."):
            break
        node = node.func.value
    if isinstance(node, ast.Name) and hops:
        values = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
        made = values[0][0] if len(values) == 1 else node
        return _inside(project, module, made, hops - 1) if isinstance(made, ast.Call) else (node, False)
    if isinstance(node, ast.Call) and node.args and tail_of(node.func) in STACKS | ARRAYS:
        dotted = project.scope_at(node, module).dotted(node.func) or ""
        return (node.args[0], tail_of(node.func) in STACKS) if dotted.startswith("numpy.") else (node, False)
    return node, False


def _of_host(project: Project, module: Module, node: ast.expr) -> ast.expr | None:
    """Return what a row is made a tensor of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    is_made = isinstance(node, ast.Call) and node.args and tail_of(node.func) in TENSORS
    if not isinstance(node, ast.Call) or not is_made:
        return None
    return node.args[0] if (project.scope_at(node, module).dotted(node.func) or "").startswith("torch.") else None


def _is_read(node: ast.expr, turning: set[str]) -> bool:
    """Return whether a row is what a sample has: `row`, `row.seen`, `row["seen"].tolist()`, `kept[i]`."""
    node = _bare(node)
    if isinstance(node, ast.List | ast.Tuple):
        return bool(node.elts) and all(_is_read(part, turning) for part in node.elts)
    if isinstance(node, ast.Call):
        is_field = tail_of(node.func) == "getattr" and len(node.args) == 2
        return is_field and isinstance(node.args[0], ast.Name) and node.args[0].id in turning
    by_number = False
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in {"shape", "size"}:
            return False
        by_number = by_number or (isinstance(node, ast.Subscript) and bool(turning & _names(node.slice)))
        node = node.value
    return isinstance(node, ast.Name) and (node.id in turning or by_number)


def _bare(node: ast.expr) -> ast.expr:
    """Return what is only cast, or turned into a list."""
    while isinstance(node, ast.Call):
        is_own = isinstance(node.func, ast.Attribute) and not _names(node.func.value) & {"np", "torch"}
        is_cast = len(node.args) == 1 and tail_of(node.func) in CASTS | ARRAYS
        if is_own and tail_of(node.func) in AS_IS and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif is_cast and not is_own:
            node = node.args[0]
        else:
            break
    return node


def _is_listed(node: ast.expr) -> bool:
    """Return whether a row is a list of its own."""
    return isinstance(node, ast.List | ast.Tuple) or (isinstance(node, ast.Call) and tail_of(node.func) == "tolist")


def _has_fields(rows: Rows, module: Module) -> bool:
    """Return whether one expression makes a batch of each field of the samples: `{k: ... for k in fields}`."""
    names = _names(rows.each) - _turning(rows)
    around = (a for a in module.ancestors(rows.place) if isinstance(a, ast.DictComp | ast.ListComp | ast.GeneratorExp))
    return any(names & _names(part.target) for each in around for part in each.generators)


def _is_beside(rows: Rows, other: Rows, module: Module) -> bool:
    """Return whether two lists are made of the same samples."""
    same = function_of(rows.place, module) is function_of(other.place, module)
    return same and rows.over == other.over


def _is_taken(project: Project, module: Module, rows: Rows) -> bool:
    """Return whether samples are drawn, or are a span of what there are."""
    over = rows.turns[0].over
    while isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in AS_IS:
        over = over.func.value
    for node, scope, _ in Origins(project).ways(over, project.scope_at(over, module)):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            upper, lower = node.slice.upper, node.slice.lower
            if upper is not None and lower is not None and not isinstance(lower, ast.Constant):
                return True
        if not isinstance(node, ast.Call) or tail_of(node.func) not in DRAWS:
            continue
        named = scope.dotted(node.func) or ""
        of = tail_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if named != "random.choice" and (named.startswith(DRAWERS) or of.strip("_") in GENERATORS):
            return True
    return False


def _turning(rows: Rows) -> set[str]:
    return {name for turn in rows.turns for name in _names(turn.target)}


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}
