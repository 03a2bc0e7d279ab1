"""The arms of a comparison: loops over them, and the calls that are one each."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.reading.code import callee, class_of, constant, functions, keyword, nodes, tail_text
from gates.scan.analyses.reading.origins import Origin, Origins
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

ARM = re.compile(r"(?i)(^|_)(arms?|precisions?|dtype|amp|use_amp|variant|backend)(_|$)")
ARMS = re.compile(r"(?i)(^|_)(arms|ablations?)(_|$)")
VARIES = frozenset({"replace", "evolve", "model_copy", "dict"})
SWITCHES = frozenset({"amp", "use_amp", "fp16", "bf16", "mixed", "mixed_precision", "half", "compile", "autocast"})
SWITCHED = re.compile(
    r"(^|_)(amp|fp16|bf16|half|mixed(_precision)?|autocast|compiled?|fused|optimi[sz]ed|quanti[sz]ed|flash|sdpa|"
    r"baseline|candidate|checkpointing)$"
)
Arm = TypeVar("Arm")
KNOWN = frozenset(
    {"amp", "use_amp", "precision", "dtype", "fp16", "mixed", "mixed_precision", "compile", "half", "attention", "attn",
     "attn_implementation", "backend", "variant", "arm", "compiled", "amp_dtype"}
)  # fmt: skip
MAX_DIFFERING = 2  # the switch, and a seed or a size
PLAIN = re.compile(r"(?i)((fp|float)?32|no)(-true)?")  # what frameworks call full precision


def over_arms(project: Project, module: Module, iterated: ast.expr, named: set[str]) -> bool:
    """Return whether a loop goes over the arms of a comparison: by their names, or by what its variables are called."""
    scope, whole = project.scope_at(iterated, module), _whole(iterated)
    if any(ARM.search(name) for name in named) or ARMS.search(tail_of(whole)) or _varies(whole, scope):
        return True
    old, new = _tells(project, iterated, scope)
    return (old and new) or any(_lists_both(project, table) for table in Origins(project).of(whole, scope))


def _tells(project: Project, node: ast.expr, scope: Scope) -> tuple[bool, bool]:
    """Return whether words in what a loop goes over name the old arm, and whether some name the new one."""
    texts = set(_texts(project, node, scope, 3))
    return any(is_baseline(text) or PLAIN.fullmatch(text) for text in texts), any(map(is_candidate, texts))


def _lists_both(project: Project, table: Origin) -> bool:
    """Return whether what callers hand over to be gone through has an entry for the old arm, and one for the new."""
    node = table.node
    entries = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        entries = [ast.Tuple([key, value], ast.Load()) for key, value in pairs if key is not None]
    told = {_tells(project, entry, table.scope) for entry in entries}
    return {(True, False), (False, True)} <= told


def _whole(iterated: ast.expr) -> ast.expr:
    """Return what a loop goes over all of: of `enumerate(ARMS.items())`, `ARMS`."""
    while isinstance(iterated, ast.Call):
        if isinstance(iterated.func, ast.Attribute) and iterated.func.attr in {"items", "values", "keys"}:
            iterated = iterated.func.value
        elif tail_of(iterated.func) in {"enumerate", "list", "tuple", "reversed", "tqdm"} and iterated.args:
            iterated = iterated.args[0]
        else:
            break
    return iterated


def _varies(whole: ast.expr, scope: Scope) -> bool:
    """Return whether a table that is written out has some settings, and others made of these: `replace(BASE, ...)`."""
    behind = behind_of(whole, scope) if isinstance(whole, ast.Name | ast.Attribute) else (whole, scope)
    table = behind[0] if behind is not None else whole
    entries = table.elts if isinstance(table, ast.List | ast.Tuple) else []
    entries = table.values if isinstance(table, ast.Dict) and None not in table.keys else entries
    first = {text_of(each) for each in entries if isinstance(each, ast.Name | ast.Attribute)}
    return any(_made_of(each) in first for each in entries)


def _made_of(entry: ast.expr) -> str:
    """Return the settings that others are a copy of, but for something else than their seed."""
    if isinstance(entry, ast.Dict):
        sown = any(constant(key) == "seed" for key in entry.keys if key is not None)
        copied = [value for key, value in zip(entry.keys, entry.values, strict=True) if key is None]
        return text_of(copied[0]) if copied and not sown else ""
    if isinstance(entry, ast.Call) and tail_of(entry.func) in VARIES and keyword(entry, "seed") is None:
        return text_of(entry.args[0]) if entry.args else ""
    return text_of(entry.left) if isinstance(entry, ast.BinOp) and isinstance(entry.op, ast.BitOr) else ""


def _texts(project: Project, node: ast.expr, scope: Scope, hops: int) -> Iterator[str]:
    """Yield the words in what a loop goes over: written there, where its variable was made, or in what is called."""
    for part in walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Attribute | ast.Name):
            yield part.attr if isinstance(part, ast.Attribute) else part.id
            behind = (_default(part, scope) or behind_of(part, scope)) if hops else None
            if behind is not None and behind[0] is not node:
                yield from _texts(project, behind[0], behind[1], hops - 1)
                yield from _registered(project, tail_of(part), behind[0])
        elif isinstance(part, ast.Call) and hops:
            target = callee(project, scope.module, part)
            for given in inner(target, ast.Return, ast.Yield) if target is not None else ():
                if isinstance(given, ast.Return | ast.Yield) and given.value is not None and target is not None:
                    yield from _texts(project, given.value, project.scope_of(target, scope.module), hops - 1)


def _registered(project: Project, name: str, made: ast.expr) -> Iterator[str]:
    """Yield the keys under which code stores things in a mapping that is made in one place, and filled elsewhere."""
    if not isinstance(made, ast.Dict | ast.Call):
        return
    for module in project.modules.values():
        for node in module.live.get(ast.Assign, ()):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(target, ast.Subscript) or tail_of(target.value) != name:
                continue
            scope = project.scope_at(target, module)
            behind = behind_of(target.value, scope)
            if behind is not None and behind[0] is made:
                yield from _keys(project, target.slice, scope)


def _keys(project: Project, key: ast.expr, scope: Scope) -> Iterator[str]:
    """Yield the texts that a key may be: written there, passed to its function, or the names of what that decorates."""
    if isinstance(key, ast.Constant):
        yield str(key.value)
    found = scope.lookup(key.id) if isinstance(key, ast.Name) else None
    function = found[0].function if found is not None else scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if isinstance(key, ast.Attribute) and key.attr == "__name__":
        for module in project.modules.values():
            for other in functions(module):
                yield from (other.name for each in other.decorator_list if tail_of(each) == function.name)
    for call, _ in project.named.get(function.name, ()) if isinstance(key, ast.Name) else ():
        value = argument(call, function, key.id, bound=False) if isinstance(key, ast.Name) else None
        if isinstance(value, ast.Constant):
            yield str(value.value)


def _default(node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return what a parameter, or a field of a class, is where nobody says otherwise."""
    if isinstance(node, ast.Name):
        return _of_parameter(node.id, scope)
    info = scope.class_of(node.value) if isinstance(node, ast.Attribute) else None
    if not isinstance(node, ast.Attribute) or info is None:
        return None
    fields = (field for field in info.node.body if isinstance(field, ast.AnnAssign))
    values = (field.value for field in fields if isinstance(field.target, ast.Name) and field.target.id == node.attr)
    return next(((value, info.scope) for value in values if value is not None), None)


def _of_parameter(name: str, scope: Scope) -> tuple[ast.expr, Scope] | None:
    function = scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or scope.outer is None:
        return None
    default = parameters(function).get(name)
    return (default, scope.outer) if default is not None else None


def are_arms(one: str, other: str) -> bool:
    """Return whether one of two texts names the old arm, and the other the new one."""
    return (is_baseline(one) and is_candidate(other)) or (is_candidate(one) and is_baseline(other))


def odd_seeds(found: list[tuple[Arm, str, str]], is_pair: Callable[[Arm, Arm], bool]) -> Iterator[tuple[Arm, str, str]]:
    """Yield each arm with a seed that none of those has which it is compared with: it, its seed, and one of theirs.

    Of each arm its text and its seed are given. Where two differ, the rarer seed is the odd one, then the later.
    """
    odd: list[tuple[int, str]] = []
    for at, (arm, told, seed) in enumerate(found):
        others = [there for other, text, there in found if text != told and is_pair(other, arm)]
        if others and seed not in others:
            odd.append((at, others[0]))
    even = {text for at, (_, text, _) in enumerate(found) if at not in dict(odd)}  # arms that run with several seeds
    odd = [(at, other) for at, other in odd if found[at][1] not in even]
    counts = Counter(seed for *_, seed in found)
    least = min((counts[found[at][2]] for at, _ in odd), default=0)
    rare = [(at, other) for at, other in odd if counts[found[at][2]] == least]
    for at, other in rare[1:] if len({found[at][2] for at, _ in rare}) > 1 else rare:
        yield found[at][0], found[at][2], other


def told_by(key: str, entry: ast.Dict) -> str:
    """Return what tells which arm an entry of a table is: its key, its texts, and what it switches on or off."""
    told = [key]
    for name, value in zip(entry.keys, entry.values, strict=True):
        said = constant(value)
        if isinstance(said, str):
            told.append(said)
        elif constant(name) in SWITCHES and isinstance(value, ast.Constant) and said in (None, True, False):
            told.append("amp" if said else "baseline")
    return " ".join(told)


def is_arm(project: Project, module: Module, first: ast.Call, second: ast.Call) -> bool:
    """Return whether the results, or the arguments, are called the old and the new arm, or switch it off and on."""
    one, other = called_as(first, module), called_as(second, module)
    given = [(_values(first), _values(second)), (one, other)]
    if any(are_arms(a, b) for a, b in given) or are_switched(project, module, first, second):
        return True
    differing = {k.arg for k in first.keywords if _text(first, k.arg) != _text(second, k.arg)}
    return bool(differing & KNOWN) or _are_told_by_place(project, module, first, second)


def _are_told_by_place(project: Project, module: Module, first: ast.Call, second: ast.Call) -> bool:
    """Return whether two calls of a function pass for one thing alone, by its place, what tells arms: `run("32")`."""
    if not first.args or text_of(first.func) != text_of(second.func):
        return False
    one, other = (_passed(project, module, call) for call in (first, second))
    differing = [name for name in one if name in other and text_of(one[name]) != text_of(other[name])]
    return one.keys() == other.keys() and len(differing) == 1 and differing[0] in KNOWN


def are_switched(project: Project, module: Module, first: ast.Call, second: ast.Call) -> bool:
    """Return whether two calls switch what tells arms on, and off, and differ in one thing more at most."""
    one, other = (_passed(project, module, call) for call in (first, second))
    if text_of(first.func) != text_of(second.func) or one.keys() != other.keys():
        return False
    differing = [name for name in one if text_of(one[name]) != text_of(other[name])]
    switches = [(constant(one[name]), constant(other[name])) for name in differing if SWITCHED.search(name)]
    is_on = any(isinstance(value, bool) and isinstance(there, bool) for value, there in switches)
    return is_on and len(differing) <= MAX_DIFFERING


def _passed(project: Project, module: Module, call: ast.Call) -> dict[str, ast.expr]:
    """Return what a call passes, by the names of the parameters, with the defaults of those that it leaves."""
    target = callee(project, module, call) or made_by(project, module, call)
    found = {k.arg: k.value for k in call.keywords if k.arg is not None}
    is_spread = len(found) < len(call.keywords) or any(isinstance(arg, ast.Starred) for arg in call.args)
    if target is None or is_spread:
        return found | {str(at): arg for at, arg in enumerate(call.args)}
    bound = project.scope_of(target, module).owner is not None
    for name, default in parameters(target).items():
        value = argument(call, target, name, bound=bound) or default
        found |= {name: value} if value is not None else {}
    return found


def made_by(project: Project, module: Module, call: ast.Call) -> Function | None:
    """Return the `__init__` that a call runs, where it makes an object of a class of the program."""
    info = project.classes.get(project.types.of(call, project.scope_at(call, module)) or "")
    is_class = info is not None and tail_of(call.func) == info.node.name
    return info.methods.get("__init__") if info is not None and is_class else None


def _values(call: ast.Call) -> str:
    """Return the texts that a call passes, and the names of what it passes."""
    return " ".join(str(a.value) if isinstance(a, ast.Constant) else tail_text(a) for a in call.args)


def _text(call: ast.Call, name: str | None) -> str:
    value = keyword(call, name) if name else None
    return text_of(value) if value is not None else ""


def called_as(call: ast.Call, module: Module) -> str:
    """Return what the result of a call is called: by the variable it is kept in, or the key."""
    parent = module.parents.get(call)
    if isinstance(parent, ast.Dict):
        keys = [
            k.value
            for k, v in zip(parent.keys, parent.values, strict=True)
            if v is call and isinstance(k, ast.Constant)
        ]
        return str(keys[0]) if keys else ""
    return tail_text(parent.targets[0]) if isinstance(parent, ast.Assign) else ""


def bodies(module: Module) -> Iterator[tuple[str, str, ast.AST]]:
    """Yield the functions of a file, and the lambdas that have a name or stand under a key, each with its class."""
    for function in functions(module):
        around = class_of(function, module)
        yield around.name if around is not None else "", function.name, function
    for node in nodes(module, ast.Lambda):
        parent = module.parents.get(node)
        pairs = zip(parent.keys, parent.values, strict=True) if isinstance(parent, ast.Dict) else ()
        yield from (("", str(constant(key)), node) for key, value in pairs if value is node)
        if isinstance(parent, ast.Assign):
            yield "", tail_text(parent.targets[0]), node
