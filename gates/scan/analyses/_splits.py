"""Which split of the data an expression is: by its name, its key, the set that a loader is made of, its variable."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses._code import MODEL, constant, tail_text
from gates.scan.analyses._evaluating import HELD, TRAIN
from gates.scan.analyses._flow import set_before
from gates.scan.module import Module, tail_of
from gates.scan.nodes import inner

SETTINGS = re.compile(
    r"(?i)(^|_)(cfg|conf|config|args|opts?|params|settings|schema|hparams|options|paths?|dirs?)s?(_|$)"
)
PASSING = frozenset({"iter", "enumerate", "tqdm", "islice", "list", "tuple", "track", "zip", "trange", "next", "cycle"})
LOADS = re.compile(
    r"(?i)(loaders?|batches|dataset|dataloader)$|^(get|make|build|create|load)_\w*(data|split|set|loader)s?$"
)
ASKS = re.compile(r"^_*(get|make|build|create|load|setup)_")
SPLIT = frozenset({"split", "subset", "partition", "fold", "part", "data", "dataset"})
SWITCHES = frozenset({"train", "eval"})  # of a module, which returns itself
DATA = re.compile(
    r"(?i)data|split|loader|set(s|$)|corpus|episodes|batches|(^|_)(dl|ds|dm|iter)(_|$)|fold|samples|images"
)
NO_DATA = re.compile(
    r"(?i)_(steps|fns?|func|size|metrics?|dtype|amp|device|every|interval|transforms?|name|path|dir|mode|only|seed|"
    r"workers|logger|writer|state|criterion|autocast|precision)$"
)


def split_name(node: ast.expr, module: Module) -> str:
    """Return the name of the data that an expression is: of `splits["train"]`, `train`; of a config's part nothing."""
    if isinstance(node, ast.Name):
        return node.id if _tells(node.id) else _behind(node, module)
    if isinstance(node, ast.Attribute):
        return "" if SETTINGS.search(tail_of(node.value)) else node.attr
    if isinstance(node, ast.Subscript):
        return "" if SETTINGS.search(tail_text(node.value).strip().rpartition(" ")[2]) else _text(node.slice)
    return _of_call(node, module) if isinstance(node, ast.Call) else ""


def splits_passed(call: ast.Call, module: Module) -> Iterator[str]:
    """Yield the names of the data that a call is handed, or told by name: `evaluate(model, split="train")`."""
    for arg in call.args:
        yield _passed(arg, module)
    for option in call.keywords:
        yield _text(option.value) if option.arg in SPLIT and _text(option.value) else _passed(option.value, module)
    if any(MODEL.search(tail_of(arg)) for arg in call.args):
        yield from (_text(arg) for arg in call.args[1:])


def _passed(node: ast.expr, module: Module) -> str:
    """Return the name of the data that an argument is: of a model, or of how to evaluate, nothing."""
    name = tail_of(node)
    is_model = _tells(name) and MODEL.search(name) and not DATA.search(name)
    return "" if is_model or NO_DATA.search(name) else split_name(node, module)


def _tells(name: str) -> bool:
    return bool(TRAIN.search(name) or HELD.search(name))


def _text(node: ast.expr) -> str:
    """Return a key or an argument that is the name of a split."""
    value = constant(node)
    return value if isinstance(value, str) and value.isidentifier() else ""


def _of_call(call: ast.Call, module: Module) -> str:
    """Return the split that a loader is made of, that one is asked for, or that is gone over."""
    tail = tail_of(call.func)
    if not call.args and not call.keywords and isinstance(call.func, ast.Attribute):
        named = ASKS.sub("", tail)
        switched = tail in SWITCHES and _is_module(call.func.value)
        return named if _tells(named) and not switched and not MODEL.search(tail_of(call.func.value)) else ""
    if not call.args or any(k.arg is None or "sampler" in k.arg for k in call.keywords):
        return ""
    if tail in PASSING or tail.endswith("DataLoader"):
        return split_name(call.args[0], module)
    owner = tail_text(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if tail == "get":
        return _text(call.args[0]) if not SETTINGS.search(owner.strip().rpartition(" ")[2]) else ""
    return next((text for text in map(_text, call.args) if text), "") if LOADS.search(tail) else ""


def _is_module(node: ast.expr) -> bool:
    """Return whether what is switched to training or to evaluation is a module, just made or moved: `Net().eval()`."""
    words = tail_text(node).split()
    return not any(map(DATA.search, words)) and (isinstance(node, ast.Call) or any(map(MODEL.search, words)))


def _behind(node: ast.Name, module: Module) -> str:
    """Return the split that a variable is, where its function sets it once, and not as one of several."""
    function = next((a for a in module.ancestors(node) if isinstance(a, ast.FunctionDef)), None)
    if function is None:
        return ""
    places = [n for n in inner(function, ast.Name) if isinstance(n, ast.Name) and n.id == node.id]
    stores = [n for n in places if isinstance(n.ctx, ast.Store)]
    parent = module.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(parent, ast.Assign) or module.parents.get(parent) is not function:
        return ""
    found = set_before(function, node.id, node.lineno)
    if len(found) != 1 or isinstance(found[0][0], ast.Name):
        return ""
    return split_name(found[0][0], module)
