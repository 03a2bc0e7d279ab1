"""Two states of the tests: those that are gone, skipped or emptied, and assertions that are gone or ask for less."""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gates.evidence._goalposts import selected
from gates.evidence._goalposts.assertions import PART, Assertion, weaker
from gates.evidence._goalposts.move import Move, Part, moved
from gates.evidence._goalposts.repeated import Cases
from gates.evidence._goalposts.written_tests import WrittenTest
from gates.model import Location

ALIKE = 0.6
MOST_PAIRS = 2000
Files = Mapping[str, Mapping[str, WrittenTest]]


@dataclass(frozen=True)
class Placed:
    """A test and the file that it stands in."""

    path: str
    test: WrittenTest

    @property
    def id(self) -> str:
        """Return what pytest calls it."""
        return f"{self.path}::{self.test.name.replace('.', '::')}"

    @property
    def location(self) -> Location:
        """Return where it begins."""
        return Location(path=self.path, line=self.test.line)


def compare(before: Files, after: Files, *, must: frozenset[str] = frozenset(), asked: str = "") -> Iterator[Move]:
    """Yield what the changed tests notice no longer; `must` names the criteria that decide, `asked` is pytest's -m."""
    yield from _of_helpers(_only(before, helpers=True), _only(after, helpers=True))
    before, after = _only(before, helpers=False), _only(after, helpers=False)
    pairs, gone = _paired(before, after)
    yield from _unbound(pairs, after, must)
    for one, other in pairs:
        if selected.by(asked, one.test.marks) and not selected.by(asked, other.test.marks):
            yield moved(Part.TESTS, other.id, "runs", f"deselected by -m {asked}", other.location)
        yield from _weakened(one, other)
    for one in gone:
        where = Location(path=one.path) if one.path in after else None
        yield moved(Part.TESTS, one.id, "a test", "deleted", where)


def again(before: Files, after: Files) -> dict[str, str | None]:
    """Return what became of each test of the changed files, by what pytest calls it: nothing of one that is gone."""
    pairs, gone = _paired(_only(before, helpers=False), _only(after, helpers=False))
    return {**{one.id: other.id for one, other in pairs}, **{one.id: None for one in gone}}


def _only(files: Files, *, helpers: bool) -> Files:
    """Return the tests of some files, or the functions that assert something for them."""
    return {
        path: {name: test for name, test in found.items() if test.is_helper is helpers} for path, found in files.items()
    }


def _of_helpers(before: Files, after: Files) -> Iterator[Move]:
    """Compare the assertions that tests of other files make by calling a function; the tests of its own show theirs."""
    named = {name: Placed(path, found) for path, tests in after.items() for name, found in tests.items()}
    for path, tests in before.items():
        for name, one in tests.items():
            here = after.get(path, {}).get(name)
            other = Placed(path, here) if here else named.get(name)
            if one.asserts and other and not (one.called_here and other.test.called_here):
                yield from _asserts(one, other)


def _paired(before: Files, after: Files) -> tuple[list[tuple[Placed, Placed]], list[Placed]]:
    """Pair the tests of two states, those that were moved or renamed too, and return those that are gone."""
    old = [Placed(path, test) for path, tests in before.items() for test in tests.values()]
    new = {(path, name): Placed(path, test) for path, tests in after.items() for name, test in tests.items()}
    same = [(one, new.pop((one.path, one.test.name))) for one in old if (one.path, one.test.name) in new]
    kept = {one.id for one, _ in same}
    pairs = [*same, *_found_again([one for one in old if one.id not in kept], [*new.values()])]
    kept = {one.id for one, _ in pairs}
    return pairs, [one for one in old if one.id not in kept]


def _unbound(pairs: list[tuple[Placed, Placed]], after: Files, must: frozenset[str]) -> Iterator[Move]:
    """Name the marks that bound a test to a criterion and are gone, save for as many as others got anew."""
    had = {other.id: one.test.criteria for one, other in pairs}
    now = [Placed(path, test) for path, tests in after.items() for test in tests.values()]
    gained = Counter(name for one in now for name in {*one.test.criteria} - {*had.get(one.id, ())})
    for one, other in pairs:
        for name in sorted({*one.test.criteria} - {*other.test.criteria}):
            part = Part.CHANGED if gained[name] > 0 else Part.BAR if name in must else Part.TESTS
            gained[name] -= 1
            yield moved(part, f"{other.id} criterion {name}", "bound", "removed", other.location)


def _found_again(gone: list[Placed], new: list[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """Pair tests that were moved or renamed: of one name elsewhere, of one body, or of nearly the same."""
    left = [*new]
    pairs = 0
    for one in gone:
        other = next((o for o in left if o.test.name == one.test.name), None)
        other = other or next((o for o in left if o.test.body == one.test.body), None)
        if other is None and pairs < MOST_PAIRS:
            pairs += len(left)
            scored = [(_likeness(one.test, o.test), i) for i, o in enumerate(left)]
            best = max(scored, default=(0.0, 0))
            other = left[best[1]] if best[0] >= ALIKE else None
        if other is not None:
            left.remove(other)
            yield one, other


def _likeness(one: WrittenTest, other: WrittenTest) -> float:
    return difflib.SequenceMatcher(
        None, "\n".join(one.body)[:2000], "\n".join(other.body)[:2000], autojunk=False
    ).ratio()


def _weakened(one: Placed, other: Placed) -> Iterator[Move]:
    """Compare a test with what became of it."""
    before, after = one.test, other.test
    had = Counter(before.skips)
    for skip in Counter(after.skips) - had:
        was = next((s for s in (had - Counter(after.skips)) if s.partition("(")[0] == skip.partition("(")[0]), "runs")
        yield moved(Part.TESTS, other.id, was, skip, other.location)
    if before.body and not _does_anything(after) and _does_anything(before):
        yield moved(Part.TESTS, other.id, f"{len(before.body)} statements", "empty", other.location)
        return
    yield from _repeated("cases of", before.cases, after.cases, other)
    if len(before.loops) <= len(after.loops):  # a loop that is gone may have become a parametrization
        yield from _repeated("loop over", before.loops, after.loops, other)
    yield from _asserts(before, other)


def _does_anything(test: WrittenTest) -> bool:
    return any(line not in {"pass", "...", "return", "return None", "assert True"} for line in test.body)


def _repeated(kind: str, before: tuple[Cases, ...], after: tuple[Cases, ...], other: Placed) -> Iterator[Move]:
    """Name what has fewer cases than before, or none any more; one of another name may stand for one that is gone."""
    left = [*after]
    pairs = []
    for one in before:
        same = next((new for new in left if new[0] == one[0]), None)
        pairs.append((one, same))
        left = [new for new in left if new is not same]
    for (names, cases), same in pairs:
        now = same or (left.pop(0) if left else None)
        kept = now[1] if now else ()
        if cases is not None and kept is not None and len(kept) < len(cases) and (now or len(cases) > 1):
            lost = [case for case in cases if case not in kept] if now else []
            more = f": without {', '.join(lost[:3])}" if lost else ""
            what = f"{other.id} {kind} {names}"
            yield moved(Part.TESTS, what, len(cases), f"{len(kept)}{more}" if now else "removed", other.location)


def _asserts(before: WrittenTest, other: Placed) -> Iterator[Move]:
    """Name the assertions that are gone, ask for less, or are made only under a new condition."""
    here = other.location.path
    old, new = _unmatched([*before.asserts], [*other.test.asserts])
    for one, same in _equal(before.asserts, other.test.asserts):
        added = [guard for guard in same.guards if guard not in one.guards]
        if len(same.guards) > len(one.guards) and added:
            place = Location(path=here, line=same.line)
            yield moved(Part.TESTS, f"{other.id} `{one.text}`", "always", f"only if {added[0]}", place)
    lost = []
    for one in old:
        match = next((a for a in new if a.subject == one.subject or weaker(one, a)), None)
        if match is None:
            lost.append(one)
            continue
        new.remove(match)
        why = weaker(one, match)
        if why == PART and (others := [a for a in new if weaker(one, a) == PART]):
            new = [a for a in new if a not in others]  # each part is compared by itself
        elif why:
            place = Location(path=here, line=match.line)
            yield moved(Part.TESTS, f"{other.id} ({why})", one.text, match.text, place)
    for one in lost[: max(0, len(lost) - len(new))]:
        yield moved(Part.TESTS, f"{other.id} assertion", one.text, "removed", other.location)


def _equal(old: tuple[Assertion, ...], new: tuple[Assertion, ...]) -> Iterator[tuple[Assertion, Assertion]]:
    left = [*new]
    for one in old:
        match = next((a for a in left if a.text == one.text), None)
        if match:
            left.remove(match)
            yield one, match


def _unmatched(old: list[Assertion], new: list[Assertion]) -> tuple[list[Assertion], list[Assertion]]:
    pairs = [*_equal(tuple(old), tuple(new))]
    for one, other in pairs:
        old.remove(one)
        new.remove(other)
    return old, new
