"""Counts where values are read back to the host: `.item()`, `bool(tensor)`, `.cpu()`, `print(tensor)` and the like.

    reads = HostReads(Places(root), aside)
    reads.listen()                      # once, before the project is imported; it stays for the life of the process
    ...                                 # a step of the project
    reads.taken()                       # {Read(call, place, by, device): count} since the last time it was asked

Each read waits, on an accelerator, for all that was asked of it before. It is counted wherever the tensor lies, so that
a run on a CPU tells what one on a GPU would wait for; `device` says where it lay. What runs inside of a compiled graph,
or in C++ alone, is not seen.
"""

import functools
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ..places import HERE, Place, Places
from .observing import is_looking

Call = Callable[..., Any]
METHODS = ("item", "tolist", "numpy", "cpu", "nonzero", "argwhere", "equal", "allclose", "is_nonzero", "masked_select",
           "unique", "bincount", "__bool__", "__float__", "__int__", "__index__", "__complex__", "__repr__",
           "__format__", "__contains__", "__array__")  # fmt: skip
FUNCTIONS = ("nonzero", "argwhere", "equal", "allclose", "is_nonzero", "masked_select", "unique", "bincount")
WAITS = ("synchronize", "empty_cache")
SYNCHRONISES = "called a synchronizing CUDA operation"


class Read(NamedTuple):
    """One way in which a value was read: by which call, from which line of the project, in which module it was written.

    `by` is the module whose code reads, such as `torch.utils.data.sampler`; the line of the project is the one that led
    to it.
    """

    call: str
    place: Place | None
    by: str
    device: str


class _Reading(threading.local):
    """Whether this thread is in a read, which may read on its own."""

    inside = False


class HostReads:
    """The reads of a process, counted by call and line, less those that `aside` says are not to be."""

    def __init__(self, places: Places, aside: Callable[[FrameType | None], bool]) -> None:
        self._places = places
        self._aside = aside
        self._hears_cuda = False
        self._count: Counter[Read] = Counter()
        self._reading = _Reading()

    def taken(self) -> dict[Read, int]:
        """Return the reads since the last time that it was asked."""
        count, self._count = self._count, Counter()
        return dict(count)

    def listen(self) -> None:
        """Begin to count, for the rest of the process."""
        for name in METHODS:
            if hasattr(Tensor, name):
                setattr(Tensor, name, self._counting(getattr(Tensor, name), name.strip("_")))
        for name in FUNCTIONS:
            setattr(torch, name, self._scriptable(getattr(torch, name), name))
        for kind in ("cuda", "xpu", "mps", "accelerator"):
            for name in WAITS:
                self._count_calls(getattr(torch, kind, None), name, f"{kind}.{name}")
        torch.cuda.memory.empty_cache = torch.cuda.empty_cache
        for kind in ("Event", "Stream"):
            self._count_calls(getattr(torch.cuda, kind), "synchronize", f"cuda.{kind}.synchronize")
        Tensor.to = self._moving(Tensor.to)  # type: ignore[method-assign]
        Tensor.__getitem__ = self._masking(Tensor.__getitem__)  # type: ignore[method-assign]

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
            elif not self._reading.inside:
                self._note("wait", None, sys._getframe(1))  # noqa: SLF001

        warnings.showwarning = show

    def _count_calls(self, owner: Any, name: str, word: str) -> None:  # noqa: ANN401
        if hasattr(owner, name):
            setattr(owner, name, self._counting(getattr(owner, name), word))

    def _counting(self, original: Call, name: str) -> Call:
        reading = self._reading

        @functools.wraps(original)
        def read(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if is_compiling() or reading.inside or is_looking():  # nothing of ours may come into a compiled graph
                return original(*args, **kwargs)
            reading.inside = True
            try:
                self._note(name, args[0] if args else None, sys._getframe(1))  # noqa: SLF001  # as logging does
                return original(*args, **kwargs)
            finally:
                reading.inside = False

        return read

    def _scriptable(self, original: Call, name: str) -> Call:
        """Return the same for a function that TorchScript knows by its identity."""
        counting = self._counting(original, name)
        with suppress(AttributeError, ImportError):
            from torch.jit import _builtins  # not everywhere

            operator = _builtins._find_builtin(original)  # type: ignore[no-untyped-call]  # noqa: SLF001
            if operator is not None:
                _builtins._register_builtin(counting, operator)  # noqa: SLF001
        return counting

    def _moving(self, original: Call) -> Call:
        """Count what leaves an accelerator."""

        @functools.wraps(original)
        def to(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            moved = original(tensor, *args, **kwargs)
            if is_compiling():
                return moved
            if isinstance(moved, Tensor) and moved.device.type == "cpu" != tensor.device.type and not is_looking():
                self._note("to", tensor, sys._getframe(1))  # noqa: SLF001
            return moved

        return to

    def _masking(self, original: Call) -> Call:
        """Count an index that is a mask: how much it chooses must be known."""

        @functools.wraps(original)
        def getitem(tensor: Tensor, key: Any) -> Any:  # noqa: ANN401
            if is_compiling() or not isinstance(key, Tensor):
                return original(tensor, key)
            if key.dtype is torch.bool and not self._reading.inside and not is_looking():
                self._note("mask", tensor, sys._getframe(1))  # noqa: SLF001
            return original(tensor, key)

        return getitem

    def _note(self, call: str, tensor: object, frame: FrameType | None) -> None:
        if self._aside(frame):
            return
        while frame is not None and frame.f_code.co_filename.startswith(HERE):
            frame = frame.f_back
        by = str(frame.f_globals.get("__name__", "")) if frame else ""
        device = tensor.device.type if isinstance(tensor, Tensor) else ""
        self._count[Read(call, self._places.of(frame), by, device)] += 1
