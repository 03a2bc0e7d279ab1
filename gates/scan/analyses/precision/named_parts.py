"""Texts that name parts of an object only to save and restore these: `for part in ("model", "scaler"): ...`."""

import ast
from collections.abc import Collection

from gates.scan.analyses.precision.parts import by_name
from gates.scan.program.module import Module
from gates.scan.program.nodes import walk


def is_only_asked(module: Module, text: ast.Constant, asked: Collection[str]) -> bool:
    """Return whether a text stands in a list whose loops ask the parts so named for some methods, and do no more."""
    listed = module.parents.get(text)
    if not isinstance(listed, ast.Tuple | ast.List | ast.Set):
        return False
    sources = _read(listed, module)
    loops = [_loop_over(source, module) for source in sources]
    return bool(loops) and all(loop is not None and _only_asks(*loop, module, asked) for loop in loops)


def _read(listed: ast.expr, module: Module) -> list[ast.expr]:
    """Return where a list is read: itself, or all mentions of the name that it is set to."""
    around = module.parents.get(listed)
    if not isinstance(around, ast.Assign) or around.value is not listed:
        return [listed]
    names = [target.id if isinstance(target, ast.Name) else "" for target in around.targets]
    if not isinstance(module.parents.get(around), ast.FunctionDef | ast.AsyncFunctionDef):
        return []  # other files, and other classes, may read it
    held = [n for n in module.live.get(ast.Name, []) if isinstance(n, ast.Name) and n.id in names]
    return [n for n in held if isinstance(n.ctx, ast.Load)] if all(names) else []


def _loop_over(source: ast.expr, module: Module) -> tuple[str, ast.AST] | None:
    """Return the variable of the loop that goes over a list, and the loop."""
    around = module.parents.get(source)
    if isinstance(around, ast.For) and around.iter is source and isinstance(around.target, ast.Name):
        return around.target.id, around
    if isinstance(around, ast.comprehension) and around.iter is source and isinstance(around.target, ast.Name):
        return around.target.id, module.parents[around]
    return None


def _only_asks(name: str, loop: ast.AST, module: Module, asked: Collection[str]) -> bool:
    """Return whether a loop takes parts by the names that it goes over, or uses these as keys, and no more."""
    read = [n for n in walk(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    taken = [_taken(node, module) for node in read]
    return any(taken) and all(
        is_key or (part is not None and _asks(part, module, asked))
        for part, is_key in zip(taken, (_is_key(node, module) for node in read), strict=True)
    )


def _taken(name: ast.Name, module: Module) -> ast.expr | None:
    """Return the part that is taken by a name: `getattr(self, name)`."""
    around = module.parents.get(name)
    found = by_name(around) if isinstance(around, ast.expr) else None
    return around if isinstance(around, ast.expr) and found is not None and found[1] is name else None


def _asks(part: ast.expr, module: Module, asked: Collection[str]) -> bool:
    method = module.parents.get(part)
    return isinstance(method, ast.Attribute) and method.attr in asked


def _is_key(name: ast.Name, module: Module) -> bool:
    around = module.parents.get(name)
    return (isinstance(around, ast.Subscript) and around.slice is name and by_name(around) is None) or (
        isinstance(around, ast.Dict | ast.DictComp | ast.Compare)
    )
