"""Who keeps a scaler, and who asks one for its state."""

import ast
import re
from collections.abc import Iterable, Iterator

from gates.scan.analyses.precision.precision import is_scaler
from gates.scan.analyses.reading.code import constant
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import SCALER
from gates.scan.program.module import Function, Module, names_of, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

NAMED = re.compile(r"(?i)scaler")


def keeps(project: Project, owner: ClassInfo, *, extended: bool) -> bool:
    """Return whether instances of a class, or of one that it extends or that extends it, keep a scaler."""
    below = [i for i in project.classes.values() if extended and project.types.is_a(i.name, owner.name)]
    for info in (owner, *project.ancestors_of(owner), *below):
        for name in info.attributes:
            kind = project.types.attribute(info, name)
            if project.types.is_a(kind, SCALER) or (kind is None and NAMED.search(name) and _is_given(info, name)):
                return True
    return False


def names_scaler(project: Project, text: object) -> bool:
    """Return whether a text is the name of a scaler: called one, or that of an attribute that is one."""
    if not isinstance(text, str) or not text.isidentifier():
        return False
    return NAMED.search(text) is not None or text in project.once(_scaling)


def _scaling(project: Project) -> Iterator[str]:
    """Yield the attributes that are scalers by their class, or pass on the states of scalers."""
    for info in project.classes.values():
        for name in info.attributes:
            kind = project.types.attribute(info, name)
            if project.types.is_a(kind, SCALER) is True or (kind is not None and passes(project, kind)):
                yield name


def _is_given(info: ClassInfo, name: str) -> bool:
    """Return whether an attribute called a scaler is one that is handed in, or made, and not left empty."""
    return any(
        b.kind == "parameter" or (b.kind == "value" and not (isinstance(b.node, ast.Constant) and b.node.value is None))
        for b, _ in info.attributes[name]
    )


def keeping_below(project: Project, owner: ClassInfo) -> list[ClassInfo]:
    """Return the classes that extend one and keep a scaler themselves."""
    below = (i for i in project.classes.values() if i is not owner and project.types.is_a(i.name, owner.name))
    return [info for info in below if keeps(project, info, extended=False)]


def is_keeping(project: Project, node: ast.expr, scope: Scope) -> bool:
    """Return whether an expression is an object of a class that keeps a scaler, or of one above it."""
    owner = scope.class_of(node)
    return owner is not None and keeps(project, owner, extended=True)


def holds_it(project: Project, node: ast.expr, scope: Scope) -> bool:
    """Return whether `owner.name` is a part of an object whose own class keeps a scaler."""
    owner = scope.class_of(node.value) if isinstance(node, ast.Attribute) else None
    return owner is not None and keeps(project, owner, extended=False)


def holds(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether the object whose optimizer is asked, as in `state.optimizer`, keeps a scaler too."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(held, ast.Attribute):
        return False
    owner = scope.class_of(held.value)
    return owner is not None and keeps(project, owner, extended=False)


def deals(project: Project, module: Module, node: ast.AST, verb: str, but: Iterable[Function] = ()) -> bool:
    """Return whether code deals with the state of a scaler, but for what a wrapper of one does to be asked."""
    left = {each for function in but for each in walk(function)}
    asked = (n for n in walk(node) if isinstance(n, ast.Call) and tail_of(n.func) == verb and n not in left)
    return any(NAMED.search(asked_name(c)) or asks_scaler(project, c, project.scope_at(c, module)) for c in asked)


def asks_scaler(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether a call asks a scaler for its state, or gives it one, itself or through what passes that on."""
    return is_of_scaler(call, scope) or carries(project, call, scope)


def carries(project: Project, call: ast.Call, scope: Scope) -> bool:
    """Return whether a call asks for a state that is, or has, that of a scaler which its object keeps."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    if held is None or (isinstance(held, ast.Name) and held.id == scope.self_name):
        return False
    return is_passing(project, held, scope)


def is_passing(project: Project, node: ast.expr, scope: Scope) -> bool:
    """Return whether an object is one that passes on the state of its scaler, or of a class above such."""
    owner = class_said(project, node, scope) if project.once(passing) else None
    return owner is not None and passes(project, owner.name)


def passes(project: Project, name: str) -> bool:
    """Return whether objects of a class pass on the state of a scaler, or those of one that extends it."""
    return any(project.types.is_a(info.name, name) for info in project.once(passing))


def class_said(project: Project, node: ast.expr, scope: Scope) -> ClassInfo | None:
    """Return the class of an object, by what is imported for annotations alone, too: under `if TYPE_CHECKING`."""
    found = scope.class_of(node)
    if found is None and isinstance(node, ast.Attribute):
        owner = class_said(project, node.value, scope)
        return project.classes.get(project.types.attribute(owner, node.attr) or "") if owner is not None else None
    bound = scope.lookup(node.id) if found is None and isinstance(node, ast.Name) else None
    said = bound[1][0].node if bound is not None and [b.kind for b in bound[1]] == ["parameter"] else None
    text = constant(said) or tail_of(said) if isinstance(said, ast.expr) else None
    dotted = scope.module.aliases.get(text) if isinstance(text, str) else None
    return project.classes.get(project.canonical(dotted, scope.module)) if dotted is not None else found


def passing(project: Project) -> Iterator[ClassInfo]:
    """Yield the classes that pass on the state of a scaler which they keep: both when it is asked and when given."""
    for info in project.classes.values():
        methods = [(verb, info.methods.get(verb)) for verb in ("state_dict", "load_state_dict")]
        if all(method is not None and _passes(project, info, method, verb) for verb, method in methods):
            yield info


def _passes(project: Project, info: ClassInfo, method: Function, verb: str) -> bool:
    scope = project.scope_of(method, info.scope.module)
    asked = (n for n in walk(method) if isinstance(n, ast.Call) and tail_of(n.func) == verb)
    return any(is_of_scaler(call, scope) for call in asked)


def asked_name(call: ast.Call) -> str:
    """Return under which key or name a call asks what is kept: `parts["scaler"].state_dict()`, or an empty text."""
    held = call.func.value if isinstance(call.func, ast.Attribute) else None
    key = constant(held.slice) if isinstance(held, ast.Subscript) else None
    return key if isinstance(key, str) else tail_of(held) if held is not None else ""


def is_of_scaler(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is one of a scaler's, by its name or its class."""
    if not isinstance(call.func, ast.Attribute):
        return False
    return any(NAMED.search(name) for name in names_of(call.func.value)) or is_scaler(call.func.value, scope)
