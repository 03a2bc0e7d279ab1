"""A code rule made ready, its patterns and orders compiled, and what it says of a place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gates.model import Severity
from gates.scan.automata.automaton import MARKERS
from gates.scan.automata.order import Order
from gates.scan.form import RuleForm
from gates.scan.pattern import Pattern
from gates.task.yaml_source import Key

MARKS = frozenset(MARKERS)
ENDS = frozenset({"first", "last", "itself"})  # the last event, and not the call of a helper that has it


@dataclass(frozen=True)
class Need:
    """A compiled constraint."""

    types: tuple[str, ...]
    equals: tuple[str, ...]
    regex: re.Pattern[str] | None
    names: tuple[str, ...]
    made_by: tuple[Pattern, ...]
    never: "Need | None"


Needs = Mapping[str, Need]


@dataclass(frozen=True)
class Piece:
    """A compiled shape; `words` are kinds of surroundings, such as `loop`."""

    patterns: tuple[Pattern, ...]
    words: tuple[str, ...]
    inside: tuple["Piece", ...]
    not_inside: tuple["Piece", ...]
    never: tuple["Piece", ...]
    has: tuple["Piece", ...]
    not_has: tuple["Piece", ...]
    needs: Needs


@dataclass(frozen=True)
class EventKind:
    """A compiled event."""

    name: str
    calls: tuple[Pattern, ...]
    enters: tuple[Pattern, ...]
    leaves: tuple[Pattern, ...]
    unless: re.Pattern[str] | None = None
    when: re.Pattern[str] | None = None

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return all patterns of which code must fit one."""
        return (*self.calls, *self.enters, *self.leaves)


@dataclass(frozen=True)
class OrderRule:
    """A compiled order, what it says where it is broken, and where that is."""

    order: Order
    says: str
    at: frozenset[str]
    again: bool = False
    unless: Order | None = None


@dataclass(frozen=True)
class Rule:
    """A code rule that can be applied; `form` is what its file says, `source` the file.

    `places` tells by the keys of its values where they stand; a project's `own` may come to no end.
    """

    form: RuleForm
    source: str
    piece: Piece | None = None
    kept: tuple[Piece, ...] = ()
    events: tuple[EventKind, ...] = ()
    needs: Needs = field(default_factory=dict)
    never: tuple[OrderRule, ...] = ()
    always: tuple[OrderRule, ...] = ()
    required: tuple[frozenset[str], ...] = ()
    there: tuple[Pattern, ...] = ()
    when: tuple[Piece, ...] = ()
    shared: str = ""
    own: bool = False
    places: Mapping[Key, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def id(self) -> str:
        """Return the rule's id."""
        return self.form.id

    @property
    def severity(self) -> Severity:
        """Return how much a broken place matters."""
        return self.form.severity

    def place(self, key: Key) -> str:
        """Return where in its file a value stands, as `file:line:col`, or else the file."""
        return self.places.get(key, self.source)

    def bears_on(self, possible: frozenset[str]) -> bool:
        """Return whether a function with some events may break the rule, keep it, or do what its class leaves out."""
        beside = set().union(*(set(order.order.positive) - order.at for order in self.always)) - MARKS
        return self.is_about(possible) or (not self._has_what_it_needs(possible) and bool(possible & beside))

    def is_about(self, possible: frozenset[str]) -> bool:
        """Return whether a file with some events has what the rule needs, and one that its orders ask for."""
        return self._has_what_it_needs(possible) and bool(possible & self._wanted)

    def may_speak(self, possible: frozenset[str]) -> bool:
        """Return whether a function whose paths were not all walked may have one that the rule speaks of."""
        if not self._has_what_it_needs(possible):
            return False
        if any(order.order.can_match(possible) for order in self.never):
            return True
        return any(possible & ((order.at - ENDS) or set(order.order.names) - MARKS) for order in self.always)

    def _has_what_it_needs(self, possible: frozenset[str]) -> bool:
        return all(possible & alternatives or alternatives & MARKS for alternatives in self.required)

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return frozenset(name for order in (*self.never, *self.always) for name in order.order.positive) - MARKS

    @property
    def is_certain(self) -> bool:
        """Return whether what it finds is so: an order on a path that was walked whole, or a pattern by itself.

        A pattern that goes by what lies around it, and whatever is missing, is only likely.
        """
        plain = self.piece is not None and not (self.piece.inside or self.piece.has or self.piece.not_has)
        return bool(self.never) or plain


@dataclass(frozen=True, order=True)
class Site:
    """A place that a rule speaks of, and whether that is kept there; `trace` is the path of events to it.

    `undecided` says that reading could not decide: the place is neither kept nor broken.
    """

    path: str
    line: int
    last_line: int
    ok: bool
    message: str
    trace: tuple[str, ...] = field(default=())
    undecided: bool = False
