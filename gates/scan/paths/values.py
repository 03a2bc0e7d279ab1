"""The values that a walk along one path of a program knows: objects, and functions with what they see."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, tail_of
from gates.scan.program.scope import Scope

if TYPE_CHECKING:
    from gates.scan.paths.place import Place


class _Unset:
    """No constant is known."""


UNSET = _Unset()


@dataclass(frozen=True, eq=False)
class Closure:
    """A function as a value: what it sees of the variables around it, and what it is bound to."""

    node: Function | ast.Lambda
    scope: Scope
    outer: "Mapping[str, Value]"
    bound: "tuple[Value, ...]" = ()
    named: "Mapping[str, Value]" = field(default_factory=dict)
    owner: ClassInfo | None = None


@dataclass(eq=False)
class Value:
    """An object: `key` is its identity along a path; `node`, read at `place`, is the expression that made it.

    It is never changed; one that is `frozen` takes three times as long to make.

    A path that left a block keeps what it returned as the `rest`.
    """

    key: str
    node: ast.expr | None = None
    place: "Place | None" = None
    constant: object = UNSET
    closure: Closure | None = None
    owner: ClassInfo | None = None
    kind: str | None = None
    rest: "Value | None" = None

    @cached_property
    def tells(self) -> bool | str:
        """Return whether it is told from others whatever is looked for, or what the call that made it is called."""
        if self.is_known or self.closure is not None or (self.owner is not None and self.node is None):
            return True
        made = self.node
        tail = tail_of(made.func) if isinstance(made, ast.Call) else ""
        tail = tail_of(made.args[0]) if isinstance(made, ast.Call) and tail == "partial" and made.args else tail
        return (tail[:1].isupper() and not tail.isupper()) or tail

    @property
    def is_known(self) -> bool:
        """Return whether its constant is known."""
        return not isinstance(self.constant, _Unset)

    @property
    def type(self) -> str | None:
        """Return the full name of its class."""
        if self.owner is not None:
            return self.owner.name
        if self.kind is not None:
            return self.kind
        if self.node is None or self.place is None:
            return None
        return self.place.type_of(self.node)
