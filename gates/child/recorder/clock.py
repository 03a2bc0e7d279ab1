"""Splits the time of each thread into the phases of training: of what was entered, the last is what time passes in."""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.compiler import is_compiling
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

DATA, FORWARD, BACKWARD, OPTIMIZER, EVALUATION, OTHER = (
    "data", "forward", "backward", "optimizer", "evaluation", "other",
)  # fmt: skip
LATE = "/proc/thread-self/schedstat"
NANO = 1e-9


class Clock:
    """The phases of one thread, one inside of the other, and the time that passed in each by itself.

    A forward pass lingers: the loss that is computed from what it returned belongs to it, up to the backward pass. The
    time of a batch belongs to the evaluation, where that is all that it was for.
    """

    def __init__(self) -> None:
        self._inside: list[str] = [OTHER]
        self._since = perf_counter()
        self._spent: dict[str, float] = {}
        self._before = self._lent = 0.0

    @property
    def phase(self) -> str:
        """Return what time passes in now."""
        return self._inside[-1]

    def enter(self, phase: str) -> int:
        """Enter a phase; return what `leave` must be told."""
        self._pass()
        if phase == DATA:
            self._before, self._lent = self._spent.get(DATA, 0.0), 0.0
        elif phase == EVALUATION and not self._lent:
            self._lend(self._spent.get(DATA, 0.0) - self._before)
        elif phase == FORWARD and self._lent:
            self._lend(-self._lent)
        self._inside.append(phase)
        return len(self._inside) - 1

    def leave(self, entered: int) -> None:
        """Leave a phase, and all that was entered since and lingers."""
        self._pass()
        del self._inside[max(1, entered) :]

    def stop(self, phase: str) -> None:
        """Leave the phase that was entered last, where it is this one."""
        if self.phase == phase:
            self.leave(len(self._inside) - 1)

    def settle(self) -> None:
        """Let a forward pass linger no longer."""
        self.stop(FORWARD)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Be in a phase while the block runs."""
        entered = self.enter(phase)
        try:
            yield
        finally:
            self.leave(entered)

    def taken(self) -> dict[str, float]:
        """Return the seconds in each phase since the last time that it was asked."""
        self._pass()
        spent, self._spent = self._spent, {}
        self._before = self._lent = 0.0
        return spent

    def _lend(self, seconds: float) -> None:
        """Count time of a batch for the evaluation, or, below 0, what was counted so for the batch again."""
        self._spent[DATA] = self._spent.get(DATA, 0.0) - seconds
        self._spent[EVALUATION] = self._spent.get(EVALUATION, 0.0) + seconds
        self._lent += seconds

    def _pass(self) -> None:
        now = perf_counter()
        self._spent[self.phase] = self._spent.get(self.phase, 0.0) + now - self._since
        self._since = now


class Late:
    """How long a thread could have run, and had to wait for a processor; only where the system tells."""

    def __init__(self) -> None:
        self._in_data = 0.0
        try:
            self._file = os.open(LATE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1
        self._since = self.now()

    def now(self) -> float:
        """Return the seconds since the thread began."""
        try:
            return int(os.pread(self._file, 64, 0).split()[1]) * NANO
        except (OSError, IndexError, ValueError):
            return 0.0

    @contextmanager
    def in_data(self) -> Iterator[None]:
        """Count what the block waits for a processor as part of waiting for batches."""
        before = self.now()
        try:
            yield
        finally:
            self._in_data += max(0.0, self.now() - before)

    def taken(self) -> tuple[float, float]:
        """Return how much of a step was waited in batches, and in all, since the last time that it was asked."""
        now, in_data = self.now(), self._in_data
        late, self._since, self._in_data = max(0.0, now - self._since), now, 0.0
        return min(in_data, late), late


class Clocks(threading.local):
    """The clock of each thread."""

    def __init__(self) -> None:
        self.own = Clock()
        self.late = Late()
        self.modules = 0  # how deep in modules the thread is
        self.steps: list[int] = []  # of optimizers under way, what their phases began with


Call = Callable[..., Any]
CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm")


class Phases:
    """Hooks into modules, backward passes, optimizers and loaders for the rest of the process.

    `forward` is told of each outermost module that is about to be trained, `fed` of what one was called with, `stepped`
    of each step of an optimizer, `loading` of each loader whose batches are asked for.
    """

    def __init__(
        self, *, forward: Callable[[], None], fed: Callable[[object], None], stepped: Callable[[Optimizer], None],
        loading: Callable[[Any], None],
    ) -> None:  # fmt: skip
        self.clocks = Clocks()
        self._forward = forward
        self._fed = fed
        self._stepped = stepped
        self._loading = loading

    def listen(self) -> None:
        """Begin to tell; before the project is imported, so that it takes these calls for torch's own."""
        register_module_forward_pre_hook(self._before)
        register_module_forward_hook(self._after, with_kwargs=True, always_call=True)
        register_optimizer_step_pre_hook(self._steps)
        register_optimizer_step_post_hook(self._step_taken)
        self._wrap(Tensor, "backward", BACKWARD)
        self._wrap(torch.autograd, "backward", BACKWARD)
        self._wrap(torch.autograd, "grad", BACKWARD)
        self._wrap(Optimizer, "zero_grad", OPTIMIZER)
        self._wrap(LRScheduler, "step", OPTIMIZER)
        for name in ("unscale_", "step", "update"):
            self._wrap(GradScaler, name, OPTIMIZER)
        for name in CLIPS:
            for owner in (nn.utils, nn.utils.clip_grad):
                if hasattr(owner, name):
                    self._wrap(owner, name, OPTIMIZER)
        self._wrap(_BaseDataLoaderIter, "__next__", DATA)
        self._wrap(DataLoader, "__iter__", DATA, self._loading)

    def _wrap(self, owner: Any, name: str, phase: str, told: Callable[[Any], None] | None = None) -> None:  # noqa: ANN401
        original: Call = getattr(owner, name)
        clocks = self.clocks

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if is_compiling():
                return original(*args, **kwargs)
            if told is not None:
                told(args[0])
            if phase in {BACKWARD, DATA}:
                clocks.own.settle()
            outermost = phase == DATA != clocks.own.phase
            with clocks.own.during(phase), clocks.late.in_data() if outermost else nullcontext():
                return original(*args, **kwargs)

        setattr(owner, name, timed)

    def _steps(self, *_: object) -> None:
        self.clocks.own.settle()
        self.clocks.steps.append(self.clocks.own.enter(OPTIMIZER))

    def _step_taken(self, optimizer: Optimizer, *_: object) -> None:
        if self.clocks.steps:
            self.clocks.own.leave(self.clocks.steps.pop())
        self._stepped(optimizer)

    def _before(self, module: nn.Module, _args: object) -> None:
        if is_compiling():
            return
        clocks = self.clocks
        clocks.modules += 1
        clock, trains = clocks.own, torch.is_grad_enabled()
        if clocks.modules > 1 or clock.phase in {BACKWARD, DATA} or next(module.parameters(), None) is None:
            return
        if not trains:
            clock.settle()
        if clock.phase != FORWARD:
            clock.enter(FORWARD if trains else EVALUATION)
        self._forward()

    def _after(self, _module: nn.Module, args: object, kwargs: object, _output: object = None) -> None:
        if is_compiling():
            return
        clocks = self.clocks
        clocks.modules = max(0, clocks.modules - 1)
        if clocks.modules:
            return
        if clocks.own.phase == EVALUATION:
            clocks.own.stop(EVALUATION)
        elif clocks.own.phase == FORWARD:
            self._fed((args, kwargs))
