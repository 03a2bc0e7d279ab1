"""Forward passes of a scaled loss that stand outside of the autocast block."""

import ast
import re
from collections.abc import Iterable, Iterator

from gates.scan.analyses.precision.contexts import around, casts, contexts_of, decorating, entered_by
from gates.scan.analyses.precision.precision import WHOLE as FLOAT32
from gates.scan.analyses.precision.precision import is_scaler, type_named
from gates.scan.analyses.reading.code import (
    MODEL,
    broken,
    callee,
    calls,
    constant,
    function_of,
    functions,
    inner,
    keyword,
)
from gates.scan.analyses.reading.flow import Source, is_forward, set_before, sources, spine
from gates.scan.analyses.training.forwards import (
    NO_GRAD,
    runs_compiled,
    runs_in_loss,
    runs_own,
    runs_part,
    runs_trained,
)
from gates.scan.analyses.training.halves import without_halves
from gates.scan.analyses.training.untrained import is_untrained
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.site import Site

WORDS = ("autocast*", "caler*")
Body = Function | ast.Lambda | ast.Module
TRAINERS = ("Trainer", "LightningCLI")
WHOLE = re.compile(r"^(32|64)|-true$")
MAKERS = re.compile(r"^(torchvision|timm|transformers|monai|segmentation_models_pytorch)\.")
CAST = re.compile(r"(?i)cast|amp|ctx|context|precision")
IDLE = re.compile(r"\b(contextlib\.)?nullcontext\b")


def look(project: Project) -> Iterator[Site]:
    """Yield each model call, outside of autocast, that a scaled loss comes from.

    Its code uses autocast elsewhere, or nothing in the program trains in half precision.
    """
    seen: set[ast.AST] = set()
    for module in project.modules.values():
        for block in module.live.get(ast.With, ()) if "scale" in module.calls else ():
            if isinstance(block, ast.With) and _is_left_empty(block, project, module):
                yield broken(module, block, "nothing runs in this autocast block")
        for function in (*functions(module), module.tree) if "scale" in module.calls else ():
            scope = project.scope_of(function, module)
            for call in calls(function):
                begun = _begun(call, scope)
                if begun is not None:
                    for forward, there in _outside(project, begun, scope):
                        if forward not in seen:
                            seen.add(forward)
                            yield broken(there, forward, f"{ast.unparse(forward)} runs outside of autocast")


def _is_left_empty(block: ast.With, project: Project, module: Module) -> bool:
    """Return whether an autocast block holds nothing, such as that of a context which it ends before it yields."""
    idle = all(isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
               for s in block.body)  # fmt: skip
    return idle and any(True for _ in contexts_of(block, project.scope_at(block, module)))


def _begun(call: ast.Call, scope: Scope) -> ast.expr | None:
    """Return what a backward pass begins with: a loss that is scaled, or what is handed a gradient of such a one."""
    if _is_scale(call, scope):
        return call.args[0]
    is_handed = isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and keyword(call, "gradient")
    return call.func.value if is_handed and isinstance(call.func, ast.Attribute) else None


def _outside(project: Project, begun: ast.expr, scope: Scope) -> Iterator[tuple[ast.Call, Module]]:
    found = sources(project, begun, scope, begun.lineno)
    if not _use_autocast(project, found) and not project.once(without_halves)[0]:
        return
    for source in found:
        for node in ast.walk(source.node):
            if isinstance(node, ast.Call) and _is_forward(project, source.module, node):
                if not _runs(project, scope, source) or _is_cast_by_framework(project, source):
                    continue
                chain = ((node, source.module), *source.through)
                if any(_covered(project, there, each) or _has_other(project, there, each) for each, there in chain):
                    continue
                if not any(
                    is_apart(project, source, node) for is_apart in (_own, _is_of_penalty, _is_whole, is_untrained)
                ):
                    yield _place(project, source, node)


def _is_of_penalty(_: Project, source: Source, node: ast.Call) -> bool:
    """Return whether a forward pass is run for its gradients' size, which is taken in full precision on purpose."""
    grads = (a for a in source.module.ancestors(node) if isinstance(a, ast.Call) and tail_of(a.func) == "grad")
    return any(constant(keyword(call, "create_graph")) is True for call in grads)


def _is_forward(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is the forward pass of a model, whatever this is called."""
    if MAKERS.search(project.scope_at(call, module).dotted(call.func) or ""):
        return False
    kinds = (is_forward, runs_own, runs_trained, runs_compiled, runs_in_loss, runs_part, _runs_method)
    return any(is_one(project, module, call) for is_one in kinds)


def _runs_method(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of a variable that holds a model's method: `loss_of = given or self.model.loss`.

    Or a part of it: `tower = getattr(self.model, side)`.
    """
    body = function_of(call, module)
    if not isinstance(call.func, ast.Name) or body is None or callee(project, module, call) is not None:
        return False
    held = [value for value, _ in set_before(body, call.func.id, call.lineno)]
    parts = [part for value in held for part in (value.values if isinstance(value, ast.BoolOp) else [value])]
    whole = [part.value for part in parts if isinstance(part, ast.Attribute)]
    whole += [p.args[0] for p in parts if isinstance(p, ast.Call) and tail_of(p.func) == "getattr" and p.args]
    return any(MODEL.search(tail_of(each)) for each in whole)


def _is_whole(project: Project, source: Source, call: ast.Call) -> bool:
    """Return whether a model gets, in float32 on purpose, what others made in autocast, and never runs there itself."""
    text = ast.unparse(call.func)
    near = calls(source.body) if isinstance(call.func, ast.Name) else source.module.calls.get(tail_of(call.func), ())
    same = (c for c in near if c is not call and ast.unparse(c.func) == text)
    if any(_covered(project, source.module, c) for c in same):
        return False
    given = (*call.args, *(option.value for option in call.keywords))
    passed = (each for arg in given for each in spine(project, arg, source.scope, call.lineno))
    casts = [(each.node.func.value, each) for each in passed if _is_cast(each)]  # type: ignore[attr-defined]  # a method
    casts += [(arg, Source(arg, source.scope)) for arg in _cast_inside(project, source, call)]
    return any(
        isinstance(made, ast.Call) and _is_forward(project, part.module, made) and _covered(project, part.module, made)
        and not (_has_no_gradient(part.module, made) and _trains_cast(source))
        for whole, each in casts
        for part in sources(project, whole, each.scope, each.node.lineno + 1)
        for made in ast.walk(part.node)
    )  # fmt: skip


def _has_no_gradient(module: Module, node: ast.AST) -> bool:
    """Return whether a node runs without gradients, in a block or a function that turns them off."""
    for outer in module.ancestors(node):
        texts = [ast.unparse(i.context_expr) for i in outer.items] if isinstance(outer, ast.With) else []
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(NO_GRAD.search(ast.unparse(each)) for each in outer.decorator_list)
        if any(map(NO_GRAD.search, texts)):
            return True
    return False


def _trains_cast(source: Source) -> bool:
    """Return whether a function has autocast around what is trained, too: around a loss, for one."""
    return any(
        isinstance(w, ast.With) and any(contexts_of(w, source.scope))
        and not any(NO_GRAD.search(ast.unparse(item.context_expr)) for item in w.items)
        and not _has_no_gradient(source.module, w)
        for w in inner(source.body, ast.With)
    )  # fmt: skip


def _is_cast(source: Source) -> bool:
    """Return whether an expression turns numbers into float32: `found.float()`, `found.to(torch.float32)`."""
    call = source.node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return False
    if call.func.attr == "float":
        return not call.args
    given = (*call.args, *(option.value for option in call.keywords if option.arg == "dtype"))
    return call.func.attr in {"to", "type"} and any(type_named(arg, source.scope) == FLOAT32 for arg in given)


def _cast_inside(project: Project, source: Source, call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call passes to an own model whose forward method turns that into float32 by itself."""
    owner = source.scope.class_of(call.func)
    found = project.method(owner, "forward") if owner is not None else None
    if found is None:
        return
    where = project.scope_of(found[0], found[1])
    casts = (Source(c, where) for c in inner(found[0], ast.Call) if isinstance(c, ast.Call))
    names = {tail_of(cast.node.func.value) for cast in casts if _is_cast(cast)}  # type: ignore[attr-defined]  # a method
    given = (argument(call, found[0], name, bound=True) for name in sorted(names))
    yield from (arg for arg in given if arg is not None)


def _is_cast_by_framework(project: Project, source: Source) -> bool:
    """Return whether a framework's trainer may run a method of its module in autocast, as it is told to."""
    owner = source.scope.self_class
    family = project.order_of(owner) if owner is not None else []
    if all(base in project.classes for each in family for base in each.bases if base not in {MODULE, "object"}):
        return False
    told = (keyword(call, "precision") for name in TRAINERS for call, _ in project.named.get(name, ()))
    return any(value is not None and not WHOLE.search(str(constant(value))) for value in told)


def _place(project: Project, source: Source, node: ast.Call) -> tuple[ast.Call, Module]:
    """Return what stands beside an autocast block: a forward pass, or the call by which a helper runs it."""
    for call, module in ((node, source.module), *reversed(source.through)):
        body = _body(project, call, module)
        if isinstance(body, ast.Lambda):
            continue
        where = project.scope_of(body, module)
        if any(True for w in inner(body, ast.With) for _ in contexts_of(w, where)):  # type: ignore[arg-type]  # a with
            return call, module
    return node, source.module


def _runs(project: Project, scope: Scope, source: Source) -> bool:
    """Return whether an object whose method scales a loss runs a method, rather than one that takes its place."""
    owner, other = scope.owner, source.scope.owner
    if owner is None or other is None or owner is other:
        return True
    if other in project.ancestors_of(owner):
        return _is_own(project, owner, source.scope.function)
    return owner not in project.ancestors_of(other) or _is_own(project, other, scope.function)


def _is_own(project: Project, owner: ClassInfo, function: object) -> bool:
    """Return whether the objects of a class have a method as it is, and no other in its place."""
    found = project.method(owner, getattr(function, "name", ""))
    return found is None or found[0] is function


def _use_autocast(project: Project, found: Iterable[Source]) -> bool:
    """Return whether a file that a loss comes from enters autocast, be it in another function or by a decorator."""
    modules = [source.module for source in found] + [module for source in found for _, module in source.through]
    files = {module.path: module for module in modules}
    blocks = ((node, module) for module in files.values() for node in module.live.get(ast.With, ()))
    if any(isinstance(b, ast.With) and any(contexts_of(b, project.scope_at(b, module))) for b, module in blocks):
        return True
    decorated = ((each, module) for module in files.values() for function in functions(module)
                 for each in function.decorator_list)  # fmt: skip
    return any(True for each, module in decorated for _ in decorating(each, project.scope_at(each, module)))


def _body(project: Project, call: ast.Call, module: Module) -> Body:
    return project.scope_at(call, module).function or module.tree


def _is_scale(call: ast.Call, scope: Scope) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and call.args):
        return False
    return is_scaler(call.func.value, scope)


def _own(project: Project, source: Source, call: ast.Call) -> bool:
    """Return whether a model enters autocast by itself, in its forward method."""
    owner = source.scope.class_of(call.func)
    if owner is None:
        return _some_model_does(project)
    found = project.method(owner, "forward")
    return found is not None and casts(project, found[0], found[1])


def _some_model_does(project: Project) -> bool:
    """Return whether the forward pass of some model of the program enters autocast by itself."""
    return any(
        info.methods.get("forward") is not None and casts(project, info.methods["forward"], info.scope.module)
        for info in project.classes.values()
    )


def _has_other(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether what runs in place of a node, on the other side of a choice, enters autocast."""
    for other in _instead(module, node):
        for inside in walk(other):
            if isinstance(inside, ast.With) and any(contexts_of(inside, project.scope_at(inside, module))):
                return True
            target = callee(project, module, inside) if isinstance(inside, ast.Call) else None
            if target is not None and any(entered_by(project, target, module)):
                return True
    return False


def _instead(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs in place of a node: the other side of a choice, or a block that leaves before the node's turn."""
    inside = node
    for outer in module.ancestors(node):
        if isinstance(outer, ast.IfExp) and inside is not outer.test:
            yield outer.orelse if inside is outer.body else outer.body
        elif isinstance(outer, ast.If) and inside in outer.orelse and not _counts(outer.test):
            yield from outer.body
        elif isinstance(outer, ast.If) and inside in outer.body and not _counts(outer.test):
            yield from outer.orelse
            yield from _after(module, outer) if _leaves(outer.body) else ()
        elif isinstance(outer, ast.Match):
            yield from (case for case in outer.cases if case is not inside)
        for block in (getattr(outer, name, ()) for name in ("body", "orelse", "finalbody")):
            before = block[: block.index(inside)] if isinstance(block, list) and inside in block else []
            leaving = (each for each in before if isinstance(each, ast.If) and _leaves(each.body))
            yield from (statement for each in leaving for statement in each.body)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        inside = outer


def _counts(test: ast.expr) -> bool:
    """Return whether a condition asks for a number, and so for no precision: `accumulate == 1`."""
    value = constant(test.comparators[0]) if isinstance(test, ast.Compare) else None
    return isinstance(value, int) and not isinstance(value, bool) and value not in {16, 32}


def _after(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements that follow one in its block."""
    around = module.parents.get(statement)
    blocks = (getattr(around, name, ()) for name in ("body", "orelse", "finalbody"))
    return next((b[b.index(statement) + 1 :] for b in blocks if isinstance(b, list) and statement in b), [])


def _leaves(block: list[ast.stmt]) -> bool:
    """Return whether a block ends by leaving its function or its turn."""
    last = block[-1] if block else None
    if isinstance(last, ast.With | ast.AsyncWith):
        return _leaves(last.body)
    return isinstance(last, ast.Return | ast.Continue | ast.Break | ast.Raise)


def _covered(project: Project, module: Module, node: ast.AST) -> bool:
    if any(True for _ in around(project, module, node)):
        return True
    for outer in module.ancestors(node):
        entered = outer.items if isinstance(outer, ast.With | ast.AsyncWith) else []
        if any(_may_cast(project, module, item.context_expr) for item in entered):
            return True
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = map(ast.unparse, outer.decorator_list)
            scope = project.scope_at(outer, module)
            own = any(True for d in outer.decorator_list for _ in decorating(d, scope))
            return own or any(CAST.search(text) or NO_GRAD.search(text) for text in texts)
    return False


def _may_cast(project: Project, module: Module, context: ast.expr) -> bool:
    """Return whether a context is called what autocast is, or turns gradients off, by what it is made of where known.

    Of `nullcontext() if last else model.no_sync()`, or a name for it, nothing is.
    """
    texts = [ast.unparse(context)]
    scope = project.scope_at(context, module)
    if isinstance(context, ast.Name) and (found := scope.lookup(context.id)) is not None:
        values = [b.node for b in found[1] if b.kind == "value" and isinstance(b.node, ast.IfExp | ast.Call)]
        texts = [ast.unparse(v) for v in values] if values and len(values) == len(found[1]) else texts
    target = callee(project, module, context) if isinstance(context, ast.Call) else None
    if target is not None:
        texts = [ast.unparse(statement) for statement in target.body]
    return any(CAST.search(IDLE.sub("", text)) or NO_GRAD.search(text) for text in texts)
