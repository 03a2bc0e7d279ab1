"""Which split of the data an expression is: by its name, its key, the set that a loader is made of, its variable."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.evaluating import HELD, TRAIN
from gates.scan.analyses.reading.code import (
    MODEL,
    callee,
    calls,
    class_of,
    constant,
    function_of,
    is_backward,
    tail_text,
)
from gates.scan.analyses.reading.flow import set_before
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

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
PLACE = re.compile(r"(?i)device|cuda")
NO_DATA = re.compile(
    r"(?i)_(steps|fns?|func|size|metrics?|dtype|amp|device|every|interval|transforms?|name|path|dir|mode|only|seed|"
    r"workers|logger|writer|state|criterion|loss|autocast|precision)$"
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
    return "" if is_model or NO_DATA.search(name) or _is_device(node, module) else split_name(node, module)


def _is_device(node: ast.expr, module: Module) -> bool:
    """Return whether what is called `dev` is a device, as its file sets it, or moves things to it."""
    if tail_of(node) != "dev":
        return False
    moved = [a for c in module.calls.get("to", ()) for a in (*c.args, *(k.value for k in c.keywords))]
    moved += [n.value for n in module.live.get(ast.keyword, ()) if isinstance(n, ast.keyword) and n.arg == "device"]
    made = [n for n in module.live.get(ast.Assign, ()) if isinstance(n, ast.Assign)]
    told = [n.value for n in made if any(text_of(t) == text_of(node) for t in n.targets)]
    is_set = any(PLACE.search(text_of(value)) for value in told)
    return is_set or any(text_of(each) == text_of(node) for each in moved)


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


def trained_on(project: Project, call: ast.Call, module: Module) -> ast.expr | None:
    """Return the argument of an evaluation that is trained on around it, where other data is held back beside it."""
    around = class_of(call, module) or function_of(call, module) or module.tree
    for arg in (*call.args, *(k.value for k in call.keywords)):
        if not isinstance(arg, ast.Name | ast.Attribute | ast.Subscript) or _tells(split_name(arg, module)):
            continue
        if _is_trained_on(project, text_of(arg), around, module) and _has_held(project, arg, around, module):
            return arg
    return None


def _is_trained_on(project: Project, text: str, around: ast.AST, module: Module) -> bool:
    """Return whether a loop goes over data and goes backward, there or in a function that is handed it."""
    if any(_goes_over(loop, text) for loop in walk(around)):
        return True
    for call in calls(around):
        given = [*call.args, *(k.value for k in call.keywords)]
        target = callee(project, module, call) if any(text_of(arg) == text for arg in given) else None
        if target is not None and any(_goes_over(loop, name) for name in _named_in(project, call, target, module, text)
                                      for loop in inner(target, ast.For)):  # fmt: skip
            return True
    return False


def _goes_over(loop: ast.AST, text: str) -> bool:
    """Return whether a loop goes backward over what an expression is."""
    is_over = isinstance(loop, ast.For) and any(
        isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and text_of(n) == text for n in walk(loop.iter)
    )
    return is_over and any(is_backward(c) for c in calls(loop))


def _named_in(project: Project, call: ast.Call, target: Function, module: Module, text: str) -> Iterator[str]:
    """Yield the parameters of a function that a call passes an expression for."""
    bound = project.scope_of(target, module).owner is not None
    for each in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs):
        passed = argument(call, target, each.arg, bound=bound)
        if passed is not None and text_of(passed) == text:
            yield each.arg


def _has_held(project: Project, node: ast.expr, around: ast.AST, module: Module) -> bool:
    """Return whether other data stands beside some: under another key, or by a name that says that it is held back."""
    by_name = not isinstance(node, ast.Subscript)  # where `dev` may be a device
    if isinstance(node, ast.Subscript):
        beside = [n.slice for n in walk(around) if isinstance(n, ast.Subscript) and _is_beside(n, node)]
        keys = {_text(each) for each in beside} | _keys(node.value, project.scope_at(node, module), 3)
    elif isinstance(node, ast.Attribute):
        named = [n for n in walk(around) if isinstance(n, ast.Attribute) and text_of(n.value) == text_of(node.value)]
        run = {c.func.attr for c in calls(around) if isinstance(c.func, ast.Attribute)}
        keys = {n.attr for n in named} - run | _fields(project, node, module)
    else:
        keys = {n.id for n in walk(around) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        function = function_of(node, module)
        keys |= {a.arg for a in function.args.args} if function is not None else set()
    keys = {key.replace("held_out", "held") for key in keys}
    found = ((key, HELD.search(key)) for key in keys if not TRAIN.search(key) and not (by_name and key == "dev"))
    return any(match is not None and match.end() == len(key) for key, match in found)  # no `val_loss`


def _fields(project: Project, node: ast.Attribute, module: Module) -> set[str]:
    """Return the fields that a record of splits declares: of `class Splits(NamedTuple)`, each."""
    owner = project.scope_at(node, module).class_of(node.value)
    declared = [n.target for n in owner.node.body if isinstance(n, ast.AnnAssign)] if owner is not None else []
    return {tail_of(target) for target in declared}


def _is_beside(node: ast.Subscript, other: ast.Subscript) -> bool:
    return text_of(node.value) == text_of(other.value)


def _keys(node: ast.expr, scope: Scope, hops: int) -> set[str]:
    """Return the keys of a dictionary that is written out, or that a function returns."""
    if isinstance(node, ast.Dict):
        return {_text(key) for key in node.keys if key is not None}
    if isinstance(node, ast.Call) and hops:
        target = scope.project.types.function(node, scope)
        returned = inner(target, ast.Return) if target is not None else ()
        where = scope.project.scope_of(target, scope.module) if target is not None else scope
        values = [n.value for n in returned if isinstance(n, ast.Return) and n.value is not None]
        named = {k.arg for k in node.keywords if k.arg} if tail_of(node.func) == "dict" else set()
        return named.union(*(_keys(value, where, hops - 1) for value in values))
    behind = behind_of(node, scope) if hops else None
    return _keys(behind[0], behind[1], hops - 1) if behind is not None else set()


def is_handed_shuffled(project: Project, call: ast.Call, module: Module) -> bool:
    """Return whether an evaluation is handed the shuffled one of several loaders that are made together."""
    given = [*call.args, *(k.value for k in call.keywords)]
    found = [part for arg in given if (part := _part(project, arg, module)) is not None]
    if len(found) != 1:
        return False  # one is compared with the other
    mine, beside = found[0]
    return _is_shuffled(mine) is True and any(_is_shuffled(other) is False for other in beside)


def _is_shuffled(node: ast.expr) -> bool | None:
    """Return whether a loader that is made shuffles its data; `None` for what is no loader, or does not say."""
    if not isinstance(node, ast.Call) or not tail_of(node.func).endswith("DataLoader"):
        return None
    told = [constant(k.value) for k in node.keywords if k.arg == "shuffle"]
    sampled = any(k.arg is not None and "sampler" in k.arg for k in node.keywords)
    return told[0] is True if told and isinstance(told[0], bool) else False if not told and not sampled else None


def _part(project: Project, node: ast.expr, module: Module) -> tuple[ast.expr, list[ast.expr]] | None:
    """Return what an expression is of several things that are made together, and the others."""
    if (isinstance(node, ast.Name) and _tells(node.id)) or (
        isinstance(node, ast.Subscript) and _tells(_text(node.slice))
    ):
        return None
    if isinstance(node, ast.Subscript):
        return _taken(project, node.value, constant(node.slice), module)
    if not isinstance(node, ast.Name):
        return None
    body = function_of(node, module) or module.tree
    sets = [n for n in inner(body, ast.Assign) if isinstance(n, ast.Assign)]
    stores = [
        (n, t) for n in sets for t in n.targets if any(isinstance(e, ast.Name) and e.id == node.id for e in walk(t))
    ]
    if len(stores) != 1:
        return None
    made, target = stores[0][0].value, stores[0][1]
    if isinstance(target, ast.Name):
        return (made, [n.value for n in sets if n is not stores[0][0] and isinstance(n.targets[0], ast.Name)])
    names = [tail_of(each) for each in target.elts] if isinstance(target, ast.Tuple | ast.List) else []
    return _taken(project, made, names.index(node.id), module) if node.id in names else None


def _taken(project: Project, made: ast.expr, at: object, module: Module) -> tuple[ast.expr, list[ast.expr]] | None:
    """Return what a function gives, or what is written out, at a place or under a key, and what is beside it."""
    if isinstance(made, ast.Name):
        before = set_before(function_of(made, module) or module.tree, made.id, made.lineno)
        made = before[0][0] if len(before) == 1 else made
    if isinstance(made, ast.Call):
        target = callee(project, module, made)
        values = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return)] if target is not None else []
        if len(values) != 1 or values[0] is None or target is None:
            return None
        made, module = values[0], project.scope_of(target, module).module
    keys: list[object] = [constant(k) for k in made.keys] if isinstance(made, ast.Dict) else []
    values = [*made.values] if isinstance(made, ast.Dict) else []
    if isinstance(made, ast.Tuple | ast.List):
        keys, values = [*range(len(made.elts))], [*made.elts]
    found = {key: _made(value, module) for key, value in zip(keys, values, strict=True) if value is not None}
    return (found[at], [value for key, value in found.items() if key != at]) if at in found else None


def _made(node: ast.expr, module: Module) -> ast.expr:
    """Return what a variable was last set to."""
    before = (
        set_before(function_of(node, module) or module.tree, node.id, node.lineno) if isinstance(node, ast.Name) else []
    )
    return before[0][0] if len(before) == 1 else node
