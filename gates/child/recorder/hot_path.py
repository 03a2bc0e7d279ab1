"""Calls what trains some steps, and tells of each step how long it took, and what it waited for and read.

A step ends when an optimizer's does. After as many as were asked for, or when the time is up, the process ends.
"""

import functools
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..asking import HERE, Place, Places, Teller, as_location, leave, named, program
from .observing import Outermost, held, returned_by
from .waiting import Feeding, Loaders, Sampling

Call = Callable[..., Any]
FUNCTIONS = ("nonzero", "argwhere", "equal", "allclose", "is_nonzero", "masked_select", "unique", "bincount")
SPECIAL = ("bool", "float", "int", "index", "complex", "repr", "format", "contains", "array")
METHODS = ("item", "tolist", "numpy", "cpu", *FUNCTIONS, *(f"__{name}__" for name in SPECIAL))
WAITS = ("synchronize", "empty_cache")
SYNCHRONISES = "called a synchronizing CUDA operation"


class Read(NamedTuple):
    """One way in which a value was read: which line of the project led to it, and the module whose code reads."""

    call: str
    location: Place | None
    by: str
    device: str


class HostReads:
    """Counts where values are read back to the host: `.item()`, `bool(tensor)`, `.cpu()`, `print(tensor)` and the like.

    It counts wherever the tensor lies (`device`), so that a run on a CPU tells what a GPU would wait for. What runs
    inside of a compiled graph, or in C++ alone, is not seen; what `aside` says is left out.
    """

    def __init__(self, places: Places, aside: Callable[[FrameType | None], bool]) -> None:
        self._places, self._aside = places, aside
        self._hears_cuda = False
        self._count: Counter[Read] = Counter()
        self._reading = threading.local()  # whether a thread is in a read, which may read on its own

    def taken(self) -> dict[Read, int]:
        """Return the reads since the last time that it was asked."""
        count, self._count = self._count, Counter()
        return dict(count)

    def listen(self) -> None:
        """Begin to count, for the rest of the process."""
        for owner, names in ((Tensor, METHODS), (torch, FUNCTIONS)):
            for name in names:
                self._count_calls(owner, name, name.strip("_"))
        for kind in ("cuda", "xpu", "mps", "accelerator"):
            for name in WAITS:
                self._count_calls(getattr(torch, kind, None), name, f"{kind}.{name}")
        torch.cuda.memory.empty_cache = torch.cuda.empty_cache
        for kind in ("Event", "Stream"):
            self._count_calls(getattr(torch.cuda, kind), "synchronize", f"cuda.{kind}.synchronize")
        self._count_calls(Tensor, "to", "to", _leaves_device)
        self._count_calls(Tensor, "__getitem__", "mask", lambda _, i: isinstance(i, Tensor) and i.dtype is torch.bool)

    def hear_cuda(self) -> None:
        """Have CUDA itself tell of what makes the host wait; once it is there, so that it is not begun too early."""
        if self._hears_cuda or not torch.cuda.is_available() or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return
        self._hears_cuda = True
        torch.cuda.set_sync_debug_mode("warn")
        warnings.filterwarnings("always", message=f".*{SYNCHRONISES}")
        shown = warnings.showwarning

        def show(message: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            if SYNCHRONISES not in str(message):
                shown(message, *args, **kwargs)
            elif not getattr(self._reading, "inside", False):
                self._note("wait", None, sys._getframe(1))  # noqa: SLF001

        warnings.showwarning = show

    def _count_calls(self, owner: Any, name: str, word: str, counts: Call = lambda *_, **__: True) -> None:  # noqa: ANN401
        original, reading = getattr(owner, name, None), self._reading
        if original is None:
            return

        @functools.wraps(original)
        def read(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            # nothing of ours may come into a compiled graph
            if is_compiling() or getattr(reading, "inside", False) or not counts(*args, **kwargs):
                return original(*args, **kwargs)
            reading.inside = True
            try:
                self._note(word, args[0] if args else None, sys._getframe(1))  # noqa: SLF001  # as logging does
                return original(*args, **kwargs)
            finally:
                reading.inside = False

        setattr(owner, name, read)

    def _note(self, call: str, tensor: object, frame: FrameType | None) -> None:
        if self._aside(frame):
            return
        while frame is not None and frame.f_code.co_filename.startswith(HERE):
            frame = frame.f_back
        by = str(frame.f_globals.get("__name__", "")) if frame else ""
        device = tensor.device.type if isinstance(tensor, Tensor) else ""
        self._count[Read(call, self._places.of(frame), by, device)] += 1


def _leaves_device(tensor: Tensor, *args: object, **kwargs: object) -> bool:
    given = args[0] if args else kwargs.get("device", kwargs.get("other"))
    return str(given.device if isinstance(given, Tensor) else given) == "cpu" != tensor.device.type


LEAST = 12


class HotPath:
    """Ends a step whenever an optimizer has stepped, and tells of it; of several optimizers, when all have."""

    def __init__(self, tell: Teller, places: Places, steps: int, seconds: float) -> None:
        self._note, self._steps = tell.note, steps
        self._until, self._rounds = monotonic() + seconds, 0
        self._begin()
        self._feeding = Feeding(places)
        self._sampling = Sampling(places, self._feeding)
        self._loaders = Loaders()
        self._reads = HostReads(places, self._aside)

    def _begin(self) -> None:
        self._optimizers: set[int] = set()
        self._seconds = self._waited = 0.0
        self._lines: Counter[Place] = Counter()  # of the waits
        self._read: Counter[Read] = Counter()
        self._device = ""

    def listen(self) -> None:
        """Begin to tell; before the project is imported, so that it takes these calls for torch's own."""
        self._reads.listen()
        Outermost(self._before, self._after)
        register_optimizer_step_post_hook(self._stepped)

    def _aside(self, frame: FrameType | None) -> bool:
        """Return whether a read is none of the training thread's, or is one of a batch that is made on the host."""
        return not self._sampling.is_watched() or self._loaders.own.active or self._feeding.makes_batches(frame)

    def _before(self, module: nn.Module) -> None:
        loading = self._loaders.own
        if not loading.active and next(module.parameters(), None) is not None:
            loading.called(trains=torch.is_grad_enabled())
            self._feeding.looping(sys._getframe(1))  # noqa: SLF001  # as logging does

    def _after(self, _module: nn.Module, *told: object) -> None:
        if torch.is_grad_enabled():
            self._feeding.fed(told[:2])

    def _stepped(self, optimizer: Optimizer, *_: object) -> None:
        whole, loaders, outside = self._loaders.own.taken()
        share, lines = self._sampling.taken()
        if id(optimizer) in self._optimizers:
            self.tell()
            self._feeding.learned()
        elif not self._optimizers:
            self._feeding.learn()
        self._optimizers.add(id(optimizer))
        self._seconds, self._waited = self._seconds + whole, self._waited + loaders + share * outside
        self._lines.update(lines)
        self._read.update(self._reads.taken())
        self._device = next((param.device.type for param in held(optimizer)), "")
        self._feeding.looping(sys._getframe(1))  # noqa: SLF001
        if self._rounds >= self._steps or (monotonic() > self._until and self._rounds > LEAST):
            self._note({"word": "end"})
            leave()  # what the project leaves running is none of what was asked for
        self._sampling.watch(self._loaders.own)
        self._reads.hear_cuda()
        self._loaders.own.taken()  # what was told took its time, too

    def tell(self) -> None:
        """Tell of the step, if there was one, and begin another."""
        if self._optimizers:
            lines = [(as_location(place), count) for place, count in self._lines.items()]
            read = self._read.items()
            reads = [{**one._asdict(), "location": as_location(one.location), "count": count} for one, count in read]
            about = {"seconds": self._seconds, "waited": self._waited, "device": self._device}
            self._note({"word": "step", **about, "lines": lines, "reads": reads})
            self._rounds += 1
            self._begin()


@program
def main(asked: dict[str, Any], tell: Teller) -> None:
    """Watch the call that was asked for."""
    path = HotPath(tell, Places(asked["root"]), asked["steps"], asked["seconds"])
    path.listen()
    returned_by(lambda: named(asked["call"])[1](*asked["args"]))
    path.tell()
