"""Does one thing of the tested project several times at once, and tells what came of it beside what comes of it alone.

    python -m gates_probe.concurrency QUESTION

In processes it is the one that starts the others, each of which runs this program too.
"""

import faulthandler
import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..asking import Teller, Unreachable, asked, command, give_up, leave, said
from ..calculating.values import TooMuch
from ..places import Places
from .rounds import AtOnce
from .work import ENOUGH_OF_PROCESS_S, ENOUGH_S, Alone, Work, alone, repeated, work_of

SOON_S = 0.02
PATIENCE = 10.0


class Family:
    """Starts the processes, and says when they do what."""

    def __init__(self, asked: dict[str, Any], tell: Teller) -> None:
        self._asked = asked
        self._tell = tell
        self._lot: list[tuple[subprocess.Popen[bytes], int]] = []

    def run(self) -> None:
        """Have each do it alone, one after the other, then all at once, round by round."""
        until = time.monotonic() + self._asked["limit_s"] * 0.8
        for worker in range(len(self._asked["each"])):
            self._start(worker)
        if not all(self._answer(i, until) for i in range(len(self._lot))):
            return
        took = [self._order(i, "alone", until) for i in range(len(self._lot))]
        if not all(took):
            return
        alone = max(float(each[0]) for each in took if each)
        end, met, number = min(until, time.monotonic() + self._asked["budget_s"]), 0, 0
        while met < self._asked["rounds"] and (time.monotonic() < end or not number):
            overlap = self._round(number, min(until, time.monotonic() + PATIENCE + 50 * len(self._lot) * alone))
            if overlap is None:
                return
            self._tell("round", number=number, forced=False, overlap_s=overlap, seconds=0.0, pauses=0)
            met, number = met + (overlap > 0), number + 1
        self._tell("complete")

    def _round(self, number: int, until: float) -> float | None:
        at = time.monotonic() + SOON_S
        for process, _ in self._lot:
            self._write(process, f"go {number} {at}")
        told = [self._answer(i, until) for i in range(len(self._lot))]
        if not all(told):
            return None
        spans = [(float(each[0]), float(each[1])) for each in told if each]
        return min(end for _, end in spans) - max(begin for begin, _ in spans)

    def _start(self, worker: int) -> None:
        ours, theirs = os.pipe()
        asked = {**self._asked, "where": "process", "worker": worker, "each": [self._asked["each"][worker]],
                 "replies": theirs}  # fmt: skip
        path = Path(self._asked["folder"]) / f"process-{worker}.json"
        path.write_text(json.dumps(asked), encoding="utf-8")
        argv = command(sys.executable, "concurrency.__main__", str(path))
        self._lot.append((subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=(theirs,)), ours))
        os.close(theirs)

    def _order(self, i: int, order: str, until: float) -> list[str] | None:
        self._write(self._lot[i][0], order)
        return self._answer(i, until)

    def _write(self, process: "subprocess.Popen[bytes]", order: str) -> None:
        try:
            assert process.stdin is not None
            process.stdin.write(f"{order}\n".encode())
            process.stdin.flush()
        except OSError:  # gone: its answer says so
            return

    def _answer(self, i: int, until: float) -> list[str] | None:
        """Return what a process answers; tell where it does not."""
        process, replies = self._lot[i]
        with selectors.DefaultSelector() as selector:
            selector.register(replies, selectors.EVENT_READ)
            if not selector.select(max(0.0, until - time.monotonic())):
                self._tell("late", worker=i)
                return None
        words = os.read(replies, 200).decode().split()
        if not words:
            self._tell("gone", worker=i, code=process.wait())
            return None
        return words


class Child:
    """One of the processes: does as it is told."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._worker = int(asked["worker"])
        self._orders = os.fdopen(os.dup(0), encoding="utf-8")
        self._replies = int(asked["replies"])
        os.set_inheritable(self._replies, False)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def ready(self) -> None:
        """Say that it is ready, and wait for its turn."""
        self._say("ready")
        self._orders.readline()

    def rounds(self, work: Work, first: Alone, tell: Teller, places: Places) -> None:
        """Take part in rounds until there are no more."""
        self._say(str(first.seconds + first.enough_s))
        for order in self._orders:
            _, number, at = order.split()
            while time.monotonic() < float(at):
                pass
            begin = time.monotonic()
            told: dict[str, object] = {"worker": self._worker, "round": int(number), "forced": False}
            try:
                returned = [*repeated(work, 0, first.enough_s)]
                end = time.monotonic()
                for _, text in work.told([returned]):
                    if text != first.results[0]:
                        tell("unlike", **told, result=text)
            except BaseException as error:  # noqa: BLE001  # whatever the project raises is told
                end = time.monotonic()
                tell("unlike", **told, error=said(error), place=places.innermost(error.__traceback__))
            self._say(f"{begin} {end}")

    def _say(self, text: str) -> None:
        os.write(self._replies, f"{text}\n".encode())


LATE = 0.9  # of the time limit: then every thread's place is written down


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    question, tell = asked()
    if question["where"] == "processes":
        Family(question, tell).run()
    else:
        faulthandler.dump_traceback_later(LATE * question["limit_s"], exit=True)
        _here(question, tell)
    if question["where"] != "process":
        tell("end")
    leave()


def _here(question: dict[str, Any], tell: Teller) -> None:
    """Do it in threads of this process, or as one process of several."""
    places = Places(question["root"])
    tell("start", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())
    work = _made(question, places, tell)
    child = Child(question) if question["where"] == "process" else None
    if child:
        child.ready()
    first = _alone(work, places, tell, question["worker"] if child else None)
    if child:
        child.rounds(work, first, tell, places)
    else:
        AtOnce(question, work, first, places, tell, time.monotonic() + question["budget_s"]).run()
    tell("threading", free_threaded=not getattr(sys, "_is_gil_enabled", lambda: True)())


def _made(question: dict[str, Any], places: Places, tell: Teller) -> Work:
    try:
        return work_of(question)
    except Unreachable as error:
        give_up(tell, str(error))
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        give_up(tell, said(error), places.innermost(error.__traceback__))


def _alone(work: Work, places: Places, tell: Teller, process: int | None) -> Alone:
    try:
        found = alone(work, ENOUGH_S if process is None else ENOUGH_OF_PROCESS_S)
    except TooMuch as error:
        give_up(tell, f"what it returns cannot be compared: {error}")
    except BaseException as error:  # noqa: BLE001  # whatever the project raises
        give_up(tell, f"alone it raises {said(error)}", places.innermost(error.__traceback__))
    for worker, text in found.results.items():
        tell("alone", process=process, worker=worker, result=text, again=found.again[worker])
    tell("took", seconds=found.seconds)
    return found
