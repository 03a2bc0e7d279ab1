"""The words that a file must hold for a rule to speak of it: what is without them need not be parsed."""

from collections.abc import Iterator

from gates.scan.rule import Piece, Rule

COMMON = frozenset({"step", "update", "grad", "data"})


def literals(rule: Rule) -> tuple[frozenset[str], ...]:
    """Return sets of words of which a file must hold one whole; an empty set means every file."""
    return tuple(dict.fromkeys(_literals(rule)))


def _literals(rule: Rule) -> Iterator[frozenset[str]]:
    if rule.events:
        told = [found for events in rule.required if (found := _words(rule, events))]
        yield from told[0] if told else _words(rule, frozenset(kind.name for kind in rule.events), whole=False)
    elif rule.form.members:
        yield frozenset({"class"})
    pieces: list[Piece] = [*([rule.piece] if rule.piece else []), *rule.when, *rule.kept]
    for piece in pieces:
        for pattern in piece.patterns:
            yield pattern.words
        if piece.words:
            yield frozenset()
    for pattern in rule.there:
        yield pattern.words


def _words(rule: Rule, events: frozenset[str], *, whole: bool = True) -> list[frozenset[str]]:
    """Return the words of each pattern of some events; common ones tell nothing, of any or of the `whole`."""
    kinds = [kind for kind in rule.events if kind.name in events]
    found = [pattern.words for kind in kinds for pattern in (*kind.calls, *kind.enters, *kind.leaves)]
    telling = [words for words in found if not words <= COMMON]
    return telling if len(telling) == len(found) or not whole else []
