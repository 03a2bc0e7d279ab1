"""Calls what trains some steps, and tells of each step where its time went and what it waited for.

    GATES_WITNESS=3,4,5 python -m gates_recorder.hot_path '{"call": "pkg.mod:name", "args": [], "paths": [],
                                                            "root": "/x", "steps": 50, "seconds": 600}'

A step ends when an optimizer's does. After as many as were asked for, or when the time is up, the process ends.
"""

import os
import sys
from time import monotonic
from types import FrameType
from typing import Any

from torch.optim import Optimizer

from .clock import DATA
from .entry import begun, found, returned_by
from .feeding import Feeding
from .hot_reads import HotReads
from .journal import Journal
from .observing import held
from .phases import Phases
from .sampling import Sampling, stream_is_idle

LEAST = 12


class HotPath:
    """Ends a step whenever an optimizer has stepped, and tells of it."""

    def __init__(self, journal: Journal, steps: int, seconds: float) -> None:
        self._journal = journal
        self._steps = steps
        self._until = monotonic() + seconds
        self._rounds = 0
        self._round: set[int] = set()
        self._loaders: set[tuple[int, object]] = set()
        self._feeding = Feeding(journal.places)
        self._sampling = Sampling(journal.places, self._feeding)
        self._phases = Phases(
            forward=lambda: self._feeding.looping(sys._getframe(2)),  # noqa: SLF001  # as logging does
            fed=self._feeding.fed, stepped=self._stepped, loading=self._loading,
        )  # fmt: skip
        self._clocks = self._phases.clocks
        self._reads = HotReads(journal.places, self._aside)
        self._reads.listen()
        self._phases.listen()

    def _aside(self, frame: FrameType | None) -> bool:
        """Return whether a read is none of the training thread's, or is one of a batch that is made on the host."""
        if not self._sampling.is_watched():
            return True
        return self._clocks.own.phase == DATA or self._feeding.makes_batches(frame)

    def _stepped(self, optimizer: Optimizer) -> None:
        """Tell of the step that has ended; begin the next one."""
        spent, late = self._clocks.own.taken(), self._clocks.late.taken()
        samples, idle = self._sampling.taken()
        number = self._journal.number(optimizer, "optimizer")
        device = next((param.device.type for param in held(optimizer)), "")
        self._journal.tell(
            "step", optimizer=number, phases=spent, late=late, device=device,
            samples=[[*sample, count] for sample, count in samples.items()],
            reads=[[*read, count] for read, count in self._reads.taken().items()],
            idle=[idle.get(True, 0), sum(idle.values())],
        )  # fmt: skip
        self._feeding.looping(sys._getframe(1))  # noqa: SLF001
        self._next(number, device)
        self._clocks.own.taken(), self._clocks.late.taken()  # what was told took its time, too

    def _next(self, number: int, device: str) -> None:
        if number in self._round:  # of several optimizers, all have stepped
            self._round.clear()
            self._rounds += 1
            self._feeding.learned()
        elif not self._round:
            self._feeding.learn()
        self._round.add(number)
        if self._rounds >= self._steps or (monotonic() > self._until and self._rounds > LEAST):
            self.end(stopped=True)
        self._sampling.watch(self._clocks.own)
        self._reads.hear_cuda()
        if device == "cuda" and self._rounds > 1:
            self._sampling.idle_of = stream_is_idle

    def _loading(self, loader: Any) -> None:  # noqa: ANN401
        """Tell of a loader: its workers, and where its samples are made."""
        dataset = getattr(loader, "dataset", None)
        while inner := getattr(dataset, "dataset", None):  # a part of another one
            dataset = inner
        made = getattr(type(dataset), "__getitem__", None) or getattr(type(dataset), "__iter__", None)
        code = getattr(made, "__code__", None)
        path = self._journal.places.shown(code.co_filename) if code else None
        workers = int(getattr(loader, "num_workers", 0))
        key = (workers, path)
        if key not in self._loaders:
            self._loaders.add(key)
            self._journal.tell("loader", workers=workers, made=[path, code.co_firstlineno] if path and code else None)

    def end(self, *, stopped: bool) -> None:
        """Tell that it was all; where it was stopped, leave at once."""
        self._sampling.end()
        self._journal.tell("end", stopped=stopped)
        if stopped:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # what the project leaves running is none of what was asked for


def main() -> None:
    """Watch the call that was asked for."""
    asked, journal = begun()
    path = HotPath(journal, asked["steps"], asked["seconds"])
    call = found(asked["call"], journal)
    returned_by(lambda: call(*asked["args"]))
    path.end(stopped=False)


if __name__ == "__main__":
    main()
