"""The variables of a function that bear on what its hot code does: all others may hold whatever they like."""

import ast
from collections.abc import Container, Iterable, Iterator

from gates.scan.paths.statements import changed_names, flows
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import below, children, walk

INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
PASSING = frozenset(  # what gives of what it is handed
    {"cast", "copy", "dict", "enumerate", "filter", "getattr", "iter", "list", "next", "partial", "reversed", "sorted",
     "tuple", "zip"}
)  # fmt: skip
SETTING = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr


def bearing(function: ast.AST, hot: Container[object]) -> frozenset[str]:
    """Return the variables that stand in what decides which way a path goes, and those that these are made of."""
    nodes = below(function)
    found = {name for node in nodes if node is not function for name in _names(_deciding(node, hot), hot)}
    made = [each for node in nodes for each in _made(node)]
    size = -1
    while len(found) > size:
        size = len(found)
        for names, of in made:
            if names & found:
                found |= _names(of, hot)
    return frozenset(found)


def _deciding(node: ast.AST, hot: Container[object]) -> Iterator[ast.AST]:
    """Yield the parts of a statement or an expression that decide by themselves."""
    if isinstance(node, ast.If | ast.While) and (node in hot or flows([*node.body, *node.orelse])):
        yield node.test
    elif isinstance(node, ast.For | ast.AsyncFor) and (node in hot or flows(node.body)):
        yield node.iter
    elif isinstance(node, ast.Match):
        yield node.subject
    elif isinstance(node, ast.IfExp):
        yield node.test
    elif isinstance(node, ast.Call) and node in hot:
        yield from (n for n in walk(node) if isinstance(n, ast.Name))
    elif isinstance(node, ast.withitem | ast.Global | ast.Nonlocal | INNER):
        yield node
    elif isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Await) and node.value is not None:
        yield node.value
    elif isinstance(node, ast.Assign) and not all(isinstance(target, ast.Name) for target in node.targets):
        yield from (node.value, *node.targets)


def _made(node: ast.AST) -> Iterator[tuple[set[str], list[ast.AST]]]:
    """Yield the variables that code sets, with what they are made of; of a choice with its condition."""
    if isinstance(node, SETTING) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield {n.id for target in targets for n in walk(target) if isinstance(n, ast.Name)}, [node.value]
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield {n.id for n in walk(node.target) if isinstance(n, ast.Name)}, [node.iter]
    elif isinstance(node, ast.If | ast.While):
        yield changed_names([*node.body, *node.orelse]), [node.test]


def _names(nodes: Iterable[ast.AST], hot: Container[object]) -> set[str]:
    """Return the variables of expressions; what is handed to a function that has no events tells nothing of it."""
    found: set[str] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found |= set(node.names)
        elif isinstance(node, ast.Call) and node not in hot and _tells_nothing(tail_of(node.func)):
            todo.append(node.func)
        else:
            todo += children(node)
    return found


def _tells_nothing(name: str) -> bool:
    """Return whether what a function gives is no part of what it is handed."""
    return name[:1].islower() and name not in PASSING
