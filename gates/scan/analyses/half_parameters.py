"""Parameters in float16 that a scaler is to train."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.builders import built_by, is_off
from gates.scan.analyses.precision.casts import CASTS, METHODS, casts, is_cast
from gates.scan.analyses.precision.frozen import (
    PARAMETERS,
    adds_to,
    asking,
    is_frozen,
    named_for,
    puts_in,
    root_of,
    thaws,
)
from gates.scan.analyses.precision.kept_halved import kept_halved
from gates.scan.analyses.precision.optimizers import CLIPS, clipped, optimizers, scaled
from gates.scan.analyses.precision.precision import BRAIN, HALF, scalers, type_named
from gates.scan.analyses.precision.preparing import is_without_scaler, prepared
from gates.scan.analyses.precision.recast import is_recast, to_whole
from gates.scan.analyses.precision.receiving import built, received, trains_after
from gates.scan.analyses.reading.code import broken, callee, calls, constant, function_of, keyword
from gates.scan.analyses.reading.flow import Source, passed, sources, spine
from gates.scan.analyses.reading.several import fields_of, parts_of
from gates.scan.analyses.settings.chosen import given_by, method_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("half", "float16")
HELPERS = {"fit", "setup", "prepare", "train"}
WHOLE = re.compile(r"\bfloat\(\)|float32|cast_training_params|upcast")
WORD = {HALF: {"half", "float16", "fp16"}, BRAIN: {"bfloat16", "bf16"}}
WRAPPERS = {"compile", "DataParallel", "DistributedDataParallel", "DDP"}
KEPT = WRAPPERS | {"print", "len", "sum", "cuda", "to", "train", "isinstance"}
MOST = 100  # places that a model passed through
HOPS = 3
MAX_CALLERS = 20
Found = tuple[ast.Call, Module]


def look(project: Project) -> Iterator[Site]:
    """Yield each halving of a model whose parameters an optimizer gets, beside a scaler or mixed precision."""
    said: set[ast.AST] = set()
    for call, module in (*_handed(project), *trained(project, HALF), *kept_halved(project)):
        if call not in said:
            said.add(call)
            made = [("scaler", module, scaler) for scaler, _ in scalers(project, module)]
            own = made if len(made) == 1 else []
            yield broken(module, call, f"{ast.unparse(call)}: a scaler cannot unscale gradients in float16", *own)


def _handed(project: Project) -> Iterator[Found]:
    """Yield the halvings of all that is made, and of what a trainer in mixed precision is handed."""
    for module in project.modules.values():
        for call in (*casts(project, module, HALF), *_defaults(project, module)):
            body = function_of(call, module) or module.tree
            parent = module.parents.get(call)
            is_handed = isinstance(parent, ast.Call) and tail_of(parent.func) in HELPERS and call in parent.args
            is_sure = (is_handed or tail_of(call.func) == "set_default_dtype") and _mixed(project, module, body)
            if is_sure or (_trainers(body) and _optimized(project, module, call, body)):
                yield call, module


def _defaults(project: Project, module: Module) -> Iterator[ast.Call]:
    for call in module.calls.get("set_default_dtype", []):
        if any(type_named(arg, project.scope_at(call, module)) == HALF for arg in call.args):
            yield call


def _trainers(body: ast.AST) -> bool:
    """Return whether a trainer in mixed precision is made."""
    trainers = [c for c in calls(body) if tail_of(c.func) in {"Trainer", "Fabric", "Accelerator"}]
    told = [constant(keyword(c, "precision") or keyword(c, "mixed_precision")) for c in trainers]
    return any(value in {"16-mixed", "fp16", 16, "16"} for value in told)


def _mixed(project: Project, module: Module, body: ast.AST) -> bool:
    """Return whether a scaler, or a trainer in mixed precision, is made in the same function."""
    made = {id(call) for call, _ in scalers(project, module)}
    return any(isinstance(n, ast.Call) and id(n) in made for n in walk(body)) or _trainers(body)


def _optimized(project: Project, module: Module, call: ast.Call, body: ast.AST) -> bool:
    near = (c for c, there, _ in optimizers(project) if there is module and c in set(calls(body)))
    scoped = ((made, project.scope_at(made, module)) for made in near)
    return any(call is found for made, scope in scoped for found, _ in _cast(project, made, scope, HALF))


def trained(project: Project, kind: str) -> Iterator[Found]:
    """Yield where models are turned into a type whose parameters go to optimizers that a scaler steps."""
    files = project.modules.values()
    if any(WORD[kind] & module.words for module in files) or any(True for m in files for _ in casts(project, m, kind)):
        for call, _, scope in (*scaled(project), *clipped(project)):
            yield from _cast(project, call, scope, kind)


def _cast(project: Project, call: ast.Call, scope: Scope, kind: str) -> Iterator[Found]:
    """Yield where the models are turned into a type whose parameters an optimizer is made for, or clipped of."""
    given = call.args[0] if call.args else keyword(call, "params")
    for source in sources(project, given, scope, call.lineno) if given is not None else ():
        if WHOLE.search(text_of(source.node)):
            return
        for asked in (*asking(source.node), *_filled(source)):
            ways = list(_models(project, asked.func.value, source.scope, asked.lineno, HOPS))  # type: ignore[attr-defined]  # a method
            for each in ways:
                for found, module in _turned(project, each, asked, call, kind):
                    partly = tail_of(call.func) in CLIPS or "requires_grad" in text_of(source.node)
                    if is_off(project, found, module, ways) or is_without_scaler(project, found, module, ways):
                        continue
                    if _is_recast(project, found, module, asked, call, scope):
                        continue
                    if not _is_undone(project, found, module, asked, source, partly=partly):
                        yield found, module


def _turned(project: Project, model: Source, asked: ast.Call, optimizer: ast.Call, kind: str) -> Iterator[Found]:
    """Yield what turns a model into a type: where it is made, as it stands, and in what takes it over to train it."""
    yield from _made(project, model, kind)
    yield from _put_in(project, model, asked, kind)
    yield from _in_place(project, model, asked, optimizer, kind)
    for each in received(project, model, optimizer):
        for found, module in _in_place(project, each, asked, optimizer, kind):
            if trains_after(found, function_of(found, module) or module.tree):
                yield found, module


def _filled(source: Source) -> Iterator[ast.Call]:
    """Yield what the loop goes through that fills the lists of an expression."""
    names = {n.id for n in walk(source.node) if isinstance(n, ast.Name)}
    for loop in inner(source.body, ast.For) if names else ():
        adds = (c for c in calls(loop) if isinstance(c.func, ast.Attribute) and c.func.attr in {"append", "extend"})
        held = {n.id for c in adds for n in walk(c.func) if isinstance(n, ast.Name)}
        if isinstance(loop, ast.For) and held & names:
            yield from asking(loop.iter)


def _models(
    project: Project, node: ast.expr, scope: Scope, line: int, hops: int, seen: dict[ast.AST, Source] | None = None
) -> Iterator[Source]:
    """Yield what a model was made by and passed through, from the callers of a function too, each place once."""
    seen = {} if seen is None else seen
    for each in spine(project, node, scope, line):
        if each.node in seen or len(seen) >= MOST:
            continue
        seen[each.node] = each
        yield each
        if isinstance(each.node, ast.Attribute) and hops and _is_part(each.node, each.scope):
            yield from _models(project, each.node.value, each.scope, line, hops - 1, seen)
        if isinstance(each.node, ast.Name) and hops:
            found = each.scope.lookup(each.node.id)
            given = passed(project, each.node.id, found[0]) if found is not None else ()
            for value, where, at in _receivers(project, each.scope) if each.node.id == each.scope.self_name else given:
                yield from _models(project, value, where, at, hops - 1, seen)
        for side in (each.node.body, each.node.orelse) if isinstance(each.node, ast.IfExp) and hops else ():
            yield from _models(project, side, each.scope, line, hops - 1, seen)
        chosen = (*given_by(each.node, each.scope), *prepared(project, each)) if hops else ()
        for where, value in (*built_by(project, each, list(seen.values())), *chosen) if hops else ():
            yield from _models(project, value, where, 10**9, hops - 1, seen)
        for inside in (*parts_of(project, each, line), *fields_of(project, each)) if hops else ():
            yield from _models(project, inside.node, inside.scope, inside.node.lineno + 1, hops - 1, seen)


def _is_part(node: ast.Attribute, scope: Scope) -> bool:
    """Return whether something is a part that a model was made with: `net.head`, where nobody puts in another one."""
    if isinstance(node.value, ast.Name) and node.value.id == scope.self_name:
        return False
    targets = (t for n in walk(scope.module.tree) if isinstance(n, ast.Assign) for t in n.targets)
    return not any(isinstance(t, ast.Attribute) and text_of(t) == text_of(node) for t in targets)


def _receivers(project: Project, scope: Scope) -> Iterator[tuple[ast.expr, Scope, int]]:
    """Yield the objects that a method of the program is called of elsewhere."""
    function = scope.function
    for call, module in project.named.get(getattr(function, "name", ""), [])[:MAX_CALLERS]:
        where = project.scope_at(call, module)
        if isinstance(call.func, ast.Attribute) and project.types.function(call, where) is function:
            yield call.func.value, where, call.lineno


def _made(project: Project, source: Source, kind: str) -> Iterator[Found]:
    if not isinstance(source.node, ast.Call):
        return
    taken = METHODS.get(method_of(source.node, source.scope) or "")
    if taken == kind or is_cast(project, source.module, source.node, kind):
        yield source.node, source.module
    else:
        yield from built(project, source.node, source.scope, kind)


def _in_place(project: Project, source: Source, asked: ast.Call, optimizer: ast.Call, kind: str) -> Iterator[Found]:
    """Yield the statements that turn a model as it is, before it is trained: `net.half()`, `p.data = p.data.half()`."""
    if not isinstance(source.node, ast.Name | ast.Attribute | ast.Subscript):
        return
    scope, name = source.scope, text_of(source.node)
    if isinstance(source.node, ast.Attribute) and scope.owner is not None and "__init__" in scope.owner.methods:
        scope = project.scope_of(scope.owner.methods["__init__"], scope.owner.scope.module)
    body = scope.function or scope.module.tree
    known = [c for c in calls(body) if tail_of(c.func) in CASTS and is_cast(project, scope.module, c, kind)]
    for call in known:
        apart = function_of(optimizer, source.module) is not body
        in_time = apart or call.lineno < asked.lineno or _before_training(call, body)
        root = root_of(call.func)
        if in_time and (text_of(root) == name if root is not None else False):
            statement = scope.module.parents.get(call)
            while isinstance(statement, ast.Attribute | ast.Call):
                statement = scope.module.parents.get(statement)
            if isinstance(statement, ast.Expr | ast.Assign):
                yield call, scope.module
    for loop in inner(body, ast.For):
        if isinstance(loop, ast.For) and any(text_of(a.func.value) == name for a in asking(loop.iter)):  # type: ignore[attr-defined]
            yield from ((c, scope.module) for c in known if c in set(calls(loop)) and c.lineno < asked.lineno)


def _put_in(project: Project, source: Source, asked: ast.Call, kind: str) -> Iterator[Found]:
    """Yield the statements that hand a model to what puts parameters of a type into it: `inject(net, dtype=half)`."""
    for node in inner(source.body, ast.Expr) if isinstance(source.node, ast.Name) else ():
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or text_of(source.node) not in map(text_of, call.args):
            continue
        if call.lineno < asked.lineno or _before_training(call, source.body):
            yield from built(project, call, source.scope, kind)


def _names(halving: ast.Call, module: Module, *held: ast.expr) -> set[str]:
    """Return what a halved model goes by, and what its parameters do."""
    return {text_of(node) for node in (root_of(halving.func), *held) if node is not None} | named_for(halving, module)


def _is_recast(
    project: Project, halving: ast.Call, module: Module, asked: ast.Call, optimizer: ast.Call, scope: Scope
) -> bool:
    """Return whether parameters of a halved model are put back one by one, there or where they are trained."""
    names = _names(halving, module, asked.func.value, *optimizer.args[:1])  # type: ignore[attr-defined]  # a method
    body = function_of(halving, module) or module.tree
    own = function_of(optimizer, scope.module) or scope.module.tree
    ways = [(body, module, halving.lineno), *([(own, scope.module, 0)] if own is not body else [])]
    return any(is_recast(project, each, there, since, names) for each, there, since in ways)


def _is_undone(
    project: Project, halving: ast.Call, module: Module, asked: ast.Call, source: Source, *, partly: bool
) -> bool:
    """Return whether what is trained of a halved model may not be half: cast back, or added to it afterwards."""
    body = function_of(halving, module) or module.tree
    until: dict[ast.AST, int] = {source.body: asked.lineno}
    until |= {function_of(c, m) or m.tree: c.lineno for c, m in source.through}
    ways = {asked, *(c for c, _ in source.through)}
    last = until.get(body, 10**9)
    between = [c for c in calls(body) if halving.lineno < c.lineno <= last and c not in ways]
    between += [c for c in _chained(halving, module) if tail_of(c.func) in {"float", "to"}]
    if any(tail_of(c.func) in {"float", "cast_training_params"} or to_whole(project, c, module) for c in between):
        return True
    if not partly:
        return False
    if is_frozen(halving, module, body) and not any(thaws(m.tree) for m in (module, source.module)):
        return True
    files: dict[ast.AST, Module] = {source.body: source.module}
    files |= {function_of(c, m) or m.tree: m for c, m in source.through}
    since = {b: _run_in(project, b, body, there) for b, there in files.items()}
    others = [
        c for b, line in until.items() if b is not body
        for c in calls(b) if since[b] < c.lineno <= line and c not in ways
    ]  # fmt: skip
    changes = [c for c in (*between, *others) if c.args and tail_of(c.func) not in KEPT | PARAMETERS]
    names = _names(halving, module, asked.func.value, *(a for c, _ in source.through for a in c.args))  # type: ignore[attr-defined]  # a method
    is_added = any(tail_of(c.func) == "setattr" or text_of(arg) in names for c in changes for arg in c.args)
    is_added = is_added or any(adds_to(c, names) for c in (*between, *others))
    return is_added or any(
        puts_in(b, halving.lineno if b is body else since.get(b, 0), at, names)
        for b, at in {body: last, **until}.items()
    )


def _chained(call: ast.Call, module: Module) -> Iterator[ast.Call]:
    """Yield the methods that are called of what a call gives, one after the other: `Net().cuda().float()`."""
    node: ast.AST | None = module.parents.get(call)
    while isinstance(node, ast.Attribute) and isinstance(outer := module.parents.get(node), ast.Call):
        yield outer
        node = module.parents.get(outer)


def _run_in(project: Project, caller: ast.AST, function: ast.AST, module: Module) -> int:
    """Return the line in which code first runs a function; zero where it does not by itself."""
    named = (c for c in calls(caller) if tail_of(c.func) == getattr(function, "name", ""))
    return min((c.lineno for c in named if callee(project, module, c) is function), default=0)


def _before_training(call: ast.Call, body: ast.AST) -> bool:
    """Return whether backward passes come after the halving."""
    return any(tail_of(c.func) == "backward" and c.lineno > call.lineno for c in calls(body))
