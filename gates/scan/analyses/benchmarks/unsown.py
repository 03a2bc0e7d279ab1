"""Arms that are handed a seed and do nothing with it, where the other arm sets it."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import broken, function_of, functions, nodes
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, walk
from gates.scan.program.signatures import parameters
from gates.scan.site import Site

SOWING = re.compile(r"(?i)(^|_)seed")


def unsown(module: Module) -> Iterator[Site]:
    """Yield the beginning of each function that leaves alone the seed which its like sets: `run_amp(seed)`."""
    setting = [(f, name) for f in functions(module) for name in _sown(f)]
    for function in functions(module) if setting else ():
        idle = {name for name in parameters(function) if not _is_used(function, name)}
        for other, name in setting:
            if name in idle and _are_alike(function, other, module):
                first = next((s for s in function.body if not _is_text(s)), function.body[0])
                said = f"{function.name} leaves its {name} alone, {other.name} sets it"
                yield broken(module, first, said, ("it is set in", module, other))
                break


def _sown(function: Function) -> set[str]:
    """Return the parameters that a function sets a seed to."""
    made = [n for n in inner(function, ast.Call) if isinstance(n, ast.Call) and SOWING.search(tail_of(n.func))]
    names = {arg.id for call in made for arg in call.args if isinstance(arg, ast.Name)}
    return names & parameters(function).keys()


def _is_used(function: Function, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for statement in function.body for n in walk(statement))


def _are_alike(one: Function, other: Function, module: Module) -> bool:
    """Return whether two functions are called the same way, and chosen between, or run, in one place."""
    is_same = parameters(one).keys() == parameters(other).keys()
    return is_same and bool(_named_in(one, module) & _named_in(other, module))


def _named_in(function: Function, module: Module) -> set[ast.AST]:
    """Return the functions that name a function, or the file where code outside of all does."""
    named = (
        n for n in nodes(module, ast.Name, ast.Attribute) if isinstance(n, ast.expr) and tail_of(n) == function.name
    )
    return {function_of(node, module) or module.tree for node in named}


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
