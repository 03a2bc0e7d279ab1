"""Keys that a caller reads from a dictionary which the callee never puts there."""

import ast
import difflib
from collections.abc import Iterator

from gates.scan.analyses.reading.batches import keys_of_batches
from gates.scan.analyses.reading.code import (
    Told,
    broken,
    constant,
    function_of,
)
from gates.scan.analyses.reading.dictionaries import TWINS, origins_of
from gates.scan.analyses.reading.keys import Keys, is_decorated, keys_of, keys_returned, keys_yielded
from gates.scan.analyses.reading.records import absent_fields
from gates.scan.analyses.reading.running import Origin
from gates.scan.analyses.reading.saved import keys_on_file
from gates.scan.analyses.reading.texts import Reader, fits
from gates.scan.analyses.reading.written import keys_written
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner, text_of, walk
from gates.scan.program.project import Project
from gates.scan.site import Site

Written = tuple[Keys, ast.Dict | ast.Call | Function, Module]
WORDS = ("return {", "return dict(", "yield {", '"] = ', "'] = ", ", {", "= {", "asdict", "TypedDict", "= dict(",
         "NamedTuple")  # fmt: skip
ALIKE = 0.6
WRITTEN_ALONE = {"forward", "__getitem__", "__call__", *TWINS.values()}


def look(project: Project) -> Iterator[Site]:
    """Yield each `result["key"]` of a call whose function returns only dictionaries without that key."""
    for module in project.modules.values():
        for node in module.live.get(ast.Subscript, []):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                wanted = _keys_of(project, node, module)
                if wanted:
                    yield from _missing(project, module, node, wanted)
                    yield from _unwritten(project, module, node, wanted)
        for read, info, fields in absent_fields(project, module):
            where = f"{info.scope.module.path}:{info.node.lineno}"
            yield broken(module, read, f"{info.node.name} ({where}) has no field {read.attr!r}: {', '.join(fields)}")


def _keys_of(project: Project, node: ast.Subscript, module: Module) -> list[str]:
    """Return the keys that a subscript reads: the one written, or those that a loop over written ones goes over."""
    texts = Reader(project, lambda there, keyed: keys_of(project, there, keyed), own=True).of(node.slice, module)
    return sorted(texts) if texts is not None else []


def _unwritten(project: Project, module: Module, node: ast.Subscript, wanted: list[str]) -> Iterator[Site]:
    """Yield a read of a key that a dictionary lacks which is written out, was written to a file, or is a batch."""
    known: Written | None = keys_written(project, module, node.value) or keys_on_file(project, module, node.value)
    known = known or _of_batches(project, module, node)
    absent = [key for key in wanted if known is not None and not fits(known[0] | project.once(_added)[0], key)]
    if known is not None and absent and not _is_asked(node, module, absent):
        keys, made, there = known
        listed, text = ", ".join(sorted(keys)), ", ".join(map(repr, absent))
        said = f"{text_of(node.value)} ({there.path}:{made.lineno}) has no key {text}, its keys: {listed}"
        yield broken(module, node, said, ("its keys are written in", there, made))


def _of_batches(project: Project, module: Module, node: ast.Subscript) -> Written | None:
    """Return the keys of a batch, where others that are read of it are among those: of what is not all known."""
    found = keys_of_batches(project, module, node.value)
    return found if found is not None and _others_fit(node, module, found[0]) else None


def _missing(project: Project, module: Module, node: ast.Subscript, wanted: list[str]) -> Iterator[Site]:
    found = [(origin, _known(project, module, origin)) for origin in origins_of(project, module, node.value)]
    if not found or any(keys is None for _, keys in found):
        return
    keys = frozenset().union(*(each for _, each in found if each is not None))
    added = project.once(_added)[0]
    absent = [key for key in wanted if not fits(keys | added, key)]
    if not absent or _is_asked(node, module, absent):
        return
    is_sure = all(origin.sure for origin, _ in found) or len(absent) < len(wanted)
    if not is_sure and not _others_fit(node, module, keys):
        return
    target = found[0][0].function
    path = project.scope_of(target, module).module.path
    listed = ", ".join(sorted(keys)) or "none"
    said = "yields" if found[0][0].yields else "returns" if found[0][0].keys is None else "puts together"
    text = ", ".join(map(repr, absent))
    what = f"{target.name} ({path}:{target.lineno}) {said} no key {text}, its keys: {listed}"
    yield broken(module, node, what, *_renamed(project, keys, absent[0]))


def _renamed(project: Project, keys: frozenset[str], absent: str) -> Iterator[Told]:
    """Yield where a key is written that nothing reads, and that is called much like one which is read."""
    close = difflib.get_close_matches(absent, sorted(keys - project.once(_read)[0]), n=1, cutoff=ALIKE)
    written = [
        (key, module)
        for module in project.modules.values() if close
        for made in module.live.get(ast.Dict, ()) if isinstance(made, ast.Dict)
        for key in made.keys if key is not None and constant(key) == close[0]
    ]  # fmt: skip
    if len(written) == 1:
        key, there = written[0]
        yield f"{close[0]!r}, which nothing reads, is written in", there, key


def _read(project: Project) -> Iterator[frozenset[str]]:
    """Yield the keys that anything in a program reads by name: `row["share"]`, `row.get("share")`."""
    modules = project.modules.values()
    read = [n.slice for m in modules for n in m.live.get(ast.Subscript, []) if isinstance(n, ast.Subscript)]
    read += [c.args[0] for m in modules for name in ("get", "pop") for c in m.calls.get(name, ()) if c.args]
    yield frozenset(value for each in read if isinstance(value := constant(each), str))


def _added(project: Project) -> Iterator[frozenset[str]]:
    """Yield the keys that anything in a program sets one by one: `row["share"] = ...`."""
    nodes = (node for module in project.modules.values() for node in module.live.get(ast.Subscript, []))
    slices = (n.slice for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    yield frozenset(s.value for s in slices if isinstance(s, ast.Constant) and isinstance(s.value, str))


def _known(project: Project, module: Module, origin: Origin) -> Keys | None:
    if origin.keys is not None:
        return origin.keys
    if _overridden(project, module, origin.function):
        return None
    there = project.scope_of(origin.function, module).module
    if origin.yields:
        return keys_yielded(project, origin.function, there)
    return keys_returned(project, origin.function, there, origin.place)


def _is_asked(node: ast.Subscript, module: Module, absent: list[str]) -> bool:
    """Return whether a key is read only where it is there: under `if "key" in result`, or in a `try`."""
    for around in module.ancestors(node):
        if isinstance(around, ast.Try) and around.handlers:
            return True
        test = getattr(around, "test", None)
        tests = [test] if isinstance(test, ast.expr) else list(around.values) if isinstance(around, ast.BoolOp) else []
        tests += [t for each in getattr(around, "generators", ()) for t in each.ifs]
        asked = (
            c for t in tests for c in walk(t) if isinstance(c, ast.Compare) and isinstance(c.ops[0], ast.In | ast.NotIn)
        )
        if any(text_of(c.left).strip("'\"") in absent or isinstance(c.left, ast.Name) for c in asked):
            return True
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(_excludes(c, node.slice, absent) for c in inner(around, ast.Compare))
    return False


def _excludes(asked: ast.AST, key: ast.expr, absent: list[str]) -> bool:
    """Return whether a comparison may keep some keys from being read: `if name == "fp32"`, `"share" not in row`."""
    if not isinstance(asked, ast.Compare):
        return False
    sides = [text_of(side) for side in (asked.left, *asked.comparators)]
    is_variable = not isinstance(key, ast.Constant) and text_of(key) in sides
    return is_variable or (isinstance(asked.ops[0], ast.NotIn) and sides[0].strip("'\"") in absent)


def _others_fit(node: ast.Subscript, module: Module, keys: Keys) -> bool:
    """Return whether other keys that are read from the same variable are among those that the function returns."""
    body = function_of(node, module) or module.tree
    others = [
        str(constant(other.slice))
        for other in walk(body)
        if isinstance(other, ast.Subscript) and isinstance(other.slice, ast.Constant)
        and text_of(other.value) == text_of(node.value)
    ]  # fmt: skip
    return isinstance(node.value, ast.Name) and any(fits(keys, other) for other in others)


def _overridden(project: Project, module: Module, target: Function) -> bool:
    """Return whether another class may have put its own method in the place of this one."""
    scope = project.scope_of(target, module)
    if is_decorated(target):
        return True
    if scope.owner is None or project.method_names[target.name] <= 1:
        return False
    return bool(project.extending.get(scope.owner.name)) or target.name not in WRITTEN_ALONE
