"""What a constructor leaves in the object that it makes of what it was passed."""

import ast
from collections.abc import Iterator

from gates.scan.paths.finding import parameters_of, passed_on
from gates.scan.paths.place import Place
from gates.scan.paths.values import Value
from gates.scan.program.classes import ClassInfo


def given(call: ast.Call, made: Value, owner: ClassInfo, place: Place) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a new object that are objects which its constructor was passed.

    What is passed as a constant is left open: another caller may pass something else.
    """
    found = place.project.method(owner, "__init__")
    if found is None:
        return
    function, _, base = found
    arguments, named = passed_on(call, place)
    names = parameters_of(function, (made, *arguments), named, place)
    passed = (*arguments, *named.values())
    for name, bindings in base.attributes.items():
        node = bindings[0][0].node if len(bindings) == 1 else None
        value = names.get(node.id) if isinstance(node, ast.Name) else None
        if value in passed and not value.is_known and not place.project.is_reset(owner, name):
            yield f"{made.key}.{name}", value
