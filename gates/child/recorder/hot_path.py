"""Calls what trains some steps, and tells of each step where its time went and what it waited for.

    python -m gates_probe.recorder.hot_path QUESTION

A step ends when an optimizer's does. After as many as were asked for, or when the time is up, the process ends.
"""

import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..places import HERE, Place, Places
from .clock import DATA, FORWARD, OTHER, Clock, Phases
from .host_reads import HostReads
from .observing import Journal, begun, found, held, returned_by

DEEPEST = 200
WIDEST = 64
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


def pointers(value: Any, depth: int = 3) -> Iterator[tuple[int, object]]:  # noqa: ANN401
    """Yield where the data of tensors and arrays lie, which no model has made."""
    if isinstance(value, Tensor):
        if not value.requires_grad and value.layout is torch.strided:
            yield _pointer_of(value), value
    elif isinstance(value, dict) and depth:
        for each in list(value.values())[:WIDEST]:
            yield from pointers(each, depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for each in value[:WIDEST]:
            yield from pointers(each, depth - 1)
    elif type(value).__module__ == "numpy" and hasattr(value, "__array_interface__"):
        yield value.__array_interface__["data"][0], value


def _pointer_of(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except RuntimeError:  # a tensor without a storage of its own
        return 0


EVERY_S = 0.001
Sample = tuple[str, str, Place | None]  # the clock's phase, the phase that it is, the line


class Sampling:
    """Counts samples of one thread, by phase and line."""

    def __init__(self, places: Places, feeding: Feeding) -> None:
        self._places = places
        self._feeding = feeding
        self._count: Counter[Sample] = Counter()
        self._watched: tuple[int, Clock] | None = None
        self._over = threading.Event()
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

    def taken(self) -> dict[Sample, int]:
        """Return the samples since the last time that it was asked."""
        count, self._count = self._count, Counter()
        return dict(count)

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            watched = self._watched
            if watched is None:
                continue
            frame = sys._current_frames().get(watched[0])  # noqa: SLF001  # the only way to see another thread
            if frame is not None:
                self._count[self._sample(watched[1].phase, frame)] += 1
            del frame

    def _sample(self, phase: str, frame: FrameType) -> Sample:
        waits = phase in {OTHER, FORWARD} and self._feeding.makes_batches(frame)
        return phase, DATA if waits else phase, self._places.of(frame)


WAITS = ("synchronize", "empty_cache")
SYNCHRONISES = "called a synchronizing CUDA operation"


class HotReads(HostReads):
    """The reads of the training thread, less those where batches are made, which lie on the host."""

    def __init__(self, places: Places, aside: Callable[[FrameType | None], bool]) -> None:
        super().__init__(places)
        self._aside = aside
        self._warned = False

    def listen(self) -> None:
        """Begin to count, on every kind of accelerator that torch knows."""
        super().listen()
        torch.cuda.memory.empty_cache = torch.cuda.empty_cache
        for kind in ("xpu", "mps", "accelerator"):
            for name in WAITS:
                self._also(getattr(torch, kind, None), name, f"{kind}.{name}")
        for kind in ("Event", "Stream"):
            self._also(getattr(torch.cuda, kind), "synchronize", f"cuda.{kind}.synchronize")

    def hear_cuda(self) -> None:
        """Have CUDA itself tell of what makes the host wait; once it is there, so that it is not begun too early."""
        if self._warned or not torch.cuda.is_available() or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return
        self._warned = True
        torch.cuda.set_sync_debug_mode("warn")
        warnings.filterwarnings("always", message=f".*{SYNCHRONISES}")
        shown = warnings.showwarning

        def show(message: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            if SYNCHRONISES not in str(message):
                shown(message, *args, **kwargs)
            elif not self._reading.inside:
                self._note("wait", None, sys._getframe(1))  # noqa: SLF001

        warnings.showwarning = show

    def _also(self, owner: Any, name: str, word: str) -> None:  # noqa: ANN401
        if hasattr(owner, name):
            setattr(owner, name, self._counting(getattr(owner, name), word))

    def _note(self, call: str, tensor: object, frame: FrameType | None) -> None:
        if not self._aside(frame):
            super()._note(call, tensor, frame)


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
        samples = self._sampling.taken()
        number = self._journal.number(optimizer, "optimizer")
        device = next((param.device.type for param in held(optimizer)), "")
        self._journal.tell(
            "step", optimizer=number, phases=spent, late=late, device=device,
            samples=[[*sample, count] for sample, count in samples.items()],
            reads=[[*read, count] for read, count in self._reads.taken().items()],
        )  # fmt: skip
        self._feeding.looping(sys._getframe(1))  # noqa: SLF001
        self._next(number)
        self._clocks.own.taken(), self._clocks.late.taken()  # what was told took its time, too

    def _next(self, number: int) -> None:
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
