"""Data called held back that are made of what those of the training are made of: both of `args.train_path`."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import HELD, TRAIN
from gates.scan.analyses.evaluation.misnamed import SPLITTING, is_divided, tells_part
from gates.scan.analyses.reading.code import broken, callee, class_of, constant, function_of, nodes, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

SOURCE = re.compile(
    r"(?i)(^|[^a-z])(train|training)_?(path|file|dir|root|folder|csv|json|jsonl|txt|data|data_?path|data_?dir|data_?file|"
    r"set|ds|split|df|bin|list|ann|annotations?|src|source|shard|url|dataset|manifest|rows|records|texts|corpus|images?|"
    r"samples|examples|items|entries|ids|prefix|dl|loader|data_?loader|iter|iterator)s?$|^(train|training)$|(data|path|file|dir)s?_?train$"
)
WRITTEN = re.compile(r"(?i)(^|[/_.-])train(ing)?([/_.\d-]|$)")
FLAG = re.compile(r"(?i)^(is_?)?(train|training|eval|is_eval|test|val|validation|augment\w*|shuffle)$")
TRAINED = re.compile(r"(is_)?(train|training)")
HOW = re.compile(r"(?i)transform|(^|_)(tf|tfm|tfms|aug|pre|prep|collate|batch|workers|size|bs)(_|$)|colou?r|prefix")
DIVIDES = re.compile(r"(?i)random_split|subset|fold|hold_?out|held|_frac|split|cut|%|permutation|randperm")
UNLESS = re.compile(r"(?i)over_?fit|debug|sanity|smoke|no_?val|fast_dev|tiny")
LOADERS = re.compile(
    r"(?i)load|dataset|data_?set|folder|read|reader|memmap|open|get_|make|build|create|data$|ds$|cycle|^iter$|prefetch"
)
Made = tuple[str, ast.Call]


def made_alike(project: Project, module: Module) -> Iterator[Site]:
    """Yield each call that makes data held back of the very source that another makes those of the training of."""
    found: dict[tuple[object, str], list[Made]] = defaultdict(list)
    for name, call in _kept_as(module):
        if HELD.search(name) or TRAIN.search(name):
            around = class_of(call, module) or function_of(call, module)
            found[around, text_of(call.func)].append((name, call))
    for calls in found.values():
        trained = [call for name, call in calls if TRAIN.search(name) and not HELD.search(name)]
        for name, call in calls:
            held = HELD.search(name) is not None and re.search(r"(?i)train", name) is None
            if not held or not any(_is_same(project, module, call, other) for other in trained):
                continue
            if not _is_meant(call, module) and not is_divided(name, module):
                yield broken(module, call, f"{name} is made of the data of the training")


def _kept_as(module: Module) -> Iterator[Made]:
    """Yield the calls whose results are kept under a name or a key, or a part of them: `loader = make(path)[0]`."""
    for node in nodes(module, ast.Assign, ast.AnnAssign, ast.Dict):
        pairs: list[tuple[ast.expr | None, ast.expr | None]] = []
        if isinstance(node, ast.Dict):
            pairs += zip(node.keys, node.values, strict=True)
        elif isinstance(node, ast.Assign):
            pairs += [(node.targets[0], node.value)]
        elif isinstance(node, ast.AnnAssign):
            pairs += [(node.target, node.value)]
        for target, value in pairs:
            yield from _one(target, value)


def _one(target: ast.expr | None, value: ast.expr | None) -> Iterator[Made]:
    """Yield a call with what it is kept as; of a tuple with what its first part is."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for each, made in zip(target.elts, value.elts, strict=True):
            yield from _one(each, made)
        return
    target = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    key = constant(target) if isinstance(target, ast.Constant) else None
    key = constant(target.slice) if isinstance(target, ast.Subscript) else key
    name = key if isinstance(key, str) else tail_of(target) if target is not None else ""
    while isinstance(value, ast.Subscript) or (isinstance(value, ast.Call) and _is_on(value)):
        value = value.value if isinstance(value, ast.Subscript) else value.func.value  # type: ignore[attr-defined]
    if isinstance(value, ast.Call) and LOADERS.search(tail_of(value.func)) and tail_of(value.func) != "DataLoader":
        yield name, value


def _is_on(call: ast.Call) -> bool:
    """Return whether a call goes on from what another one makes: `load(path).with_format("torch")`."""
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)


def _is_same(project: Project, module: Module, call: ast.Call, other: ast.Call) -> bool:
    """Return whether two calls take all of one source, which is called that of the training."""
    mine, theirs = _given(call), _given(other)
    if None in mine or None in theirs or len(call.args) != len(other.args):
        return False
    alike = [n for n in mine if n in theirs and text_of(mine[n]) == text_of(theirs[n])]
    if not any(_is_source(mine[name], module) or _is_switched(name, mine[name]) for name in alike):
        return False
    for name in {*mine, *theirs} - set(alike):
        if not _is_how(name, [v for v in (mine.get(name), theirs.get(name)) if v is not None]):
            return False
    flagged = any(FLAG.search(str(name)) for name in {*mine, *theirs} - set(alike))
    target = callee(project, module, call)
    if any(SPLITTING.search(str(n)) and not isinstance(constant(mine[n]), str) for n in alike if isinstance(n, str)):
        return False  # a share, which a flag takes the one or the other side of
    return not flagged or target is None or DIVIDES.search(text_of(target)) is None


def _given(call: ast.Call) -> dict[str | int | None, ast.expr]:
    """Return what a call passes, by place and by name."""
    return {**dict(enumerate(call.args)), **{k.arg: k.value for k in call.keywords}}


def _is_how(name: str | int | None, values: list[ast.expr]) -> bool:
    """Return whether what differs says how data are given, not which: a size, a transform, a flag."""
    texts = [text_of(value) for value in values]
    if isinstance(name, str):
        return FLAG.search(name) is not None or HOW.search(name) is not None or SPLITTING.search(name) is None
    if all(isinstance(constant(value), bool) for value in values) or all(HOW.search(text) for text in texts):
        return True
    return not any(
        isinstance(value, ast.Constant) or tells_part(text) for value, text in zip(values, texts, strict=True)
    )


def _is_source(value: ast.expr | None, module: Module, hops: int = 1) -> bool:
    """Return whether a value is called the training's source, or is written so: `"train"`, `root / "train.json"`."""
    if value is None:
        return False
    if isinstance(value, ast.Name | ast.Attribute) and SOURCE.search(tail_text(value).rpartition(" ")[2]):
        return True
    texts = (n.value for n in walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    if any(WRITTEN.search(text) and HELD.search(text) is None and "val" not in text.lower() for text in texts):
        return True
    if isinstance(value, ast.Name) and hops:
        before = set_before(function_of(value, module) or module.tree, value.id, value.lineno)
        return len(before) == 1 and _is_source(before[0][0], module, hops - 1)
    return False


def _is_switched(name: str | int | None, value: ast.expr | None) -> bool:
    return isinstance(name, str) and TRAINED.fullmatch(name) is not None and constant(value) is True


def _is_meant(call: ast.Call, module: Module) -> bool:
    """Return whether the same data are asked for: to overfit them, or where there are no others."""
    function = function_of(call, module)
    tests = (text_of(a.test) for a in module.ancestors(call) if isinstance(a, ast.If | ast.IfExp))
    return any(UNLESS.search(text) for text in tests) or (function is not None and bool(UNLESS.search(function.name)))
