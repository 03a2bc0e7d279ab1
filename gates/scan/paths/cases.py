"""What the cases of a `match` ask of its subject."""

import ast

from gates.scan.program.nodes import kept


def asked(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """Return the condition that a pattern of plain values is; `None` for what takes objects apart, or takes all."""
    of = kept(pattern, _values)
    tests: list[ast.expr] = [ast.Compare(subject, [ast.Eq()], [value]) for value in of]
    return ast.BoolOp(ast.Or(), tests) if len(tests) > 1 else tests[0] if tests else None


def is_open(pattern: ast.pattern) -> bool:
    """Return whether a pattern that is no condition may not fit."""
    return not (isinstance(pattern, ast.MatchAs) and pattern.pattern is None) and not kept(pattern, _values)


def _values(pattern: ast.pattern) -> tuple[ast.expr, ...]:
    """Return the values of which a subject must be one."""
    if isinstance(pattern, ast.MatchValue):
        return (pattern.value,)
    if isinstance(pattern, ast.MatchSingleton):
        return (ast.copy_location(ast.Constant(pattern.value), pattern),)
    if isinstance(pattern, ast.MatchOr):
        parts = [_values(part) for part in pattern.patterns]
        return tuple(value for part in parts for value in part) if all(parts) else ()
    return _values(pattern.pattern) if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None else ()
