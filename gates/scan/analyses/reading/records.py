"""Fields that are read from a named tuple which does not have them."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import Comprehension, calls, function_of
from gates.scan.analyses.reading.flow import set_before
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project

RECORD = "typing.NamedTuple"
OF_TUPLES = frozenset({"count", "index"})
ASKS = frozenset({"hasattr", "getattr", "isinstance"})


def absent_fields(project: Project, module: Module) -> Iterator[tuple[ast.Attribute, ClassInfo, list[str]]]:
    """Yield each field that is read from a named tuple and that its class lacks, and those that it has."""
    known = project.once(_records)[0]
    for node in module.live.get(ast.Attribute, []) if known else ():
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or node.attr.startswith("_"):
            continue
        info = known.get(_class_of(project, module, node.value) or "")
        if info is None or node.attr in {*info.attributes, *info.methods, *OF_TUPLES}:
            continue
        if isinstance(node.value, ast.Name) and not _is_set_once(node.value, module):
            continue
        if _is_asked(node, module) or _is_set(project, node.attr):
            continue
        fields = [tail_of(s.target) for s in info.node.body if isinstance(s, ast.AnnAssign)]
        yield node, info, fields


def _records(project: Project) -> Iterator[dict[str, ClassInfo]]:
    """Yield the named tuples of a program by their full names."""
    yield {name: info for name, info in project.classes.items() if _is_known(project, info)}


def _is_set(project: Project, name: str) -> bool:
    """Return whether code sets an attribute of a name on anything, such as on the class itself."""
    found = (n for module in project.modules.values() for n in module.live.get(ast.Attribute, []))
    return any(isinstance(n, ast.Attribute) and n.attr == name and not isinstance(n.ctx, ast.Load) for n in found)


def _is_known(project: Project, info: ClassInfo) -> bool:
    """Return whether all that a named tuple has is written in its class."""
    is_open = "__getattr__" in info.methods or info.node.decorator_list or project.extending.get(info.name)
    return info.bases == [RECORD] and not info.twice and not is_open


def _class_of(project: Project, module: Module, node: ast.expr) -> str | None:
    """Return the class of an expression; of a loop's variable, that of all that the loop goes over."""
    if isinstance(node, ast.Attribute):
        return None
    named = project.types.of(node, project.scope_at(node, module))
    if named is not None or not isinstance(node, ast.Name):
        return named
    values = _gone_over(node, module)
    classes = {project.types.of(value, project.scope_at(value, module)) for value in values}
    return classes.pop() if len(classes) == 1 else None


def _is_set_once(node: ast.Name, module: Module) -> bool:
    """Return whether a variable is set in one place, in loops alone, or by a parameter that says its class."""
    body = function_of(node, module) or module.tree
    stores = [n for n in inner(body, ast.Name) if isinstance(n, ast.Name) and n.id == node.id]
    stores = [n for n in stores if not isinstance(n.ctx, ast.Load)]
    given = body.args if not isinstance(body, ast.Module) else None
    named = [a for a in walk(given) if isinstance(a, ast.arg) and a.arg == node.id] if given is not None else []
    if named:
        return named[0].annotation is not None and not stores
    return len(stores) == 1 or (bool(stores) and all(_is_turned(n, module) for n in stores))


def _gone_over(node: ast.Name, module: Module) -> list[ast.expr]:
    """Return what stands in the list or the dictionary that a loop goes over, where nothing is put in later."""
    body = function_of(node, module) or module.tree
    over = _iterated(node, module)
    if over is None:
        return []
    uses = [n for n in inner(body, ast.Name) if isinstance(n, ast.Name) and n.id == over.id]
    before = set_before(body, over.id, over.lineno)
    stored = [n for n in uses if isinstance(n.ctx, ast.Store)]
    if len(before) != 1 or len(stored) != 1 or any(_is_filled(n, module) for n in uses):
        return []
    made = before[0][0]
    if isinstance(made, ast.ListComp | ast.DictComp):
        return [made.elt if isinstance(made, ast.ListComp) else made.value]
    return list(made.values) if isinstance(made, ast.Dict) else list(getattr(made, "elts", ()))


def _is_turned(name: ast.Name, module: Module) -> bool:
    """Return whether a variable is set by a loop."""
    around = module.parents.get(name)
    around = module.parents.get(around) if isinstance(around, ast.Tuple) else around
    return isinstance(around, ast.For | ast.comprehension)


def _iterated(node: ast.Name, module: Module) -> ast.Name | None:
    """Return the variable whose elements, or values, a loop or a comprehension sets another one to."""
    for around in module.ancestors(node):
        turns = around.generators if isinstance(around, Comprehension) else [around]
        for turn in turns:
            if not isinstance(turn, ast.For | ast.comprehension):
                continue
            if any(isinstance(n, ast.Name) and n.id == node.id for n in walk(turn.target)):
                return _viewed(turn.target, turn.iter, node.id)
    return None


def _viewed(target: ast.expr, over: ast.expr, name: str) -> ast.Name | None:
    """Return the variable of `for row in rows`, `for row in rows.values()`, and `for key, row in rows.items()`."""
    view = over.func if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else None
    if view is not None and view.attr == "items" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target, over = target.elts[1], view.value
    elif view is not None and view.attr == "values":
        over = view.value
    return over if isinstance(over, ast.Name) and tail_of(target) == name and isinstance(target, ast.Name) else None


def _is_filled(node: ast.Name, module: Module) -> bool:
    """Return whether a use of a container may put something into it."""
    parent = module.parents.get(node)
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in {"items", "values", "keys", "get"}
    return isinstance(parent, ast.Call) and tail_of(parent.func) not in {"print", "len", "sorted", "list", "enumerate"}


def _is_asked(node: ast.Attribute, module: Module) -> bool:
    """Return whether a field is read only where it is there: in a `try`, or where it is asked what an object is."""
    for around in module.ancestors(node):
        test = getattr(around, "test", None)
        if isinstance(around, ast.Try) and around.handlers:
            return True
        if isinstance(test, ast.expr) and any(f"{name}(" in text_of(test) for name in ASKS):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            asked = (c for c in calls(around) if tail_of(c.func) in ASKS and c.args)
            return any(text_of(c.args[0]) == text_of(node.value) for c in asked)
    return False
