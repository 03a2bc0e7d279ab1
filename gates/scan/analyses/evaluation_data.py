"""Scores of a model on the data that it was trained on, taken for scores on others."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses._code import broken, callee, calls, class_of, functions, is_backward, tail_text
from gates.scan.analyses._evaluating import HELD, NAMED, TRAIN
from gates.scan.module import Module, tail_of
from gates.scan.nodes import text_of, walk
from gates.scan.project import Project
from gates.scan.site import Site

WORDS = ("train",)
REPORTS = re.compile(r"(?i)train(ing)?_(results?|metrics?|accuracy|scores?|loss(es)?|stat(istic)?s|eval)")
MINE = re.compile(r"(?i)train|fit|in_sample")
OTHERS = re.compile(r"(?i)(^|_)(val|valid|validation|validated|test|dev|eval|accuracy|acc|score|metric)s?(_|$)")


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation that is handed the training data, and no evaluation beside it others."""
    for module in project.modules.values():
        for function in (*functions(module), module.tree):
            yield from _handed(project, module, function)
        for function in functions(module):
            if NAMED.search(function.name):
                yield from _gone_over(module, function)
                yield from _trained_on(module, function)


def _handed(project: Project, module: Module, function: ast.AST) -> Iterator[Site]:
    found: dict[str, list[tuple[ast.Call, bool, bool]]] = defaultdict(list)
    for call in calls(function):
        if _evaluates(project, module, call):
            names = [tail_of(arg) for arg in (*call.args, *(k.value for k in call.keywords))]
            found[tail_of(call.func)].append(
                (call, any(TRAIN.search(n) for n in names), any(HELD.search(n) and not TRAIN.search(n) for n in names))
            )
    if REPORTS.search(getattr(function, "name", "")):
        return
    for name, sites in found.items():
        beside = any(not _trained(call) for call in module.calls.get(name, []))
        for call, train, held in sites:
            target = _target(call, module)
            if train and not held and not MINE.search(target) and (OTHERS.search(target) or not beside):
                yield broken(module, call, f"{name} is handed the data of the training")


def _trained(call: ast.Call) -> bool:
    return any(TRAIN.search(tail_of(arg)) for arg in (*call.args, *(k.value for k in call.keywords)))


def _evaluates(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is an evaluation by its name, its module's or its object's, or by what it runs."""
    if NAMED.search(tail_of(call.func)):
        return True
    owner = tail_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if not _trained(call):
        return False
    target = callee(project, module, call)
    if target is None:
        return re.fullmatch(r"(?i)(val|valid|validat(e|or)|evaluat(e|or))", owner) is not None
    tails = {tail_of(c.func) for c in calls(target)}
    return "eval" in tails and not tails & {"backward", "step", "fit"}


def _target(call: ast.Call, module: Module) -> str:
    """Return what the result of a call is called."""
    parent = module.parents.get(call)
    while isinstance(parent, ast.Attribute | ast.Call | ast.Subscript | ast.Tuple):
        parent = module.parents.get(parent)
    if isinstance(parent, ast.Assign):
        return " ".join(tail_text(t) if not isinstance(t, ast.Tuple) else text_of(t) for t in parent.targets).strip()
    if isinstance(parent, ast.keyword):
        return parent.arg or ""
    if isinstance(parent, ast.Dict):
        return next(
            (
                str(k.value)
                for k, v in zip(parent.keys, parent.values, strict=True)
                if isinstance(k, ast.Constant) and call in walk(v)
            ),
            "",
        )
    return ""


def _gone_over(module: Module, function: ast.AST) -> Iterator[Site]:
    """Find a loop over training data in a function that evaluates and knows of no others."""
    loops = [n for n in walk(function) if isinstance(n, ast.For | ast.comprehension)]
    names = [(n, tail_of(n.iter)) for n in loops]
    if any(HELD.search(name) and not TRAIN.search(name) for _, name in names):
        return
    for node, name in names:
        if TRAIN.search(name) and not name.startswith("training_"):
            yield broken(module, node.iter, f"an evaluation goes over {name}")


def _trained_on(module: Module, function: ast.AST) -> Iterator[Site]:
    """Find an evaluation over the attribute that its class trains on, where the class has other data, too."""
    owner = class_of(function, module)
    if owner is None:
        return
    held = {
        n.attr for n in walk(owner) if isinstance(n, ast.Attribute) and HELD.search(n.attr) and not TRAIN.search(n.attr)
    }
    trained = {
        name
        for loop in walk(owner)
        if isinstance(loop, ast.For) and any(is_backward(c) for c in calls(loop))
        for name in _attributes(loop.iter)
    }
    for node in walk(function):
        if isinstance(node, ast.For | ast.comprehension):
            mine = _attributes(node.iter)
            if held and mine & trained and not any(is_backward(c) for c in calls(function)):
                yield broken(
                    module,
                    node.iter,
                    f"an evaluation goes over {', '.join(sorted(mine & trained))}, which is trained on",
                )


def _attributes(node: ast.expr) -> set[str]:
    return {n.attr for n in walk(node) if isinstance(n, ast.Attribute) and tail_of(n.value) == "self"}
