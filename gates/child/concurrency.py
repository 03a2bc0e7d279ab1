"""Does one thing of the project several times at once, and tells what came of it beside what comes of it alone."""

import inspect
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from types import FrameType
from typing import Any

from .asking import Places, Teller, Unreachable, as_location, ended, found, leave, program, said
from .calculating import Target, built
from .values import TooMuch, Unseen, differences, encode, shown

ENOUGH_S = 0.01  # of calls of each thread in a round: what takes less is repeated
LOOK_S, STILL_S, PATIENCE = 0.05, 4.0, 10.0
IDLE_S = 0.01  # CPU time that threads which stand still may use
MOST = 2000
PAUSES = 400  # that a round is given, about
OFTEN, SWITCH_S = 0.25, 1e-6
FAILED = 3  # rounds that failed are enough
NOTHING = "it returns nothing that can be compared; return what it came to (losses, a digest), or 'take' a part of it"
Told = dict[str, object]
Trace = Callable[[FrameType, str, object], Any]
Results = list[tuple[int, str]]  # each as text, and whose it is


# what each of them does once, and what came of a round in which each did that some times
Round = tuple[Callable[[int], object], Callable[[list[list[object]]], Results]]


def calls(asked: dict[str, Any]) -> Callable[[], Round]:
    """Return what begins a round of calls of one function: each result is compared with that of its own alone."""
    target, each = Target(asked["call"], None, asked["take"]), asked["each"]

    def results(returned: list[list[object]]) -> Results:
        return [(worker, text) for worker, own in enumerate(returned) for text in dict.fromkeys(map(_text, own))]

    return lambda: (lambda worker: target.taken(target.ended(target.bound()(*built(each[worker])))), results)


def uses(asked: dict[str, Any]) -> Callable[[], Round]:
    """Return what begins a round of uses of a fresh object: what is read of it afterwards is compared."""
    make, use, read = (found(asked[name]) for name in ("shared", "use", "read"))
    times, numbered = asked["times"], False
    with suppress(TypeError):  # it takes the object alone
        inspect.signature(use).bind(None, 0)
        numbered = True

    def begun() -> Round:
        shared = make(*built(asked["args"]))

        def job(worker: int) -> None:
            for number in range(worker * times, (worker + 1) * times):
                use(shared, *([number] if numbered else []))

        return job, lambda _: [(0, _text(ended(read(shared))))]

    return begun


def _text(value: object) -> str:
    return json.dumps(encode(value), sort_keys=True)


def repeated(job: Callable[[int], object], worker: int, enough_s: float) -> Iterator[object]:
    """Yield what comes of the work of one, done until it took long enough, once at least."""
    until = time.monotonic() + enough_s
    for _ in range(MOST):
        yield job(worker)
        if time.monotonic() >= until:
            return


def pausing(places: Places, seed: int, chance: float, until: float, count: Counter[str]) -> Trace:
    """Return what pauses at random within lines of the project, but never in one step of Python (`list.append`)."""
    draw = Random(seed).random  # noqa: S311  # one of our own: the project's must not notice

    def stepped(_frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401  # as `sys.settrace` has it
        if event == "opcode":
            count["steps"] += 1
            if draw() < chance:
                count["pauses"] += 1
                time.sleep(1e-5)
        return stepped

    def entered(frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401
        if places.shown(frame.f_code.co_filename) is None or time.monotonic() > until:
            return None
        frame.f_trace_opcodes = True
        return stepped

    return entered


class _Worker:
    """One thread of a round, which begins when all are there."""

    def __init__(self, number: int, run: Callable[["_Worker"], None]) -> None:
        self.number, self.returned = number, list[object]()
        self.error: BaseException | None = None
        self.start = self.end = 0.0
        self.thread = threading.Thread(target=run, args=[self], daemon=True)


class AtOnce:
    """What is done at once: alone first, then in rounds, until a failure was seen a few times; tells after each."""

    def __init__(self, asked: dict[str, Any], tell: Teller) -> None:
        self._asked, self._tell, self._places = asked, tell, Places(asked["root"])
        self._begun, self._enough_s = (calls(asked), ENOUGH_S) if asked["call"] else (uses(asked), 0.0)
        self._workers = range(asked["workers"])
        self._differed, self._seen = list[Told](), Counter[str]()

    def alone(self) -> None:
        """Do it alone, also as in a round, so that what changes with each call is seen to."""
        results, took_s = self._alone(0.0)
        again, _ = self._alone(self._enough_s)
        self._first = dict(results)
        last = dict(again) | {worker: text for worker, text in again if text != self._first[worker]}
        free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
        self._tell("alone", unclear=self._unclear(last), free_threaded=free_threaded)
        expected = (took_s + self._enough_s) * len(self._workers)
        self._still_s, self._limit_s = STILL_S + 5 * expected, PATIENCE + 50 * expected

    def _alone(self, enough_s: float) -> tuple[Results, float]:
        """Do the work of each by itself, in a thread, as at once; return what came of it, and how long one took."""
        (job, results), began = self._begun(), time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(lambda: [[*repeated(job, worker, enough_s)] for worker in self._workers])
        return results(done.result()), (time.monotonic() - began) / len(self._workers)

    def _unclear(self, again: dict[int, str]) -> str:
        """Return why what comes of it alone is no measure, or nothing where it is one."""
        for worker, text in self._first.items():
            off = self._off(text, again[worker])
            if off and not isinstance(off[0], Unseen):
                told = f"alone it gives something else the second time: {off[0]}"
                return f"{told}; seed it, or 'take' what stays the same"
            own = differences(json.loads(text), json.loads(text))
            if own or text == "null":
                return f"{NOTHING} ({own[0]})" if own else NOTHING
            if "expected" in self._asked and (off := self._off(json.dumps(self._asked["expected"]), text)):
                return f"one after the other the uses do not give what is expected either: {off[0]}"
        return ""

    def _off(self, one: str, other: str) -> list[str]:
        """Return the differences of two results that were written down, within the tolerance that is asked for."""
        within = {"tolerance": self._asked["tolerance"], "relative": self._asked["relative"]}
        return [] if one == other else differences(json.loads(one), json.loads(other), **within)

    def run(self) -> None:
        """Run rounds until enough met or failed: with the interpreter's own switches, every other with forced ones."""
        sys.setswitchinterval(SWITCH_S)
        seen, until, chance = self._seen, time.monotonic() + self._asked["budget_s"], 0.02
        while seen["met"] < self._asked["rounds"] and seen["failed"] < FAILED and time.monotonic() < until:
            forced = seen["rounds"] % 2 == 1
            count: Counter[str] = Counter()
            self._round(pausing(self._places, seen["rounds"], chance, until, count) if forced else None)
            seen["pauses"] += count["pauses"]
            self._note()
            if forced:  # about as many pauses as it can bear
                chance = min(OFTEN, max(1e-5, PAUSES / max(1, count["steps"])))

    def _round(self, forcing: Trace | None) -> None:
        """Run one round; where a thread does not come to its end, it cannot be followed by another."""
        (job, results), here, tracing = self._begun(), list[int](), threading.Lock()

        def run(worker: _Worker) -> None:
            with tracing:  # while somebody audits it, two at once are an error of CPython 3.11
                sys.settrace(forcing)
            here.append(worker.number)
            while len(here) < len(self._workers):  # busy: who waits for a lock comes late
                pass
            worker.start = time.monotonic()
            try:
                worker.returned.extend(repeated(job, worker.number, 0.0 if forcing else self._enough_s))
            except BaseException as error:  # noqa: BLE001  # whatever the project raises is told
                worker.error = error
            finally:
                worker.end = time.monotonic()

        lot = [_Worker(number, run) for number in self._workers]
        for worker in lot:
            worker.thread.start()
        self._seen["rounds"] += 1
        self._end_if_standing(lot, forced=forcing is not None)
        if not all(worker.end for worker in lot):
            raise Unreachable("a thread did not do its work")
        differed = self._differing(lot, results)
        self._seen["failed"] += bool(differed)
        self._differed += differed
        self._seen["met"] += min(worker.end for worker in lot) > max(worker.start for worker in lot)

    def _note(self, **facts: object) -> None:
        self._tell("seen", **self._seen, **facts, differed=self._differed[:20])

    def _differing(self, lot: list[_Worker], results: Callable[[list[list[object]]], Results]) -> list[Told]:
        """Return what came of a round that is something else than alone, rounding left aside, and each error."""
        raised = [worker.error for worker in lot if worker.error]
        found: list[Told] = []
        if not raised:
            try:
                for at, text in results([worker.returned for worker in lot]):
                    if sure := [each for each in self._off(self._first[at], text) if not isinstance(each, Unseen)]:
                        found += [{"expected": shown(json.loads(self._first[at]), 80), "found": sure[0][:300]}]
            except Exception as error:  # noqa: BLE001  # what is read runs the project's code
                raised = [error]
        innermost = self._places.innermost
        return found + [{"error": said(error), "place": innermost(error.__traceback__)} for error in raised]

    def _end_if_standing(self, lot: list[_Worker], *, forced: bool) -> None:
        """Wait for all; where some do not end, tell where they are, and whether they are only slow, and leave."""
        began, still = time.monotonic(), 0  # looks: a pause of the whole machine is one
        before: object = None
        while alive := [worker for worker in lot if worker.thread.is_alive()]:
            alive[-1].thread.join(LOOK_S)
            now = time.monotonic()
            frames = sys._current_frames()  # noqa: SLF001  # as faulthandler does
            at = [(worker.number, frames.get(worker.thread.ident or 0)) for worker in alive]
            cpu = time.process_time() - time.thread_time()  # of all but this one, which looks
            state = ([(number, id(frame), frame and frame.f_lasti) for number, frame in at], round(cpu / IDLE_S))
            still, before = still + 1 if state == before else 0, state
            slow = now - began > self._limit_s * (20 if forced else 1)
            if slow or still * LOOK_S > self._still_s:
                stood = [(f"thread {number + 1}", self._places.of(frame)) for number, frame in at]
                place = as_location(next((place for _, place in stood if place), None))
                told = [f"{who} {f'at {p[0]}:{p[1]}' if p else 'outside the project'}" for who, p in stood]
                self._note(slow=slow, stood=told, stood_at=place)
                self._tell("end")
                leave()


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Do it alone, and then at once."""
    at_once = AtOnce(question, tell)
    try:
        at_once.alone()
    except TooMuch as error:
        raise Unreachable(f"what it returns cannot be compared: {error}") from error
    at_once.run()
