"""What tells an evaluation: its name, the data that it goes over, the forward passes in it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.scan.analyses.evaluation.figures import is_figured, is_made_up, is_told
from gates.scan.analyses.evaluation.left_open import forwards_of
from gates.scan.analyses.evaluation.reached import is_learned_from, reaches_model
from gates.scan.analyses.evaluation.rested import callers, is_rested
from gates.scan.analyses.evaluation.switches import SETS, turns_off
from gates.scan.analyses.reading import flow
from gates.scan.analyses.reading.code import LOOPS, callee, function_of, functions, is_backward, is_model_call
from gates.scan.analyses.training.forwards import INFERS, NO_GRAD, RUNS_MODEL, is_call_of_model, is_forward, trains
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project

NAMED = re.compile(
    r"(?i)^_*(run_|do_|_)*(evaluate|evaluation|eval|validate|validation|valid|vali|val|accuracy|estimate_loss|estimate|"
    r"perplexity|ppl|bits_per_(byte|char)|compute_(accuracy|perplexity|ppl|metrics|wer|bleu|miou|map|auc)|"
    r"(get|calc|calculate|check|measure)_(acc|accuracy|ppl|perplexity)|"
    r"(eval|val)_(model|loop|epoch|step|one_epoch|ppl|perplexity)|test|test_(model|epoch|loop))"
    r"(_(epoch|loop|model|one_epoch|all|set|loss|accuracy|metrics|fn|dataset|split))*$"
)
SURE = re.compile(r"(?i)evaluate|validat|accuracy|perplexity")
EVALUATOR = re.compile(r"(?i)(evaluator|validator|evaluation|validation)(loop|runner|hook)?$")
RUNS = frozenset({"__call__", "run", "loop", "epoch", "score", "compute", "predict", "execute", "perform"})
HELD = re.compile(
    r"(?i)(^|_)(val|vali|valid|validation|test|dev|eval|held|hold_?out|hold(?=_?(set|loader|data|ds|dl)))(_?(loader|data|set|ds|dl|dataset|dataloader|batches|"
    r"iter|iterator|split))?s?(_|$)"
)
TRAIN = re.compile(
    r"(?i)^(train|training)(?!_?(step|fn|func|epoch|one_|loop|mode|arg|config|cfg|kwarg|size|batch_size|state|time|loss|"
    r"metric|dir|path|name|env))(_?(loader|data|set|ds|dl|dataset|dataloader|batches|iter|split))?s?(_|$)|^trainloader$|"
    r"^fit_?(loader|data|set|ds|dl|dataset|dataloader|batches|iter|split)s?$|"
    r"(^|_)(loader|data|dataset|set|dl|ds|dataloader|iter|batches|x)_(train|training)$"
)
BATCHES = re.compile(r"(?i)loader|batches|dataset|(^|_)data$")
WORDS = ("eval*", "Eval*", "Valid*", "no_grad", "inference_mode", "ppl", "valid*", "accuracy*", "estimate*",
         "test", "val_loader", "perplexity*", "score*", "predict*")  # fmt: skip
TESTED = re.compile(
    r"(?i)^(test|val|valid|validation|eval|dev)_(loss|acc|accuracy|score|error|err|metric|f1|iou|bleu|wer|ppl)"
)
KEPT_BACK = re.compile(
    r"(?i)(^|_)(val|vali|valid|validation|held_?out)_?(loader|data|dataloader|set|dataset|ds|dl|batches|iter|split|x|data_loader)s?$"
)
HELD_INPUT = re.compile(
    r"(?i)^(x|inputs?|data|images?|features?|batch|tokens?|ids)_(val|valid|validation|held_?out)$|"
    r"^(val|valid|validation|held_?out)_?(x|inputs?|data|images?|features?|batch|tokens?|ids|set)$|^xval$"
)
READS = frozenset({"item", "detach", "argmax", "cpu", "numpy", "tolist", "topk", "eq", "sum", "max"})
STATISTICS = re.compile(r"\.(running_(mean|var)|momentum)\b|update_bn")  # which are taken in training mode
INFERENCE = re.compile(
    r"(?i)^_*(run_)?(predict|predictions|inference|infer)(_(all|loader|dataset|epoch|loop|set|batches))?$|"
    r"^_*(get|collect|gather|compute)_(predictions|preds|logits|outputs)$"
)
COMMAND = re.compile(r"(?i)\bcommand\b|\bmain\b")
STEP_METHODS = re.compile(r"(training|validation|test|predict|val|eval)_step")


@dataclass(frozen=True)
class Evaluation:
    """A loop of forward passes without a backward pass, in a function that evaluates or over data held back."""

    module: Module
    function: Function | None
    loop: ast.AST
    forward: ast.Call
    named: bool


def evaluations(project: Project) -> Iterator[Evaluation]:
    """Yield the evaluation loops of a program."""
    for module in project.modules.values():
        if not any(_may_run(name, found[0]) for name, found in module.calls.items()):
            continue
        for function in (*functions(module), module.tree):
            if not is_of_framework(project, function, module) and not is_test(module):
                yield from _of(project, function, module)


def _may_run(name: str, call: ast.Call) -> bool:
    """Return whether a file that makes a call may have evaluations."""
    return name in {"eval", "train"} or is_model_call(call) or bool(INFERS.search(name) or RUNS_MODEL.search(name))


def is_of_framework(project: Project, function: Function | ast.Module, module: Module) -> bool:
    """Return whether a method is called the step of a module, which a framework runs in the mode that it has set."""
    if isinstance(function, ast.Module) or not STEP_METHODS.search(function.name):
        return False
    return project.scope_of(function, module).owner is not None


def is_test(module: Module) -> bool:
    """Return whether it is a test of a test suite, which evaluates nothing."""
    file = module.path.rpartition("/")[2]
    return file.startswith("test_") or file.endswith("_test.py") or file == "conftest.py"


def _of(project: Project, function: Function | ast.Module, module: Module) -> Iterator[Evaluation]:
    named = not isinstance(function, ast.Module) and _is_named(function, project, module)
    owner = None if isinstance(function, ast.Module) else function
    takes_statistics = owner is not None and STATISTICS.search(text_of(owner)) is not None
    for loop in inner(function, *LOOPS, ast.ListComp, ast.GeneratorExp) if not takes_statistics else ():
        held = HELD.search(_over(loop)) is not None and not TRAIN.search(_over(loop))
        held = held or _is_tested(module, loop)
        told = not named and not held and _is_told(project, module, function, loop)
        told = told or (_is_inference(project, function) and BATCHES.search(_over(loop)) is not None)
        if not (named or held or told) or trains(loop if held and not named else function):
            continue
        forward = _forward(project, module, function, loop)
        if forward and owner is not None and is_learned_from(project, callers(project, owner)):
            return
        if forward:
            yield Evaluation(module, owner, loop, min(forward, key=lambda c: c.lineno), named or told)
            return
    yield from _shared(project, function, module)
    if "torch" in {name.partition(".")[0] for name in module.aliases.values()}:
        yield from _at_once(project, function, module, named=named)


def _is_tested(module: Module, loop: ast.AST) -> bool:
    """Return whether a loop without gradients keeps figures that it calls those of a test."""
    entered = [*_entered(module, loop), *(i.context_expr for w in inner(loop, ast.With) for i in w.items)]  # type: ignore[attr-defined]  # blocks
    if not any(NO_GRAD.search(text_of(context)) for context in entered):
        return False
    stored = (n for n in inner(loop, ast.Name) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(TESTED.search(n.id) for n in stored)


def _shared(project: Project, function: Function | ast.Module, module: Module) -> Iterator[Evaluation]:
    """Yield the calls that go over data held back by a loop which also trains: `run_epoch(net, val_loader)`."""
    owner = None if isinstance(function, ast.Module) else function
    for call in (c for c in inner(function, ast.Call) if isinstance(c, ast.Call)):
        given = [tail_of(arg) for arg in (*call.args, *(k.value for k in call.keywords))]
        if not any(HELD.search(name) for name in given) or any(TRAIN.search(name) for name in given):
            continue
        target = callee(project, module, call)
        if target is not None and _trains_at_times(target):
            yield Evaluation(module, owner, call, call, named=False)
            return


def _trains_at_times(function: Function) -> bool:
    """Return whether a function goes over batches and runs a backward pass for some of its calls alone."""
    found = [n for n in inner(function, *LOOPS) if any(is_call_of_model(c) for c in inner(n, ast.Call))]  # type: ignore[arg-type]
    tests = [n for loop in found for n in inner(loop, ast.If) if isinstance(n, ast.If) and trains(n)]
    backward = [c for loop in found for c in inner(loop, ast.Call) if isinstance(c, ast.Call) and is_backward(c)]
    return bool(tests) and bool(backward) and all(any(c in inner(t, ast.Call) for t in tests) for c in backward)


def _is_inference(project: Project, function: Function | ast.Module) -> bool:
    """Return whether a function that is run somewhere is called the inference of a model."""
    return not isinstance(function, ast.Module) and bool(INFERENCE.search(function.name) and callers(project, function))


def _forward(project: Project, module: Module, function: ast.AST, loop: ast.AST) -> list[ast.Call]:
    """Return the forward passes of a loop: of models by their names, or that its function puts off, before others."""
    inside = [c for c in inner(loop, ast.Call) if isinstance(c, ast.Call)]
    made = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and turns_off(c)]
    models = {text_of(c.func.value) for c in made if isinstance(c.func, ast.Attribute)}
    for call in _entered(module, loop) if not isinstance(function, ast.Module) else ():
        target = module.parents[call].optional_vars  # type: ignore[attr-defined]  # an item of a block
        models |= {text_of(target)} if target is not None and SETS.search(text_of(call.func)) else set()
    direct = [
        c for c in inside
        if is_call_of_model(c) or text_of(c.func) in models or flow.is_forward(project, module, c)
    ]  # fmt: skip
    found = direct or [c for c in inside if is_forward(project, module, c) or any(forwards_of(project, module, c))]
    return found or [c for c in inside if reaches_model(project, module, c)]


def _at_once(project: Project, function: Function | ast.Module, module: Module, *, named: bool) -> Iterator[Evaluation]:
    """Yield a forward pass over all data that is held back, outside of any loop over them."""
    owner = None if isinstance(function, ast.Module) else function
    alone = named and owner is not None and not _is_trained(project, owner, module)
    sure = alone and owner is not None and _is_sure(owner)
    forward = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call) and _runs_model(project, module, c)]
    figures = owner is not None and bool(forward) and all(is_figured(module, owner, c) for c in forward)
    for call in sorted(forward, key=lambda c: c.lineno):
        if owner is not None and is_made_up(owner, call):
            continue
        names = [tail_of(arg) for arg in call.args]
        known = owner is not None and ((alone and figures) or is_told(project, owner, call, figures=figures))
        if sure or known or any(HELD_INPUT.search(name) for name in names):
            yield Evaluation(module, owner, call, call, named=False)
            return


def _is_sure(function: Function) -> bool:
    """Return whether a function that is called an evaluation is one beyond doubt: by its name, or without gradients."""
    return SURE.search(function.name) is not None or NO_GRAD.search(text_of(function)) is not None


def _runs_model(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is the forward pass of a model beyond doubt."""
    return is_call_of_model(call) and flow.is_forward(project, module, call)


def _is_trained(project: Project, function: Function, module: Module) -> bool:
    """Return whether what a function computes may be trained on, by itself or by a caller, or is part of a model."""
    owner = project.scope_of(function, module).owner
    if trains(function) or (owner is not None and project.types.is_a(owner.name, MODULE) is not False):
        return True
    if NO_GRAD.search(text_of(function)):
        return False
    around = (function_of(call, there) for call, there in callers(project, function))
    return any(outer is not None and trains(outer) for outer in around)


def _is_named(function: Function, project: Project, module: Module) -> bool:
    """Return whether a function is called an evaluation, or is the one that an evaluator runs."""
    if NAMED.search(function.name):
        return True
    owner = project.scope_of(function, module).owner if function.name in RUNS else None
    return owner is not None and EVALUATOR.search(owner.node.name) is not None


def _is_told(project: Project, module: Module, function: Function | ast.Module, loop: ast.AST) -> bool:
    """Return whether a loop over batches is an evaluation by one half of what makes one: gradients or mode are off."""
    if TRAIN.search(_over(loop)):
        return False
    if isinstance(function, ast.Module):
        return bool(BATCHES.search(_over(loop))) and _is_read_without_gradients(module, loop)
    made = [c for c in inner(function, ast.Call) if isinstance(c, ast.Call)]
    tails = {tail_of(c.func) for c in made}
    if "requires_grad_" in tails:
        return False
    if "eval" in tails and _is_put_off(made, loop):
        return not any(_runs_training(project, module, c) for c in made)
    if BATCHES.search(_over(loop)) and is_rested(project, module, function):
        return True
    begin = getattr(loop, "lineno", 0)
    if any(tail_of(c.func) == "train" and c.lineno <= begin for c in made):
        return False
    if BATCHES.search(_over(loop)) and any(SETS.search(text_of(block.func)) for block in _entered(module, loop)):
        return True
    off = any(NO_GRAD.search(text_of(d)) for d in function.decorator_list) or _is_read_without_gradients(module, loop)
    if not BATCHES.search(_over(loop)):
        return "eval" in tails and function.name == "__call__"
    is_run = any(COMMAND.search(text_of(d)) for d in function.decorator_list) or bool(callers(project, function))
    return "eval" in tails or (off and is_run)


def _is_read_without_gradients(module: Module, loop: ast.AST) -> bool:
    """Return whether a loop stands in a block without gradients, and reads what its forward passes give."""
    off = any(NO_GRAD.search(text_of(call.func)) for call in _entered(module, loop))
    return off and any(isinstance(c, ast.Call) and tail_of(c.func) in READS for c in inner(loop, ast.Call))


def _entered(module: Module, node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that make the contexts around a node."""
    for block in module.ancestors(node):
        for item in block.items if isinstance(block, ast.With) else ():
            if isinstance(item.context_expr, ast.Call):
                yield item.context_expr


def _is_put_off(made: list[ast.Call], loop: ast.AST) -> bool:
    """Return whether a loop runs the very model that its function puts into evaluation mode, and reads its results."""
    models = {text_of(c.func.value) for c in made if isinstance(c.func, ast.Attribute) and turns_off(c)}
    inside = [c for c in inner(loop, ast.Call) if isinstance(c, ast.Call)] if models else []
    runs = any(text_of(c.func) in models and bool(c.args or c.keywords) for c in inside)
    return runs and any(tail_of(c.func) in READS for c in inside)


def _runs_training(project: Project, module: Module, call: ast.Call) -> bool:
    target = callee(project, module, call)
    return target is not None and trains(target)


def _over(loop: ast.AST) -> str:
    """Return the name of what a loop goes over."""
    iterated: ast.expr | None = None
    if isinstance(loop, ast.For | ast.AsyncFor):
        iterated = loop.iter
    elif isinstance(loop, ast.ListComp | ast.GeneratorExp):
        iterated = loop.generators[0].iter
    made: set[str] = set()
    while isinstance(iterated, ast.Call) and iterated.args:
        made.add(tail_of(iterated.func))
        iterated = iterated.args[0]
    name = tail_of(iterated) if iterated is not None else ""
    return name if HELD.search(name) or TRAIN.search(name) or "DataLoader" not in made else "DataLoader"
