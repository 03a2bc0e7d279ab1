"""The statements that are put into modules of tests, and how they reach the witness: as `@pytest_ar.gates_<name>`."""

import ast


def call(name: str, statement: ast.stmt, *arguments: ast.expr) -> ast.stmt:
    """Return the statement `@pytest_ar.gates_<name>(...)`, in the line of another."""
    return placed(ast.Expr(ast.Call(_reached(name), [*arguments], [])), statement)


def answer(name: str, beside: ast.expr, *arguments: ast.expr) -> ast.expr:
    """Return the expression `@pytest_ar.gates_<name>(...)`, in the place of another."""
    return ast.fix_missing_locations(ast.copy_location(ast.Call(_reached(name), [*arguments], []), beside))


def held(statement: ast.stmt) -> ast.stmt:
    """Return the statement `@pytest_ar.gates_executed[1] = @pytest_ar.gates_executed[0]`."""
    return placed(ast.Assign([_count(1, ast.Store())], _count(0, ast.Load())), statement)


def placed(made: ast.stmt, beside: ast.stmt) -> ast.stmt:
    """Put all of a statement that was made into the line of another."""
    for node in ast.walk(made):
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler):
            node.lineno = node.end_lineno = beside.lineno
            node.col_offset = node.end_col_offset = beside.col_offset
    return made


def _count(index: int, context: ast.expr_context) -> ast.Subscript:
    return ast.Subscript(value=_reached("executed"), slice=ast.Constant(index), ctx=context)


def _reached(name: str) -> ast.Attribute:
    return ast.Attribute(value=ast.Name(id="@pytest_ar", ctx=ast.Load()), attr=f"gates_{name}", ctx=ast.Load())
