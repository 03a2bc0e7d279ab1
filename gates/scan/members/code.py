"""What several analyses ask of code: who stands around a node, what is called, what runs with each training step."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner as inner
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.site import Site

Loop = ast.For | ast.AsyncFor | ast.While
Told = tuple[str, Module, ast.AST]
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
ACCELERATOR = re.compile(
    r"cuda|\bdevice\b|GradScaler|autocast|[aA]ccelerator\b|device_ids|\bnccl\b|Fabric\b|deepspeed|\bxpu\b|\bmps\b"
)
MODEL = re.compile(
    r"(?i)(^|_)(model|net|network|module|classifier|unet|student|policy|gpt|backbone|actor|critic|generator|discriminator|encoder|decoder|transformer|bert|vit|tower|extractor|embedder|trunk|head|stem|lm|llm|resnet|mlp|cnn|rnn|lstm|gru|predictor|projector|regressor|denoiser|autoencoder|vae|gan|agent)(_|\d|$)|^net[A-Z]$|^[GD]$"
)


def broken(module: Module, node: ast.AST, message: str, *way: Told) -> Site:
    """Return a place that breaks a rule; `way` names other places that make it so, each by what happens there."""
    line = getattr(node, "lineno", 1)
    last = getattr(node, "end_lineno", None) or line
    trace = dict.fromkeys(f"{what} {there.path}:{getattr(part, 'lineno', 1)}" for what, there, part in way)
    return Site(module.path, line, last, ok=False, message=message, trace=tuple(trace))


def nodes(module: Module, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """Yield the live nodes of some kinds."""
    for kind in kinds:
        yield from module.live.get(kind, [])


def functions(module: Module) -> Iterator[Function]:
    """Yield the live functions of a file."""
    for node in nodes(module, *FUNCTIONS):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that a node holds, but for those in definitions inside of it."""
    for call in inner(node, ast.Call):
        if isinstance(call, ast.Call):
            yield call


def function_of(node: ast.AST, module: Module) -> Function | None:
    """Return the function that a node stands in."""
    for around in module.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return around
    return None


def class_of(node: ast.AST, module: Module) -> ast.ClassDef | None:
    """Return the class that a node stands in."""
    return next((a for a in module.ancestors(node) if isinstance(a, ast.ClassDef)), None)


def _words(module: Module) -> Iterator[str]:
    for node in nodes(module, ast.Name, ast.Attribute, ast.Constant, ast.arg):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 20:
            yield node.value
    yield from (n.arg for n in nodes(module, ast.keyword) if isinstance(n, ast.keyword) and n.arg == "device_ids")
    yield from module.aliases.values()


def callee(project: Project, module: Module, call: ast.Call) -> Function | None:
    """Return the function of the program that a call runs, where that is known."""
    return project.types.function(call, project.scope_at(call, module))


def module_of(project: Project, function: Function, near: Module) -> Module:
    """Return the file of a function."""
    return project.scope_of(function, near).module


def named(body: ast.AST) -> dict[str, list[ast.AST]]:
    """Return the names and the parameters in a body, by what they are called."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for node in walk(body):
        if isinstance(node, ast.Name):
            found[node.id].append(node)
        elif isinstance(node, ast.arg):
            found[node.arg].append(node)
    return found


def constant(node: ast.expr | None) -> object:
    """Return the value of a constant expression, a negative number too; `None` for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int | float) else None
    return node.value if isinstance(node, ast.Constant) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call passes for a keyword."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def tail_text(node: ast.AST) -> str:
    """Return the words that name an expression: of `a.b["c"]`, `b c`."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) else ""
        return f"{tail_text(node.value)} {key}"
    if isinstance(node, ast.Call):
        return tail_text(node.func)
    if isinstance(node, ast.Attribute):
        return f"{tail_text(node.value)} {node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
