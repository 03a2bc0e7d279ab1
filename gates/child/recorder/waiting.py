"""Waits for batches, seen by looking at the thread that trains."""

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import CO_GENERATOR
from itertools import islice
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType

import torch
from torch import Tensor
from torch.utils._pytree import tree_iter
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ..asking import HERE, Place, Places

DEEPEST = 200
WIDEST = 256
NOT_DATA = ("<genexpr>",)
TORCH = (str(Path(torch.__file__).parent) + os.sep, HERE)


class Feeding:
    """Which code loops over the steps, and which of what it calls hands it the batches.

    Batches come from what the loop calls directly: a generator, a `__next__`, or a function of the project one of
    whose returned tensors a model was called with. The last is found out in one step in which each return is looked at.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._loops: set[CodeType] = set()
        self._feeders: set[CodeType] = set()
        self._given: dict[int, tuple[CodeType, object]] = {}
        self._learning = False

    def looping(self, frame: FrameType | None) -> None:
        """Note that a model or an optimizer was called from here: no frame outwards makes batches."""
        while frame is not None:
            if not frame.f_code.co_filename.startswith(TORCH):  # which calls models, but also what makes batches
                self._loops.add(frame.f_code)
            frame = frame.f_back

    def learn(self) -> None:
        """Look at what functions of the project return, unless somebody else does."""
        if sys.getprofile() is None:
            self._learning = True
            sys.setprofile(self._seen)

    def learned(self) -> None:
        """Look no longer."""
        if self._learning:
            sys.setprofile(None)
            self._learning = False
            self._given.clear()

    def fed(self, given: object) -> None:
        """Note what a model was called with."""
        if self._learning:
            for pointer, _ in pointers(given):
                if pointer in self._given:
                    self._feeders.add(self._given[pointer][0])

    def makes_batches(self, frame: FrameType | None) -> bool:
        """Return whether the loop waits here for a batch."""
        called: FrameType | None = None
        for _ in range(DEEPEST):
            if frame is None or frame.f_code in self._loops:
                break
            if frame.f_code in LOADERS:
                return True
            if not frame.f_code.co_filename.startswith(HERE):
                called = frame
            frame = frame.f_back
        if called is None or frame is None:
            return False
        code = called.f_code
        if code in self._feeders or code.co_name == "__next__":
            return True
        return bool(code.co_flags & CO_GENERATOR) and code.co_name not in NOT_DATA

    def _seen(self, frame: FrameType, event: str, returned: object) -> None:
        if event == "return" and returned is not None and self._places.shown(frame.f_code.co_filename):
            for pointer, thing in pointers(returned):
                if frame.f_code not in self._loops:
                    self._given[pointer] = (frame.f_code, thing)  # which is held, so that no other gets its place


def pointers(value: object) -> Iterator[tuple[int, object]]:
    """Yield where the data of tensors and arrays lie, which no model has made."""
    for leaf in islice(tree_iter(value), WIDEST):
        if isinstance(leaf, Tensor) and not leaf.requires_grad and leaf.layout is torch.strided:
            with suppress(RuntimeError):  # a tensor without a storage of its own
                yield leaf.untyped_storage().data_ptr(), leaf
        elif type(leaf).__module__ == "numpy" and hasattr(leaf, "__array_interface__"):
            yield leaf.__array_interface__["data"][0], leaf


EVERY_S = 0.001
LOADERS = {_BaseDataLoaderIter.__next__.__code__, DataLoader.__iter__.__code__}


def loads(frame: FrameType | None) -> bool:
    """Return whether a loader of torch is at work here."""
    while frame is not None and frame.f_code not in LOADERS:
        frame = frame.f_back
    return frame is not None


class Looking:
    """Looks at the main thread again and again: whether it waits for a batch, and on which line.

    It is a timer's signal that looks. A thread would have to wait for the interpreter's lock, so that it saw work less
    often than waits. Batches that only an evaluation was asked for are no wait.
    """

    def __init__(self, places: Places, feeding: Feeding) -> None:
        self._places, self._feeding = places, feeding
        self._waits = self._evaluated = False
        self._waited = self._pending = 0.0
        self._began = self._last = perf_counter()
        self._lines: Counter[Place] = Counter()
        self._handler: Callable[[int, FrameType | None], None] = self._look

    def begin(self) -> None:
        """Begin to look, for the rest of the process."""
        # else it would be compiled with what it interrupts
        self._handler = torch.compiler.disable(self._look)  # type: ignore[no-untyped-call]  # as torch has it
        signal.signal(signal.SIGALRM, self._handler)
        signal.setitimer(signal.ITIMER_REAL, EVERY_S)

    def trouble(self) -> str:
        """Return why it does not see what trains, or nothing where it does."""
        if threading.current_thread() is not threading.main_thread():
            return "it trains in another thread than the main one, which alone is looked at"
        own = signal.getsignal(signal.SIGALRM) is self._handler
        return "" if own else "it takes the signal (SIGALRM) by which it is looked at"

    def called(self, *, trains: bool) -> None:
        """Take the last batch for one of the training where a model is trained, not only evaluated, with it."""
        self._evaluated = not trains
        if trains:
            self._settle()

    def taken(self) -> tuple[float, float, Counter[Place]]:
        """Return what a step took, what of it was waited, and the lines of the waits."""
        self._settle()
        now, waited, lines = perf_counter(), self._waited, self._lines
        whole = now - self._began
        self._began, self._waited, self._lines = now, 0.0, Counter()
        return whole, min(whole, waited), lines

    def _settle(self) -> None:
        if not self._evaluated:
            self._waited += self._pending
        self._pending, self._evaluated = 0.0, False

    def _look(self, _number: int, frame: FrameType | None) -> None:
        now, before = perf_counter(), self._waits
        passed, self._last = now - self._last, now
        self._waits = self._feeding.makes_batches(frame)
        if self._waits and not before:
            self._settle()
        if self._waits:
            self._pending += passed
            if place := self._places.of(frame):
                self._lines[place] += 1
        signal.setitimer(signal.ITIMER_REAL, EVERY_S)  # not before: a look must not come within a look
