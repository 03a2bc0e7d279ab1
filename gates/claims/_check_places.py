"""Claims about files against what stands in them."""

from collections.abc import Sequence

from gates.claims._answer import Answer, confirmed, contradicted, unsupported
from gates.claims.claim import Length, Place, Presence
from gates.claims.sources import Sighting
from gates.model import Location

SHOWN = 3


def place(said: Place, sightings: Sequence[Sighting]) -> Answer:
    """Answer what is said of lines; of several files of one name, the one that speaks most for the claim answers."""
    expected = _expected(said)
    if not sightings:
        return contradicted(expected, f"there is no file {said.path!r} in the project")
    answers = [_in_file(said, sighting, expected) for sighting in sightings]
    for standing in ("confirmed", "unsupported", "contradicted"):
        for answer in answers:
            if answer.standing == standing:
                return answer
    return answers[0]


def _expected(said: Place) -> str:
    where = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in said.lines)
    code = next((text for text in said.quote if not text.strip().startswith("#")), "".join(said.quote[:1]))
    what = f"{code.strip():.60}" if said.quote else said.symbol or said.hint
    return f"{said.path}:{where}" + (f" holds {what!r}" if what else "")


def _in_file(said: Place, seen: Sighting, expected: str) -> Answer:
    here = Location(path=seen.path, line=said.first, last_line=said.last)
    if seen.problem:
        return unsupported(expected, f"{seen.path} was not read: {seen.problem}")
    beyond = [last for _, last in said.lines if last > seen.lines]
    if beyond:
        return contradicted(expected, f"{seen.path} has {seen.lines} lines", Location(path=seen.path))
    if not (said.quote or said.symbol or said.hint) or (said.hint and not seen.bodies):
        return unsupported(expected, "the lines are there; what words say of them was not checked", here)
    found = (*seen.hits, *seen.bodies)
    at = [hit for hit in found if any(hit[0] <= last and first <= hit[1] for first, last in said.lines)]
    if at:
        first, last = at[0]
        return confirmed(expected, f"it stands in {_spans(at)} of {seen.path}",
                         Location(path=seen.path, line=first, last_line=last))  # fmt: skip
    if found:
        there = Location(path=seen.path, line=found[0][0])
        return contradicted(expected, f"it stands in {_spans(found)} of {seen.path}", there)
    if not seen.missing:
        return unsupported(expected, "the lines are there; the quote holds no code that can be looked for", here)
    nowhere = f"{seen.missing!r:.80} stands nowhere in {seen.path}"
    return contradicted(expected, nowhere, Location(path=seen.path))


def _spans(hits: Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in hits[:SHOWN])
    one = len(hits) == 1 and hits[0][0] == hits[0][1]
    return f"line{'' if one else 's'} {shown}" + (" and others" if len(hits) > SHOWN else "")


def length(said: Length, sightings: Sequence[Sighting]) -> Answer:
    """Answer how many lines a file has, blank ones counted or not."""
    expected = f"{said.path} has {said.lines} lines"
    if not sightings:
        return contradicted(expected, f"there is no file {said.path!r} in the project")
    seen = sightings[0]
    if seen.problem:
        return unsupported(expected, f"{seen.path} was not read: {seen.problem}")
    text = f"{seen.lines} lines, {seen.blank} of them blank"
    if any(one.lines - one.blank <= said.lines <= one.lines for one in sightings):
        return confirmed(expected, text, Location(path=seen.path))
    if said.lines < seen.lines:
        return unsupported(expected, f"{text}; comments may have been left out", Location(path=seen.path))
    return contradicted(expected, text, Location(path=seen.path))


def presence(said: Presence, sightings: Sequence[Sighting]) -> Answer:
    """Answer whether a file or a symbol is there."""
    name = said.path or said.symbol
    expected = f"{name} is there"
    if not sightings:
        return contradicted(expected, f"there is no {name!r} in the project")
    first = next((seen for seen in sightings if said.path or seen.bodies), sightings[0])
    if first.problem:
        return unsupported(expected, f"{first.path} was not read: {first.problem}")
    if said.path or first.bodies:
        line = first.bodies[0][0] if first.bodies else None
        return confirmed(expected, "it is there", Location(path=first.path, line=line))
    if first.hits:
        named = Location(path=first.path, line=first.hits[0][0])
        return unsupported(expected, f"{first.path} names it, and does not define it", named)
    return contradicted(expected, f"{first.path} defines no {first.missing!r}", Location(path=first.path))
