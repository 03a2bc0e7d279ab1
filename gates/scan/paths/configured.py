"""Objects that a program makes of the names in its settings: `[build(each) for each in config["hooks"]]`."""

import ast
from collections import Counter
from collections.abc import Iterator

from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project

MAX_HOPS = 4


def configured(node: ast.expr, place: Place) -> list[Value] | None:
    """Return the objects that a comprehension makes of settings that are written out; `None` for anything else."""
    one = node.generators[0] if isinstance(node, ast.ListComp) and len(node.generators) == 1 else None
    if one is None or one.ifs or not isinstance(node, ast.ListComp) or not isinstance(node.elt, ast.Call):
        return None
    if tail_of(one.target) not in {n.id for n in walk(node.elt) if isinstance(n, ast.Name)}:
        return None
    listed, where = _written(one.iter, place)
    if not isinstance(listed, ast.List | ast.Tuple):
        return None
    classes = place.project.once(_named)[0]
    found = [_made(setting, classes, where) for setting in listed.elts]
    known = [value for value in found if value is not None]
    return known if known and len(known) == len(found) else None


def _written(node: ast.expr, place: Place) -> tuple[ast.expr, Place]:
    """Return the expression that a variable, or what stands under a key of one, was written out as."""
    for _ in range(MAX_HOPS):
        if isinstance(node, ast.Subscript):
            held, where = _written(node.value, place)
            under = _under(held, node.slice)
            if under is None:
                break
            node, place = under, where
            continue
        behind = place.through(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if behind is None:
            break
        node, place = behind
    return node, place


def _under(held: ast.expr, key: ast.expr) -> ast.expr | None:
    """Return what stands under a key of a mapping that is written out."""
    if not isinstance(key, ast.Constant):
        return None
    return next((value for name, value in _pairs(held) if name == key.value), None)


def _pairs(held: ast.expr) -> Iterator[tuple[object, ast.expr]]:
    if isinstance(held, ast.Dict):
        pairs = zip(held.keys, held.values, strict=True)
        yield from ((key.value, value) for key, value in pairs if isinstance(key, ast.Constant))
    elif isinstance(held, ast.Call) and tail_of(held.func) == "dict":
        yield from ((keyword.arg, keyword.value) for keyword in held.keywords)


def _made(setting: ast.expr, classes: dict[str, ClassInfo], place: Place) -> Value | None:
    """Return the object of the one class that a setting names, alone or beside the options of its constructor."""
    told = [setting, *(value for _, value in _pairs(setting))]
    named = [classes[text.value] for text in told if isinstance(text, ast.Constant) and text.value in classes]
    if len(named) != 1:
        return None
    at = f"{place.scope.module.path}:{setting.lineno}:{setting.col_offset}"
    return Value(f"{named[0].node.name}@{at}", setting, place, owner=named[0])


def _named(project: Project) -> Iterator[dict[str, ClassInfo]]:
    """Yield the classes by the texts that mean one alone: its name, or what it is registered as."""
    pairs = [(text, info) for info in project.classes.values() for text in _texts(info)]
    counted = Counter(text for text, _ in pairs)
    yield {text: info for text, info in pairs if counted[text] == 1}


def _texts(info: ClassInfo) -> set[str]:
    calls = [decorator for decorator in info.node.decorator_list if isinstance(decorator, ast.Call)]
    given = [argument for call in calls for argument in call.args]
    return {info.node.name, *(str(a.value) for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str))}
