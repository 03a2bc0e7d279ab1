"""Looks at the training thread once a millisecond: in which phase it is, and on which line of the project."""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType

import torch

from .clock import DATA, FORWARD, OTHER, Clock
from .feeding import Feeding
from .places import Place, Places

EVERY_S = 0.001
Sample = tuple[str, str, Place | None]  # the clock's phase, the phase that it is, the line


class Sampling:
    """Counts samples of one thread, by phase and line, and how often its accelerator had nothing to do."""

    def __init__(self, places: Places, feeding: Feeding) -> None:
        self._places = places
        self._feeding = feeding
        self._count: Counter[Sample] = Counter()
        self._idle: Counter[bool] = Counter()
        self._watched: tuple[int, Clock] | None = None
        self._over = threading.Event()
        self.idle_of: Callable[[], bool] | None = None
        threading.Thread(target=self._run, name="gates-sampling", daemon=True).start()

    def watch(self, clock: Clock) -> None:
        """Watch the thread that asks for it."""
        self._watched = threading.get_ident(), clock

    def end(self) -> None:
        """Look no longer."""
        self._over.set()

    def is_watched(self) -> bool:
        """Return whether this is the thread that trains, as far as is known."""
        return self._watched is None or self._watched[0] == threading.get_ident()

    def taken(self) -> tuple[dict[Sample, int], dict[bool, int]]:
        """Return the samples since the last time that it was asked, and those of the accelerator."""
        count, self._count = self._count, Counter()
        idle, self._idle = self._idle, Counter()
        return dict(count), dict(idle)

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            watched, idle_of = self._watched, self.idle_of
            if watched is None:
                continue
            frame = sys._current_frames().get(watched[0])  # noqa: SLF001  # the only way to see another thread
            if frame is not None:
                self._count[self._sample(watched[1].phase, frame)] += 1
            del frame
            if idle_of is not None:
                self._idle[idle_of()] += 1

    def _sample(self, phase: str, frame: FrameType) -> Sample:
        waits = phase in {OTHER, FORWARD} and self._feeding.makes_batches(frame)
        return phase, DATA if waits else phase, self._places.of(frame)


def stream_is_idle() -> bool:
    """Return whether the accelerator has done all that it was asked for; asking makes nobody wait."""
    return bool(torch.cuda.default_stream().query())
