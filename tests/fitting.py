"""Models, batches and trainers of Lightning; to import this loads Lightning, which takes seconds."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.precision import MixedPrecision, Precision
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from amp_core.lightning import AmpCallback, AmpPrecision
from amp_core.precision import precision_for
from amp_core.schedule import Schedule
from amp_core.step import Batch, TrainStep

__all__ = ["AmpCallback", "AmpPrecision", "CSVLogger", "MixedPrecision"]
BATCH = 4


def a_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def batches(count: int, bad: Sequence[int] = ()) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    made: list[Batch] = []
    for index in range(count):
        inputs = torch.randn(BATCH, 6, generator=generator)
        targets = torch.randn(BATCH, 3, generator=generator)
        made.append((inputs, targets * torch.inf if index in bad else targets))
    return made


def loss_fn(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = (model(batch[0]).float() - batch[1]).square().mean()
    return loss


class Module(LightningModule):
    """A model whose loss is that of TrainStep's tests, if no other is given."""

    def __init__(self, *, fused: bool = True, loss: Callable[[nn.Sequential, Batch], Tensor | None] = loss_fn) -> None:
        super().__init__()
        self.model, self.fused, self.loss = a_model(), fused, loss

    def training_step(self, batch: Any, _: int) -> Tensor | None:
        return self.loss(self.model, tuple(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2, fused=self.fused)


def linear(model: nn.Sequential) -> nn.Linear:
    assert isinstance(model[0], nn.Linear)
    return model[0]


def a_loader(data: list[Batch]) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*(torch.cat(column) for column in zip(*data, strict=True))), batch_size=BATCH)


def a_trainer(plugin: Precision | None, **options: Any) -> Trainer:
    quiet: dict[str, Any] = {
        "accelerator": "cpu", "devices": 1, "plugins": [plugin] if plugin else [], "max_epochs": 1, "logger": False,
        "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False, "barebones": False,
    }  # fmt: skip
    return Trainer(**{**quiet, **options})


def fit(plugin: AmpPrecision | None, data: list[Batch], module: Module | None = None, **options: Any) -> Module:
    module = module or Module()
    a_trainer(plugin, **options).fit(module, a_loader(data))
    return module


def by_step(name: str, data: list[Batch], *, accumulate: int = 1, clip: float | None = None) -> TrainStep:
    model = a_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    step = TrainStep(model, optimizer, precision_for(name, "cpu"), loss_fn, max_grad_norm=clip)
    for start in range(0, len(data), accumulate):
        step(*data[start : start + accumulate])
    return step


def assert_same(module: nn.Module, other: nn.Module) -> None:
    for one, two in zip(module.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(one, two)


def save_after_training(plugin: Precision, data: list[Batch], path: Path) -> None:
    trainer = a_trainer(plugin)
    trainer.fit(Module(), a_loader(data))
    trainer.save_checkpoint(path)


def resumable(name: str) -> AmpPrecision:
    return AmpPrecision(
        name,
        schedule=lambda optimizers: Schedule(optimizers, lambda applied: 0.9**applied, steps=40, device="cpu"),
        scaler_options={"growth_interval": 5},
    )


class Validated(Module):
    """A module that also validates, and keeps the dtype of its outputs."""

    seen: torch.dtype | None = None

    def validation_step(self, batch: Any, _: int) -> None:
        self.seen = self.model(batch[0]).dtype


class Manual(Module):
    """Two optimizers that step on one backward pass, the first one clipped by hand."""

    def __init__(self, clip: float) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.clip = clip
        self.clipped: list[float] = []

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(layer.parameters(), lr=0.1, fused=True) for layer in (self.model[0], self.model[2])]

    def training_step(self, batch: Any, _: int) -> None:
        optimizers: Any = self.optimizers()
        first, second = optimizers
        self.manual_backward(loss_fn(self.model, tuple(batch)))
        self.clip_gradients(first, self.clip, "norm")
        gradients = [p.grad for p in self.model[0].parameters() if p.grad is not None]
        self.clipped.append(nn.utils.get_total_norm(gradients).item())
        first.step()
        second.step()
        first.zero_grad()
        second.zero_grad()


class Closure(Module):
    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.LBFGS(self.parameters())


class Watching(Callback):
    def __init__(self) -> None:
        self.norms: list[float] = []

    def on_train_batch_end(self, trainer: Trainer, *_: Any, **__: Any) -> None:
        assert isinstance(trainer.precision_plugin, AmpPrecision)
        self.norms.append(trainer.precision_plugin.grad_norm.item())
