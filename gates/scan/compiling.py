"""The compiler of code rules: what their files say made ready to be applied."""

import re
from collections.abc import Callable, Mapping

from gates.scan.automata.automaton import MARKERS
from gates.scan.automata.order import Order, OrderError
from gates.scan.form import Constraint, EventForm, RuleForm, Shape, Vocabulary
from gates.scan.pattern import Pattern, PatternError
from gates.scan.rule import EventKind, Need, Needs, OrderRule, Piece, Rule
from gates.task.yaml_source import Key, did_you_mean

AROUND = frozenset({"loop", "function", "class", "async", "module", "handler"})
HOLE = re.compile(r"\$[A-Z]+")


class RuleError(ValueError):
    """A part of a rule that cannot be compiled: where in the rule, and what is wrong."""

    def __init__(self, key: Key, message: str) -> None:
        super().__init__(message)
        self.key = key


def compiled(form: RuleForm, source: str, vocabulary: Callable[[str], Vocabulary]) -> Rule:
    """Compile a rule; raise `RuleError` with the key of what cannot be."""
    kept = _pieces(form.kept, ("kept",))
    if form.events is not None:
        return _order_rule(form, source, vocabulary, kept)
    if form.require is not None:
        there = _patterns(form.require.patterns, ("require", "pattern" if form.require.pattern else "any"))
        return Rule(form, source, kept=kept, there=there, when=_pieces(form.require.when, ("require", "when")))
    if form.members:
        return Rule(form, source, kept=kept)
    return Rule(form, source, piece=_piece(form, ()), kept=kept)


def _order_rule(form: RuleForm, source: str, vocabulary: Callable[[str], Vocabulary], kept: tuple[Piece, ...]) -> Rule:
    assert form.events is not None
    shared = vocabulary(form.events.use) if form.events.use else None
    events = [_event(name, one, ("events", name)) for name, event in form.events.own.items() for one in event]
    events += [
        _event(name, one, ("events",))
        for name, event in (shared.events if shared else {}).items()
        for one in event
        if name not in form.events.own
    ]
    where = {**(shared.where if shared else {}), **form.where}
    names = [event.name for event in events]
    _check_of(form, [text for each in (form.events, shared) if each for text in HOLE.findall(each.model_dump_json())])
    return Rule(
        form,
        source,
        kept=kept,
        events=tuple(events),
        needs=_needs(where, ("where",)),
        never=_orders(form, "never", names),
        always=_orders(form, "always", names),
        shared=shared.model_dump_json() if shared else "",
        required=tuple(_alternatives(item, [*names, *MARKERS], ("needs", i)) for i, item in enumerate(form.needs)),
    )


def _check_of(form: RuleForm, holes: list[str]) -> None:
    for kind, items in (("never", form.never), ("always", form.always)):
        for i, item in enumerate(items):
            if item.of and item.of not in holes:
                raise RuleError((kind, i), f"no event binds {item.of!r}{did_you_mean(item.of, holes)}")


def _event(name: str, form: EventForm, key: Key) -> EventKind:
    if not re.fullmatch(r"[a-z]\w*", name):
        raise RuleError(key, f"expected an event's name in small letters, found {name!r}")
    if not (form.any or form.enter or form.leave):
        raise RuleError(key, f"the event {name!r} has no pattern")
    unless, when = _regex(form.unless, (*key, "unless")), _regex(form.when, (*key, "when"))
    calls, enters, leaves = (_patterns(each, key) for each in (form.any, form.enter, form.leave))
    return EventKind(name, calls, enters, leaves, unless, when)


def _pieces(shapes: tuple[Shape, ...], key: Key) -> tuple[Piece, ...]:
    return tuple(_piece(shape, (*key, i)) for i, shape in enumerate(shapes))


def _piece(shape: Shape, key: Key) -> Piece:
    words = tuple(text for text in shape.patterns if text in AROUND)
    plain = tuple(text for text in shape.patterns if text not in AROUND)
    return Piece(
        patterns=_patterns(plain, (*key, "pattern" if shape.pattern else "any")),
        words=words,
        inside=_pieces(shape.inside, (*key, "inside")),
        not_inside=_pieces(shape.not_inside, (*key, "not_inside")),
        never=_pieces(shape.not_, (*key, "not")),
        has=_pieces(shape.has, (*key, "has")),
        not_has=_pieces(shape.not_has, (*key, "not_has")),
        needs=_needs(shape.where, (*key, "where")),
    )


def _needs(where: Mapping[str, Constraint], key: Key) -> Needs:
    return {name.removeprefix("$"): _need(constraint, (*key, name)) for name, constraint in where.items()}


def _need(constraint: Constraint, key: Key) -> Need:
    regex = _regex(constraint.regex, (*key, "regex"))
    return Need(
        types=constraint.type,
        equals=constraint.equals,
        regex=regex,
        names=constraint.is_,
        made_by=_patterns(constraint.from_, (*key, "from")),
        never=_need(constraint.not_, (*key, "not")) if constraint.not_ else None,
    )


def _regex(text: str | None, key: Key) -> re.Pattern[str] | None:
    if not text:
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise RuleError(key, f"not a regular expression: {error}") from error


def _alternatives(text: str, names: list[str], key: Key) -> frozenset[str]:
    alternatives = frozenset(word.strip() for word in text.split("|"))
    for word in sorted(alternatives - set(names)):
        raise RuleError(key, f"there is no event {word!r}{did_you_mean(word, names)}")
    return alternatives


def _orders(form: RuleForm, kind: str, names: list[str]) -> tuple[OrderRule, ...]:
    found = []
    for i, item in enumerate(getattr(form, kind)):
        try:
            order = Order.parse(item.order, names, within_turn=form.scope == "iteration", of=item.of.removeprefix("$"))
            unless = Order.parse(item.unless, names) if item.unless else None
        except OrderError as error:
            raise RuleError((kind, i), str(error)) from error
        place = item.at if item.at != "last" else form.at or "last"
        at = _alternatives(place, ["first", "last", "itself", *names], (kind, i))
        found.append(OrderRule(order, item.says, at, item.again, unless))
    return tuple(found)


def _patterns(texts: tuple[str, ...], key: Key) -> tuple[Pattern, ...]:
    return tuple(_pattern(text, (*key, i) if len(texts) > 1 else key) for i, text in enumerate(texts))


def _pattern(text: str, key: Key) -> Pattern:
    try:
        return Pattern.parse(text)
    except PatternError as error:
        raise RuleError(key, f"{error}, in the pattern {text!r:.80}") from error
