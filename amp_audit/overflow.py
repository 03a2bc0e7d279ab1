"""What a training loop does with an overflow: one is injected, and what moved is reported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor, nn

from amp_core.step import Batch, TrainStep

Watched = Callable[[], Mapping[str, Tensor]]


@dataclass(frozen=True)
class Loop:
    """A training loop as the probe sees it; calling it takes one step.

    `still` names what a skipped step must not move, each a callable that returns named tensors; parameters, optimizer
    states and learning rates are watched anyway. `scale` returns the loss scale, if there is one.
    """

    step: Callable[[], object]
    model: nn.Module
    optimizers: Sequence[torch.optim.Optimizer]
    scale: Callable[[], float] | None = None
    still: Mapping[str, Watched] = field(default_factory=dict)

    @classmethod
    def of(cls, train_step: TrainStep, *window: Batch) -> Self:
        """Return the loop that takes `train_step` over one window of batches, again and again."""
        scaler, ema = train_step.scaler, train_step.ema
        still: dict[str, Watched] = {"applied steps": lambda: {"applied": scaler.applied}}
        if ema is not None:
            still["averages"] = lambda: {str(index): average for index, average in enumerate(ema.averages)}
        return cls(
            step=lambda: train_step(*window),
            model=train_step.model,
            optimizers=train_step.optimizers,
            scale=lambda: float(scaler.loss_scale),
            still=still,
        )

    def __call__(self) -> object:
        """Take one step."""
        return self.step()


@dataclass(frozen=True)
class Overflow:
    """What one step with an infinite gradient came to; `moved` names what should have stood still.

    `poisoned` says whether the gradient was reached at all: if it was not, the rest proves nothing.
    """

    poisoned: bool
    moved: tuple[str, ...]
    scale_before: float | None
    scale_after: float | None

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what is wrong, one sentence each; nothing if the overflow was handled."""
        found = [f"{name} moved" for name in self.moved]
        if not self.poisoned:
            found.append("the poisoned parameter got no gradient, so nothing was tested")
        if self.scale_before is not None and self.scale_before > 1.0 and self.scale_after == self.scale_before:
            found.append(f"the loss scale stayed at {self.scale_before:g}")
        return tuple(found)


def inject_overflow(loop: Loop, *, parameter: nn.Parameter | None = None) -> Overflow:
    """Take one step in which the gradient of a parameter (by default the model's first trainable) is infinite.

    The step's effects on the loop stay: its loss scale is lower afterwards, and it has counted a skipped step.

    Raises:
        ValueError: the model has no trainable parameter.
    """
    trainable = [each for each in loop.model.parameters() if each.requires_grad]
    if not trainable:
        raise ValueError("expected a model with a trainable parameter, found none: set requires_grad")
    hits: list[torch.Size] = []

    def poison(grad: Tensor) -> Tensor:
        hits.append(grad.shape)
        return torch.full_like(grad, torch.inf)

    watched = _watched(loop)
    before = {name: _copies(look()) for name, look in watched.items()}
    scale_before = None if loop.scale is None else loop.scale()
    victim = trainable[0] if parameter is None else parameter
    handle = victim.register_hook(poison)  # type: ignore[no-untyped-call]  # torch declares no types for it
    try:
        loop.step()
    finally:
        handle.remove()
    moved = tuple(name for name, look in watched.items() if _differ(before[name], look()))
    return Overflow(bool(hits), moved, scale_before, None if loop.scale is None else loop.scale())


def _watched(loop: Loop) -> dict[str, Watched]:
    return {
        "parameters": lambda: dict(loop.model.named_parameters()),
        "optimizer state": lambda: _optimizer_state(loop.optimizers),
        "learning rate": lambda: _rates(loop.optimizers),
        **loop.still,
    }


def _optimizer_state(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    return {
        f"{which}.{index}.{key}": torch.as_tensor(value)
        for which, optimizer in enumerate(optimizers)
        for index, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
        if isinstance(value, Tensor | int | float)
    }


def _rates(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    return {
        f"{which}.{index}": torch.as_tensor(group["lr"])
        for which, optimizer in enumerate(optimizers)
        for index, group in enumerate(optimizer.param_groups)
    }


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _differ(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> bool:
    """Return whether any tensor changed; one that was not there before, such as an optimizer's state, may be zero."""
    return any(
        not torch.equal(before[name], tensor) if name in before else bool(tensor.any())
        for name, tensor in after.items()
    )
