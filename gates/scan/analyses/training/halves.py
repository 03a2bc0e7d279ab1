"""Whether a program trains in float16 or bfloat16 anywhere: by autocast, by casts, or by what a framework does."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.precision.precision import scalers
from gates.scan.analyses.reading.code import constant, function_of, keyword
from gates.scan.analyses.training.forwards import NO_GRAD
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

FRAMEWORK = re.compile(
    r"(?i)apex|deepspeed|fabric|accelerat|lightning|composer|convert_weights|custom_fwd|amp_(ctx|context)|"
    r"(?-i:MixedPrecision)"
)
HALF = re.compile(r"(?i)half|float16|fp16|bf16|precision|(^|_)dtype")
NAMED = re.compile(r"(?i)half|float16")
TYPES = frozenset({"half", "float16", "bfloat16"})
TAKES = frozenset({"autocast", "GradScaler"})
CASTS = frozenset({"to", "type", "astype", "from_pretrained", "set_default_dtype"})
LENDS = re.compile(r"(?i)cast|amp|ctx|context|precision|half|lower")
AUTOCAST = "autocast"
LONG = 40  # letters, of what names nothing


def without_halves(project: Project) -> Iterator[bool]:
    """Yield whether a program makes a scaler and trains nothing in half precision, for `Project.once`.

    Autocast that is switched off, or entered where no gradients are taken, trains nothing.
    """
    modules = project.modules.values()
    made = any(True for module in modules for _ in scalers(project, module))
    yield made and not any(map(_is_of_framework, modules)) and not any(map(_casts, modules)) and not _enters(project)


def _is_of_framework(module: Module) -> bool:
    constants = (n.value for n in module.live.get(ast.Constant, ()) if isinstance(n, ast.Constant))
    texts = (text for text in constants if isinstance(text, str) and len(text) < LONG)
    return any(map(FRAMEWORK.search, (*module.words, *texts)))


def _casts(module: Module) -> bool:
    """Return whether a file turns numbers or parameters into half precision, or into what it does not tell."""
    if module.calls.keys() & TYPES or any(_is_held(module, n) for n in module.live.get(ast.Attribute, ())):
        return True
    made = (call for name in CASTS for call in module.calls.get(name, ()))
    given = (arg for call in made for arg in (*call.args, *(k.value for k in call.keywords)))
    if any(HALF.search(tail_of(arg)) for arg in given):
        return True
    picked = (call.args[1] for call in module.calls.get("getattr", ()) if len(call.args) > 1)
    if any(NAMED.search(text_of(name)) for name in picked):
        return True
    others = (call for name, found in module.calls.items() if name not in TAKES for call in found)
    options = (k for call in others for k in call.keywords if (k.arg or "").endswith("dtype"))
    return any(NAMED.search(text_of(option.value)) for option in options)


def _is_held(module: Module, node: ast.AST) -> bool:
    """Return whether a type is kept for whatever use: not compared, nor given to autocast."""
    if not isinstance(node, ast.Attribute) or node.attr not in TYPES or not isinstance(node.value, ast.Name):
        return False
    if module.aliases.get(node.value.id) != "torch":
        return False
    for outer in module.ancestors(node):
        if isinstance(outer, ast.Compare) or (isinstance(outer, ast.Call) and tail_of(outer.func) in TAKES):
            return False
        if isinstance(outer, ast.stmt):
            return True
    return True


def _enters(project: Project) -> bool:
    """Return whether autocast is entered where gradients may be taken, by its name or that of what lends it."""
    modules = project.modules.values()
    if any(_is_kept(module) for module in modules):
        return True
    names, seen = {AUTOCAST}, set[str]()
    while names - seen:
        name = min(names - seen)
        seen.add(name)
        for call, module in ((call, each) for each in modules for call in each.calls.get(name, ())):
            function = function_of(call, module)
            if constant(keyword(call, "enabled")) is False or _has_no_gradient(module, call):
                continue
            if function is None or not _lends(function, call):
                return True
            names.add(function.name)
    return False


def _is_kept(module: Module) -> bool:
    """Return whether autocast is mentioned without a call: `partial(torch.autocast, "cuda")`, or by another name."""
    if any(full.endswith(f".{AUTOCAST}") and name != AUTOCAST for name, full in module.aliases.items()):
        return True
    called = {call.func for call in module.calls.get(AUTOCAST, ())}
    named = (n for kind in (ast.Attribute, ast.Name) for n in module.live.get(kind, ()))
    return any(isinstance(n, ast.expr) and tail_of(n) == AUTOCAST and n not in called for n in named)


def _lends(function: Function, call: ast.Call) -> bool:
    """Return whether a function hands autocast to those that call it: returns it, or yields within it."""
    if not LENDS.search(function.name) or any(text_of(d).endswith("property") for d in function.decorator_list):
        return False
    returned = any(n.value is not None and call in walk(n.value) for n in inner(function, ast.Return))  # type: ignore[attr-defined]  # a return
    return returned or any(True for _ in inner(function, ast.Yield))


def _has_no_gradient(module: Module, call: ast.Call) -> bool:
    """Return whether a call stands in a block or a function that turns gradients off."""
    for outer in module.ancestors(call):
        texts = [text_of(item.context_expr) for item in outer.items] if isinstance(outer, ast.With) else []
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = [text_of(each) for each in outer.decorator_list]
        if any(map(NO_GRAD.search, texts)):
            return True
    return False
