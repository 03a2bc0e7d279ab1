"""Tells a clock which phase of training begins and ends, whoever's loop it is."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
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

from .clock import BACKWARD, DATA, EVALUATION, FORWARD, OPTIMIZER, Clocks

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
