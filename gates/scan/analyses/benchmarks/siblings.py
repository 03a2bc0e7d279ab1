"""Comparisons that stand beside each other: the checks of one verdict, which should all be true of what is good."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import words
from gates.scan.analyses.benchmarks.verdicts import FAIL, OWN, PASS
from gates.scan.analyses.reading.code import constant, function_of, nodes
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk

Beside = list[tuple[str, ast.expr]]
OPERATORS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
CHECKS = re.compile(r"(?i)(^|_)(checks?|gates?|criteria|requirements?|checklist|verdicts?|outcomes?)(_|$)")
BREACHES = re.compile(
    r"(?i)(^|_)(violations?|failures?|failing|problems?|breach(es)?|regressions?|rejections?|reasons|objections?|"
    r"complaints?|issues|blockers?|faults?|shortfalls?|vetoes)(_|$)"
)
REMARKS = re.compile(r"(?i)flag|notable|significan|changed|event|highlight|mask|filter|trigger|alarm|alert|warn|stop")
CHECKING = re.compile(r"(?i)check|expect|require|ensure|verify|gate|criterion|claim|condition|append|add|record|must")
CONJUNCTION = 3  # of two, neither can be told to be the odd one


def beside(module: Module) -> Iterator[tuple[list[ast.expr], bool | None]]:
    """Yield what stands side by side, and whether its truth means passed, where what it is called tells."""
    for node in nodes(module, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Call, ast.BoolOp):
        held = list(_held(node, module)) if _is_wide(node) else []
        if len(held) > 1 and any(isinstance(value, ast.Compare | ast.Name) for _, value in held):
            is_verdict = isinstance(module.parents.get(node), ast.Return | ast.Call | ast.Assign)
            yield from _told(_name(node, module), [(n, _seen(v, module) if is_verdict else v) for n, v in held])
    for (function, holder), entries in _one_by_one(module).items():
        name = holder.removesuffix(".append").removesuffix(".add")
        is_asked = isinstance(function, ast.AST) and name != holder and _is_asked(function, name)
        yield from _told(f"{name}_passed" if is_asked else name, entries)


def _is_asked(function: ast.AST, name: str) -> bool:
    """Return whether a function asks if all of a collection is true: `all(good for _, good in results)`."""
    asked = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and tail_of(c.func) == "all" and c.args]
    return any(isinstance(n, ast.Name) and n.id == name for call in asked for n in walk(call.args[0]))


def _is_wide(node: ast.AST) -> bool:
    """Return whether two comparisons may stand in a node."""
    if isinstance(node, ast.Call):
        return len(node.keywords) > 1
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        stored = isinstance(getattr(node, "ctx", None), ast.Store)
        return len(node.elts) > 1 and not stored and not isinstance(node.elts[0], ast.Constant | ast.Attribute)
    return True


def _told(name: str, entries: Beside) -> Iterator[tuple[list[ast.expr], bool | None]]:
    if REMARKS.search(name):
        return
    good = None
    if BREACHES.search(name) or FAIL.search(name):
        good = False
    elif CHECKS.search(name) or PASS.search(name):
        good = True
    labels = [words(label).replace(" ", "_") for label, _ in entries]
    told = [OWN.search(label) or FAIL.search(label) for label in labels]
    yield [value for (_, value), own in zip(entries, told, strict=True) if not own], good


def _held(node: ast.AST, module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the comparisons of a display, of a call's keywords, or of a conjunction that is returned."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), _row(str(key.value), value) or value
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield from (entry for each in node.elts for entry in _element(each))
    elif isinstance(node, ast.Call):
        yield from ((k.arg, k.value) for k in node.keywords if k.arg and isinstance(k.value, ast.Compare))
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) and len(node.values) >= CONJUNCTION:
        is_value = isinstance(module.parents.get(node), ast.Return | ast.Assign)
        yield from ((tail_of(value), value) for value in node.values if is_value)


def _element(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield a comparison that is an element: by itself, in a tuple beside its label, or handed to a constructor."""
    if isinstance(node, ast.Compare | ast.Name):
        yield tail_of(node), node
        return
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    if isinstance(node, ast.Call):
        parts = [*node.args, *(k.value for k in node.keywords)]
    found = [part for part in parts if isinstance(part, ast.Compare)]
    label = next((str(v) for v in map(constant, parts) if isinstance(v, str)), "")
    row = _row(label, node)
    if len(found) == 1 or row is not None:
        yield label, row or found[0]


def label_of(node: ast.Compare, module: Module) -> str:
    """Return what a comparison is called where it stands: its key, its keyword, or the text beside it."""
    around = module.parents.get(node)
    if isinstance(around, ast.keyword):
        return around.arg or ""
    if isinstance(around, ast.Dict):
        keys = [key for key, value in zip(around.keys, around.values, strict=True) if value is node]
        return _label_text(keys[0]) if keys[0] is not None else ""
    parts = around.elts if isinstance(around, ast.Tuple | ast.List) else []
    parts = around.args if isinstance(around, ast.Call) else parts
    return next((value for value in map(constant, parts) if isinstance(value, str)), "")


def _label_text(key: ast.expr) -> str:
    """Return the text of a key, or what is written in one that is put together: of `f"within {tol}"`, `within `."""
    if isinstance(key, ast.JoinedStr):
        return "".join(str(part.value) for part in key.values if isinstance(part, ast.Constant))
    return str(constant(key)) if isinstance(key, ast.Constant) else ""


def _row(label: str, node: ast.expr) -> ast.Compare | None:
    """Return the comparison that a row of a table means: `("speedup", operator.ge, 1.3)`, `(">=", 1.3)`."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    if isinstance(node, ast.Call):
        parts = [*node.args, *(k.value for k in node.keywords)]
    signs = [sign for sign in map(_sign, parts) if sign]
    bars = [part for part in parts if not _sign(part) and not isinstance(constant(part), str)]
    if not label.isidentifier() or len(signs) != 1 or len(bars) != 1:
        return None
    kinds = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
    measured = ast.Attribute(ast.Name("", ast.Load()), label, ast.Load())
    made = ast.Compare(measured, [kinds[signs[0]]()], [bars[0]])
    return ast.copy_location(made, node)


def is_written(compare: ast.Compare, module: Module) -> bool:
    """Return whether a comparison stands in the code, rather than being what a row of a table means."""
    return compare in module.parents


def _sign(node: ast.expr) -> str:
    value = constant(node)
    if isinstance(value, str):
        return value if value in OPERATORS.values() else ""
    return OPERATORS.get(tail_of(node), "")


def _seen(node: ast.expr, module: Module) -> ast.expr:
    """Return the comparison behind a variable that is set once before."""
    if not isinstance(node, ast.Name):
        return node
    found = set_before(function_of(node, module) or module.tree, node.id, node.lineno)
    return found[0][0] if len(found) == 1 else node


def _name(node: ast.AST, module: Module) -> str:
    """Return what a display is called: by its variable, by its function where that returns it."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
        return tail_of(target)
    if isinstance(parent, ast.Return | ast.Tuple):
        function = function_of(node, module)
        return function.name if function is not None else ""
    if isinstance(parent, ast.Call):
        return f"{tail_of(parent.func)}_passed" if tail_of(parent.func) == "all" else ""
    return ""


def _noted(module: Module) -> Iterator[tuple[ast.AST, str, str, ast.expr]]:
    """Yield the conditions under which a function notes something: `if drop > limit: found.append(...)`, or yields it.

    What is noted in a list that the function returns is what the function is called.
    """
    for node in nodes(module, ast.If):
        function = function_of(node, module)
        only = node.body[0] if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse else None
        noted = only.value if isinstance(only, ast.Expr) else None
        if function is None or not isinstance(node, ast.If):
            continue
        if isinstance(noted, ast.Yield):
            yield node, function.name, "", node.test
        elif isinstance(noted, ast.Call) and isinstance(noted.func, ast.Attribute) and noted.func.attr == "append":
            held = text_of(noted.func.value)
            given = (n.value for n in inner(function, ast.Return) if isinstance(n, ast.Return) and n.value is not None)
            yield node, function.name if held in map(text_of, given) else held, "", node.test


def _begun(function: object, name: str, module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the comparisons that a dictionary begins with, to which a function adds more."""
    for node in nodes(module, ast.Assign, ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        is_begin = target is not None and text_of(target) == name and isinstance(value, ast.Dict)
        if is_begin and value is not None and function_of(node, module) is function:
            yield from ((label, _seen(held, module)) for label, held in _held(value, module))


def _one_by_one(module: Module) -> dict[tuple[object, str], Beside]:
    """Return the comparisons that a function puts into one collection, or hands to one checker, one after the other."""
    found: dict[tuple[object, str], Beside] = defaultdict(list)
    for node, holder, label, value in _put(module):
        found[function_of(node, module), holder].append((label, _seen(value, module)))
    for function, name in found:
        found[function, name] += _begun(function, name, module)
    for name, made in module.calls.items():
        for call in made if CHECKING.search(name) else ():
            parts = [part for arg in call.args for part in (arg.elts if isinstance(arg, ast.Tuple) else [arg])]
            compares = [part for part in parts if isinstance(part, ast.Compare)]
            if len(compares) == 1:
                label = next((str(v) for v in map(constant, parts) if isinstance(v, str)), "")
                found[function_of(call, module), text_of(call.func)].append((label, compares[0]))
    return {key: entries for key, entries in found.items() if len(entries) > 1}


def _put(module: Module) -> Iterator[tuple[ast.AST, str, str, ast.expr]]:
    """Yield what is put under keys of a dictionary, `checks["memory"] = ...`, or yielded beside a label."""
    for node in nodes(module, ast.Yield):
        function = function_of(node, module)
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple) and function is not None:
            yield from ((node, function.name, label, value) for label, value in _element(node.value))
    yield from _noted(module)
    for node in nodes(module, ast.Assign):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        key = constant(target.slice) if isinstance(target, ast.Subscript) else None
        if isinstance(target, ast.Subscript) and isinstance(node, ast.Assign) and isinstance(key, str):
            yield node, text_of(target.value), key, node.value
    for node in nodes(module, ast.AugAssign):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr) and isinstance(node.value, ast.Dict):
            yield from ((node, text_of(node.target), label, value) for label, value in _held(node.value, module))
    for call in module.calls.get("update", ()):
        holder = text_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        compares: Beside = [(k.arg or "", k.value) for k in call.keywords if isinstance(k.value, ast.Compare)]
        compares += [held for arg in call.args if isinstance(arg, ast.Dict) for held in _held(arg, module)]
        yield from ((call, holder, label, value) for label, value in compares)
