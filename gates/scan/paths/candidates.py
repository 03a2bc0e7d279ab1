"""The functions of the program of which a key picks one, where nobody tells which: of `CLIPPERS[args.clip]` all."""

import ast
import re
from collections.abc import Iterator

from gates.scan.paths.asking import text_of
from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.module import tail_of
from gates.scan.ways.hooks import hooks_of
from gates.scan.ways.registries import keyed

OF_TURN = re.compile(r"#|\[\d+\]")  # a key that is another one in the next turn of a loop
MAX_CANDIDATES = 8
Table = tuple[ast.Dict, Place]


def candidates(node: ast.expr | None, place: Place | None) -> tuple[str, dict[str, Value]] | None:
    """Return the key that is asked for, and the functions by their keys; `None` where there is no such choice."""
    holder, asked = keyed(node) if node is not None else (None, None)
    if holder is None or asked is None or place is None or text_of(asked, place) is not None:
        return None
    key = place.key(asked)
    found = list(_registered(holder, place)) or list(_written(holder, place))
    functions = dict(found)
    is_sole = len(functions) == len(found) <= MAX_CANDIDATES
    return (key, functions) if found and is_sole and not OF_TURN.search(key) else None


def table(node: ast.expr, place: Place) -> Table | None:
    """Return the mapping that is written out under a name, in this file or another."""
    behind = place.through(node)
    scope, is_name = place.scope, isinstance(node, ast.Name | ast.Attribute)
    named = scope.dotted(node) if behind is None and is_name else None
    module = place.project.find_module(named.rpartition(".")[0], scope.module) if named else None
    if module is not None and named is not None:
        bound = [b.node for b in module.bindings.get(named.rpartition(".")[2], []) if b.kind == "value"]
        there = Place(place.project, place.project.scope_of(module.tree, module), {}, place.heap)
        behind = (bound[0], there) if len(bound) == 1 and isinstance(bound[0], ast.expr) else None
    return (behind[0], behind[1]) if behind is not None and isinstance(behind[0], ast.Dict) else None


def _registered(holder: ast.expr, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield what the program registers in a mapping of a name."""
    for hook in place.project.once(hooks_of)[0].held(tail_of(holder)):
        if hook.event and not hook.is_object:
            yield hook.event, Place(place.project, hook.scope, {}, place.heap).value(hook.node)


def _written(holder: ast.expr, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield what stands in a mapping that is written out."""
    found = table(holder, place)
    for key, value in zip(found[0].keys, found[0].values, strict=True) if found is not None else ():
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and found is not None:
            yield key.value, found[1].value(value)
