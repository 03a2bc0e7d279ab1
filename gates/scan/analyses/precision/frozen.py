"""Which parameters of a model are trained: those that are not frozen, of the parts that are put in later too."""

import ast
import itertools
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import calls, constant, statement_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk

PARAMETERS = {"parameters", "named_parameters"}
ADDS = re.compile(r"^(add|attach|inject|insert)(_|$)|^(append|extend|load_adapter|set_attn_processor|set_submodule)$")
ADAPTS = re.compile(r"(?i)peft|lora|adapter")


def asking(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in an expression that ask a model for its parameters."""
    for call in walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in PARAMETERS:
            yield call


def root_of(node: ast.expr) -> ast.expr | None:
    """Return the object that a chain of methods begins with."""
    while isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
        node = node.value.func
    return node.value if isinstance(node, ast.Attribute) else None


def named_for(call: ast.Call, module: Module) -> set[str]:
    """Return what the result of a chain of calls is bound to."""
    statement = statement_of(call, module)
    return {text_of(target) for target in statement.targets} if isinstance(statement, ast.Assign) else set()


def is_frozen(halving: ast.Call, module: Module, body: ast.AST) -> bool:
    """Return whether no parameter of a halved model is trained: `net.half().requires_grad_(False)`, a loop over all."""
    statement = statement_of(halving, module)
    root = root_of(halving.func)
    names = named_for(halving, module) or ({text_of(root)} if root is not None else set())
    around = (c for c in calls(statement) if freezes(c) and halving in walk(c)) if statement is not None else ()
    return (
        any(True for _ in around)
        or any(freezes(c) and text_of(root_of(c.func) or c) in names for c in calls(body) if c.lineno > halving.lineno)
        or any(
            isinstance(n, ast.For) and n.lineno > halving.lineno and _freezes_all(n, names)
            for n in inner(body, ast.For)
        )
        or _is_frozen_before(halving, body, module, names)
    )


def is_frozen_in(body: ast.AST, names: set[str], module: Module) -> bool:
    """Return whether code turns the gradients of all parameters of a model off in any case, and adds none."""
    found: list[ast.AST] = [c for c in calls(body) if freezes(c) and text_of(root_of(c.func) or c) in names]
    found += [n for n in inner(body, ast.For) if isinstance(n, ast.For) and _freezes_all(n, names)]
    sure = (each for each in found if not any(isinstance(a, ast.If) for a in _within(each, body, module)))
    adapts = (c for c in calls(body) if ADAPTS.search(tail_of(c.func)) and any(text_of(arg) in names for arg in c.args))
    return any(True for _ in sure) and not any(adds_to(c, names) for c in calls(body)) and not any(True for _ in adapts)


def _within(node: ast.AST, body: ast.AST, module: Module) -> Iterator[ast.AST]:
    """Yield what stands around a node within a function."""
    return itertools.takewhile(lambda around: around is not body, module.ancestors(node))


def _is_frozen_before(halving: ast.Call, body: ast.AST, module: Module, names: set[str]) -> bool:
    """Return whether a model's gradients were turned off before it was halved, with nothing put into it in between."""
    root = root_of(halving.func)
    if root is None or text_of(root) not in names:
        return False
    loops = [n.lineno for n in inner(body, ast.For) if isinstance(n, ast.For) and _freezes_all(n, names)]
    found = [c for c in calls(body) if freezes(c)]
    lines = [c.lineno for c in found if text_of(root_of(c.func) or c) in names or named_for(c, module) & names]
    since = max((line for line in (*loops, *lines) if line < halving.lineno), default=0)
    between = [c for c in calls(body) if since < c.lineno < halving.lineno]
    is_changed = any(adds_to(c, names) or any(text_of(arg) in names for arg in c.args) for c in between)
    return bool(since) and not is_changed and not puts_in(body, since, halving.lineno, names)


def adds_to(call: ast.Call, names: set[str]) -> bool:
    """Return whether a method of a model, or of a part of it, puts something new into it: `net.add_module(...)`."""
    func = call.func
    return isinstance(func, ast.Attribute) and ADDS.search(func.attr) is not None and _is_within(func.value, names)


def _freezes_all(loop: ast.For, names: set[str]) -> bool:
    """Return whether a loop over the parameters of a model turns the gradients of each of them off."""
    if not any(text_of(c.func.value) in names for c in asking(loop.iter)):  # type: ignore[attr-defined]  # a method
        return False
    sets = (s for s in loop.body if isinstance(s, ast.Assign) and constant(s.value) is False)
    is_set = any(tail_of(target) == "requires_grad" for each in sets for target in each.targets)
    called = (s.value for s in loop.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    return is_set or any(map(freezes, called))


def freezes(call: ast.Call) -> bool:
    """Return whether a call turns the gradients of parameters off."""
    return tail_of(call.func) == "requires_grad_" and bool(call.args) and constant(call.args[0]) is False


def thaws(tree: ast.AST) -> bool:
    """Return whether code may turn the gradients of parameters on."""
    return any(
        (isinstance(n, ast.Call) and tail_of(n.func) == "requires_grad_" and not freezes(n))
        or (isinstance(n, ast.Assign) and constant(n.value) is not False and "requires_grad" in map(tail_of, n.targets))
        for n in walk(tree)
    )


def puts_in(body: ast.AST, since: int, until: int, names: set[str]) -> bool:
    """Return whether code puts a new part into a model, or into a part that it takes of it: `block.out = Own(...)`."""
    parts = set(names)
    for node in inner(body, ast.For, ast.Assign):
        if not since < getattr(node, "lineno", 0) <= until:
            continue
        targets = [node.target] if isinstance(node, ast.For) else node.targets if isinstance(node, ast.Assign) else []
        value = node.iter if isinstance(node, ast.For) else node.value if isinstance(node, ast.Assign) else node
        for target in targets:
            if isinstance(target, ast.Attribute | ast.Subscript) and isinstance(value, ast.Call):
                if _is_within(target.value, parts):
                    return True
            elif any(_is_within(n, parts) for n in walk(value) if isinstance(n, ast.expr)):
                parts |= {n.id for n in walk(target) if isinstance(n, ast.Name)}
    return False


def _is_within(node: ast.AST, names: set[str]) -> bool:
    """Return whether something is one of some objects, or a part of it."""
    while text_of(node) not in names and isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return text_of(node) in names
