"""Scores of the rows of a fold that was trained on, where the rows that it holds back are made ready for nothing."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import NAMED
from gates.scan.analyses.evaluation.scores import is_score
from gates.scan.analyses.reading.code import broken, calls, functions, is_backward, tail_text
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.site import Site

DIVIDES = frozenset({"split", "train_test_split", "random_split"})
FITS = re.compile(r"(?i)^(partial_)?fit(_\w+)?$|^train(?!_test_split)|^learn|^run_|_fit$|_train$")
PREPARES = re.compile(r"(?i)^fit_transform$")
MAKES = re.compile(r"(?i)model|net$|clf|scaler|encoder|optim|^(est|reg|pipe|pipeline)$")
SCORING = re.compile(r"(?i)_score$|^score$|accuracy|_error$|_loss$|^(r?mse|mae|auc|f1|roc_auc|log_loss)$")
TRAINING = re.compile(r"(?i)train|trn|fit|(^|_)in_(sample|fold)|_tr(_|$)|^tr_|resub|apparent|overfit")
Rows = dict[str, bool]  # names of what is made of rows, and whether those were trained on
Assigned = tuple[ast.expr, ast.expr, ast.stmt]


def scored_in_fold(module: Module) -> Iterator[Site]:
    """Find a score of predictions for the rows that were trained on, where nothing looks at those held back."""
    if not DIVIDES & module.calls.keys():
        return
    for body in (*functions(module), module.tree):
        rows = dict(_divided(body))
        if True not in rows.values() or TRAINING.search(getattr(body, "name", "")):
            continue
        assigned = list(_assigned(body))
        _follow(rows, assigned)
        if not _is_fitted(body, rows) or _is_looked_at(body, rows, assigned):
            continue
        for name, value in _results(body):
            if not TRAINING.search(name) and _scores(value, rows) and not _is_told(body, name):
                yield broken(module, value, f"{name} is reckoned of the rows that were trained on")


def _divided(body: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the names that rows are divided into: `for i, (these, others) in enumerate(folds.split(x))`."""
    for node in inner(body, ast.For, ast.Assign):
        value = node.iter if isinstance(node, ast.For) else node.value if isinstance(node, ast.Assign) else None
        target = node.target if isinstance(node, ast.For) else node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Call) and tail_of(value.func) == "enumerate" and isinstance(target, ast.Tuple):
            value, target = value.args[0] if value.args else value, target.elts[-1]
        names = [n.id for n in target.elts if isinstance(n, ast.Name)] if isinstance(target, ast.Tuple) else []
        if value is None or not _divides(value) or any(name.startswith("_") for name in names):
            continue
        if len(names) == 2 or (len(names) == 4 and "train_test_split" in text_of(value)):
            yield from ((name, at % 2 == 0) for at, name in enumerate(names))


def _divides(value: ast.expr) -> bool:
    """Return whether a call divides rows, and no text: `folds.split(x)`, `train_test_split(x, y)`."""
    if isinstance(value, ast.Call) and tail_of(value.func) in {"list", "next", "iter", "tqdm"} and value.args:
        return _divides(value.args[0])
    if not isinstance(value, ast.Call) or tail_of(value.func) not in DIVIDES or not value.args:
        return False
    of_folds = re.search(r"(?i)fold|shuffle|split|cv|kf$", text_of(value.func).rpartition(".")[0])
    return tail_of(value.func) != "split" or of_folds is not None


def _assigned(body: ast.AST) -> Iterator[Assigned]:
    """Yield what names are set to, tuples one by one, in the order of the code."""
    found = (n for n in inner(body, ast.Assign) if isinstance(n, ast.Assign))
    for node in sorted(found, key=lambda n: n.lineno):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            yield from ((each, value, node) for each, value in pairs)


def _follow(rows: Rows, assigned: list[Assigned]) -> None:
    """Add the names of what is made of rows of one kind alone, models and scalers apart."""
    for target, value, _ in assigned:
        made = {rows[name] for name in _used(value) if name in rows}
        fits = (
            isinstance(value, ast.Call)
            and FITS.search(tail_of(value.func))
            and not PREPARES.search(tail_of(value.func))
        )
        names = [n.id for n in walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        if len(made) == 1 and not fits and not any(MAKES.search(n) or is_score(n) for n in names):
            rows.update(dict.fromkeys(names, made.pop()))


def _used(node: ast.AST) -> list[str]:
    return [n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def _is_fitted(body: ast.AST, rows: Rows) -> bool:
    """Return whether something is fitted to the rows that are for it, and to no others."""
    given = [
        [name for arg in (*c.args, *(k.value for k in c.keywords)) for name in _used(arg) if name in rows]
        for c in calls(body)
        if FITS.search(tail_of(c.func)) and not re.search(r"(?i)scaler|encoder|imputer|pca", tail_text(c.func))
    ]
    loops = [n.iter for n in inner(body, ast.For) if isinstance(n, ast.For) and any(map(is_backward, calls(n)))]
    given += [[name for name in _used(each) if name in rows] for each in loops]
    used = {rows[name] for names in given for name in names}
    return used == {True}


def _is_looked_at(body: ast.AST, rows: Rows, assigned: list[Assigned]) -> bool:
    """Return whether rows that are held back are used for more than to make them ready."""
    prepared = {
        id(n)
        for target, value, _ in assigned
        for n in walk(value)
        if all(
            rows.get(tail_of(each)) is False for each in (target.elts if isinstance(target, ast.Tuple) else [target])
        )
    }
    prepared |= {id(n) for call in calls(body) if tail_of(call.func) == "len" for n in walk(call)}
    held = (
        n for n in walk(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and rows.get(n.id) is False
    )
    return any(id(n) not in prepared for n in held)


def _results(body: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what is called a score: what a name is set to, what is added to a list, what a function returns."""
    for target, value, _ in _assigned(body):
        yield tail_text(target).strip().rpartition(" ")[2], value
    for call in calls(body):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and len(call.args) == 1:
            yield tail_of(call.func.value), call.args[0]
    name = getattr(body, "name", "")
    for node in inner(body, ast.Return):
        if isinstance(node, ast.Return) and node.value is not None:
            yield name, node.value


def _scores(value: ast.expr, rows: Rows) -> bool:
    """Return whether an expression holds predictions against targets, or evaluates, rows that were trained on."""
    used = [rows[name] for name in _used(value) if name in rows]
    if not used or not all(used):
        return False
    made = [c for c in walk(value) if isinstance(c, ast.Call)]
    compared = any(isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq) for n in walk(value))
    if len(used) > 1 and (compared or any(SCORING.search(tail_of(c.func)) for c in made)):
        return True
    return any(NAMED.search(tail_of(c.func)) for c in made)


def _is_told(body: ast.AST, name: str) -> bool:
    """Return whether what is shown beside a score says that it is one of the training."""
    for node in inner(body, ast.Expr, ast.Return):
        shown = [n.value for n in walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        if any(TRAINING.search(text) for text in shown) and name in _used(node):
            return True
    return False
