"""Whether a program trains on the CPU by design: each device that it names is one, and it names some."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.reading.code import ACCELERATOR, constant, functions, nodes, stays_on_cpu
from gates.scan.analyses.reading.flow import passed
from gates.scan.analyses.settings.defaults import behind_of
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.program.signatures import parameters

NAMED = re.compile(r"(?i)(^|_)device$")
TELLING = re.compile(r"(?i)gpu|tpu|accelerator|cuda")
CHOOSES = re.compile(  # libraries that choose a device themselves
    r"(lightning|pytorch_lightning|accelerate|composer|deepspeed|transformers|fastai|ignite|catalyst|ray|keras|"
    r"sentence_transformers|ultralytics|torch_xla|torch_directml)(\.|$)"
)
# of these, which device is meant is read where they are used
KNOWN = re.compile(r"([\w.]+\.)?device|(torch\.)?((cpu\.)?amp\.)?autocast")
DEVICES = frozenset({"device", "device_type"})
MAX_HOPS = 4


def only_on_cpu(project: Project) -> bool:
    """Return whether a program trains on the CPU alone, and says so."""
    return project.once(_decided)[0]


def _decided(project: Project) -> Iterator[bool]:
    yield stays_on_cpu(project) or (not any(map(_tells_of_others, project.modules.values())) and _is_named(project))


def _tells_of_others(module: Module) -> bool:
    """Return whether a file speaks of an accelerator, or leaves the choice to a library or to who starts it."""
    if any(CHOOSES.match(name) for name in module.aliases.values()):
        return True
    said = [n.value for n in nodes(module, ast.Constant) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    words = [text for text in said if len(text.split()) == 1]
    words += [n.id for n in nodes(module, ast.Name) if isinstance(n, ast.Name)]
    words += [n.attr for n in nodes(module, ast.Attribute) if isinstance(n, ast.Attribute)]
    words += [n.arg or "" for n in nodes(module, ast.keyword, ast.arg) if isinstance(n, ast.keyword | ast.arg)]
    words += module.aliases.values()
    return any(TELLING.search(word) or (ACCELERATOR.search(word) and not KNOWN.fullmatch(word)) for word in words)


def _is_named(project: Project) -> bool:
    """Return whether a variable is set to the CPU as a device, and nothing else is said to be one."""
    told = False
    for module in project.modules.values():
        kept = list(_kept(module))
        told = told or bool(kept)
        if not all(_is_cpu(project, node, project.scope_at(node, module)) for node in (*kept, *_used(project, module))):
            return False
        for function in functions(module):
            names = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            scope = project.scope_of(function, module)
            if any(NAMED.search(a.arg) and not _is_passed_cpu(project, a.arg, scope, MAX_HOPS) for a in names):
                return False
    return told


def _kept(module: Module) -> Iterator[ast.expr]:
    """Yield what variables and attributes are set to that are called a device, and what is made the default one."""
    for made in nodes(module, ast.Assign, ast.AnnAssign, ast.NamedExpr):
        if isinstance(made, ast.Assign | ast.AnnAssign | ast.NamedExpr) and made.value is not None:
            targets = made.targets if isinstance(made, ast.Assign) else [made.target]
            yield from (made.value for target in targets if NAMED.search(tail_of(target)))
    yield from (call.args[0] for call in module.calls.get("set_default_device", ()) if call.args)


def _used(project: Project, module: Module) -> Iterator[ast.expr]:
    """Yield what else stands for a device: what is passed as one, what one is made of, an attribute of that name."""
    for call in (*module.calls.get("device", ()), *module.calls.get("autocast", ())):
        yield from call.args[:1]
    for call in module.calls.get("to", ()):
        yield from (arg for arg in call.args if re.search(r"(?i)device", text_of(arg)))
    yield from (n.value for n in nodes(module, ast.keyword) if isinstance(n, ast.keyword) and n.arg in DEVICES)
    for field in nodes(module, ast.Attribute):
        is_read = isinstance(field, ast.Attribute) and field.attr == "device" and isinstance(field.ctx, ast.Load)
        if is_read and project.scope_at(field, module).dotted(field) != "torch.device":  # type: ignore[arg-type]
            yield field  # type: ignore[misc]  # an expression


def _is_cpu(project: Project, node: ast.expr, scope: Scope, hops: int = MAX_HOPS) -> bool:
    """Return whether an expression is the CPU as a device."""
    if isinstance(node, ast.Constant):
        return constant(node) == "cpu"
    if not hops:
        return False
    if isinstance(node, ast.Call):
        given = [*node.args, *(k.value for k in node.keywords if k.arg in {"type", "device"})]
        made = scope.dotted(node.func) == "torch.device"
        return made and bool(given) and _is_cpu(project, given[0], scope, hops - 1)
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    if found is not None and [binding.kind for binding in found[1]] == ["parameter"]:
        return _is_passed_cpu(project, tail_of(node), found[0], hops - 1)
    whole = node.value if isinstance(node, ast.Attribute) and node.attr == "type" else node
    behind = behind_of(whole, scope)
    return behind is not None and _is_cpu(project, behind[0], behind[1], hops - 1)


def _is_passed_cpu(project: Project, name: str, scope: Scope, hops: int) -> bool:
    """Return whether a parameter is the CPU by default or for a caller, and no caller passes anything else."""
    function = scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not hops:
        return False
    values = [(value, there) for value, there, _ in passed(project, name, scope)]
    default = parameters(function).get(name)
    values += [(default, scope)] if default is not None else []
    return bool(values) and all(_is_cpu(project, value, there, hops) for value, there in values)
