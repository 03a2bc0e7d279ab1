"""The rounds in processes: several of our own, started together for each round, each telling of its results."""

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..asking import said
from .work import repeated

if TYPE_CHECKING:
    from ..asking import Teller
    from ..places import Places
    from .work import Alone, Work

SOON_S = 0.02
PATIENCE = 10.0


class Family:
    """Starts the processes, and says when they do what."""

    def __init__(self, asked: dict[str, Any], tell: "Teller") -> None:
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
        argv = [sys.executable, "-m", __package__ or "", str(path), self._asked["journal"]]
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

    def rounds(self, work: "Work", first: "Alone", tell: "Teller", places: "Places") -> None:
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
