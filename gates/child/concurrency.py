"""Does one thing of the tested project several times at once, and tells what came of it beside what comes of it alone.

python -m gates_probe.concurrency QUESTION
"""

import inspect
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from types import FrameType
from typing import Any

from .asking import Line, Places, Teller, Unreachable, as_location, ended, found, leave, program, said
from .calculating import Target, built
from .values import TooMuch, Unseen, differences, encode, shown

LOOK_S = 0.05
STILL_S = 2.0
PATIENCE = 10.0
IDLE_S = 0.01  # CPU time that threads which stand still may use
MOST = 2000
PAUSE_S = 1e-5
PAUSES = 400  # that a round is given, about
OFTEN = 0.25
SWITCH_S = 1e-6
OWN_SHARE = 0.6  # of the time, that rounds without forced switches may take
FORCED = 12
FAILED = 3  # rounds that failed are enough
KEPT = 20
NOTHING = "it returns nothing that can be compared; return what it came to (losses, a digest), or 'take' a part of it"


class Calls:
    """Each calls the same function, with arguments made afresh; each result is compared with that of its own alone."""

    enough_s = 0.01  # of work of each thread in a round: what takes less is repeated

    def __init__(self, asked: dict[str, Any]) -> None:
        self._target = Target(asked["call"], None, asked["take"])
        self._each = asked["each"]
        self.workers = len(self._each)

    def fresh(self) -> None:
        """Begin a round."""

    def job(self, worker: int) -> object:
        """Do what one of them does once."""
        function = self._target.bound()
        return self._target.taken(self._target.ended(function(*built(self._each[worker]))))

    def told(self, returned: list[list[object]]) -> list[tuple[int, str]]:
        """Return each result that came of a round, as text, and whose it is."""
        return [(worker, text) for worker, own in enumerate(returned) for text in dict.fromkeys(map(_text, own))]


class Uses:
    """All use one object, which is made afresh for each round; what is read of it afterwards is compared."""

    enough_s = 0.0

    def __init__(self, asked: dict[str, Any]) -> None:
        self._make, self._use, self._read = (found(asked[name]) for name in ("shared", "use", "read"))
        self._args = asked["args"]
        self._numbered = _takes_two(self._use)
        self._times = asked["times"]
        self.workers = asked["workers"]
        self._object: object = None

    def fresh(self) -> None:
        """Make the object."""
        self._object = self._make(*built(self._args))

    def job(self, worker: int) -> object:
        """Use the object as often as one of them does; a second argument numbers the uses of all."""
        use, shared = self._use, self._object
        if self._numbered:
            for number in range(worker * self._times, (worker + 1) * self._times):
                use(shared, number)
        else:
            for _ in range(self._times):
                use(shared)
        return None

    def told(self, returned: list[list[object]]) -> list[tuple[int, str]]:  # noqa: ARG002  # as `Calls` has it
        """Return what is read of the object now."""
        return [(0, _text(ended(self._read(self._object))))]


Work = Calls | Uses


def _text(value: object) -> str:
    return json.dumps(encode(value), sort_keys=True)


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError:
        return False
    except ValueError:  # built in, and does not say
        return True
    return True


def repeated(work: Work, worker: int, enough_s: float) -> Iterator[object]:
    """Yield what comes of the work of one, done until it took long enough, once at least."""
    until = time.monotonic() + enough_s
    for _ in range(MOST):
        yield work.job(worker)
        if time.monotonic() >= until:
            return


def alone(work: Work, enough_s: float) -> tuple[list[tuple[int, str]], float]:
    """Do the work of each by itself, in a thread, as it is done at once; return what came of it, and how long one took.

    What it raises is raised on.
    """
    work.fresh()
    returned: list[list[object]] = []
    raised: list[BaseException] = []
    began = time.monotonic()

    def run() -> None:
        try:
            returned.extend([*repeated(work, worker, enough_s)] for worker in range(work.workers))
        except BaseException as error:  # noqa: BLE001  # raised on, below
            raised.append(error)

    thread = threading.Thread(target=run, name="alone", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return work.told(returned), (time.monotonic() - began) / work.workers


class Forcing:
    """Pauses at random steps of the project's lines.

    What the interpreter promises to do in one step stays whole (`list.append`, `d[k] = v`); `x.n += 1` is several.
    """

    def __init__(self, places: Places, seed: int, chance: float, until: float) -> None:
        self._places = places
        self._draw = Random(seed).random  # noqa: S311  # one of our own: the project's must not notice
        self._chance = chance
        self.steps = 0
        self.pauses = 0
        self._until = until

    def next_chance(self) -> float:
        """Return how often the next round should pause, so that it is given about as many pauses as it can bear."""
        return min(OFTEN, max(1e-5, PAUSES / max(1, self.steps)))

    def entered(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401  # as `sys.settrace` has it
        """Look at each step of the project's code."""
        if self._places.shown(frame.f_code.co_filename) is None or time.monotonic() > self._until:
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, _frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        if event != "opcode":
            return self._stepped
        self.steps += 1
        if self._draw() < self._chance:
            self.pauses += 1
            time.sleep(PAUSE_S)
        return self._stepped


class _Worker:
    """One thread of a round, which begins when all are there."""

    def __init__(self, number: int, work: Work, here: list[int], enough_s: float, forcing: Forcing | None) -> None:
        self.number, self._work, self._here = number, work, here
        self._enough_s, self._forcing = enough_s, forcing
        self.returned: list[object] = []
        self.error: BaseException | None = None
        self.start = self.end = 0.0
        self.thread = threading.Thread(target=self._run, name=f"worker {number + 1}", daemon=True)

    def _run(self) -> None:
        self._here.append(self.number)
        while len(self._here) < self._work.workers:  # busy: who waits for a lock comes late
            pass
        self.start = time.monotonic()
        if self._forcing:
            sys.settrace(self._forcing.entered)
        try:
            self.returned.extend(repeated(self._work, self.number, self._enough_s))
        except BaseException as error:  # noqa: BLE001  # whatever the project raises is told
            self.error = error
        finally:
            sys.settrace(None)
            self.end = time.monotonic()


class AtOnce:
    """Runs all rounds, and tells after each what was seen; a failure is looked for until it was seen a few times."""

    def __init__(self, asked: dict[str, Any], work: Work, first: dict[int, str], took_s: float, tell: Teller) -> None:
        self._asked, self._work, self._first, self._tell = asked, work, first, tell
        self._places = Places(asked["root"])
        expected = (took_s + work.enough_s) * work.workers
        self._still_s = STILL_S + 5 * expected
        self._limit_s = PATIENCE + 50 * expected
        self._differed: list[dict[str, object]] = []
        self._seen: Counter[str] = Counter()

    def run(self) -> None:
        """Run rounds with the interpreter's own switches, then some with switches that are forced at random steps."""
        sys.setswitchinterval(SWITCH_S)
        seen, began = self._seen, time.monotonic()
        until, own = began + self._asked["budget_s"], began + OWN_SHARE * self._asked["budget_s"]
        while seen["met"] < self._asked["rounds"] and seen["failed"] < FAILED:
            self._round()
            if time.monotonic() > own:
                break
        chance = 0.02
        for number in range(FORCED):
            forcing = Forcing(self._places, number, chance, until)
            self._round(forcing)
            chance = forcing.next_chance()
            if seen["failed_forced"] >= FAILED - 1 or time.monotonic() > until or (seen["failed"] and number):
                break

    def _round(self, forcing: Forcing | None = None) -> None:
        """Run one round and tell of it; where a thread does not come to its end, it cannot be followed by another."""
        self._work.fresh()
        here: list[int] = []
        enough_s = 0.0 if forcing else self._work.enough_s
        lot = [_Worker(i, self._work, here, enough_s, forcing) for i in range(self._work.workers)]
        for worker in lot:
            worker.thread.start()
        stood, slow = self._stood(lot, 20 if forcing else 1)
        self._seen["forced" if forcing else "rounds"] += 1
        if stood:
            facts = {"slow": slow, "stood_forced": forcing is not None, "stood": [_standing(*each) for each in stood]}
            at = next((place[:2] for _, place in stood if place), None)
            self._note(**facts, stood_at=as_location(at))
            self._tell("end")
            leave()
        differed = self._unlike(lot)
        self._seen["failed_forced" if forcing else "failed"] += bool(differed)
        self._differed += [{"forced": forcing is not None, **each} for each in differed]
        overlaps = min(worker.end for worker in lot) > max(worker.start for worker in lot)
        self._seen.update({"pauses": forcing.pauses} if forcing else {"met": overlaps})
        self._note()

    def _note(self, **facts: object) -> None:
        self._tell("seen", **self._seen, **facts, differed=self._differed[:KEPT])

    def _unlike(self, lot: list[_Worker]) -> list[dict[str, object]]:
        """Return what came of a round that is something else than alone, and each error."""
        raised = [worker.error for worker in lot if worker.error]
        if not raised:
            try:
                results = self._work.told([worker.returned for worker in lot])
                return [each for at, text in results if (each := self._beside(self._first[at], text))]
            except Exception as error:  # noqa: BLE001  # what is read runs the project's code
                raised = [error]
        innermost = self._places.innermost
        return [{"error": said(error), "place": innermost(error.__traceback__)} for error in raised]

    def _beside(self, alone: str, text: str) -> dict[str, object]:
        """Return what else came of a round than alone, rounding left aside; nothing where that is the same."""
        sure = [each for each in unlike(self._asked, alone, text) if not isinstance(each, Unseen)]
        return {"expected": shown(json.loads(alone), 80), "found": sure[0][:300]} if sure else {}

    def _stood(self, lot: list[_Worker], slower: int) -> tuple[list[tuple[int, Line | None]], bool]:
        """Wait for all; return where those are that do not end, and whether they are only slow."""
        began = still_since = time.monotonic()
        before: object = None
        while alive := [worker for worker in lot if worker.thread.is_alive()]:
            alive[-1].thread.join(LOOK_S)
            now = time.monotonic()
            frames = sys._current_frames()  # noqa: SLF001  # as faulthandler does
            at = [(worker.number, frames.get(worker.thread.ident or 0)) for worker in alive]
            cpu = time.process_time() - time.thread_time()  # of all but this one, which looks
            state = ([(number, id(frame), frame and frame.f_lasti) for number, frame in at], round(cpu / IDLE_S))
            if state != before or now - began < STILL_S:
                before, still_since = state, now
            slow = now - began > self._limit_s * slower
            if slow or now - still_since > self._still_s:
                return [(number, self._places.line_of(frame)) for number, frame in at], slow
        return [], False


def _standing(number: int, line: Line | None) -> str:
    return f"thread {number + 1} {f'at {line[0]}:{line[1]} ({line[2]})' if line else 'outside the project'}"


def unlike(asked: dict[str, Any], one: str, other: str) -> list[str]:
    """Return what two results that were written down differ in, within the tolerance that is asked for."""
    within = {"tolerance": asked["tolerance"], "relative": asked["relative"]}
    return [] if one == other else differences(json.loads(one), json.loads(other), **within)


def unclear(asked: dict[str, Any], first: dict[int, str], again: dict[int, str]) -> str:
    """Return why what comes of it alone is no measure, or nothing where it is one."""
    for worker, text in first.items():
        off = unlike(asked, text, again[worker])
        if off and not isinstance(off[0], Unseen):
            return f"alone it gives something else the second time: {off[0]}; seed it, or 'take' what stays the same"
        own = differences(json.loads(text), json.loads(text))
        if own or text == "null":
            return f"{NOTHING} ({own[0]})" if own else NOTHING
        if "expected" in asked and (off := unlike(asked, json.dumps(asked["expected"]), text)):
            return f"one after the other the uses do not give what is expected either: {off[0]}"
    return ""


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Do it alone, and then at once; alone also as in a round, so that what changes with each call is seen to."""
    work = Calls(question) if question["call"] else Uses(question)
    try:
        results, took_s = alone(work, 0.0)
        again, _ = alone(work, work.enough_s)
    except TooMuch as error:
        raise Unreachable(f"what it returns cannot be compared: {error}") from error
    first = dict(results)
    last = dict(again) | {worker: text for worker, text in again if text != first[worker]}
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    tell("alone", unclear=unclear(question, first, last), free_threaded=free_threaded)
    AtOnce(question, work, first, took_s, tell).run()
