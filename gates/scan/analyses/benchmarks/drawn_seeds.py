"""Seeds that are another one each time: drawn, counted up, taken of the clock, or reckoned of an arm that is passed."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.benchmarks.arms import ARM, over_arms
from gates.scan.analyses.benchmarks.benching import is_baseline, is_candidate
from gates.scan.analyses.reading.code import FUNCTIONS, LOOPS, Comprehension, callee, constant, function_of, tail_text
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

DRAWS = frozenset({"randint", "randrange", "getrandbits", "randbits", "urandom", "time", "time_ns", "perf_counter_ns",
                   "token_bytes", "uuid4", "seed", "integers"})  # fmt: skip
COUNTED = re.compile(r"(?i)rank|worker|epoch|step|iter|round|trial|repeat|fold|^[ijkn]$|idx|index")
HOPS = 3
MAX_CALLERS = 20
WORKER = re.compile(r"(?i)worker|rank|spawn")


def is_drawn_for_each(project: Project, module: Module, seed: ast.expr) -> bool:
    """Return whether a seed is another one for each arm."""
    function = function_of(seed, module)
    if function is not None and WORKER.search(function.name):
        return False
    for place, there, holder in _drawn(project, module, seed, HOPS):
        if _turns_with_arms(project, there, place, holder, HOPS):
            return True
    return function is not None and any(
        _is_run_by_arms(project, function, module, name) for name in _reckoned_of(seed, function)
    )


def is_chosen_by_arm(seed: ast.expr) -> bool:
    """Return whether a seed is written as one of two by the arm: `0 if arm == "fp32" else 1`."""
    if not isinstance(seed, ast.IfExp):
        return False
    values = constant(seed.body), constant(seed.orelse)
    texts = [str(constant(n)) for n in walk(seed.test) if isinstance(n, ast.Constant)]
    texts += [tail_text(n) for n in walk(seed.test) if isinstance(n, ast.Name | ast.Attribute)]
    told = any(is_baseline(text) or is_candidate(text) or ARM.search(text) for text in texts)
    return told and all(isinstance(v, int) for v in values) and values[0] != values[1]


def _drawn(project: Project, module: Module, node: ast.expr, hops: int) -> Iterator[tuple[ast.AST, Module, str | None]]:
    """Yield where a seed is drawn, and the variable of that function that it is drawn from, if there is one."""
    function = function_of(node, module)
    for part in walk(node):
        if isinstance(part, ast.Call):
            if tail_of(part.func) == "next" and len(part.args) == 1:
                yield part, module, tail_of(part.args[0]) if isinstance(part.args[0], ast.Name) else None
            elif _is_draw(part) or (hops and _is_drawn_inside(project, module, part, hops)):
                yield part, module, None
        elif isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load) and function is not None:
            if _counts_up(function, part):
                yield part, module, None
            for value, _ in set_before(function, part.id, part.lineno) if isinstance(part, ast.Name) and hops else ():
                yield from _drawn(project, module, value, hops - 1) if value is not node else ()


def _is_drawn_inside(project: Project, module: Module, call: ast.Call, hops: int) -> bool:
    """Return whether a function that takes nothing returns what is drawn of what outlives it."""
    target = callee(project, module, call)
    if target is None or target.args.args[1:]:
        return False
    there = project.scope_of(target, module).module
    values = [n.value for n in inner(target, ast.Return) if isinstance(n, ast.Return) and n.value is not None]
    found = [holder for value in values for _, _, holder in _drawn(project, there, value, hops - 1)]
    return any(not _is_local(target, holder) for holder in found)


def _is_draw(call: ast.Call) -> bool:
    """Return whether a call gives another number each time: of a clock, of a generator; `seed(0)` sets one."""
    return tail_of(call.func) in DRAWS and (not call.args or tail_of(call.func) != "seed")


def _counts_up(function: ast.AST, node: ast.Name | ast.Attribute) -> bool:
    """Return whether a function adds to what it takes its seed from and keeps: an attribute, a global variable."""
    added = (n for n in inner(function, ast.AugAssign) if isinstance(n, ast.AugAssign))
    if not any(text_of(n.target) == text_of(node) for n in added):
        return False
    shared = (name for n in inner(function, ast.Global, ast.Nonlocal) for name in getattr(n, "names", ()))
    return tail_of(node.value) == "self" if isinstance(node, ast.Attribute) else node.id in set(shared)


def _is_local(function: ast.AST, holder: str | None) -> bool:
    stored = (n.id for n in inner(function, ast.Name) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return holder is not None and holder in set(stored)


def _turns_with_arms(project: Project, module: Module, place: ast.AST, holder: str | None, hops: int) -> bool:
    """Return whether code runs once for each arm: in a loop over them, or in a function that is called so."""
    for around in module.ancestors(place):
        if isinstance(around, ast.For) and any(place in walk(part) for part in around.body):
            if _is_local(around, holder):
                return False
            if over_arms(project, module, around.iter, _names(around.target)):
                return True
        elif isinstance(around, Comprehension):
            if any(over_arms(project, module, each.iter, _names(each.target)) for each in around.generators):
                return True
        elif isinstance(around, FUNCTIONS):
            if _is_local(around, holder) or not hops:
                return False
            assert isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef)
            sites = _sites(project, around)
            return any(_turns_with_arms(project, there, call, None, hops - 1) for call, there in sites) or _are_two(
                sites
            )
    return False


def _sites(project: Project, function: Function) -> list[tuple[ast.Call, Module]]:
    found = project.named.get(function.name, [])[:MAX_CALLERS]
    return [(call, there) for call, there in found if callee(project, there, call) is function]


def _are_two(sites: list[tuple[ast.Call, Module]]) -> bool:
    """Return whether two calls in one function are one for the old arm and one for the new one."""
    for one, there in sites:
        for other, module in sites:
            if there is module and one is not other and function_of(one, there) is function_of(other, there):
                texts = [_told(call, there) for call in (one, other)]
                if is_baseline(texts[0]) and is_candidate(texts[1]) and not _loops(one, there):
                    return True
    return False


def _loops(node: ast.AST, module: Module) -> bool:
    return any(isinstance(a, LOOPS) for a in module.ancestors(node))


def _told(call: ast.Call, module: Module) -> str:
    """Return what a call's result is called, or what tells its arm among its arguments."""
    parent = module.parents.get(call)
    target = tail_text(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
    if is_baseline(target) or is_candidate(target):
        return target
    given = [*call.args, *(k.value for k in call.keywords)]
    return " ".join(str(constant(a)) if isinstance(a, ast.Constant) else tail_text(a) for a in given)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _reckoned_of(seed: ast.expr, function: Function) -> set[str]:
    """Return the parameters that a seed is reckoned of by calls or lookups, rather than passed as: `hash(arm)`."""
    given = {a.arg for a in walk(function.args) if isinstance(a, ast.arg)}
    found: set[str] = set()
    todo: list[tuple[ast.expr, bool]] = [(seed, False)]
    todo += [(v, False) for name in _names(seed) for v, _ in set_before(function, name, seed.lineno)]
    for value, _ in todo:
        for part in walk(value):
            inside = (
                part.args if isinstance(part, ast.Call) else [part.slice] if isinstance(part, ast.Subscript) else []
            )
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                inside = [*inside, part.func.value]
            found |= {n.id for each in inside for n in walk(each) if isinstance(n, ast.Name) and n.id in given}
    return {name for name in found if ARM.search(name) or name in {"name", "label", "mode"}}


def _is_run_by_arms(project: Project, function: Function, module: Module, name: str) -> bool:
    """Return whether callers pass the arms for a parameter, one after the other."""
    bound = project.scope_of(function, module).owner is not None
    texts: list[str] = []
    for call, there in _sites(project, function):
        value = argument(call, function, name, bound=bound)
        if value is None:
            continue
        texts.append(str(constant(value)))
        for around in there.ancestors(call):
            loops = (
                around.generators
                if isinstance(around, Comprehension)
                else [around]
                if isinstance(around, ast.For)
                else []
            )
            for loop in loops:
                if isinstance(value, ast.Name) and value.id in _names(loop.target):
                    return over_arms(project, there, loop.iter, _names(loop.target))
            if isinstance(around, FUNCTIONS):
                break
    return any(map(is_baseline, texts)) and any(map(is_candidate, texts))


def sown(function: Function) -> str | None:
    """Return the parameter that a function takes its seed by: the one of that name, or that it sets a seed of."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    if "seed" in names or WORKER.search(function.name):
        return "seed" if "seed" in names else None
    set_of = [c.args[0] for c in inner(function, ast.Call) if isinstance(c, ast.Call) and c.args and _is_setting(c)]
    found = {name for each in set_of for name in _added_to(each) if name in names}
    return found.pop() if len(found) == 1 else None


def _added_to(seed: ast.expr) -> Iterator[str]:
    """Yield the variables that a seed is, or is the sum of, but for those that count turns or processes."""
    if isinstance(seed, ast.Name) or (isinstance(seed, ast.BinOp) and isinstance(seed.op, ast.Add)):
        yield from (name for name in _names(seed) if isinstance(seed, ast.Name) or not COUNTED.search(name))


def _is_setting(call: ast.Call) -> bool:
    return tail_of(call.func) in {"manual_seed", "seed_everything", "set_seed", "manual_seed_all"}


def never_same(project: Project, module: Module, one: ast.expr, other: ast.expr) -> bool:
    """Return whether two seeds differ whatever is set: other numbers, or one the other with a number added."""
    first, second = _reckoned(project, module, one), _reckoned(project, module, other)
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


def left_at(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the default of the seed that a call takes, of a function or a class, itself or as a part of it."""
    scope = project.scope_at(call, module)
    target = callee(project, module, call)
    if target is None and tail_of(call.func) == "partial" and call.args:
        target, _ = project.functions.get(scope.dotted(call.args[0]) or "", (None, None))
    if target is not None:
        return parameters(target).get(sown(target) or "seed")
    info = project.classes.get(project.types.of(call, scope) or "")
    if info is not None and "__init__" in info.methods:
        return parameters(info.methods["__init__"]).get("seed")
    fields = (n for n in info.node.body if isinstance(n, ast.AnnAssign)) if info is not None else ()
    return next((field.value for field in fields if tail_of(field.target) == "seed"), None)


def shown(project: Project, module: Module, seed: ast.expr) -> str:
    """Return the number that a seed is, or what it is reckoned of, where the code tells; else what is written."""
    reckoned = _reckoned(project, module, seed)
    if reckoned is not None:
        base, added = reckoned
        return f"{base} {'-' if added < 0 else '+'} {abs(added)}" if base and added else base or str(added)
    behind = project.scope_at(seed, module).through(seed) if isinstance(seed, ast.Name) else None
    return text_of(behind[0] if behind is not None and isinstance(behind[0], ast.BinOp) else seed)


def _imported(project: Project, scope: Scope, node: ast.expr) -> tuple[ast.expr, Scope] | None:
    """Return what a name of another file is set to there, where that is done once."""
    origin, _, name = (scope.dotted(node) or "").rpartition(".")
    module = project.find_module(origin, scope.module) if origin else None
    found = module.bindings.get(name, []) if module is not None else []
    value = found[0].node if len(found) == 1 and found[0].kind == "value" else None
    return (
        (value, project.scope_of(module.tree, module)) if module is not None and isinstance(value, ast.expr) else None
    )


def _reckoned(project: Project, module: Module, node: ast.expr, hops: int = HOPS) -> tuple[str, int] | None:
    """Return what a seed is reckoned of, nothing for a plain number, and the number added to that."""
    module = (
        module if node in module.parents else next((m for m in project.modules.values() if node in m.parents), module)
    )
    value = constant(node)
    if isinstance(value, int) and not isinstance(value, bool):
        return "", value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = (_reckoned(project, module, side, hops) for side in (node.left, node.right))
        if left is None or right is None or (right[0] and (left[0] or isinstance(node.op, ast.Sub))):
            return None
        return left[0] or right[0], left[1] + (right[1] if isinstance(node.op, ast.Add) else -right[1])
    is_named = isinstance(node, ast.Name | ast.Attribute) and hops > 0
    scope = project.scope_at(node, module)
    behind = scope.through(node) or _imported(project, scope, node) if is_named else None
    if isinstance(node, ast.Attribute) and behind is not None and constant(behind[0]) is None:
        behind = None  # only what is a number there
    if behind is not None:
        return _reckoned(project, behind[1].module, behind[0], hops - 1)
    return (text_of(node), 0) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else None
