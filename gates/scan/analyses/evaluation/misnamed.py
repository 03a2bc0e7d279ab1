"""Data that are called held back and are made of those of the training."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import HELD, KEPT_BACK, TRAIN
from gates.scan.analyses.evaluation.splits import LOADS
from gates.scan.analyses.reading.code import broken, constant, function_of, keyword, nodes
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.site import Site

SPLITTING = re.compile(
    r"(?i)(^|_)(sub_?sets?|splits?|split_\w+|ind(ex|ices)|idxs?|folds?|frac(tion)?s?|samplers?|start|stop|end|limit|"
    r"max_\w*|num_(samples|examples|rows)|n_\w+|ids|skip|offset|slice|part|portion|holdout|val\w*|test\w*|held\w*|"
    r"range|shards?|percent|pct|filter\w*|keep|mask|exclude|include|first|last|subjects?|mode|phase|stage|keys?|names?)$"
)
PREFIX = re.compile(r"^_*(get|make|build|create|load|setup)_")
INDICES = re.compile(r"(?i)(^|_)train(ing)?(_|$)")
KEEPS_ALL = frozenset({"map", "with_format", "with_transform", "set_format", "batch", "prefetch", "cache"})
PARTS = frozenset({"Subset", "select"})
DIVIDES = ("random_split", "train_test_split", "split_dataset")


def misnamed(module: Module) -> Iterator[Site]:
    """Find data called held back that are made of all the training data: `val_loader = DataLoader(train_set)`."""
    for node in nodes(module, ast.Assign):
        for target, value in _pairs(node) if isinstance(node, ast.Assign) else ():
            name = tail_of(target)
            if not _is_held(name) or not isinstance(target, ast.Name | ast.Attribute):
                continue
            made = _is_of_training(value) or _is_of_whole(value, module) or _is_as_for_training(value, module)
            if made and not is_divided(name, module):
                yield broken(module, value, f"{name} is made of the data of the training")
    for node in nodes(module, ast.Return, ast.IfExp):
        if isinstance(node, ast.IfExp):
            if TRAIN.search(tail_of(node.body)) and text_of(node.body) == text_of(node.orelse):
                yield broken(module, node, f"{text_of(node.body)} is taken for both splits")
            continue
        function = function_of(node, module)
        name = PREFIX.sub("", function.name) if function is not None else ""
        given = node.value if isinstance(node, ast.Return) else None
        if given is not None and KEPT_BACK.search(name) and _is_held(name) and _is_of_training(given):
            yield broken(module, given, f"{name} is made of the data of the training")


def _is_held(name: str) -> bool:
    return HELD.search(name) is not None and re.search(r"(?i)train", name) is None


def _is_of_whole(value: ast.expr, module: Module) -> bool:
    """Return whether a loader is made of the set that its function divides into that of the training and others."""
    if not isinstance(value, ast.Call) or not tail_of(value.func).endswith("DataLoader"):
        return False
    first = value.args[0] if value.args else keyword(value, "dataset")
    if not isinstance(first, ast.Name) or any(k.arg is None or "sampler" in k.arg for k in value.keywords):
        return False
    divided = (c for name in DIVIDES for c in module.calls.get(name, ()) if c.args and tail_of(c.args[0]) == first.id)
    around = function_of(value, module)
    for call in divided:
        stored = module.parents.get(call)
        names = [n.id for n in walk(stored) if isinstance(n, ast.Name)] if isinstance(stored, ast.Assign) else []
        if function_of(call, module) is around and any(_is_held(n) for n in names) and first.id not in names[:2]:
            return call.lineno < value.lineno
    return False


def _is_as_for_training(value: ast.expr, module: Module) -> bool:
    """Return whether a loader is made of the very part that the training's is made of: both of `data["train"]`."""
    own = _loaded(value)
    if not isinstance(own, ast.Subscript) or not TRAIN.search(str(constant(own.slice) or tail_of(own.slice))):
        return False
    if not isinstance(value, ast.Call) or not _is_whole(value, module):
        return False
    for node in nodes(module, ast.Assign):
        for target, other in _pairs(node) if isinstance(node, ast.Assign) else ():
            loaded = _loaded(other)
            if TRAIN.search(tail_of(target)) and loaded is not None and text_of(loaded) == text_of(own):
                return function_of(other, module) is function_of(value, module)
    return False


def _loaded(value: ast.expr) -> ast.expr | None:
    """Return what a loader is made of."""
    if not isinstance(value, ast.Call) or not tail_of(value.func).endswith(("DataLoader", "Loader")):
        return None
    return value.args[0] if value.args else keyword(value, "dataset")


def _is_whole(call: ast.Call, module: Module) -> bool:
    """Return whether a loader takes all of its data: nothing that it is passed, written out elsewhere too, chooses."""
    options = {k.arg for k in call.keywords if k.arg is not None}
    for more in (k.value for k in call.keywords if k.arg is None):
        written = [
            n.value for n in nodes(module, ast.Assign)
            if isinstance(n, ast.Assign) and any(text_of(t) == text_of(more) for t in n.targets)
        ]  # fmt: skip
        if len(written) != 1:
            return False
        if isinstance(written[0], ast.Call) and tail_of(written[0].func) == "dict":
            options |= {k.arg or "" for k in written[0].keywords}
        elif isinstance(written[0], ast.Dict):
            options |= {str(constant(key) or "") for key in written[0].keys}
        else:
            return False
    return not options & {"sampler", "batch_sampler", "indices", "subset", ""}


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _is_of_training(value: ast.expr) -> bool:
    """Return whether a value is the training data, a loader of all of it, or a data set asked for that split."""
    if isinstance(value, ast.Name | ast.Attribute):
        return TRAIN.search(tail_of(value)) is not None
    if not isinstance(value, ast.Call):
        return False
    tail, texts = tail_of(value.func), [constant(arg) for arg in value.args]
    if isinstance(value.func, ast.Attribute) and tail in KEEPS_ALL:
        return isinstance(value.func.value, ast.Call) and _is_of_training(value.func.value)
    if tail in PARTS and len(value.args) > 1 - isinstance(value.func, ast.Attribute):
        return INDICES.search(tail_of(value.args[-1])) is not None
    options = {k.arg: constant(k.value) for k in value.keywords}
    if None in options or {"sampler", "batch_sampler", "indices", "subset"} & options.keys():
        sampler = keyword(value, "sampler")
        return isinstance(sampler, ast.Call) and any(INDICES.search(tail_of(arg)) for arg in sampler.args)
    if tail.endswith(("DataLoader", "Loader")) or _is_loader_of_all(value):
        first = value.args[0] if value.args else keyword(value, "dataset")
        return first is not None and _is_of_training(first)
    if any(isinstance(text, str) and re.search(r"(?i)val|test|dev|held", text) for text in texts):
        return False
    is_set = tail[:1].isupper() or LOADS.search(tail) is not None
    return is_set and (options.get("split") == "train" or options.get("train") is True)


def _is_loader_of_all(call: ast.Call) -> bool:
    """Return whether a function of the program makes a loader, and is told of no part of the data."""
    given = [*call.args[1:], *(k.value for k in call.keywords if k.arg != "dataset")]
    named = any(SPLITTING.search(k.arg or "") for k in call.keywords)
    return tail_of(call.func).endswith("loader") and not named and not any(tells_part(text_of(v)) for v in given)


def tells_part(text: str) -> bool:
    """Return whether the text of an argument tells a part of the data."""
    parts = re.split(r"\W+", text)
    return any(HELD.search(part) or TRAIN.search(part) or SPLITTING.search(part) for part in parts)


def is_divided(name: str, module: Module) -> bool:
    """Return whether a part of the data is taken later: by a subset, an index, a split."""
    for node in nodes(module, ast.Name, ast.Attribute):
        if isinstance(node, ast.Name | ast.Attribute) and tail_of(node) == name:
            parent = module.parents.get(node)
            if isinstance(parent, ast.Subscript | ast.Attribute) and parent.value is node:
                return True
            if isinstance(parent, ast.Call) and re.search(r"(?i)subset|split|select|fold", tail_of(parent.func)):
                return True
            if isinstance(parent, ast.Call) and any(k.arg in {"sampler", "batch_sampler"} for k in parent.keywords):
                return True
    return False
