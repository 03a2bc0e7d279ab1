"""What runs a model: calls of it, of its methods, of libraries that are handed it, of helpers that do no more."""

import ast
import re

from gates.scan.analyses.precision.contexts import around, entered_by
from gates.scan.analyses.reading.code import MODEL, callee, is_backward, is_model_call
from gates.scan.analyses.reading.flow import OF_MODELS, passed, sources, spine
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, kept, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

NO_GRAD = re.compile(r"no_grad|inference_mode|set_grad_enabled|_disable_grad|without_grad|nograd")
AUXILIARY = re.compile(
    r"_*(is|has|get|set|to|from|check|count|unwrap|validate|train|evaluate|eval|build|make|create|load|save|init|prepare|"
    r"print|log|update|setup|wrap|resolve|find|copy|convert|freeze|fit|export|register|reset|parse)_"
)
INFERS = re.compile(
    r"(?i)infer(er|ence)?$|sliding_window|functional_call|(^|_)(forward|predict)(_|$)|apply_model|run_model"
)
RUNS_MODEL = re.compile(
    r"^(forward_\w+|encode(_\w+)?|embed(_\w+)?|get_\w*(features|embeddings|logits)|extract_\w*features?|features|logits|"
    r"compute_logits|generate|predict(_\w+)?|translate|transcribe)$"
)
CAREFUL = frozenset({"generate", "predict", "translate", "transcribe", "encode"})  # may turn gradients off themselves
OF_ITSELF = frozenset({"sentence_transformers", "sklearn", "whisper", "openai", "gensim", "spacy", "joblib"})
HAS = frozenset({"eval", "train", "to", "cuda", "parameters", "state_dict", "load_state_dict", "requires_grad_", "half",
                 "float", "apply", "named_parameters", "modules", "register_forward_hook", "zero_grad"})  # fmt: skip
BESIDE = re.compile(
    r"(?i)loss|criterion|contrast|penal|regular|(^|_)(kl|prior|post|norm|weigh|scale|metric|accuracy|mask)|sample|noise|"
    r"augment|token|process|lookup|transforms?$"
)
LETTER = re.compile(r"^[GD]$")
MAX_BODY = 8


def is_call_of_model(call: ast.Call) -> bool:
    """Return whether a call is of a model by its name: not `is_peft_model(x)`."""
    return is_model_call(call) and not AUXILIARY.match(tail_of(call.func))


def is_forward(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is a forward pass, is handed a model to run, or runs a function that does no more."""
    if is_call_of_model(call) or _is_handed_model(project, module, call) or _is_of_model(project, module, call):
        return True
    target = callee(project, module, call)
    if target is None or any(NO_GRAD.search(text_of(d)) for d in target.decorator_list):
        return False
    owner = project.scope_of(target, module).owner
    if target.name == "forward" and (owner is None or project.types.is_a(owner.name, MODULE) is not False):
        return False
    if len(target.body) > MAX_BODY or (owner is not None and any(base not in project.classes for base in owner.bases)):
        return False  # more than a forward pass, or a hook of a framework
    found = [c for c in inner(target, ast.Call) if isinstance(c, ast.Call) and is_call_of_model(c)]
    return bool(found) and not trains(target) and not _turns_gradients_off(target)


def runs_own(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a model calls itself: `self(x)` in a class whose objects have `forward` behind their call."""
    scope = project.scope_at(call, module)
    owner = scope.self_class
    if not (isinstance(call.func, ast.Name) and call.func.id == scope.self_name) or owner is None:
        return False
    has = {name for name in ("forward", "__call__") if project.method(owner, name) is not None}
    return has == {"forward"} and project.types.is_a(owner.name, MODULE) is not False


def runs_trained(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of what is named like a class, `G(x)`, `F_ab(x)`, but is asked for its parameters."""
    if not (call.args or call.keywords) or not isinstance(call.func, ast.Name | ast.Attribute):
        return False
    tail = tail_of(call.func)
    is_loss = tail.lower().endswith(("loss", "criterion"))
    if is_loss or not tail[:1].isupper() or project.scope_at(call, module).dotted(call.func) is not None:
        return False
    return bool(LETTER.search(tail)) or tail in kept(module.tree, _asked_for_parameters)


def runs_compiled(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of a function that runs a model, and that was compiled: `self.quick(x)`."""
    made = project.scope_at(call, module).through(call.func)
    if made is None or not isinstance(made[0], ast.Call) or tail_of(made[0].func) != "compile" or not made[0].args:
        return False
    target = _function(project, made[0].args[0], made[1])
    if target is None or any(True for _ in entered_by(project, target, made[1].module)):
        return False
    there = project.scope_of(target, made[1].module).module
    is_plain = not trains(target) and not _turns_gradients_off(target)
    return is_plain and any(
        isinstance(c, ast.Call) and (is_call_of_model(c) or runs_own(project, there, c))
        for c in inner(target, ast.Call)
    )


def runs_in_loss(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is of a loss that runs the model by itself: not of one that judges what a model made."""
    scope = project.scope_at(call, module)
    info = project.classes.get(project.types.of(call.func, scope) or "")
    found = project.method(info, "forward") if info is not None else None
    if info is None or found is None or project.types.is_a(info.name, MODULE) is not True:
        return False
    ran = (c for c in inner(found[0], ast.Call) if isinstance(c, ast.Call))
    if not any(is_call_of_model(c) or runs_compiled(project, found[1], c) for c in ran):
        return False
    given = (*call.args, *(option.value for option in call.keywords))
    behind = (each for arg in given for each in sources(project, arg, scope, call.lineno))
    return not any(isinstance(n, ast.Call) and is_forward(project, b.module, n) for b in behind for n in walk(b.node))


def runs_part(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call runs a part or a method of what is trained: `towers.text(x)`, not of what a model made."""
    func = call.func
    if not isinstance(func, ast.Attribute | ast.Subscript) or not call.args or callee(project, module, call):
        return False
    tail = tail_of(func) if isinstance(func, ast.Attribute) else ""
    if tail in HAS | OF_MODELS or tail.endswith("_") or AUXILIARY.match(tail) or BESIDE.search(tail):
        return False
    scope = project.scope_at(call, module)
    if not isinstance(func.value, ast.Name | ast.Attribute) or text_of(func.value) in {scope.self_name, "super()"}:
        return False
    if scope.dotted(func.value) is not None or not _is_trained(project, func.value, scope):
        return False
    if not RUNS_MODEL.search(tail) and not _runs_cast(project, module, func.value, scope):
        return False
    given = [a for a in (*call.args, *(k.value for k in call.keywords)) if not isinstance(a, ast.Constant)]
    behind = (each for arg in given for each in sources(project, arg, scope, call.lineno))
    return bool(given) and not any(_is_part_of(n, func.value) for b in behind for n in walk(b.node))


def _is_part_of(node: ast.AST, whole: ast.expr) -> bool:
    """Return whether a node is a call of a part of something."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute | ast.Subscript) and text_of(func.value) == text_of(whole)


def _runs_cast(project: Project, module: Module, whole: ast.expr, scope: Scope) -> bool:
    """Return whether a function runs some part of a model in autocast."""
    near = (n for n in inner(scope.function or module.tree, ast.Call) if _is_part_of(n, whole))
    return any(True for n in near for _ in around(project, module, n))


def _is_trained(project: Project, node: ast.expr, scope: Scope) -> bool:
    """Return whether something is asked for its parameters, or put into a mode, here or by those who hand it here."""
    if tail_of(node) in kept(scope.module.tree, _asked_for_parameters):
        return True
    if isinstance(node, ast.Attribute) and text_of(node.value) != scope.self_name:
        return False
    for each in spine(project, node, scope, 10**9):
        found = each.scope.lookup(each.node.id) if isinstance(each.node, ast.Name) else None
        handed = passed(project, each.node.id, found[0]) if found and isinstance(each.node, ast.Name) else ()
        if any(tail_of(value) in kept(where.module.tree, _asked_for_parameters) for value, where, _ in handed):
            return True
    return False


def _function(project: Project, node: ast.expr, scope: Scope) -> Function | None:
    """Return the function, or the method of the object around, that a name is for."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == scope.self_name:
        found = project.method(scope.self_class, node.attr) if scope.self_class is not None else None
        return found[0] if found is not None else None
    bound = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    named = [b.node for b in bound[1]] if bound is not None else []
    only = named[0] if len(named) == 1 else None
    return only if isinstance(only, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _asked_for_parameters(tree: ast.AST) -> frozenset[str]:
    """Return the names of what a file asks for its parameters, or puts into a mode, as only models are."""
    return frozenset(
        tail_of(node.func.value)
        for node in walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OF_MODELS
    )


def _is_handed_model(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call hands a model to a library that runs it: `sliding_window_inference(x, size, 4, net)`."""
    if not INFERS.search(tail_of(call.func)) or callee(project, module, call) is not None:
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    return len(given) > 1 and any(isinstance(a, ast.Name | ast.Attribute) and MODEL.search(tail_of(a)) for a in given)


def _is_of_model(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is a forward pass by another name: `model.forward(x)`, a method of an own model."""
    if not isinstance(call.func, ast.Attribute) or not (call.args or call.keywords) or call.func.attr in HAS:
        return False
    if call.func.attr == "forward":
        return MODEL.search(tail_of(call.func.value)) is not None
    if tail_of(call.func.value) == "self":
        return False
    scope = project.scope_at(call, module)
    named = project.types.of(call.func.value, scope) or ""
    info = project.classes.get(named)
    if info is None and RUNS_MODEL.search(call.func.attr) and MODEL.search(tail_of(call.func.value)):
        return named.partition(".")[0] not in OF_ITSELF
    target = callee(project, module, call) if info is not None else None
    if info is None or target is None or project.types.is_a(info.name, MODULE) is not True:
        return False
    if any(NO_GRAD.search(text_of(d)) for d in target.decorator_list) or _turns_gradients_off(target) or trains(target):
        return False
    return any(isinstance(c, ast.Call) and _is_layer(c) for c in inner(target, ast.Call))


def _is_layer(call: ast.Call) -> bool:
    """Return whether a method of a model calls the model itself, or a part of it."""
    func = call.func
    if isinstance(func, ast.Name):
        return func.id == "self"
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"


def _turns_gradients_off(function: Function) -> bool:
    """Return whether a function turns gradients off around its forward passes."""
    return any(
        isinstance(n, ast.With) and any(NO_GRAD.search(text_of(i.context_expr)) for i in n.items)
        for n in inner(function, ast.With)
    )


def trains(node: ast.AST) -> bool:
    """Return whether code trains: by a backward pass, or a step of an optimizer."""
    return any(
        is_backward(c) or (tail_of(c.func) == "step" and "opt" in text_of(c.func)) or tail_of(c.func) == "grad"
        for c in inner(node, ast.Call)
        if isinstance(c, ast.Call)
    )
