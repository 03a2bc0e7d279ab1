"""Where the code of a program sets the attributes of its objects."""

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from gates.scan.program.classes import ClassInfo, sets, stored_in
from gates.scan.program.module import tail_of
from gates.scan.program.nodes import walk

if TYPE_CHECKING:
    from gates.scan.program.project import Project


class Assignments:
    """Answers who sets an attribute of a class's instances."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._family: dict[ClassInfo, list[ClassInfo]] = {}
        self._settings: dict[tuple[ast.AST, str], frozenset[str]] = {}

    def is_reset(self, owner: ClassInfo, name: str) -> bool:
        """Return whether code other than the constructor sets an attribute of a class's instances."""
        if name in self._set_outside:
            return True
        if owner not in self._family:
            near = dict.fromkeys((owner, *self._project.ancestors_of(owner), *self._project.below(owner)))
            self._family[owner] = [info for info in near if self._is_related(info, owner)]
        return any(sets(info, name) for info in self._family[owner])

    def attributes_set(self, function: ast.AST, owner: ClassInfo, depth: int = 3) -> frozenset[str]:
        """Return the attributes that a method sets on its instance, itself or in the methods that it calls."""
        key = (function, owner.name)
        if key not in self._settings:
            self._settings[key] = frozenset()  # a circle sets nothing more
            found = stored_in(function)
            for call in walk(function) if depth else ():
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
                    method = self._project.method(owner, call.func.attr) if own else None
                    found |= self.attributes_set(method[0], owner, depth - 1) if method else frozenset()
            self._settings[key] = frozenset(found)
        return self._settings[key]

    def _is_related(self, info: ClassInfo, owner: ClassInfo) -> bool:
        """Return whether one of two classes is, or extends, the other."""
        if info is owner:
            return True
        types = self._project.types
        return True in {types.is_a(info.name, owner.name), types.is_a(owner.name, info.name)}

    @cached_property
    def _set_outside(self) -> frozenset[str]:
        """Return the attributes that code sets on something other than the instance of the method around it."""
        found: set[str] = set()
        for module in self._project.modules.values():
            for node in module.live.get(ast.Attribute, []):
                stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                if stored and isinstance(node, ast.Attribute) and tail_of(node.value) != "self":
                    found.add(node.attr)
            for call in module.calls.get("setattr", []):
                found |= {str(arg.value) for arg in call.args[1:2] if isinstance(arg, ast.Constant)}
        return frozenset(found)
