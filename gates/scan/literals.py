"""The words that a file must hold for a rule to speak of it: what is without them need not be parsed."""

from collections.abc import Iterator

from gates.scan.rule import Need, Piece, Rule

COMMON = frozenset({"step", "update", "grad", "data"})


def literals(rule: Rule) -> tuple[frozenset[str], ...]:
    """Return sets of words of which a file must hold one whole; an empty set means every file."""
    return tuple(dict.fromkeys(_literals(rule)))


def is_local(rule: Rule) -> bool:
    """Return whether a rule speaks of single pieces of code, so that other files only lend names to it."""
    pieces = [*([rule.piece] if rule.piece else []), *rule.kept]
    return not rule.events and not rule.form.members and not rule.form.require and not any(map(_infers, pieces))


def rooted_literals(rule: Rule) -> tuple[frozenset[str], ...]:
    """Return the same for a rule of single places, with the names that the dotted names in its patterns begin with."""
    pieces = [*([rule.piece] if rule.piece else []), *rule.kept]
    found = [p.words | {name.partition(".")[0] for name in p.dotted} for piece in pieces for p in piece.patterns]
    return tuple(dict.fromkeys(frozenset(words) for words in (*found, *([()] if any(p.words for p in pieces) else []))))


def names(rule: Rule) -> set[str]:
    """Return the dotted names in the patterns of a rule, which a file may have from another under another name."""
    todo = [*([rule.piece] if rule.piece else []), *rule.kept]
    found: set[str] = set()
    while todo:
        piece = todo.pop()
        found |= {name for pattern in piece.patterns for name in pattern.dotted}
        todo += (*piece.inside, *piece.not_inside, *piece.never, *piece.has, *piece.not_has)
    return found


def _infers(piece: Piece) -> bool:
    """Return whether a piece asks what type a value has, or what made it."""
    inner = (*piece.inside, *piece.not_inside, *piece.never, *piece.has, *piece.not_has)
    return any(_asks(need) for need in piece.needs.values()) or any(map(_infers, inner))


def _asks(need: Need) -> bool:
    return bool(need.types or need.made_by) or (need.never is not None and _asks(need.never))


def _literals(rule: Rule) -> Iterator[frozenset[str]]:
    if rule.events:
        from gates.scan.paths.events import tails_of  # most rules have none, and need none of what it imports

        patterns = [p for kind in rule.events for p in (*kind.calls, *kind.enters, *kind.leaves)]
        tails = {tail for pattern in patterns for tail in tails_of(pattern)}
        for tail in sorted(tails - COMMON or tails):
            yield frozenset({tail})
    elif rule.form.members:
        yield frozenset({"class "})
    pieces: list[Piece] = [*([rule.piece] if rule.piece else []), *rule.when, *rule.kept]
    for piece in pieces:
        for pattern in piece.patterns:
            yield pattern.words
        if piece.words:
            yield frozenset()
    for pattern in rule.there:
        yield pattern.words
