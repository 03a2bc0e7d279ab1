"""Reads of device values by the host with each step: each waits for all that the device has to do."""

import ast
import re
from collections.abc import Iterable, Iterator

from gates.scan.analyses.reading.code import accelerated, broken, callee, function_of, is_backward, nodes, tail_text
from gates.scan.analyses.reading.keyed import values_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.cpu_only import only_on_cpu
from gates.scan.analyses.training.hot import helper_of, hot_calls, is_hot, is_training, steps
from gates.scan.analyses.training.loss_checks import asked_for, is_asked, is_loss
from gates.scan.analyses.training.on_device import READS, REDUCES, is_on_device
from gates.scan.analyses.training.seldom import is_optimizer_step
from gates.scan.analyses.training.updates import leading
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import PREPARES, Scope
from gates.scan.site import Site

WORDS = ("backward*", "step")
MAKES = {"float", "int", "bool", "print", "str"}
TELLS = {"info", "warning", "error", "log", "critical"}  # of a logger: what is said there is shown
# what torch makes on the host
DRAWN = {"randint", "randperm", "arange", "rand", "randn", "tensor", "as_tensor", "from_numpy", "linspace"}
JOINED = frozenset({"torch.stack", "torch.cat", "torch.concat", "torch.hstack", "torch.vstack"})
ACTS = frozenset({"step", "step_async", "env_step"})
WORLD = re.compile(r"(?i)(^|_)v?(envs?|environments?|worlds?|sim|simulators?|arena|game)(_|\d|$)|(?-i:[a-z]Envs?)$")
LOGGER = re.compile(r"(?i)^(_*log|logger|_*logging|.*_log(ger)?)$")


def look(project: Project) -> Iterator[Site]:
    """Yield each line of the hot path with `.item()`, `.cpu()`, `float(loss)`, `print(loss)` or `if loss > x`."""
    if not only_on_cpu(project):  # where there is no device, there is nothing to wait for
        yield from _reads(project)


def _reads(project: Project) -> Iterator[Site]:
    for module in project.modules.values():
        if not leading(project) & module.calls.keys():
            continue
        said: set[int] = set()
        for call in hot_calls(project, module, set(READS)):
            if call.lineno in said or call.args or _of_data(call) or helper_of(project, module, call) is not None:
                continue
            if not _is_fed(project, module, call) and not _is_acted(project, module, call):
                said.add(call.lineno)
                yield broken(module, call, f"{text_of(call)} waits for the device with each step")
        yield from _by_value(project, module, said) if accelerated(module) else ()
    yield from _in_helpers(project)


def _by_value(project: Project, module: Module, said: set[int]) -> Iterator[Site]:
    """Yield what a step reads without a method: in a condition, in a text, in what makes a number."""
    known = steps(project)
    losses = _losses(module)
    for node, value in _read_in(nodes(module, ast.Call, ast.Compare, ast.FormattedValue), module):
        if node.lineno in said or not is_hot(project, module, node) or helper_of(project, module, node) is not None:
            continue
        scope = project.scope_at(value, module)
        is_begun = isinstance(value, ast.Name) and value.id in losses and not is_asked(node, module)
        if not is_begun and not _is_waited_for(project, known.origins, node, value, scope):
            continue
        if not _is_acted(project, module, node):
            said.add(node.lineno)
            yield broken(module, node, f"{text_of(node)} waits for the device with each step")


def _is_fed(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether what is read is a batch as the loader gave it, which nothing has moved to the device yet."""
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Call):
            if tail_of(node.func) in {"to", "cuda"} or not isinstance(node.func, ast.Attribute):
                return False
            if tail_of(node.func) in DRAWN and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
                return not any(k.arg == "device" for k in node.keywords)
            node = node.func
        node = node.value
    if not isinstance(node, ast.Name) or any(PREPARES & m.calls.keys() for m in project.modules.values()):
        return False
    found = project.scope_at(call, module).lookup(node.id)
    around = [a for a in module.ancestors(call) if isinstance(a, ast.For | ast.AsyncFor)]
    around = [a for a in around if is_training(project, module, a)]
    looped = any(isinstance(n, ast.Name) and n.id == node.id for a in around for n in walk(a.target))
    return looped and found is not None and all(b.kind == "opaque" for b in found[1])


def _is_acted(project: Project, module: Module, node: ast.AST, hops: int = 3) -> bool:
    """Return whether a value is read for the world that an agent acts in: `env.step(action.cpu().numpy())`."""
    for around in module.ancestors(node):
        if isinstance(around, ast.Call) and node is not around.func and _is_of_world(around, module):
            return True
        if isinstance(around, ast.Return):
            function = function_of(around, module)
            ran = project.named.get(function.name, [])[:20] if function is not None and hops else []
            ran = [(call, there) for call, there in ran if callee(project, there, call) in (function, None)]
            return any(_is_acted(project, there, call, hops - 1) for call, there in ran)
        if isinstance(around, ast.Assign):
            names = {text_of(n) for t in around.targets for n in walk(t) if isinstance(n, ast.Name | ast.Attribute)}
            body = function_of(around, module) or module.tree
            uses = inner(body, ast.Name, ast.Attribute) if hops else ()
            after = [n for n in uses if text_of(n) in names - {"self"} and n.lineno > around.lineno]  # type: ignore[attr-defined]
            return any(_is_acted(project, module, use, hops - 1) for use in after)
        if isinstance(around, ast.stmt):
            return False
    return False


def _is_of_world(call: ast.Call, module: Module) -> bool:
    """Return whether a call takes a step in a world: by its object's name, or by the observation that it gives back."""
    if tail_of(call.func) not in ACTS or not isinstance(call.func, ast.Attribute) or is_optimizer_step(call):
        return False
    parent = module.parents.get(call)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if isinstance(target, ast.Tuple) and len(target.elts) > 2:  # the observation, the reward, whether it is over
        return True
    return any(map(WORLD.search, tail_text(call.func.value).split()))


def _in_helpers(project: Project) -> Iterator[Site]:
    """Yield the reads in what a step runs, of values that are known to come from the device."""
    known = steps(project)
    for function in list(known.sites):
        if function in known.timed or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        scope = project.scope_of(function, next(iter(project.modules.values())))
        said: set[int] = set()
        for node, value in _read_in(inner(function, ast.Call, ast.Compare, ast.FormattedValue), scope.module):
            if node.lineno in said or helper_of(project, scope.module, node) is not function:
                continue
            waits = _is_waited_for(project, known.origins, node, value, scope)
            if waits and not _is_acted(project, scope.module, node):
                said.add(node.lineno)
                yield broken(scope.module, node, f"{text_of(node)} waits for the device with each step")


def _is_waited_for(project: Project, origins: Origins, node: ast.expr, value: ast.expr, scope: Scope) -> bool:
    """Return whether what reads a value waits for the device; of questions for a number, those for a loss do."""
    if is_asked(node, scope.module):
        return is_loss(origins, value, scope)
    return _is_of_device(project, origins, value, scope)


def _is_of_device(project: Project, origins: Origins, value: ast.expr, scope: Scope) -> bool:
    """Return whether a value comes from the device, or is reckoned from several that do, joined into one tensor."""
    joined = value
    while isinstance(joined, ast.Call) and isinstance(joined.func, ast.Attribute) and tail_of(joined.func) in REDUCES:
        joined = joined.func.value
    kept = values_of(project, origins, joined, scope)
    if kept is not None:  # another field than this may be on the device
        return any(is_on_device(project, origins, each.node, each.scope) for each in kept)
    if is_on_device(project, origins, value, scope):
        return True
    if not isinstance(joined, ast.Call) or scope.dotted(joined.func) not in JOINED or not joined.args:
        return False
    return is_on_device(project, origins, ast.Subscript(joined.args[0], ast.Slice()), scope)


def _read_in(found: Iterable[ast.AST], module: Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what reads a value, and the value, in the order of the source."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in found:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            pairs += [(node, node.func.value)] if not _of_data(node) else []
        elif isinstance(node, ast.Call):
            pairs += [(node, value) for value in ([asked_for(node)] if is_asked(node, module) else _shown(node))]
        elif isinstance(node, ast.Compare) and _is_branched_on(node, module):
            pairs += [(node, side) for side in (node.left, *node.comparators)]
        elif isinstance(node, ast.FormattedValue):
            pairs.append((node.value, node.value))
    return iter(sorted(pairs, key=lambda pair: pair[0].lineno))


def _shown(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call that it makes a number or a text of."""
    tail = tail_of(call.func)
    if isinstance(call.func, ast.Name) and tail in MAKES:
        for arg in call.args:
            yield from _filled(arg)
    elif tail in {"set_postfix", "set_postfix_str", "set_description"}:
        for arg in (*call.args, *(k.value for k in call.keywords)):
            yield from arg.values if isinstance(arg, ast.Dict) else _filled(arg)
    elif tail == "add_scalar":
        yield from call.args[1:2]
    elif tail == "format" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant):
        yield from (*call.args, *(k.value for k in call.keywords))
    elif tail in TELLS and isinstance(call.func, ast.Attribute) and LOGGER.search(tail_of(call.func.value)):
        for arg in call.args if call.args and isinstance(call.args[0], ast.Constant | ast.BinOp) else ():
            yield from _filled(arg)


def _filled(arg: ast.expr) -> Iterator[ast.expr]:
    """Yield what is put into a text: of `"%.3f" % loss`, `loss`."""
    if isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.Mod) and isinstance(arg.left, ast.Constant):
        yield from arg.right.elts if isinstance(arg.right, ast.Tuple) else [arg.right]
    else:
        yield arg


def _is_branched_on(node: ast.Compare, module: Module) -> bool:
    """Return whether the host takes one way or another by which of two values is larger."""
    if not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return False
    branch = module.parents.get(node)
    while isinstance(branch, ast.BoolOp | ast.UnaryOp):
        branch = module.parents.get(branch)
    return isinstance(branch, ast.If | ast.While | ast.IfExp | ast.Assert)


def _of_data(call: ast.Call) -> bool:
    """Return whether what is read is no result of the device: the shape of something, an array of the host."""
    text = text_of(call.func)
    return "shape" in text or "np." in text or "numpy" in text.rpartition(".")[0]


def _losses(module: Module) -> set[str]:
    """Return the names that a backward pass starts from."""
    found: set[str] = set()
    for call in module.calls.get("backward", []):
        if is_backward(call):
            found |= {n.id for n in inner(call, ast.Name) if isinstance(n, ast.Name) and tail_of(n) not in {"self"}}
    return {name for name in found if "loss" in name.lower()}
