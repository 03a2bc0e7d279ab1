"""What an emptied function gives back: two values of the kind that it gives, as far as its text tells that kind."""

import ast

from gates.code.syntax import own_nodes

Function = ast.FunctionDef | ast.AsyncFunctionDef
Values = tuple[str, str]

UNKNOWN: Values = ("None", "...")
KINDS: dict[str, Values] = {
    "bool": ("False", "True"),
    "int": ("0", "1"),
    "float": ("0.0", "1.0"),
    "str": ('""', '"A"'),
    "bytes": ('b""', 'b"A"'),
    "list": ("[]", "[1]"),
    "tuple": ("()", "(1,)"),
    "set": ("set()", "{1}"),
    "dict": ("{}", "{1: 1}"),
    "Tensor": ('__import__("torch").zeros(0)', '__import__("torch").ones(2)'),
    "ndarray": ('__import__("numpy").zeros(0)', '__import__("numpy").ones(2)'),
}
OTHER_NAMES = {"List": "list", "Sequence": "list", "Tuple": "tuple", "Set": "set", "Dict": "dict", "Mapping": "dict"}
DISPLAYS: dict[type[ast.expr], str] = {
    ast.List: "list", ast.ListComp: "list", ast.Set: "set", ast.SetComp: "set", ast.Dict: "dict", ast.DictComp: "dict",
    ast.JoinedStr: "str", ast.Compare: "bool",
}  # fmt: skip
CALLED = {"len": "int", "int": "int", "float": "float", "str": "str", "bool": "bool", "list": "list", "sorted": "list",
          "dict": "dict", "set": "set", "isinstance": "bool", "all": "bool", "any": "bool", "join": "str"}  # fmt: skip
ARRAYS = {"np": "ndarray", "numpy": "ndarray", "torch": "Tensor"}
MAKES_ARRAYS = {"array", "asarray", "tensor", "as_tensor", "stack", "concatenate", "cat", "zeros", "ones", "full"}


def gives(function: Function) -> bool:
    """Return whether a function gives its callers something that may be another."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) or _returned(node) for node in own_nodes(function))


def values(function: Function) -> Values:
    """Return two values, as they are written: of its kind where that is told, else what nobody has use for."""
    if not gives(function):
        return ("None", "None")
    if function.returns is not None:
        return KINDS.get(_annotated(function.returns), UNKNOWN)
    found = {_kind(value) for node in own_nodes(function) if (value := _returned(node))}
    return next(iter(found)) if len(found) == 1 else UNKNOWN


def _returned(node: ast.AST) -> ast.expr | None:
    """Return what a statement gives back, if it does."""
    value = node.value if isinstance(node, ast.Return) else None
    return None if isinstance(value, ast.Constant) and value.value is None else value


def _annotated(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.partition("[")[0].rpartition(".")[2]
    else:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return OTHER_NAMES.get(name, name)


def _kind(node: ast.expr) -> Values:
    if isinstance(node, ast.Tuple):
        return (f"(0,) * {len(node.elts)}", f"(1,) * {len(node.elts)}")
    if isinstance(node, ast.Constant):
        return KINDS.get(type(node.value).__name__, UNKNOWN)
    if isinstance(node, ast.UnaryOp):
        return KINDS["bool"] if isinstance(node.op, ast.Not) else _kind(node.operand)
    if isinstance(node, ast.BinOp):
        return next((kind for side in (node.left, node.right) if (kind := _kind(side)) != UNKNOWN), UNKNOWN)
    if isinstance(node, ast.IfExp):
        kinds = {_kind(node.body), _kind(node.orelse)}
        return kinds.pop() if len(kinds) == 1 else UNKNOWN
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAKES_ARRAYS:
        return KINDS.get(ARRAYS.get(getattr(node.func.value, "id", ""), ""), UNKNOWN)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return KINDS.get(CALLED.get(name, ""), UNKNOWN)
    return KINDS.get(DISPLAYS.get(type(node), ""), UNKNOWN)
