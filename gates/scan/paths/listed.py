"""Where the order is written in which objects act: the lists that they, or the keys of what they are, stand in."""

import ast

from gates.scan.automata.words import Frame
from gates.scan.paths.values import Value
from gates.scan.program.module import tail_of


def key_of(func: ast.expr) -> ast.expr | None:
    """Return the key that what is called is taken out by: of `STAGES[name]`, `getattr(self, name)`, `name`."""
    if isinstance(func, ast.Subscript):
        return func.slice
    return func.args[1] if isinstance(func, ast.Call) and tail_of(func.func) == "getattr" and func.args[1:] else None


def listed(value: Value, *, in_line: bool = False) -> Frame | None:
    """Return where an object, or a key, is written as an element of a list, whose order says which acts first.

    With `in_line` the elements of one line are told apart: where nothing but the list gives their order.
    """
    made, module = value.node, value.place.scope.module if value.place is not None else None
    is_element = module is not None and isinstance(made, ast.Call | ast.Constant)
    around = module.parents.get(made) if is_element and module is not None and made is not None else None
    if module is None or made is None or not isinstance(around, ast.List | ast.Tuple):
        return None
    last = made.end_lineno or made.lineno
    return Frame(module.path, made.lineno, last, is_plain=False, column=made.col_offset if in_line else 0)
