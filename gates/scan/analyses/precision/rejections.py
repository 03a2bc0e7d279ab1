"""Gradients that a mask clears on the device, where they are finite and not where they are not."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.guards import SAYS_BAD, finite
from gates.scan.analyses.reading.code import broken, constant, nodes, statement_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

GRADIENT = re.compile(r"(?i)grad")
ZEROS = {"zeros_like", "zeros", "new_zeros"}
CASTS = {"float", "half", "double", "int", "to", "type", "type_as", "view", "reshape", "expand_as"}
FILLS = {"masked_fill", "masked_fill_"}
SAYS = frozenset({"critical", "debug", "error", "info", "log", "print", "warn", "warning", "write"})
NOT_FINITE = re.compile(
    r"(?i)(?<!no )(?<!not )(?<!without )"
    r"(\bskip|\bnon.?finite|\bnot finite|\b(is )?(nan|inf)\b(?! free)|overflow|\binfinite)"
)
SCALES = {"mul", "mul_", "_foreach_mul_", "_foreach_mul"}


def cleared(project: Project, module: Module) -> Iterator[Site]:
    """Yield each gradient that is set to zero exactly where it, or its norm, is finite."""
    for name in ("where", *FILLS, *SCALES):
        for call in module.calls.get(name, ()):
            mask = _mask(call)
            if mask is not None and _is_wrong(project, module, *mask) and not _is_looked_at(call, module):
                yield broken(module, call, "gradients are set to zero where they are finite, and only there")
    for node in nodes(module, ast.Assign, ast.AugAssign):
        mask = _mask_of(node) if isinstance(node, ast.Assign | ast.AugAssign) else None
        if mask is not None and _is_wrong(project, module, *mask):
            yield broken(module, node, "gradients are set to zero where they are finite, and only there")


def denial(branch: list[ast.stmt]) -> str | None:
    """Return what a branch says first, where that is of numbers which are not finite, or of a step that is left out."""
    said = branch[0].value if branch and isinstance(branch[0], ast.Expr) else None
    if not isinstance(said, ast.Call) or tail_of(said.func) not in SAYS:
        return None
    texts = (n.value for n in walk(said) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return next((text.strip() for text in texts if NOT_FINITE.search(text)), None)


def _is_wrong(project: Project, module: Module, mask: ast.expr, clears: bool) -> bool:
    found = finite(project, module, _plain(mask))
    return found is not None and found.wrong is None and found.holds is clears


def _mask(call: ast.Call) -> tuple[ast.expr, bool] | None:
    """Return what a call chooses gradients by, and whether it clears them where that is true."""
    tail, args = tail_of(call.func), call.args
    is_method = isinstance(call.func, ast.Attribute) and text_of(call.func.value) != "torch"
    if is_method and isinstance(call.func, ast.Attribute):
        args = [call.func.value, *args]
    if tail == "where" and len(args) == 3:
        mask, yes, no = (args[1], args[0], args[2]) if is_method else args
        if _is_zero(yes) and _is_gradient(no):
            return mask, True
        return (mask, False) if _is_zero(no) and _is_gradient(yes) else None
    if tail in FILLS and len(args) == 3 and _is_gradient(args[0]) and _is_zero(args[2]):
        return args[1], True
    return (args[1], False) if tail in SCALES and len(args) == 2 and _is_gradient(args[0]) else None


def _mask_of(node: ast.Assign | ast.AugAssign) -> tuple[ast.expr, bool] | None:
    """Return the same of `p.grad[mask] = 0` and `p.grad *= mask`."""
    if isinstance(node, ast.AugAssign):
        return (node.value, False) if isinstance(node.op, ast.Mult) and _is_gradient(node.target) else None
    target = node.targets[0]
    is_part = isinstance(target, ast.Subscript) and _is_gradient(target.value) and _is_zero(node.value)
    return (target.slice, True) if is_part and isinstance(target, ast.Subscript) else None


def _plain(mask: ast.expr) -> ast.expr:
    """Return a mask without what only casts it."""
    while isinstance(mask, ast.Call) and tail_of(mask.func) in CASTS and isinstance(mask.func, ast.Attribute):
        mask = mask.func.value
    return mask


def _is_zero(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        made = tail_of(node.func)
        return made in ZEROS or (made in {"tensor", "new_tensor"} and bool(node.args) and _is_zero(node.args[0]))
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool) and constant(node) == 0


def _is_gradient(node: ast.expr) -> bool:
    is_named = isinstance(node, ast.Name | ast.Attribute) and GRADIENT.search(text_of(node)) is not None
    return is_named and SAYS_BAD.search(text_of(node)) is None


def _is_looked_at(call: ast.Call, module: Module) -> bool:
    """Return whether what a call leaves is kept under a name that says it is what was bad."""
    around = statement_of(call, module)
    return isinstance(around, ast.Assign) and any(SAYS_BAD.search(text_of(target)) for target in around.targets)
