"""Uses of a dictionary that leave it as it is and hand it to nothing which may change it."""

import ast

from gates.scan.program.module import Module, tail_of

READS = frozenset({"get", "items", "keys", "values", "copy"})
LEAVES = frozenset(
    {"print", "len", "sorted", "list", "str", "repr", "dict", "sum", "max", "min", "isinstance", "all", "any", "bool",
     "dumps", "dump", "info", "debug", "warning", "error", "exception", "critical", "log", "log_metrics", "log_dict",
     "add_scalars", "pprint", "format", "append", "set_postfix", "echo", "write", "save", "tuple", "set", "iter",
     "enumerate", "update", "writerow", "log_scalars"}
)  # fmt: skip


def only_reads(parent: ast.AST | None, name: ast.AST, module: Module) -> bool:
    """Return whether a use of a dictionary leaves it as it is and does not hand it on to what may change it."""
    if isinstance(parent, ast.Subscript):
        return parent.value is name and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in READS
    if isinstance(parent, ast.keyword):
        return parent.arg is None or only_reads(module.parents.get(parent), parent.value, module)
    if isinstance(parent, ast.Call):
        return tail_of(parent.func) in LEAVES
    if isinstance(parent, ast.For | ast.comprehension):
        return parent.iter is name
    return isinstance(parent, ast.Compare | ast.FormattedValue | ast.Return | ast.Dict | ast.Starred)
