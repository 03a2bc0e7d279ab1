"""Members that an object of a known class does not have."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from gates.code.meanings import decorators_of, is_hollow
from gates.scan.program.known import MODULE
from gates.scan.program.module import REGISTERS, Module, tail_of
from gates.scan.program.nodes import chain_of, inner, kept, text_of, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import BUILTINS, CONSTRUCTORS, ClassInfo, Scope
from gates.scan.rule import Site

_OWN = """
    _orig_mod add_module apply backward base_model bfloat16 buffers call_super_init children clip_grad_norm_ compile
    config cpu cuda device double dtype dump_patches engine eval extra_repr float forward get_buffer get_extra_state
    get_parameter get_submodule gradient_accumulation_steps half hf_device_map ipu is_gradient_accumulation_boundary
    join load_checkpoint load_state_dict module modules mtia named_buffers named_children named_modules named_parameters
    no_sync optimizer parameters peft_config register_backward_hook register_buffer register_forward_hook
    register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook require_backward_grad_sync requires_grad_ reshard
    save_checkpoint set_extra_state set_is_last_backward set_requires_all_reduce set_requires_gradient_sync
    set_reshard_after_forward set_submodule share_memory state_dict step summon_full_params T_destination to to_empty
    train training type unshard xpu zero_grad zero_optimization
"""
OWN = frozenset(_OWN.split())  # of every module, or of one that wraps another
HELPS = re.compile(r"(?i)register|buffer|attach|inject|bind|wrap|patch|add_|param")


TYPED = frozenset({ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await})
TELLING = frozenset({"setattr", "omegaconf", "hydra"})  # by which any object may have what its class lacks
OF_INSTANCES = frozenset({"self", "cls"})
OPEN = {"__getattr__", "__getattribute__", "__setattr__", "__slots__", "__dict__"}
FILLS = frozenset({"setdefault", "update"})
OF_TUPLES = frozenset({"count", "index", "_asdict", "_fields", "_field_defaults", "_make", "_replace"})
OF_PYTHON = re.compile(r"__\w+__")  # what Python itself gives to objects and classes, and decorators do


def look(project: Project, judged: Iterable[Module]) -> Iterator[Site]:
    """Yield each use of an attribute that the object's class, all its bases known, never gets."""
    lacks = [(module, *each) for module in judged for each in _lacking(project, module)]
    near = _near(project, {word for _, node, info in lacks for word in (node.attr, info.node.name)}) if lacks else []
    stored = frozenset().union(*(module.stores for module in near))
    called = frozenset().union(*(module.calls for module in near))
    calls = (call for module in near for call in module.calls.get("setattr", ()))
    given = {tail_of(c.args[0]) for c in calls if c.args[1:] and not isinstance(c.args[1], ast.Constant)}
    for module, node, info in lacks:
        if node.attr in stored or info.node.name in given or (given and isinstance(node.value, ast.Attribute)):
            continue  # something may give the class members, or put another object in the place of its own
        is_made = info.node.name in called
        is_own = tail_of(node.value) in OF_INSTANCES and isinstance(node.value, ast.Name)
        is_partial = is_own and _is_partial(project, info, is_made=is_made)
        if not is_partial and not _extended(project, info, node.attr, is_made=is_made):
            made = f"class {info.scope.module.path}:{info.node.lineno}"
            message = f"{info.node.name} has no member {node.attr!r}"
            last = node.end_lineno or node.lineno
            yield Site(module.path, node.lineno, last, ok=False, message=message, trace=(made,))


def _near(project: Project, words: set[str]) -> list[Module]:
    """Return the files that may give a class what it lacks: that name this, the class or one that extends it."""
    near, more = [], words | TELLING
    while more:
        words |= more
        near = project.mentioning(words)
        more = {heir for module in near for heir in _heirs(module, words)} - words
    return near


def _lacking(project: Project, module: Module) -> Iterator[tuple[ast.Attribute, ClassInfo]]:
    """Yield each use of an attribute that the object's class and its bases lack and the file itself never stores."""
    known: dict[tuple[Scope, str | None], ClassInfo | None] = {}
    for node in module.nodes(ast.Attribute):
        if type(node.value) not in TYPED or node.attr in module.stores or not isinstance(node.ctx, ast.Load):
            continue
        if (isinstance(node.value, ast.Name) and node.value.id in module.aliases) or OF_PYTHON.fullmatch(node.attr):
            continue
        key = (project.scope_at(node, module), chain_of(node.value))
        if key[1] is None or key not in known:
            known[key] = _class_of(project, key[0], node.value)
        info = known[key]
        if info is None or node.attr in info.methods or node.attr in info.attributes:
            continue
        members = kept(info, _members)
        if members is not None and not _has(members, node.attr) and not _asked_for(module, node):
            yield node, info


def _heirs(module: Module, bases: Collection[str]) -> Iterator[str]:
    for node in module.nodes(ast.ClassDef):
        if any(tail_of(base.value if isinstance(base, ast.Subscript) else base) in bases for base in node.bases):
            yield node.name


def _class_of(project: Project, scope: Scope, node: ast.expr) -> ClassInfo | None:
    if isinstance(node, ast.Name) and node.id in {*OF_INSTANCES, scope.self_name}:
        info = scope.self_class if node.id == scope.self_name and node.id in OF_INSTANCES else None
        return None if info is None or info.twice else info
    named = project.types.of(node, scope)
    info = project.classes.get(named or "")
    return None if info is None or info.twice or not _is_always(project, node, scope, named) else info


def _is_always(project: Project, node: ast.expr, scope: Scope, named: str | None) -> bool:
    """Return whether everything that an attribute is ever set to is of one class."""
    if not isinstance(node, ast.Attribute):
        return True
    values = [(b.node, where) for b, where in scope.attribute(node) if b.kind == "value"]
    given = [(v, where) for v, where in values if not (isinstance(v, ast.Constant) and v.value is None)]
    return all(isinstance(v, ast.expr) and project.types.of(v, where) == named for v, where in given)


def _extended(project: Project, info: ClassInfo, name: str, *, is_made: bool) -> bool:
    """Return whether an object known to be of a class may be of one that extends it and has the member.

    Where nothing makes an object of the class itself, such as a mixin, all are of those, whose other bases count, too.
    """
    below = list(project.below(info))
    if any(name in other.methods or name in other.attributes or name in kept(other.node, _named) for other in below):
        return True
    if is_made:
        return False
    if not below:
        return _is_abstract(project, info)  # whoever uses the program fills it in
    return any((members := kept(other, _members)) is None or _has(members, name) for other in below)


def _has(members: set[str], name: str) -> bool:
    """Return whether a class has a member; every module has some, and one may have those that is wrapped in another."""
    return name in members or (MODULE in members and (name.startswith("_") or name in OWN))


def _fills_itself(info: ClassInfo) -> bool:
    """Return whether a constructor calls what reading does not know, and what may set attributes of the instance."""
    scope = info.scope
    for method in (m for name, m in info.methods.items() if name in CONSTRUCTORS):
        for node in walk(method):
            if not isinstance(node, ast.Call) or scope.project.types.function(node, scope) is not None:
                continue
            named = scope.dotted(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else None
            if named in scope.project.classes or (isinstance(node.func, ast.Name) and node.func.id in BUILTINS):
                continue
            handed = any(isinstance(arg, ast.Name) and arg.id == "self" for arg in node.args)
            whole = any(isinstance(each, ast.Expr) and each.value is node for each in walk(method))
            if handed or (isinstance(node.func, ast.Name) and whole):
                return True
    return False


def _is_partial(project: Project, info: ClassInfo, *, is_made: bool) -> bool:
    """Return whether a class counts on others for its members: one that is extended, made to be, or only named."""
    named = any(word in info.node.name.lower() for word in ("mixin", "base", "abstract", "protocol", "interface"))
    is_bare = not info.attributes and not CONSTRUCTORS & info.methods.keys()  # a library is told its name
    return named or info.name in project.extending or (not is_made and (is_bare or _is_abstract(project, info)))


def _is_abstract(project: Project, info: ClassInfo) -> bool:
    told = (is_hollow(m) or any("abstract" in tail_of(d) for d in m.decorator_list) for m in info.methods.values())
    return any(tail_of(base) == "ABC" for each in project.order_of(info) for base in each.node.bases) or any(told)


def _asked_for(module: Module, node: ast.Attribute) -> bool:
    """Return whether the code itself asks first: `hasattr`, `isinstance`, `except AttributeError`."""
    for around in module.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp | ast.While | ast.Assert):
            text = text_of(around.test)
            if "hasattr" in text or "isinstance" in text or node.attr in text.split("'"):
                return True
        if isinstance(around, ast.Try):
            kinds = [text_of(h.type) if h.type else "" for h in around.handlers]
            if any(not kind or "AttributeError" in kind or kind in {"Exception", "BaseException"} for kind in kinds):
                return True
    function = next((n for n in module.ancestors(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)), None)
    if function is None:
        return False
    called = (call for call in inner(function, ast.Call) if tail_of(call.func) == "hasattr")
    asked = any(node.attr in text_of(call).split("'") for call in called)
    return asked or text_of(node.value) in kept(function, _told_apart)


def _told_apart(function: ast.AST) -> set[str]:
    """Return what a function asks the class of."""
    found = (n for n in walk(function) if isinstance(n, ast.Call) and tail_of(n.func) == "isinstance")
    return {text_of(call.args[0]) for call in found if call.args}


def _members(info: ClassInfo, hops: int = 6) -> set[str] | None:
    """Return all that a class and its bases define or set; `None` where that cannot be told."""
    is_made_otherwise = info.node.keywords or decorators_of(info.node) - {"dataclass"}
    if info.twice or hops == 0 or is_made_otherwise or OPEN & info.methods.keys():
        return None
    found: set[str] = set()
    for base, written in zip(info.bases, info.node.bases, strict=True):
        name = base or text_of(written.value if isinstance(written, ast.Subscript) else written)
        if name.rpartition(".")[2] == "Protocol":
            return None  # what has its members may well have others
        if name == "typing.NamedTuple":
            found |= OF_TUPLES
        elif name == MODULE and (parts := registered(info.node)) is not None:
            found |= {MODULE, *parts}
        elif name.rpartition(".")[2] not in {"Generic", "ABC", "object"}:
            inherited = info.scope.project.classes.get(name)
            if (more := _members(inherited, hops - 1) if inherited else None) is None:
                return None
            found |= more
    own = set(info.methods) | set(info.attributes) | kept(info.node, _named)
    return None if own & OPEN or _fills_itself(info) else found | own


def _named(node: ast.ClassDef) -> set[str]:
    """Return every name that a class body binds, in its blocks too."""
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Store):
            found.add(tail_of(part))
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(part.name)
        elif _fills(part):
            found |= {"__setattr__"}  # set by a name that reading does not know
    return found


def _fills(node: ast.AST) -> bool:
    """Return whether code sets attributes by names that reading does not know: by `setattr`, or in `__dict__`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
        return _is_dict(node.func.value)
    if isinstance(node, ast.Call):
        return tail_of(node.func) in {"setattr", "__setattr__"}
    if isinstance(node, ast.Assign):
        return _is_dict(node.value)  # under another name
    return isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _is_dict(node.value)


def _is_dict(node: ast.expr) -> bool:
    """Return whether an expression is what holds the attributes of an object: `self.__dict__`, `vars(self)`."""
    return tail_of(node) == "__dict__" or (isinstance(node, ast.Call) and tail_of(node.func) == "vars")


def _texts(nodes: Iterable[ast.expr]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def registered(node: ast.AST) -> set[str] | None:
    """Return the names under which code registers parts of a module; `None` where those cannot be told."""
    found: set[str] = set()
    for call in walk(node):
        if isinstance(call, ast.Call) and tail_of(call.func) in REGISTERS - {"setattr", "__setattr__"}:
            if not (given := _texts([k.value for k in call.keywords if k.arg == "name"] or call.args[:1])):
                return None
            found |= given
        elif isinstance(call, ast.Call) and any(tail_of(arg) == "self" for arg in call.args):
            told = _texts(call.args)
            if not told and HELPS.search(tail_of(call.func)):
                return None
            found |= told  # helpers are told the names
    return found
