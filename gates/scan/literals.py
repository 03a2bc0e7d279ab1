"""The words that a file must hold for a rule to speak of it: what is without them need not be parsed."""

import importlib
import json
import re
from collections.abc import Iterator

from gates.scan.events import tails_of
from gates.scan.rule import Need, Piece, Rule

ANALYSES = "gates.scan.analyses"
_DOTTED = re.compile(r"(?<![\w.)\]$])([a-z_]\w*)(?:\.\w+)*\.(\w+)")
COMMON = frozenset({"step", "update", "grad", "data"})


def literals(rule: Rule) -> tuple[frozenset[str], ...]:
    """Return sets of words of which a file must hold one whole; an empty set means every file."""
    return tuple(dict.fromkeys(_literals(rule)))


def is_local(rule: Rule) -> bool:
    """Return whether a rule speaks of single pieces of code, so that other files only lend names to it."""
    pieces = [*([rule.piece] if rule.piece else []), *rule.kept]
    return not rule.events and not rule.form.analysis and not rule.form.require and not any(map(_infers, pieces))


def lendable(rule: Rule) -> set[str]:
    """Return the first and last names of the dotted names in a rule's patterns, which an import can name otherwise."""
    texts = json.dumps(rule.form.model_dump(mode="json", include={"pattern", "any", "kept"}))
    return {".".join(found) for found in _DOTTED.findall(texts)}


def _infers(piece: Piece) -> bool:
    """Return whether a piece asks what type a value has, or what made it."""
    inner = (*piece.inside, *piece.not_inside, *piece.never, *piece.has, *piece.not_has)
    return any(_asks(need) for need in piece.needs.values()) or any(map(_infers, inner))


def _asks(need: Need) -> bool:
    return bool(need.types or need.made_by) or (need.never is not None and _asks(need.never))


def _literals(rule: Rule) -> Iterator[frozenset[str]]:
    if rule.events:
        patterns = [p for kind in rule.events for p in (*kind.calls, *kind.enters, *kind.leaves)]
        tails = {tail for pattern in patterns for tail in tails_of(pattern)}
        for tail in sorted(tails - COMMON or tails):
            yield frozenset({tail})
    elif rule.form.analysis:
        module = importlib.import_module(f"{ANALYSES}.{rule.form.analysis.replace('-', '_')}")
        for word in getattr(module, "WORDS", ("",)):
            yield frozenset({word} if word else ())
    pieces: list[Piece] = [*([rule.piece] if rule.piece else []), *rule.when, *rule.kept]
    for piece in pieces:
        for pattern in piece.patterns:
            yield pattern.words
        if piece.words:
            yield frozenset()
    for pattern in rule.there:
        yield pattern.words
