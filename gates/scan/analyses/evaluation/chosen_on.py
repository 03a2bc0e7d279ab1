"""The best of a training, or its end, chosen by what an evaluation says of the part that was trained on."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import NAMED
from gates.scan.analyses.reading.code import broken, calls, functions, nodes
from gates.scan.analyses.reading.origins import Origins
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project
from gates.scan.site import Site

PART = re.compile(r"(?i)^(train|training)$")
BEST = re.compile(r"(?i)(^|[_.])best")
STOPS = re.compile(r"(?i)patience|bad_(epochs|counter)|stop|no_improve")
MESSAGE = "the best is chosen by the score on the data of the training"


def chosen_on_training(project: Project, module: Module) -> Iterator[Site]:
    """Yield where a score under the key of the training part is compared with the best, or told what keeps that."""
    if not any(PART.search(word) for word in module.words):
        return
    for node in nodes(module, ast.Compare):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if any(BEST.search(text_of(side)) for side in sides) and any(_is_of_training(s, module) for s in sides):
            yield broken(module, node, MESSAGE)
    for function in (*functions(module), module.tree):
        for call in calls(function):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(_is_of_training(each, module) for each in given) and _keeps_best(project, module, call):
                yield broken(module, call, MESSAGE)


def _is_of_training(node: ast.expr, module: Module) -> bool:
    """Return whether a figure is taken by the key of the training part out of what an evaluation gave."""
    keys: list[str] = []
    while isinstance(node, ast.Subscript):
        at = node.slice
        keys.append(str(at.value) if isinstance(at, ast.Constant) else tail_of(at))
        node = node.value
    if not isinstance(node, ast.Name) or not any(map(PART.search, keys)):
        return False
    assigned = (n for n in nodes(module, ast.Assign) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call))
    return any(
        NAMED.search(tail_of(n.value.func)) and any(text_of(t) == node.id for t in n.targets)  # type: ignore[attr-defined]
        for n in assigned
    )


def _keeps_best(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of an object of the program that keeps the best and says when to stop."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    classes = Origins(project).classes(holder, project.scope_at(call, module))
    return any(BEST.search(text_of(info.node)) and STOPS.search(text_of(info.node)) for info in classes)
