"""Concurrency: callables of the project run several times at once, in threads."""

import json
from typing import Self

from pydantic import ValidationError

from gates.check import Evidence
from gates.child.calculating.likeness import Unseen, differences
from gates.child.calculating.values import shown
from gates.child.probing import Entry, Probe, Probed, location, number, probing
from gates.child.process import ProcessRun
from gates.config import Context
from gates.model import Location, Model
from gates.task.probes import Concurrent
from gates.task.task import Task


class Differed(Model):
    """A round in which something else came of it than alone: what, in words, or the error that was raised."""

    worker: int
    number: int
    forced: bool
    expected: str = ""
    found: str = ""
    error: str = ""
    place: Location | None = None


class Stood(Model):
    """Where a thread stood still: the project's lines of its stack, the innermost first."""

    worker: int
    places: tuple[Location, ...] = ()
    functions: tuple[str, ...] = ()


class Switched(Model):
    """A line after which, and the last before which, it is enough that the others run to change what comes of it."""

    place: Location
    function: str
    until: Location


class Together(Model):
    """One thing that was done at once, in threads; rounds count where they were at it together."""

    index: int
    process: ProcessRun | None = None
    problem: str = ""
    place: Location | None = None
    unclear: str = ""
    complete: bool = False
    alone: str = ""
    alone_s: float = 0.0
    rounds: int = 0
    met: int = 0
    forced: int = 0
    pauses: int = 0
    overlap_s: float = 0.0
    failed: int = 0
    failed_forced: int = 0
    differed: tuple[Differed, ...] = ()
    stood: tuple[Stood, ...] = ()
    slow: bool = False
    stood_forced: bool = False
    switched: tuple[Switched, ...] = ()
    free_threaded: bool | None = None

    @property
    def bound(self) -> float | None:
        """Return the rate below which rounds fail, at 95 %, where none did: the rule of three."""
        return 3 / self.met if self.met and not self.failed else None


PROGRAM = "concurrency.__main__"
KEPT = 20
NOTHING = "it returns nothing that can be compared; return what it came to (losses, a digest), or 'take' a part of it"


class Concurrency(Evidence):
    """All that a task wants to see done at once."""

    seen: tuple[Together, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Do each alone, and at once, in processes of its own."""
        probe = probing(task, context, "concurrency")
        seen = tuple(
            _read(i, one, _asked(probe, one, f"{i}", one.timeout_s or context.timeout_s))
            for i, one in enumerate(task.concurrency)
        )
        return cls(
            how="alone, then several at once: started together, with switches between threads as often as there can be",
            commands=tuple(probe.commands),
            seen=seen,
        )

    def of(self, index: int) -> Together | None:
        """Return what was seen of one thing that a task names."""
        return next((each for each in self.seen if each.index == index), None)


def _asked(probe: Probe, one: Concurrent, name: str, limit_s: float) -> Probed:
    each = one.each or (one.args,) * one.workers
    told = {"call": one.call, "each": each, "take": one.take, "shared": one.shared, "args": one.args, "use": one.use,
            "read": one.read, "times": one.times, "workers": one.count, "rounds": one.rounds,
            "budget_s": one.budget_s}  # fmt: skip
    return probe.ask(PROGRAM, name, told, limit_s)


def _read(index: int, one: Concurrent, probed: Probed) -> Together:
    """Return what a journal tells."""
    base = Together(index=index, process=probed.process, problem=probed.trouble, place=probed.place)
    try:
        return base.model_copy(update=_facts(one, probed))
    except (ValidationError, KeyError, TypeError, ValueError, RecursionError) as error:
        return base.model_copy(update={"problem": f"the journal cannot be read: {type(error).__name__}"})


def _facts(one: Concurrent, probed: Probed) -> dict[str, object]:
    alone = {entry["worker"]: json.loads(str(entry["result"])) for entry in probed.of("alone")}
    differed = list(_differed(one, alone, probed.of("unlike")))
    rounds = probed.of("round")
    own, forced = [r for r in rounds if not r["forced"]], [r for r in rounds if r["forced"]]
    stood = next(iter(probed.of("stood")), {})
    return {
        "problem": probed.trouble, "unclear": _unclear(one, alone, probed),
        "complete": not probed.trouble and bool(alone),
        "alone": next((shown(value, 80) for value in alone.values()), ""),
        "alone_s": max((number(entry["seconds"]) for entry in probed.of("took")), default=0.0),
        "rounds": len(own), "met": sum(number(r["overlap_s"]) > 0 for r in own), "forced": len(forced),
        "pauses": sum(int(number(r["pauses"])) for r in forced),
        "overlap_s": sum(max(0.0, number(r["overlap_s"])) for r in own),
        "failed": len({d.number for d in differed if not d.forced}),
        "failed_forced": len({d.number for d in differed if d.forced}), "differed": tuple(differed[:KEPT]),
        "stood": tuple(_stood(stood)), "slow": bool(stood.get("slow")), "stood_forced": bool(stood.get("forced")),
        "switched": tuple(_switched(probed)),
        "free_threaded": next((bool(entry["free_threaded"]) for entry in probed.of("threading")), None),
    }  # fmt: skip


def _differed(one: Concurrent, alone: dict[object, object], entries: list[Entry]) -> list[Differed]:
    """Return the rounds in which something else came of it, rounding left aside."""
    found = []
    for entry in entries:
        worker = int(number(entry["worker"]))
        told = {"worker": worker, "number": int(number(entry["round"])), "forced": bool(entry["forced"])}
        if "error" in entry:
            found.append(Differed(**told, error=str(entry["error"]), place=location(entry.get("place"))))
            continue
        expected, result = alone[worker], json.loads(str(entry["result"]))
        unlike = [text for text in _unlike(one, expected, result) if not isinstance(text, Unseen)]
        if unlike:
            found.append(Differed(**told, expected=shown(expected, 80), found=unlike[0][:300]))
    return found


def _unclear(one: Concurrent, alone: dict[object, object], probed: Probed) -> str:
    """Return why what comes of it alone is no measure, or nothing where it is one."""
    for entry in probed.of("alone"):
        first, again = alone[entry["worker"]], json.loads(str(entry["again"]))
        unlike = _unlike(one, first, again)
        if unlike and isinstance(unlike[0], Unseen):
            return f"{NOTHING} ({unlike[0]})"
        if unlike:
            return f"alone it gives something else the second time: {unlike[0]}; seed it, or 'take' what stays the same"
        if first is None:
            return NOTHING
        if one.shared and "expected" in one.model_fields_set and (off := _unlike(one, one.expected, first)):
            return f"one after the other the uses do not give what is expected either: {off[0]}"
    return ""


def _unlike(one: Concurrent, expected: object, found: object) -> list[str]:
    return differences(expected, found, tolerance=one.tolerance, relative=one.relative)


def _stood(entry: Entry) -> list[Stood]:
    threads = entry.get("threads")
    found = []
    for worker, stack in threads if isinstance(threads, list) else ():
        places = [(place, str(each[2])) for each in stack if (place := location(each))]
        found.append(Stood(worker=worker, places=tuple(p for p, _ in places), functions=tuple(f for _, f in places)))
    return found


def _switched(probed: Probed) -> list[Switched]:
    return [
        Switched(place=place, function=str(told[2]), until=until)
        for entry in probed.of("line")
        if isinstance(told := entry["place"], list)
        and (place := location(told))
        and (until := location(entry["until"]))
    ]
