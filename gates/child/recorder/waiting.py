"""Waits for batches: timed in the iterators of loaders, and seen in other sources by looking at the thread."""

import functools
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import CO_GENERATOR
from itertools import islice
from pathlib import Path
from time import perf_counter, sleep
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.utils._pytree import tree_iter
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ..asking import HERE, Place, Places

DEEPEST, WIDEST = 200, 256
TORCH = (f"{Path(torch.__file__).parent}/", HERE)


class Feeding:
    """Which code loops over the steps, and which of what it calls hands it the batches.

    That is a generator, a `__next__`, or a function that returned, in one step, a tensor that a model was called with.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._loops, self._feeders = set[CodeType](), set[CodeType]()
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
            if not frame.f_code.co_filename.startswith(HERE):
                called = frame
            frame = frame.f_back
        if called is None or frame is None:
            return False
        code = called.f_code
        generates = bool(code.co_flags & CO_GENERATOR) and code.co_name != "<genexpr>"
        return generates or code in self._feeders or code.co_name == "__next__"

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


class Loading:
    """What a thread waited for loaders in a step; batches that only an evaluation was asked for are no wait."""

    def __init__(self) -> None:
        self.active = self._evaluated = False
        self._pending = self._waited = self._all = 0.0
        self._began = perf_counter()

    @contextmanager
    def during(self) -> Iterator[None]:
        """Count the time of the block, unless it is part of what is counted."""
        if self.active:
            yield
            return
        self._settle()
        self.active, began = True, perf_counter()
        try:
            yield
        finally:
            self.active, self._pending = False, perf_counter() - began
            self._all += self._pending

    def called(self, *, trains: bool) -> None:
        """Take the last batch for one of the training where a model is trained, not only evaluated, with it."""
        self._evaluated = not trains
        if trains:
            self._settle()

    def taken(self) -> tuple[float, float, float]:
        """Return what a step took, what of it was waited for loaders, and what passed outside of them."""
        self._settle()
        now, waited, loading = perf_counter(), self._waited, self._all
        whole = now - self._began
        self._began, self._waited, self._all = now, 0.0, 0.0
        return whole, waited, whole - loading

    def _settle(self) -> None:
        if not self._evaluated:
            self._waited += self._pending
        self._pending, self._evaluated = 0.0, False


class Loaders:
    """Times the iterators of torch's loaders for the rest of the process, each thread by itself."""

    def __init__(self) -> None:
        self._of: defaultdict[int, Loading] = defaultdict(Loading)
        for owner, name in ((_BaseDataLoaderIter, "__next__"), (DataLoader, "__iter__")):
            setattr(owner, name, self._timed(getattr(owner, name)))

    @property
    def own(self) -> Loading:
        """Return what this thread waited."""
        return self._of[threading.get_ident()]

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if is_compiling():
                return original(*args, **kwargs)
            with self.own.during():
                return original(*args, **kwargs)

        return timed


EVERY_S = 0.001


class Sampling:
    """Looks at one thread again and again: whether it waits for a batch, and on which line."""

    def __init__(self, places: Places, feeding: Feeding) -> None:
        self._places, self._feeding = places, feeding
        self._outside = [0, 0]  # looks outside of loaders: at work, and at a wait
        self._lines: Counter[Place] = Counter()  # of all waits
        self._watched: tuple[int, Loading] | None = None
        threading.Thread(target=self._run, name="gates-sampling", daemon=True).start()

    def watch(self, loading: Loading) -> None:
        """Watch the thread that asks for it."""
        self._watched = threading.get_ident(), loading

    def is_watched(self) -> bool:
        """Return whether this is the thread that trains, as far as is known."""
        return self._watched is None or self._watched[0] == threading.get_ident()

    def taken(self) -> tuple[float, dict[Place, int]]:
        """Return the share of the time outside of loaders that was a wait, and the lines of all waits, since then."""
        (work, waits), lines = self._outside, self._lines
        self._outside, self._lines = [0, 0], Counter()
        return waits / (work + waits) if waits else 0.0, lines

    def _run(self) -> None:
        while True:
            sleep(EVERY_S)
            watched = self._watched
            frame = sys._current_frames().get(watched[0]) if watched else None  # noqa: SLF001  # of another thread
            if watched and frame is not None:
                loads = watched[1].active
                waits = loads or self._feeding.makes_batches(frame)
                if waits and (place := self._places.of(frame)):
                    self._lines[place] += 1
                if not loads:
                    self._outside[waits] += 1
            del frame
