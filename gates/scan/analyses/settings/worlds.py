"""What settings are in one of the worlds that a program may be run in, and what its expressions are there."""

import ast
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from gates.scan.analyses.reading.called import Called, Made
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

MAX_WORLDS = 24  # that one expression is followed in
MAX_OPEN = 6  # in which a condition is told apart


@dataclass(frozen=True)
class Known:
    """A constant, a member of an enumeration, or a type of numbers by its full name."""

    value: Hashable


@dataclass(frozen=True)
class Atom:
    """A setting that nothing in the program tells."""

    name: str


@dataclass(frozen=True)
class Thing:
    """What is written out: a table, a tuple, an object by the call that makes it."""

    node: ast.expr
    scope: Scope


Value = Known | Atom | Thing | None
FALSY = Known(("false",))  # a setting that counts as false, whatever it is
OFF = frozenset({FALSY.value, False, None, ""})


@dataclass(frozen=True)
class World:
    """What is settled of settings: what they are, what they are not, which call of a function or a class counts."""

    settled: dict[str, Hashable] = field(default_factory=dict)
    ruled_out: dict[str, frozenset[Hashable]] = field(default_factory=dict)
    picks: dict[ast.AST, Made] = field(default_factory=dict)

    def where(self, atom: Atom, value: Hashable) -> "World":
        """Return the world in which a setting has a value."""
        return World({**self.settled, atom.name: value}, self.ruled_out, self.picks)

    def without(self, atom: Atom, value: Hashable) -> "World":
        """Return the world in which a setting has another value."""
        ruled_out = {**self.ruled_out, atom.name: self.ruled_out.get(atom.name, frozenset()) | {value}}
        return World(self.settled, ruled_out, self.picks)

    def picking(self, definition: ast.AST, made: Made) -> "World":
        """Return the world in which one call of a function or a class is the one that counts."""
        return World(self.settled, self.ruled_out, {**self.picks, definition: made})

    def is_same(self, atom: Atom, value: Hashable) -> bool | None:
        """Return whether a setting has a value; `None` where that is open."""
        if atom.name in self.settled:
            told = self.settled[atom.name]
            return value in OFF if told == FALSY.value else told == value
        out = self.ruled_out.get(atom.name, frozenset())
        return False if value in out or (FALSY.value in out and value in OFF) else None

    def turns_on_more(self, other: "World") -> bool:
        """Return whether another world differs in nothing but settings that are on here, and off there."""
        differing = {k for k in self.settled | other.settled if self.settled.get(k) != other.settled.get(k)}
        return bool(differing) and all(
            other.settled.get(k) == FALSY.value and FALSY.value in self.ruled_out.get(k, ()) for k in differing
        )

    @cached_property
    def key(self) -> Hashable:
        """Return what tells one world from another."""
        picks = frozenset((id(definition), id(made[0])) for definition, made in self.picks.items())
        return frozenset(self.settled.items()), frozenset(self.ruled_out.items()), picks


Values = list[tuple[Value, World]]
Truths = list[tuple[bool | None, World]]


class Asking(Protocol):
    """Who answers what an expression is in the worlds that go on from one."""

    project: Project

    def within(self, scope: Scope, call: ast.Call | None, caller: Scope, made: Made | None = None) -> Called:
        """Return the scope of a function in one call of it, or for one object."""

    def values(self, node: ast.expr, scope: Scope, world: World) -> Values:
        """Return what an expression may be, each with the world in which it is."""

    def truths(self, node: ast.expr, scope: Scope, world: World) -> Truths:
        """Return whether a condition holds, with the worlds in which it does and does not."""


def few(found: Iterable[tuple[Value, World]]) -> Values:
    """Return answers once each: of what a program does not tell, only that which holds in all of its worlds."""
    once: dict[Value, dict[Hashable, World]] = {}
    for value, world in found:
        once.setdefault(value, {}).setdefault(world.key, world)
    kept: Values = []
    for value, worlds in once.items():
        held = list(worlds.values()) if isinstance(value, Known) else common(worlds.values(), 1)
        kept += [(value, world) for world in held]
    return kept[:MAX_WORLDS]


def few_truths(found: Iterable[tuple[bool | None, World]]) -> Truths:
    """Return truths once each, and no more of them than are worth following."""
    once = {(truth, world.key): (truth, world) for truth, world in found}
    kept: Truths = []
    for side in (True, False, None):
        kept += [(side, world) for world in common([w for truth, w in once.values() if truth is side], MAX_OPEN)]
    return kept


def common(worlds: Iterable[World], most: int = MAX_OPEN) -> list[World]:
    """Return some worlds once each, or if they are many, the one that says what all of them do."""
    once = list({world.key: world for world in worlds}.values())
    if len(once) <= most:
        return once
    first, *others = once
    settled = {k: v for k, v in first.settled.items() if all(k in o.settled and o.settled[k] == v for o in others)}
    ruled_out = {k: v.intersection(*(o.ruled_out.get(k, ()) for o in others)) for k, v in first.ruled_out.items()}
    picks = {k: v for k, v in first.picks.items() if all(k in o.picks and o.picks[k][0] is v[0] for o in others)}
    return [World(settled, {k: v for k, v in ruled_out.items() if v}, picks)]
