"""Searches for the best value: which comparison lets a new one take the place of the one that is kept."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.benching import words
from gates.scan.analyses.benchmarks.directions import by_name, directions
from gates.scan.analyses.reading.code import constant, function_of, keyword, nodes, tail_text
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.syntax import leaves

BETTER = re.compile(r"(?i)(^|_| )(is_best|improved|has_improved|better|is_better|is_improvement|new_best)(_|$)")
KEPT = re.compile(r"(?i)(^|[^a-z])(best|incumbent|lowest|highest|smallest|largest)([^a-z]|$)")
EXTREME = re.compile(r"(?i)(^|[^a-z])(worst|max|min|peak|largest|highest|smallest|lowest)([^a-z]|$)")
UP = re.compile(r"(?i)(^|[^a-z])(highest|largest)([^a-z]|$)")
DOWN = re.compile(r"(?i)(^|[^a-z])(lowest|smallest)([^a-z]|$)")
PICKS = re.compile(r"(?i)(^|[^a-z])(best|winner|pick best|select best)([^a-z]|$)")
OLD = re.compile(r"(?i)(^|_)(best|old|prev|previous|ref|incumbent|baseline|b|other|current_best|champion)(_|$)")
TAKES = {"max": True, "argmax": True, "nanargmax": True, "nlargest": True, "min": False, "argmin": False,
         "nanargmin": False, "nsmallest": False}  # fmt: skip
MODES = re.compile(r"(?i)\bmode\b|maximi[sz]e|(greater|higher|larger|lower|smaller)_is_better")
ORDERS = ast.Lt | ast.LtE | ast.Gt | ast.GtE


def worse_kept(project: Project, module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield each expression by which a value takes the place of the best one while it is worse."""
    yield from _stored_worse(project, module)
    for value in _named(module):
        for compare in parts(value):
            if KEPT.search(words(text_of(compare))) and _is_worse(project, module, compare, better=True):
                yield compare, f"{text_of(compare)} is true where the value is worse"
            elif _is_turned(compare, module):
                yield compare, f"{text_of(compare)} is true where the first one is worse"
    for node in nodes(module, ast.Assign, ast.Return):
        if isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.Call | ast.Subscript):
            yield from (found for found in _picked(node, module) if not _has_mode(node, module))
    for call in (*module.calls.get("EarlyStopping", []), *module.calls.get("ModelCheckpoint", [])):
        mode, monitor = constant(keyword(call, "mode")), constant(keyword(call, "monitor"))
        larger = by_name(str(monitor)) if isinstance(monitor, str) else None
        if larger is not None and mode == ("min" if larger else "max"):
            yield call, f"{monitor} is watched with mode={mode!r}, which keeps the worst"


def _stored_worse(project: Project, module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield each condition under which a worse value is stored as the best one."""
    for node in nodes(module, ast.If):
        for compare in parts(node.test) if isinstance(node, ast.If) else ():
            assert isinstance(node, ast.If)
            for body, better in ((node.body, True), (_otherwise(node, module), False)):
                worse = _takes_over(compare, body) and _is_worse(project, module, compare, better=better)
                if worse and not _has_mode(node, module):
                    yield compare, f"{text_of(compare)} keeps the worst value as the best one"


def parts(test: ast.expr) -> Iterator[ast.Compare]:
    """Yield the comparisons by size that a condition is made of."""
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ORDERS):
            yield part


def _has_mode(node: ast.AST, module: Module) -> bool:
    """Return whether the function around knows of both directions."""
    return MODES.search(text_of(function_of(node, module) or node)) is not None


def _otherwise(node: ast.If, module: Module) -> list[ast.stmt]:
    """Return what runs where a condition does not hold: its `else`, or what stands after a branch that leaves."""
    if node.orelse or not leaves(node.body[-1]):
        return node.orelse
    for _, block in ast.iter_fields(module.parents[node]):
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def _named(module: Module) -> Iterator[ast.expr]:
    """Yield the conditions whose name, or whose function's name, says that a value is better."""
    for node in nodes(module, ast.Assign, ast.Return):
        if isinstance(node, ast.Assign) and BETTER.search(tail_text(node.targets[0])):
            yield node.value
        elif isinstance(node, ast.Return) and node.value is not None:
            function = function_of(node, module)
            if function is None or not BETTER.search(function.name) or EXTREME.search(words(function.name)):
                continue
            if not _has_mode(node, module):
                yield node.value


def _is_turned(compare: ast.Compare, module: Module) -> bool:
    """Return whether `is_better(a, b)` is true where `a` is worse, by the field of both that it compares."""
    function = function_of(compare, module)
    if function is None or not BETTER.search(function.name):
        return False
    names = [a.arg for a in function.args.args if a.arg not in {"self", "cls"}][:2]
    left, right = compare.left, compare.comparators[0]
    held = [side.value for side in (left, right) if isinstance(side, ast.Subscript | ast.Attribute)]
    roots = [each.id for each in held if isinstance(each, ast.Name)]
    if len(names) < 2 or sorted(roots) != sorted(names) or OLD.search(names[0]):
        return False
    larger = by_name(tail_text(left).removeprefix(roots[0]))
    above = isinstance(compare.ops[0], ast.Gt | ast.GtE) is (roots == names)
    return larger is not None and larger is not above


def _base(node: ast.expr) -> ast.expr:
    """Return a stored value without the margin beside it."""
    while isinstance(node, ast.BinOp):
        node = node.left
    return node


def _takes_over(compare: ast.Compare, body: list[ast.stmt]) -> bool:
    """Return whether a branch stores the one side where the other one was."""
    stored = [pair for statement in body for pair in _stored(statement) if KEPT.search(words(tail_text(pair[0])))]
    sides = [_base(side) for side in (compare.left, compare.comparators[0])] if stored else []
    texts = {text_of(side) for side in sides}
    held = [side.value for side in sides if isinstance(side, ast.Subscript | ast.Attribute)]
    if len(held) == 2 and len({text_of(s).removeprefix(text_of(h)) for s, h in zip(sides, held, strict=True)}) == 1:
        texts |= {text_of(each) for each in held}  # records with the same field
    return any(text_of(value) in texts and text_of(target) in texts - {text_of(value)} for target, value in stored)


def _stored(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            yield from zip(target.elts, statement.value.elts, strict=False)
        else:
            yield target, statement.value


def _is_worse(project: Project, module: Module, compare: ast.Compare, *, better: bool) -> bool:
    """Return whether what counts as better is worse, by all that tells which way is better."""
    left, right = _base(compare.left), _base(compare.comparators[0])
    above = isinstance(compare.ops[0], ast.Gt | ast.GtE)
    stored_right = KEPT.search(words(text_of(right))) is not None or not KEPT.search(words(text_of(left)))
    stored, value = (right, left) if stored_right else (left, right)
    grows = (above is stored_right) is better
    if (extreme := _extreme(tail_text(stored))) is not None:
        return extreme is not grows
    if EXTREME.search(words(tail_text(stored))):
        return False
    return directions(project, module, value, stored) == {not grows}


def _extreme(stored: str) -> bool | None:
    """Return whether what is kept is called the largest, or the smallest."""
    up, down = UP.search(words(stored)) is not None, DOWN.search(words(stored)) is not None
    return up if up is not down else None


def _picked(node: ast.Assign | ast.Return, module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Find the best of several that is picked by `max` where small is better, or the other way round."""
    function = function_of(node, module) if isinstance(node, ast.Return) else None
    target = tail_text(node.targets[0]) if isinstance(node, ast.Assign) else function.name if function else ""
    if not PICKS.search(words(target)) or EXTREME.search(words(target)) or node.value is None:
        return
    for call in (*walk(node.value), *_sorted(node.value, module)):
        taken = _taken(call, node.value, module)
        if taken is None or not isinstance(call, ast.Call):
            continue
        if any(isinstance(inside, ast.USub | ast.BinOp) for inside in walk(call)):
            continue  # maybe turned round on purpose
        key = keyword(call, "key")
        told = " ".join(_words_of(key) if key is not None else [w for arg in call.args for w in _words_of(arg)])
        larger = by_name(f"{told} {target}") if key is None else by_name(told)
        if larger is not None and larger is not taken:
            yield call, f"{text_of(call)} picks the worst as the best one"


def _taken(call: ast.AST, value: ast.expr, module: Module) -> bool | None:
    """Return whether a call picks the largest, `False` for the smallest: `max(...)`, `sorted(...)[0]`."""
    if not isinstance(call, ast.Call):
        return None
    if tail_of(call.func) not in {"sorted", "sort"}:
        return TAKES.get(tail_of(call.func))
    parent = module.parents.get(call) if tail_of(call.func) == "sorted" else value
    at = constant(parent.slice) if isinstance(parent, ast.Subscript) else None
    if at not in (0, -1) or keyword(call, "key") is None:
        return None
    turned = keyword(call, "reverse")
    return None if turned is not None and constant(turned) is None else (at == -1) is not (constant(turned) is True)


def _sorted(value: ast.expr, module: Module) -> Iterator[ast.Call]:
    """Yield the last call that sorts, in its place, the list of which a value is an element."""
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        body = function_of(value, module) or module.tree
        made = [c for c in inner(body, ast.Call) if isinstance(c, ast.Call) and c.lineno < value.lineno]
        yield from [c for c in made if text_of(c.func) == f"{value.value.id}.sort"][-1:]


def _words_of(node: ast.expr) -> list[str]:
    """Return the words that tell what is compared: names, fields and keys."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return [tail_text(node)]
    if isinstance(node, ast.Lambda):
        return _words_of(node.body)
    if isinstance(node, ast.Call):
        found = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        return [*found, *(w for a in node.args for w in _words_of(a)), *_words_of(node.func)]
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _words_of(node.elt)
    return [str(node.value)] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
