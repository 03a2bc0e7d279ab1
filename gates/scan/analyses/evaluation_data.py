"""Scores of a model on the data that it was trained on, taken for scores on others."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.evaluation.chosen_on import chosen_on_training
from gates.scan.analyses.evaluation.compared import compared_on_training
from gates.scan.analyses.evaluation.evaluating import HELD, KEPT_BACK, NAMED, TRAIN
from gates.scan.analyses.evaluation.folds import scored_in_fold
from gates.scan.analyses.evaluation.in_place import evaluated_in_place
from gates.scan.analyses.evaluation.made_alike import made_alike
from gates.scan.analyses.evaluation.misnamed import misnamed
from gates.scan.analyses.evaluation.scored_where_fitted import scored_where_fitted
from gates.scan.analyses.evaluation.scores import is_score, reckons_score
from gates.scan.analyses.evaluation.splits import DATA, is_handed_shuffled, split_name, splits_passed, trained_on
from gates.scan.analyses.reading.code import (
    broken,
    callee,
    calls,
    class_of,
    constant,
    function_of,
    functions,
    is_backward,
    is_model_call,
    nodes,
    tail_text,
)
from gates.scan.program.module import Module, is_property, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

WORDS = ("train*", "backward*", "fit*", "hold*")
REPORTS = re.compile(r"(?i)train(ing)?_(results?|metrics?|accuracy|scores?|loss(es)?|stat(istic)?s|eval)")
MINE = re.compile(r"(?i)train|fit|in_sample")
PART = re.compile(r"(?i)^(train|training)_(mask|x|y|inputs?|targets?|labels?|images?|data|idx)$|^[xy]_?train$")
OTHER = re.compile(r"(?i)(^|_)(val|valid|validation|test|dev|held)(_|$)|^[xy]_?(val|test|dev|valid)$|(?<!train)_idx$")
EVALUATED = re.compile(r"(?i)^(eval|test|dev)_?(loader|data|dataloader|set|dataset|ds|dl|data_loader)$")
OVERFITS = re.compile(r"(?i)overfit|sanity|smoke|debug")
RUNS = frozenset({"map", "starmap", "imap", "imap_unordered", "filter", "filterfalse", "takewhile"})
FITS = frozenset({"fit", "knn", "cross_val_score"})
OTHERS = re.compile(r"(?i)(^|_)(val|valid|validation|validated|test|dev|eval|accuracy|acc|score|metric)s?(_|$)")


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation that is handed the training data, and no evaluation beside it others."""
    for module in project.modules.values():
        for function in (*functions(module), module.tree):
            yield from _handed(project, module, function)
        yield from misnamed(module)
        yield from made_alike(project, module)
        yield from _handed_on(project, module)
        yield from _scored_on(module)
        yield from scored_in_fold(module)
        yield from scored_where_fitted(project, module)
        yield from compared_on_training(project, module)
        yield from chosen_on_training(project, module)
        for function in functions(module):
            yield from evaluated_in_place(module, function)
            if NAMED.search(function.name):
                yield from _gone_over(module, function)
                yield from _trained_on(module, function)


def _handed(project: Project, module: Module, function: ast.AST) -> Iterator[Site]:
    found: dict[str, list[tuple[ast.Call, bool, bool]]] = defaultdict(list)
    for call in calls(function):
        if _evaluates(project, module, call):
            names = list(splits_passed(call, module))
            held = any(HELD.search(n) and not TRAIN.search(n) for n in names)
            found[tail_of(call.func)].append((call, _is_of_training(project, call, module), held))
    if REPORTS.search(getattr(function, "name", "")):
        return
    for name, sites in found.items():
        beside = any(not _is_of_training(project, call, module) for call in module.calls.get(name, []))
        for call, train, held in sites:
            target = _target(call, module)
            if train and not held and not MINE.search(target) and (OTHERS.search(target) or not beside):
                yield broken(module, call, f"{name} is handed the data of the training")


def _handed_on(project: Project, module: Module) -> Iterator[Site]:
    """Find a call that passes the training data both for what is trained on and for what is held back."""
    if not any("train" in word.lower() for word in module.words):
        return
    for found in module.calls.values():
        for call in found:
            passed = [(k.arg or "", k.value) for k in call.keywords]
            given = [text_of(value) for value in (*call.args, *(v for _, v in passed))]
            if not any("train" in text.lower() for text in given) or OVERFITS.search(_around(call, module)):
                continue
            target = callee(project, module, call) if len(call.args) > 1 else None
            if target is not None:
                bound = project.scope_of(target, module).owner is not None
                names = [a.arg for a in (*target.args.posonlyargs, *target.args.args)][1 if bound else 0 :]
                passed += zip(names, call.args, strict=False)
            for name, value in passed:
                if given.count(text_of(value)) < 2 or "train" in name.lower():
                    continue
                if TRAIN.search(split_name(value, module)) and (KEPT_BACK.search(name) or EVALUATED.search(name)):
                    yield broken(module, value, f"{name} is passed the data of the training")


def _around(node: ast.AST, module: Module) -> str:
    function = function_of(node, module)
    return function.name if function is not None else ""


def _trained(call: ast.Call, module: Module) -> bool:
    return any(TRAIN.search(name) for name in splits_passed(call, module))


def _is_of_training(project: Project, call: ast.Call, module: Module) -> bool:
    return (
        _trained(call, module)
        or trained_on(project, call, module) is not None
        or is_handed_shuffled(project, call, module)
    )


def _evaluates(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is an evaluation by its name, its module's or its object's, or by what it runs."""
    if NAMED.search(tail_of(call.func)):
        return True
    owner = tail_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if not _trained(call, module):
        return False
    target = callee(project, module, call)
    if target is None:
        return re.fullmatch(r"(?i)(val|valid|validat(e|or)|evaluat(e|or))", owner) is not None
    tails = {tail_of(c.func) for c in calls(target)}
    return "eval" in tails and not tails & {"backward", "step", "fit"} and reckons_score(target)


def _scored_on(module: Module) -> Iterator[Site]:
    """Find a score called held back that is reckoned of the training's targets: `val = f(model(x_train), y_train)`."""
    for node in nodes(module, ast.Assign):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        name = tail_of(node.targets[0])
        if MINE.search(name) or not is_score(name):
            continue
        used = [tail_of(n) for n in walk(node.value) if isinstance(n, ast.Name | ast.Attribute)]
        if not HELD.search(name) and not _has_unused(node, module):
            continue
        if any(PART.search(n) for n in used) and not any(OTHER.search(n) for n in used):
            if any(n in used for n in FITS) or not any(_is_scoring(c) for c in calls(node)):
                continue
            yield broken(module, node.value, f"{name} is reckoned of the data of the training")


def _is_scoring(call: ast.Call) -> bool:
    return is_model_call(call) or _compares(call) or tail_of(call.func) in {"score", "predict", "evaluate"}


def _has_unused(node: ast.AST, module: Module) -> bool:
    """Return whether the function around has inputs that are held back, and never uses them."""
    names = [n for n in inner(function_of(node, module) or module.tree, ast.Name) if isinstance(n, ast.Name)]
    stored = {
        n.id
        for n in names
        if isinstance(n.ctx, ast.Store) and OTHER.search(n.id) and re.search(r"(?i)^x|x$|input|data|image", n.id)
    }
    return bool(stored) and not any(isinstance(n.ctx, ast.Load) and OTHER.search(n.id) for n in names)


def _compares(call: ast.Call) -> bool:
    return any(isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq) for n in walk(call))


def _target(call: ast.Call, module: Module) -> str:
    """Return what the result of a call is called."""
    parent = module.parents.get(call)
    while isinstance(parent, ast.Attribute | ast.Call | ast.Subscript | ast.Tuple):
        if isinstance(parent, ast.Call) and tail_of(parent.func) == "append" and isinstance(parent.func, ast.Attribute):
            kept = parent.func.value
            return tail_of(kept.value if isinstance(kept, ast.Subscript) else kept)
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
    names = [(n, split_name(n.iter, module)) for n in loops]
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
    methods = {m.name for m in owner.body if isinstance(m, ast.FunctionDef) and not is_property(m)}
    for node in walk(function):
        if isinstance(node, ast.For | ast.comprehension):
            mine = _attributes(node.iter) - methods
            if held and mine & trained and not any(is_backward(c) for c in calls(function)):
                yield broken(
                    module,
                    node.iter,
                    f"an evaluation goes over {', '.join(sorted(mine & trained))}, which is trained on",
                )


def _attributes(node: ast.expr) -> set[str]:
    """Return the attributes of the instance in an expression, and what is asked of them: `data.train()`.

    What is asked with something of the function's own, such as a loader that it was handed, is no attribute.
    """
    found: set[str] = set()
    parts: set[str] = set()
    for n in walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and (asked := _asked(n.func)):
            parts.add(asked)
            found |= {text_of(n).removeprefix("self.")} if not _has_own(n) else set()
        elif isinstance(n, ast.Subscript) and isinstance(constant(n.slice), str) and tail_of(n.value) != "":
            is_own = tail_text(n.value).startswith("self ")
            parts |= {tail_of(n.value)} if is_own else set()
            found |= {f"{tail_of(n.value)} {text_of(n.slice)}"} if is_own else set()
        elif isinstance(n, ast.Attribute) and tail_of(n.value) == "self":
            found.add(n.attr)
    return found - parts - _options(node)


def _options(node: ast.expr) -> set[str]:
    """Return the attributes that say how to go over data: in `self.data.get(self.size)` and `range(self.n)`, both.

    So do those beside data that a function was handed, `islice(rows, self.most)`, and what `map` runs.
    """
    options: set[str] = set()
    for call in (n for n in walk(node) if isinstance(n, ast.Call)):
        is_asked, tail = isinstance(call.func, ast.Attribute) and bool(_asked(call.func)), tail_of(call.func)
        given = [k.value for k in call.keywords if is_asked or not DATA.search(k.arg or "data")]
        given += call.args if is_asked or tail == "range" or _goes_over_own(call) else ()
        parts = (n for each in given for n in walk(each) if isinstance(n, ast.Attribute))
        options |= {n.attr for n in parts if tail == "range" or not DATA.search(n.attr)}
        run = [n for n in walk(call.args[0]) if isinstance(n, ast.Attribute)] if tail in RUNS and call.args else []
        options |= {n.attr for n in run}
    return options


def _goes_over_own(call: ast.Call) -> bool:
    """Return whether what a call is handed first is the function's own."""
    first = call.args[0] if call.args else None
    named = {n.id for n in walk(first) if isinstance(n, ast.Name)} if first is not None else set()
    return bool(named) and "self" not in named


def _asked(func: ast.Attribute) -> str:
    """Return the attribute of the instance that a method is of; the method, where it is the instance's own."""
    of = func.value if isinstance(func.value, ast.Attribute) else func
    return of.attr if tail_of(of.value) == "self" else ""


def _has_own(call: ast.Call) -> bool:
    """Return whether a call is handed something that is named in its function alone."""
    given = [*call.args, *(k.value for k in call.keywords)]
    return any(isinstance(n, ast.Name) and n.id != "self" for each in given for n in walk(each))
