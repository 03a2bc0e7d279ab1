"""Loops that run a model over batches and take no step: evaluation, inference, embedding; tensors that rows are of."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import is_benchmark
from gates.scan.analyses.reading.code import FUNCTIONS, LOOPS, accelerated, callee, calls, function_of
from gates.scan.analyses.reading.flow import is_forward
from gates.scan.analyses.reading.origins import COMPREHENSIONS, Origins
from gates.scan.analyses.training.hot import is_training, root_of
from gates.scan.analyses.training.steps import Steps
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

BATCHES = re.compile(r"(?i)load|batch|(^|[_.(])(dl|it)(\b|_)|data|patch|tile|chunk|crop|window|slice|range|split")
MADE = re.compile(r"\b(rand|randn|randint|zeros|ones|empty|full)(_like)?\(")
MAX_DEPTH = 2
MAX_SHAPES = 4
TENSORS = frozenset({"zeros", "empty", "full", "ones", "stack", "cat", "from_numpy", "tensor", "as_tensor", "load",
                     "rand", "randn", "randint", "arange", "zeros_like", "empty_like"})  # fmt: skip
RESHAPES = frozenset({"flatten", "reshape", "view", "to", "cuda", "float", "long", "half", "contiguous", "permute",
                      "squeeze", "transpose", "clone", "detach", "pin_memory", "share_memory_", "int"})  # fmt: skip


def runs_each_batch(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a node runs with each batch of such a loop, there or in what it calls."""
    root = root_of(project, module, node)
    if root is None or is_training(project, module, root):
        return False
    if isinstance(root, LOOPS):
        return accelerated(module) and _is_over_batches(project, module, root)
    is_alone = sum(tail_of(c.func) == "empty_cache" for c in calls(root)) < 2  # else it parts phases that need memory
    return root in project.once(_steps)[0].sites and is_alone


def _steps(project: Project) -> Iterator[Steps]:
    begun = [
        (m, loop) for m in project.modules.values() if accelerated(m)
        for kind in (*LOOPS, *COMPREHENSIONS) for loop in m.live.get(kind, ())
        if not is_training(project, m, loop) and _is_over_batches(project, m, loop)
    ]  # fmt: skip

    def is_free(module: Module, node: ast.AST, root: ast.AST) -> bool:
        return isinstance(root, COMPREHENSIONS) or root_of(project, module, node) is root

    yield Steps(project, iter(begun), is_free)


def _is_over_batches(project: Project, module: Module, loop: ast.AST) -> bool:
    """Return whether a loop hands a part of what it goes over to a model that is made before it."""
    each = loop.generators[0] if isinstance(loop, COMPREHENSIONS) else loop
    if not isinstance(each, ast.For | ast.AsyncFor | ast.comprehension) or not BATCHES.search(text_of(each.iter)):
        return False
    if is_benchmark(function_of(loop, module) or loop, module):
        return False
    names, made = _parts(each.target, loop)
    return any(
        _takes(call, names) and not ({n.id for n in walk(call.func) if isinstance(n, ast.Name)} & made)
        and _forwards(project, module, call, MAX_DEPTH)
        for call in calls(loop)
        if not any(isinstance(a, LOOPS) and a is not loop and _within(a, loop, module) for a in module.ancestors(call))
    )  # fmt: skip


def _within(node: ast.AST, loop: ast.AST, module: Module) -> bool:
    return any(a is loop for a in module.ancestors(node))


def _parts(target: ast.expr, loop: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names of what a turn is given and of what is made of it, and all names that a turn sets."""
    names = {n.id for n in walk(target) if isinstance(n, ast.Name)}
    made = set(names)
    for node in sorted(inner(loop, ast.Assign), key=lambda n: n.lineno):  # type: ignore[attr-defined]
        assert isinstance(node, ast.Assign)
        targets = {n.id for t in node.targets for n in walk(t) if isinstance(n, ast.Name)}
        made |= targets
        if any(isinstance(n, ast.Name) and n.id in names for n in walk(node.value)):
            names |= targets if not MADE.search(text_of(node.value)) else set()
    return names, made


def _takes(call: ast.Call, names: set[str]) -> bool:
    given = (*call.args, *(k.value for k in call.keywords))
    return any(isinstance(n, ast.Name) and n.id in names for arg in given for n in walk(arg))


def _forwards(project: Project, module: Module, call: ast.Call, depth: int) -> bool:
    """Return whether a call is a forward pass, or runs one outside of a loop."""
    if is_forward(project, module, call):
        return True
    target = callee(project, module, call) if depth else None
    if target is None:
        return False
    there = project.scope_of(target, module).module
    looped = {c for loop in inner(target, *LOOPS) for c in calls(loop)}
    return any(c not in looped and _forwards(project, there, c, depth - 1) for c in calls(target))


def is_number_of(index: ast.expr, turning: set[str]) -> bool:
    """Return whether an index is the number of one row, as the loop around it says: `i`, `int(i)`, `i : i + 1`."""
    if isinstance(index, ast.Tuple):
        kinds = [isinstance(part, ast.Slice) and part.lower is part.upper is None for part in index.elts]
        parts = [part for part, is_whole in zip(index.elts, kinds, strict=True) if not is_whole]
        return bool(parts) and not kinds[0] and all(is_number_of(part, turning) for part in parts)
    if isinstance(index, ast.Slice):
        ends = f"{text_of(index.lower)} + 1" if index.lower is not None and index.upper is not None else ""
        return bool(ends) and text_of(index.upper or index) == ends and is_number_of(index.lower or index, turning)
    if isinstance(index, ast.Call) and tail_of(index.func) in {"int", "item"}:
        index = index.args[0] if index.args else index.func.value if isinstance(index.func, ast.Attribute) else index
    return isinstance(index, ast.Name) and index.id in turning


def is_stored(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether a value is a tensor that the program made, of its own numbers or of the host's, and no list."""
    origins = Origins(project)
    is_tensor = False
    todo: list[tuple[ast.expr, Scope, int]] = [(node, project.scope_at(node, module), MAX_SHAPES)]
    while todo:
        value, scope, hops = todo.pop()
        for made, where, path in origins.ways(value, scope):
            if not path and isinstance(made, ast.List | ast.ListComp):
                return False
            if isinstance(made, ast.Name) and not path:
                todo += [(each, where, hops - 1) for each in _passed(made, where.module)] if hops else []
            if not isinstance(made, ast.Call) or path:
                continue
            if tail_of(made.func) in TENSORS and (where.dotted(made.func) or "").startswith("torch."):
                is_tensor = True
            elif isinstance(made.func, ast.Attribute) and made.func.attr in RESHAPES and hops:
                todo.append((made.func.value, where, hops - 1))
    return is_tensor


def _passed(name: ast.Name, module: Module) -> list[ast.expr]:
    """Return what is passed for a parameter of a lambda that has a name: `take = lambda rows: rows[0]`."""
    made = next((a for a in module.ancestors(name) if isinstance(a, (*FUNCTIONS, ast.Lambda))), None)
    kept = module.parents.get(made) if isinstance(made, ast.Lambda) else None
    if not isinstance(made, ast.Lambda) or not isinstance(kept, ast.Assign):
        return []
    given = [a.arg for a in (*made.args.posonlyargs, *made.args.args)]
    at = given.index(name.id) if name.id in given else len(given)
    run = calls(function_of(kept, module) or module.tree)
    own = [c for c in run if isinstance(c.func, ast.Name) and c.func.id == tail_of(kept.targets[0])]
    found = [value for c in own for value in c.args[at : at + 1] if value is not name]
    return found + [k.value for c in own for k in c.keywords if k.arg == name.id]
