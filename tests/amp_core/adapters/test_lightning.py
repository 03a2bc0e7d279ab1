"""Tests of the Lightning adapters in a real Trainer, against TrainStep over the same batches."""

import csv
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.precision import MixedPrecision, Precision
from products import rounding
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import amp_core.lightning
from amp_audit import host_reads
from amp_core.device import DeviceFacts
from amp_core.lightning import AmpCallback, AmpPrecision
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler, ScaleCollapsed, ScaleState
from amp_core.schedule import Schedule
from amp_core.step import Batch, TrainStep

pytestmark = [  # Lightning's own
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*"),
]
PRECISIONS = ("fp32", "bf16", "fp16")
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
    for one, two in zip(module.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("name", PRECISIONS)
def test_parameters_are_bit_identical_to_the_train_step(name: str, accumulate: int, clip: float | None) -> None:
    data = batches(22, bad=[5])  # the last window is a shorter one, and the mean of its own batches
    plugin = AmpPrecision(name)
    module = fit(plugin, data, accumulate_grad_batches=accumulate, gradient_clip_val=clip)
    step = by_step(name, data, accumulate=accumulate, clip=clip)
    assert_same(module.model, step.model)
    assert plugin.read() == step.read()
    assert plugin.read().skipped == 1


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", PRECISIONS)
def test_an_overflow_is_skipped_and_counted_with_every_optimizer(name: str, fused: bool) -> None:
    plugin = AmpPrecision(name)
    module = fit(plugin, batches(1, bad=[0]), Module(fused=fused))
    assert_same(module.model, a_model())
    state = plugin.read()
    assert (state.applied, state.skipped) == (0, 1)
    assert state.scale == (2.0**15 if name == "fp16" else 1.0)


def test_finite_gradients_whose_norm_overflows_are_skipped() -> None:
    plugin = AmpPrecision("fp32")
    steep = Module(loss=lambda model, _: 3e38 * linear(model).weight.sum())
    module = fit(plugin, batches(2), steep, gradient_clip_val=1.0)
    assert_same(module.model, a_model())
    assert plugin.read().skipped == 2


def test_a_last_window_of_three_in_four_is_right_where_lightnings_own_is_not() -> None:
    data = batches(7)
    right = by_step("fp32", data, accumulate=4).model

    def distance(plugin: AmpPrecision | None) -> float:
        module = fit(plugin, data, Module(fused=False), accumulate_grad_batches=4)
        pairs = zip(module.model.parameters(), right.parameters(), strict=True)
        return max((one - two).abs().max().item() for one, two in pairs)

    assert distance(AmpPrecision("fp32")) < 1e-7
    assert distance(None) > 1e-4


def test_the_schedule_follows_the_steps_that_were_applied() -> None:
    def make(optimizers: Sequence[torch.optim.Optimizer]) -> Schedule:
        return Schedule(optimizers, lambda applied: 0.5**applied, steps=10, device="cpu")

    plugin = AmpPrecision("fp16", schedule=make)
    module = Module()
    trainer = a_trainer(plugin)
    trainer.fit(module, a_loader(batches(5, bad=[1, 3])))
    assert plugin.schedule is not None
    assert trainer.global_step == 5
    assert plugin.read().applied == 3
    assert plugin.schedule.lr.item() == pytest.approx(1e-2 * 0.5**3)
    assert trainer.optimizers[0].param_groups[0]["lr"] is plugin.schedule.lr


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


@pytest.mark.parametrize("name", PRECISIONS)
def test_resuming_from_a_lightning_checkpoint_is_bit_identical(name: str, tmp_path: Path) -> None:
    data = batches(8, bad=[2])
    whole, first, second = (resumable(name) for _ in range(3))
    module = fit(whole, data, max_epochs=2)
    save_after_training(first, data, tmp_path / "saved.ckpt")
    resumed = Module()
    a_trainer(second, max_epochs=2).fit(resumed, a_loader(data), ckpt_path=tmp_path / "saved.ckpt", weights_only=True)
    assert_same(module.model, resumed.model)
    assert whole.scaler.state_dict() == second.scaler.state_dict() != first.scaler.state_dict()
    assert torch.equal(*(plugin.schedule.lr for plugin in (whole, second) if plugin.schedule))


def test_a_checkpoint_of_lightnings_own_plugin_gives_its_scale(tmp_path: Path) -> None:
    data = batches(4, bad=[0, 1])
    save_after_training(MixedPrecision("16-mixed", "cpu"), data, tmp_path / "saved.ckpt")
    ours = AmpPrecision("fp16")
    a_trainer(ours).fit(Module(), a_loader(data), ckpt_path=tmp_path / "saved.ckpt", weights_only=True)
    assert ours.read().scale == 2.0**14


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_step_reads_nothing_back_to_the_host(name: str) -> None:
    def reads(steps: int, *, fused: bool) -> int:
        return host_reads(lambda: fit(AmpPrecision(name), batches(steps), Module(fused=fused), **options)).count

    options = {"gradient_clip_val": 1.0}
    assert reads(9, fused=True) == reads(1, fused=True)
    assert reads(9, fused=False) > reads(1, fused=False)


def logged(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_callback_logs_the_scale_with_few_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = LossScaler.read
    reads: list[ScaleState] = []

    def counted(scaler: LossScaler, blame: Any) -> ScaleState:
        reads.append(read(scaler, blame))
        return reads[-1]

    monkeypatch.setattr(LossScaler, "read", counted)
    logger = CSVLogger(tmp_path, name="", version="")
    plugin = AmpPrecision("fp16", scaler_options={"growth_interval": 4})
    fit(plugin, batches(11, bad=[0]), logger=logger, log_every_n_steps=4, callbacks=[AmpCallback()])
    rows = logged(tmp_path)
    assert [row["step"] for row in rows] == ["3", "7", "10"]
    assert [float(row["amp/loss_scale"]) for row in rows] == [2.0**15, 2.0**16, 2.0**17]
    assert [float(row["amp/scale_growth"]) for row in rows] == [-1.0, 1.0, 1.0]
    assert [row["amp/applied_steps"] + row["amp/skipped_steps"] for row in rows] == ["31", "71", "101"]
    assert len(reads) == 1 + len(rows)


def test_the_callback_logs_a_window_of_batches_once(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path, name="", version="")
    options: dict[str, Any] = {"accumulate_grad_batches": 2, "log_every_n_steps": 2, "callbacks": [AmpCallback()]}
    fit(AmpPrecision("bf16"), batches(9), logger=logger, **options)
    assert [(row["step"], row["amp/applied_steps"]) for row in logged(tmp_path)] == [("1", "2"), ("3", "4"), ("4", "5")]


@pytest.mark.parametrize("name", PRECISIONS)
def test_training_without_progress_is_stopped_with_the_name_of_the_culprit(name: str) -> None:
    plugin = AmpPrecision(name, scaler_options={"max_consecutive_skips": 4})
    with pytest.raises(ScaleCollapsed, match=r"the last 4 steps .* is model\.0\.weight"):
        fit(plugin, batches(8, bad=range(8)), log_every_n_steps=2, callbacks=[AmpCallback()])
    assert plugin.scaler.skipped.item() == 4


def test_the_callback_refuses_a_trainer_without_the_plugin() -> None:
    with pytest.raises(ValueError, match=r"^AmpCallback expected AmpPrecision, found Precision: pass Trainer"):
        a_trainer(None, callbacks=[AmpCallback()]).fit(Module(), a_loader(batches(1)))


def test_bad_models_optimizers_and_names_are_refused_in_one_line() -> None:
    class Closure(Module):
        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.LBFGS(self.parameters())

    with pytest.raises(ValueError, match=r"^unknown precision 'fp61' \(did you mean 'fp16'\?\)"):
        AmpPrecision("fp61")
    with pytest.raises(ValueError, match=r"^LBFGS needs a closure"):
        fit(AmpPrecision("fp16"), batches(1), Closure())
    with pytest.raises(ValueError, match=r"^parameter model\.0\.weight is torch\.bfloat16, expected torch\.float32"):
        fit(AmpPrecision("fp16"), batches(1), Module().bfloat16())
    with pytest.raises(ValueError, match=r"^the precision is not known yet"):
        AmpPrecision("fp16").resolved  # noqa: B018


def test_use_amp_on_a_cpu_falls_back_to_fp32_with_one_warning() -> None:
    plugin = AmpPrecision(use_amp=True)
    trainer = a_trainer(plugin)
    with pytest.warns(UserWarning, match="training falls back to fp32") as caught:
        trainer.fit(Module(), a_loader(batches(1)))
        trainer.validate(Validated(), a_loader(batches(1)), verbose=False)
    assert len([each for each in caught if "falls back" in str(each.message)]) == 1
    assert (plugin.resolved.precision.name, trainer.precision) == ("fp32", "32-true")


class Validated(Module):
    """A module that also validates, and keeps the dtype of its outputs."""

    seen: torch.dtype | None = None

    def validation_step(self, batch: Any, _: int) -> None:
        self.seen = self.model(batch[0]).dtype


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_evaluation_computes_in_the_same_precision(name: str, dtype: torch.dtype) -> None:
    module = Validated()
    a_trainer(AmpPrecision(name)).validate(module, a_loader(batches(1)), verbose=False)
    assert module.seen is dtype


def test_tf32_is_set_while_the_trainer_runs_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def seeing(model: nn.Module, batch: Batch) -> Tensor:
        seen.append(rounding())
        return loss_fn(model, batch)

    facts = DeviceFacts("cpu", "a device with tf32", ("tf32",))
    monkeypatch.setattr("amp_core.lightning.plugin.inspect", lambda _: facts)
    before = rounding()
    fit(AmpPrecision("tf32"), batches(1), Module(loss=seeing))
    assert (seen, rounding()) == (["tf32"], before)


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
        self.clipped.append(
            nn.utils.get_total_norm([p.grad for p in self.model[0].parameters() if p.grad is not None]).item()
        )
        first.step()
        second.step()
        first.zero_grad()
        second.zero_grad()


def test_two_optimizers_stepped_by_hand_see_one_scale_and_true_gradients() -> None:
    options = {"growth_interval": 1, "init_scale": 2.0**8}  # the scale changes after every step
    data = batches(4)
    plugin = AmpPrecision("fp16", scaler_options=options)
    module = Manual(clip=0.05)
    a_trainer(plugin).fit(module, a_loader(data))
    assert module.clipped == pytest.approx([0.05] * 4, rel=1e-4)
    assert plugin.read().applied == 4
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in data:
        with torch.autocast("cpu", torch.float16):
            loss = loss_fn(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        nn.utils.clip_grad_norm_(model[0].parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    for one, two in zip(module.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=2e-2, atol=2e-4)


def test_a_window_without_a_loss_is_no_step() -> None:
    plugin = AmpPrecision("fp16")
    with pytest.warns(UserWarning, match="`training_step` returned `None`"):
        module = fit(plugin, batches(2), Module(loss=lambda *_: None))
    assert_same(module.model, a_model())
    assert (plugin.read().applied, plugin.read().skipped) == (0, 0)


def test_the_norm_of_the_last_step_is_there_for_hooks() -> None:
    class Watching(Callback):
        def __init__(self) -> None:
            self.norms: list[float] = []

        def on_train_batch_end(self, trainer: Trainer, *_: Any, **__: Any) -> None:
            assert isinstance(trainer.precision_plugin, AmpPrecision)
            self.norms.append(trainer.precision_plugin.grad_norm.item())

    data, watching = batches(3, bad=[1]), Watching()
    fit(AmpPrecision("fp16"), data, callbacks=[watching], gradient_clip_val=0.01)
    assert [math.isfinite(norm) for norm in watching.norms] == [True, False, True]
    assert watching.norms[0] > 0.01


def test_without_lightning_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(
        ImportError, match=r"^amp_core\.lightning needs Lightning: pip install 'amp-gates\[lightning\]'$"
    ):
        importlib.reload(amp_core.lightning)
