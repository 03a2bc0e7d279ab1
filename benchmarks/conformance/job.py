"""A training job that every library can be given, and what is seen while it runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from amp_core.step import Batch, LossFn

Window: TypeAlias = tuple[Batch, ...]
INF = float("inf")


def a_model() -> nn.Module:
    """Return a small regression model, float32 (n, 6) -> (n, 2), the same on every call."""
    return seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)))


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """Return what `make` returns under a fixed seed; the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return make()


def a_batch(seed: int = 0, *, factor: float = 1.0, rows: int = 5) -> Batch:
    """Return float32 inputs (rows, 6), targets (rows, 2) and the scalar that the loss is multiplied by."""
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = torch.randn(rows, 6, generator=generator), torch.randn(rows, 2, generator=generator)
    return inputs, targets, torch.tensor(factor)


def windows(count: int, size: int = 1, bad: Mapping[int, float] | None = None) -> tuple[Window, ...]:
    """Return `count` windows of `size` micro-batches; `bad` gives the loss factor of the last one in some windows."""
    spoiled = bad or {}
    return tuple(
        tuple(
            a_batch(index * size + micro, factor=spoiled.get(index, 1.0) if micro == size - 1 else 1.0)
            for micro in range(size)
        )
        for index in range(count)
    )


def squared_error(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean squared error times the batch's factor: inf and NaN there make a step that must be skipped."""
    inputs, targets, factor = batch
    loss: Tensor = (model(inputs).float() - targets).square().mean() * factor
    return loss


def fused_adamw(model: nn.Module) -> Sequence[Optimizer]:
    """Return one fused AdamW over all parameters."""
    return (torch.optim.AdamW(model.parameters(), lr=0.05, fused=True),)


def plain_adamw(model: nn.Module) -> Sequence[Optimizer]:
    """Return one AdamW that is not fused."""
    return (torch.optim.AdamW(model.parameters(), lr=0.05, fused=False, foreach=False),)


def plain_sgd(model: nn.Module) -> Sequence[Optimizer]:
    """Return one SGD with learning rate 1 that is not fused: its update is the gradient it saw."""
    return (torch.optim.SGD(model.parameters(), lr=1.0, foreach=False),)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train and how: each window of micro-batches is one optimizer step.

    `factor` is the learning rate's factor as a function of steps. `scaler_given=False` leaves fp16 to what the library
    makes of the name alone; `compiled=True` wraps the model by torch.compile, with a backend that compiles nothing.
    `save_to` and `resume_from` are folders. With `ranks` above 1 this process is one of them, under torchrun: the model
    is replicated by DDP, or sharded by FSDP2. Unobserved, nothing is looked at between steps. `between` is what the
    user's program does besides after each window, such as a step of a GAN's other half.
    """

    windows: Sequence[Window]
    precision: str = "fp16"
    model: Callable[[], nn.Module] = a_model
    optimizers: Callable[[nn.Module], Sequence[Optimizer]] = fused_adamw
    loss_fn: LossFn = squared_error
    clip: float | None = None
    factor: Callable[[int], float] | None = None
    weigh: Callable[[Batch], int] | None = None
    init_scale: float = 2.0**16
    growth_interval: int = 2000
    epochs: int = 1
    between: Callable[[], object] = lambda: None
    scaler_given: bool = True
    compiled: bool = False
    observed: bool = True
    ranks: int = 1
    sharded: bool = False
    save_to: Path | None = None
    resume_from: Path | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that the precision's name stands for."""
        return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]

    def loader(self) -> DataLoader[Batch]:
        """Return a loader of the windows' micro-batches, one after the other, as they are."""
        batches: Any = [batch for window in self.windows for batch in window]  # a list is a data set to a DataLoader
        return DataLoader(batches, batch_size=None)

    def dressed(self, model: nn.Module) -> nn.Module:
        """Return the model in torch.compile's wrapper if the job says so."""
        wrapped = torch.compile(model, backend="eager") if self.compiled else model
        assert isinstance(wrapped, nn.Module)
        return wrapped

    def scaler(self) -> torch.amp.GradScaler:
        """Return torch's scaler on the CPU, enabled for fp16 only."""
        return torch.amp.GradScaler(
            "cpu",
            init_scale=self.init_scale,
            growth_interval=self.growth_interval,
            enabled=self.precision == "fp16",
        )


@dataclass(frozen=True)
class Seen:
    """What stood after one window. `skipped` is what the library says of the step, None where it says nothing."""

    params: tuple[Tensor, ...]
    lr: float
    scale: float
    skipped: bool | None

    def same_parameters(self, other: "Seen") -> bool:
        """Say whether both have the same parameters, bit by bit."""
        return all(torch.equal(one, two) for one, two in zip(self.params, other.params, strict=True))

    def moved_from(self, other: "Seen") -> float:
        """Return the 2-norm of the difference between the parameters."""
        gaps = [(one - two).norm() for one, two in zip(self.params, other.params, strict=True)]
        return float(torch.stack(gaps).norm())

    def finite(self) -> bool:
        """Say whether every parameter is finite."""
        return all(bool(param.isfinite().all()) for param in self.params)


@dataclass(frozen=True)
class Trace:
    """What was seen at the start, and after each window."""

    start: Seen
    steps: tuple[Seen, ...]

    @property
    def last(self) -> Seen:
        """Return what stood at the end."""
        return self.steps[-1]


def copies(model: nn.Module) -> tuple[Tensor, ...]:
    """Return copies of a model's parameters, whole where they are sharded."""
    return tuple(_whole(param.detach()).clone() for param in model.parameters())


def _whole(tensor: Tensor) -> Tensor:
    gather: Callable[[], Tensor] | None = getattr(tensor, "full_tensor", None)  # a DTensor, without its import
    return tensor if gather is None else gather()
