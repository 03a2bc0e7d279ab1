"""Calls what trains some steps, and tells of each step how long it took, and what it waited for and read.

    python -m gates_probe.recorder.hot_path QUESTION

A step ends when an optimizer's does. After as many as were asked for, or when the time is up, the process ends.
"""

import sys
from time import monotonic
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..asking import Teller, leave, named, program
from .host_reads import HostReads
from .observing import Journal, held, returned_by
from .waiting import Feeding, Loaders, Sampling

LEAST = 12


class HotPath:
    """Ends a step whenever an optimizer has stepped, and tells of it."""

    def __init__(self, journal: Journal, steps: int, seconds: float) -> None:
        self._journal = journal
        self._steps = steps
        self._until = monotonic() + seconds
        self._rounds = 0
        self._round: set[int] = set()
        self._feeding = Feeding(journal.places)
        self._sampling = Sampling(journal.places, self._feeding)
        self._loaders = Loaders()
        self._reads = HostReads(journal.places, self._aside)

    def listen(self) -> None:
        """Begin to tell; before the project is imported, so that it takes these calls for torch's own."""
        self._reads.listen()
        register_module_forward_pre_hook(self._before)
        register_module_forward_hook(self._after, with_kwargs=True, always_call=True)
        register_optimizer_step_post_hook(self._stepped)

    def _aside(self, frame: FrameType | None) -> bool:
        """Return whether a read is none of the training thread's, or is one of a batch that is made on the host."""
        if not self._sampling.is_watched():
            return True
        return self._loaders.own.active or self._feeding.makes_batches(frame)

    def _before(self, module: nn.Module, _args: object) -> None:
        """Note who calls an outermost model, and whether it trains."""
        if is_compiling():
            return
        loading = self._loaders.own
        loading.modules += 1
        if loading.modules == 1 and not loading.active and next(module.parameters(), None) is not None:
            loading.called(trains=torch.is_grad_enabled())
            self._feeding.looping(sys._getframe(1))  # noqa: SLF001  # as logging does

    def _after(self, _module: nn.Module, args: object, kwargs: object, _output: object = None) -> None:
        if is_compiling():
            return
        loading = self._loaders.own
        loading.modules = max(0, loading.modules - 1)
        if not loading.modules and torch.is_grad_enabled():
            self._feeding.fed((args, kwargs))

    def _stepped(self, optimizer: Optimizer, *_: object) -> None:
        """Tell of the step that has ended; begin the next one."""
        whole, loaders, outside = self._loaders.own.taken()
        share, lines = self._sampling.taken()
        waited = loaders.with_part(outside, share)
        number = self._journal.number(optimizer, "optimizer")
        self._journal.tell(
            "step",
            optimizer=number,
            seconds=whole.seconds,
            waited=waited.seconds,
            late=[min(waited.late, whole.late), whole.late],
            device=next((param.device.type for param in held(optimizer)), ""),
            lines=[[*place, count] for place, count in lines.items()],
            reads=[[*read, count] for read, count in self._reads.taken().items()],
        )
        self._feeding.looping(sys._getframe(1))  # noqa: SLF001
        self._next(number)
        self._loaders.own.taken()  # what was told took its time, too

    def _next(self, number: int) -> None:
        if number in self._round:  # of several optimizers, all have stepped
            self._round.clear()
            self._rounds += 1
            self._feeding.learned()
        elif not self._round:
            self._feeding.learn()
        self._round.add(number)
        if self._rounds >= self._steps or (monotonic() > self._until and self._rounds > LEAST):
            self.end()
        self._sampling.watch(self._loaders.own)
        self._reads.hear_cuda()

    def end(self) -> None:
        """Tell that it was stopped, and leave at once."""
        self._journal.tell("end", stopped=True)
        leave()  # what the project leaves running is none of what was asked for


@program
def main(asked: dict[str, Any], tell: Teller) -> None:
    """Watch the call that was asked for."""
    path = HotPath(Journal(tell, asked["root"]), asked["steps"], asked["seconds"])
    path.listen()
    returned_by(lambda: named(asked["call"])[1](*asked["args"]))
