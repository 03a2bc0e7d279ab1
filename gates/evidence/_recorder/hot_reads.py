"""Counts, beside the reads, what waits for an accelerator or empties its cache; leaves out what makes batches."""

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from .host_reads import HostReads
from .places import Places

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
