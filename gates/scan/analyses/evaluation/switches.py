"""What puts a model into evaluation mode, and what puts it back into the mode that it was found in."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import function_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk

SETS = re.compile(r"(?i)eval_?mode(?!l)|set_eval|evaluating|\beval\b")


def turns_off(call: ast.Call) -> bool:
    """Return whether a call puts a model into evaluation mode, or may: `net.eval()`, `net.train(mode)`."""
    if not isinstance(call.func, ast.Attribute):
        return False
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    if call.func.attr == "train" and len(given) == 1 == len(call.args) + len(call.keywords):
        return not (isinstance(given[0], ast.Constant) and given[0].value is True)
    return call.func.attr == "eval"


def is_restored(call: ast.Call, module: Module) -> bool:
    """Return whether a call puts a model back into the mode that it was found in: `net.train(was)`."""
    function = function_of(call, module)
    if function is None or tail_of(call.func) != "train" or not (call.args or call.keywords):
        return False
    given = call.args[0] if call.args else call.keywords[0].value
    if isinstance(given, ast.Attribute) and function.name in {"__exit__", "__aexit__"}:
        return True
    name, modes = text_of(given), list(remembers(function))
    for node in inner(function, ast.Assign, ast.For) if modes else ():
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        if name in {text_of(part) for target in targets for part in walk(target) if isinstance(part, ast.expr)}:
            return isinstance(node, ast.For) or any(mode in walk(node) for mode in modes)
    return False


def remembers(function: ast.AST) -> Iterator[ast.Attribute]:
    """Yield where code reads the mode that a model is in: `was = net.training`."""
    for node in inner(function, ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load):
            yield node
