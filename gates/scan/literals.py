"""The words that a file must hold for a rule to speak of it: what is without them need not be parsed."""

from collections.abc import Iterator

from gates.scan.rule import Piece, Rule

COMMON = frozenset({"step", "update", "grad", "data"})


def literals(rule: Rule) -> tuple[frozenset[str], ...]:
    """Return sets of words of which a file must hold one whole; an empty set means every file."""
    return tuple(dict.fromkeys(_literals(rule)))


def _literals(rule: Rule) -> Iterator[frozenset[str]]:
    if rule.events:
        from gates.scan.paths.events import tails_of  # most rules have none, and need none of what it imports

        patterns = [p for kind in rule.events for p in (*kind.calls, *kind.enters, *kind.leaves)]
        tails = {tail for pattern in patterns for tail in tails_of(pattern)}
        for tail in sorted(tails - COMMON or tails):
            yield frozenset({tail})
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
