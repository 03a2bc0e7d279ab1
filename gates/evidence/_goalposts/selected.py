"""Which tests pytest leaves out by their marks: what `-m` in `addopts` says."""

import ast

from gates.evidence._goalposts.settings import Files, options, pytest_settings


def expression(files: Files) -> str:
    """Return the last `-m` of `addopts`, which is the one that counts; nothing where there is none."""
    said = [
        option[2:].strip(" =") for option in options(pytest_settings(files)[1].get("addopts")) if option[:2] == "-m"
    ]
    return said[-1] if said else ""


def by(asked: str, marks: frozenset[str]) -> bool:
    """Return whether an expression asks for a test with such marks; one that we cannot read asks for all."""
    try:
        return not asked or _holds(ast.parse(asked.strip(), mode="eval").body, marks)
    except (SyntaxError, ValueError, RecursionError):
        return True


def _holds(node: ast.expr, marks: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in marks
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _holds(node.operand, marks)
    if isinstance(node, ast.BoolOp):
        return (any if isinstance(node.op, ast.Or) else all)(_holds(value, marks) for value in node.values)
    raise ValueError("an expression that is not made of names, 'not', 'and' and 'or'")
