"""Tests of the Lightning adapters in a real Trainer, against TrainStep over the same batches."""

import copy
import csv
import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from products import rounding, settable
from torch import nn

from amp_audit import host_reads
from amp_core.device import DeviceFacts
from amp_core.scaler import LossScaler, ScaleCollapsed, ScaleState
from amp_core.schedule import Schedule
from amp_core.step import Batch

pytestmark = [  # Lightning's own
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*"),
]
PRECISIONS = ("fp32", "bf16", "fp16")


@pytest.fixture(scope="module")
def kit() -> ModuleType:
    """Return what the tests need of Lightning, which is loaded now: when tests are collected it would take seconds."""
    return importlib.import_module("fitting")


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("name", PRECISIONS)
def test_parameters_are_bit_identical_to_the_train_step(
    name: str, accumulate: int, clip: float | None, kit: ModuleType
) -> None:
    data = kit.batches(22, bad=[5])  # the last window is a shorter one, and the mean of its own batches
    plugin = kit.AmpPrecision(name)
    module = kit.fit(plugin, data, accumulate_grad_batches=accumulate, gradient_clip_val=clip)
    step = kit.by_step(name, data, accumulate=accumulate, clip=clip)
    kit.assert_same(module.model, step.model)
    assert plugin.read() == step.read()
    assert plugin.read().skipped == 1


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", PRECISIONS)
def test_an_overflow_is_skipped_and_counted_with_every_optimizer(name: str, fused: bool, kit: ModuleType) -> None:
    plugin, module = kit.AmpPrecision(name), kit.Module(fused=fused)
    module.model[1] = nn.BatchNorm1d(16)
    before = copy.deepcopy(module.model)
    kit.fit(plugin, kit.batches(2, bad=[0]), module, accumulate_grad_batches=2)
    kit.assert_same(module.model, before)
    state = plugin.read()
    assert (state.applied, state.skipped) == (0, 1)
    assert state.scale == (2.0**15 if name == "fp16" else 1.0)


def test_finite_gradients_whose_norm_overflows_are_skipped(kit: ModuleType) -> None:
    plugin = kit.AmpPrecision("fp32")
    steep = kit.Module(loss=lambda model, _: 3e38 * kit.linear(model).weight.sum())
    kit.assert_same(kit.fit(plugin, kit.batches(2), steep, gradient_clip_val=1.0).model, kit.a_model())
    assert plugin.read().skipped == 2


def test_a_last_window_of_three_in_four_is_right_where_lightnings_own_is_not(kit: ModuleType) -> None:
    data = kit.batches(7)
    right = kit.by_step("fp32", data, accumulate=4).model

    def distance(plugin: Any) -> Any:
        module = kit.fit(plugin, data, kit.Module(fused=False), accumulate_grad_batches=4)
        pairs = zip(module.model.parameters(), right.parameters(), strict=True)
        return max((one - two).abs().max().item() for one, two in pairs)

    assert distance(kit.AmpPrecision("fp32")) < 1e-7
    assert distance(None) > 1e-4


def test_the_schedule_follows_the_steps_that_were_applied(kit: ModuleType) -> None:
    def make(optimizers: Sequence[torch.optim.Optimizer]) -> Schedule:
        return Schedule(optimizers, lambda applied: 0.5**applied, steps=10, device="cpu")

    plugin = kit.AmpPrecision("fp16", schedule=make)
    trainer = kit.a_trainer(plugin)
    trainer.fit(kit.Module(), kit.a_loader(kit.batches(5, bad=[1, 3])))
    assert plugin.schedule is not None
    assert trainer.global_step == 5
    assert plugin.read().applied == 3
    assert plugin.schedule.lr.item() == pytest.approx(1e-2 * 0.5**3)
    assert trainer.optimizers[0].param_groups[0]["lr"] is plugin.schedule.lr


@pytest.mark.parametrize("name", PRECISIONS)
def test_resuming_from_a_lightning_checkpoint_is_bit_identical(name: str, tmp_path: Path, kit: ModuleType) -> None:
    data = kit.batches(8, bad=[2])
    whole, first, second = (kit.resumable(name) for _ in range(3))
    module = kit.fit(whole, data, max_epochs=2)
    saved = tmp_path / "saved.ckpt"
    kit.save_after_training(first, data, saved)
    resumed = kit.Module()
    kit.a_trainer(second, max_epochs=2).fit(resumed, kit.a_loader(data), ckpt_path=saved, weights_only=True)
    kit.assert_same(module.model, resumed.model)
    assert whole.scaler.state_dict() == second.scaler.state_dict() != first.scaler.state_dict()
    assert torch.equal(*(plugin.schedule.lr for plugin in (whole, second) if plugin.schedule))


def test_a_checkpoint_of_lightnings_own_plugin_gives_its_scale(tmp_path: Path, kit: ModuleType) -> None:
    data = kit.batches(4, bad=[0, 1])
    kit.save_after_training(kit.MixedPrecision("16-mixed", "cpu"), data, tmp_path / "saved.ckpt")
    ours = kit.AmpPrecision("fp16")
    kit.a_trainer(ours).fit(kit.Module(), kit.a_loader(data), ckpt_path=tmp_path / "saved.ckpt", weights_only=True)
    assert ours.read().scale == 2.0**14


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_step_reads_nothing_back_to_the_host(name: str, kit: ModuleType) -> None:
    def reads(steps: int, *, fused: bool) -> int:
        return host_reads(
            lambda: kit.fit(kit.AmpPrecision(name), kit.batches(steps), kit.Module(fused=fused), **options)
        ).count

    options = {"gradient_clip_val": 1.0}
    assert reads(9, fused=True) == reads(1, fused=True)
    assert reads(9, fused=False) > reads(1, fused=False)


def test_the_scale_is_logged_with_few_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kit: ModuleType) -> None:
    read = LossScaler.read
    reads: list[ScaleState] = []

    def counted(scaler: LossScaler, blame: Any) -> ScaleState:
        reads.append(read(scaler, blame))
        return reads[-1]

    monkeypatch.setattr(LossScaler, "read", counted)
    logger = kit.CSVLogger(tmp_path, name="", version="")
    plugin = kit.AmpPrecision("fp16", scaler_options={"growth_interval": 4})
    kit.fit(plugin, kit.batches(11, bad=[0]), logger=logger, log_every_n_steps=4, callbacks=[kit.AmpCallback()])
    rows = [*csv.DictReader((tmp_path / "metrics.csv").read_text(encoding="utf-8").splitlines())]
    assert [row["step"] for row in rows] == ["3", "7", "10"]
    assert [float(row["amp/loss_scale"]) for row in rows] == [2.0**15, 2.0**16, 2.0**17]
    assert [float(row["amp/scale_growth"]) for row in rows] == [-1.0, 1.0, 1.0]
    assert [row["amp/applied_steps"] + row["amp/skipped_steps"] for row in rows] == ["31", "71", "101"]
    assert len(reads) == 1 + len(rows)


@pytest.mark.parametrize("name", PRECISIONS)
def test_training_without_progress_is_stopped_with_the_name_of_the_culprit(name: str, kit: ModuleType) -> None:
    plugin = kit.AmpPrecision(name, scaler_options={"max_consecutive_skips": 4})
    with pytest.raises(ScaleCollapsed, match=r"the last 4 steps .* is model\.0\.weight"):
        kit.fit(plugin, kit.batches(8, bad=range(8)), log_every_n_steps=2, callbacks=[kit.AmpCallback()])
    assert plugin.scaler.attempts == 4


def test_the_callback_refuses_a_trainer_without_the_plugin(kit: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"^AmpCallback expected AmpPrecision, found Precision: pass Trainer"):
        kit.a_trainer(None, callbacks=[kit.AmpCallback()]).fit(kit.Module(), kit.a_loader(kit.batches(1)))


def test_bad_models_optimizers_and_names_are_refused_in_one_line(kit: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"^unknown precision 'fp61' \(did you mean 'fp16'\?\)"):
        kit.AmpPrecision("fp61")
    with pytest.raises(ValueError, match=r"^LBFGS needs a closure"):
        kit.fit(kit.AmpPrecision("fp16"), kit.batches(1), kit.Closure())
    with pytest.raises(ValueError, match=r"^parameter model\.0\.weight is torch\.bfloat16, expected torch\.float32"):
        kit.fit(kit.AmpPrecision("fp16"), kit.batches(1), kit.Module().bfloat16())
    with pytest.raises(ValueError, match=r"^the precision is not known yet"):
        kit.AmpPrecision("fp16").resolved  # noqa: B018


def test_use_amp_on_a_cpu_falls_back_to_fp32_with_one_warning(kit: ModuleType) -> None:
    plugin = kit.AmpPrecision(use_amp=True)
    trainer = kit.a_trainer(plugin)
    with pytest.warns(UserWarning, match="training falls back to fp32") as caught:
        trainer.fit(kit.Module(), kit.a_loader(kit.batches(1)))
        trainer.validate(kit.Validated(), kit.a_loader(kit.batches(1)), verbose=False)
    assert len([each for each in caught if "falls back" in str(each.message)]) == 1
    assert (plugin.resolved.precision.name, trainer.precision) == ("fp32", "32-true")


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_evaluation_computes_in_the_same_precision(name: str, dtype: torch.dtype, kit: ModuleType) -> None:
    module = kit.Validated()
    kit.a_trainer(kit.AmpPrecision(name)).validate(module, kit.a_loader(kit.batches(1)), verbose=False)
    assert module.seen is dtype


@settable
def test_tf32_is_set_while_the_trainer_runs_and_put_back(monkeypatch: pytest.MonkeyPatch, kit: ModuleType) -> None:
    seen = []

    def seeing(model: nn.Module, batch: Batch) -> Any:
        seen.append(rounding())
        return kit.loss_fn(model, batch)

    facts = DeviceFacts("cpu", "a device with tf32", ("tf32",))
    monkeypatch.setattr("amp_core.lightning.plugin.inspect", lambda _: facts)
    before = rounding()
    kit.fit(kit.AmpPrecision("tf32"), kit.batches(1), kit.Module(loss=seeing))
    assert (seen, rounding()) == (["tf32"], before)


def test_two_optimizers_stepped_by_hand_see_one_scale_and_true_gradients(kit: ModuleType) -> None:
    options = {"growth_interval": 1, "init_scale": 2.0**8}  # the scale changes after every step
    data = kit.batches(4)
    plugin = kit.AmpPrecision("fp16", scaler_options=options)
    module = kit.Manual(clip=0.05)
    kit.a_trainer(plugin).fit(module, kit.a_loader(data))
    assert module.clipped == pytest.approx([0.05] * 4, rel=1e-4)
    assert plugin.read().applied == 4
    model = kit.a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in data:
        with torch.autocast("cpu", torch.float16):
            loss = kit.loss_fn(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model[0].parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    for one, two in zip(module.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=2e-2, atol=2e-4)


def test_a_window_without_a_loss_is_no_step(kit: ModuleType) -> None:
    plugin = kit.AmpPrecision("fp16")
    with pytest.warns(UserWarning, match="`training_step` returned `None`"):
        module = kit.fit(plugin, kit.batches(2), kit.Module(loss=lambda *_: None))
    kit.assert_same(module.model, kit.a_model())
    assert (plugin.read().applied, plugin.read().skipped) == (0, 0)


def test_the_norm_of_the_last_step_is_there_for_hooks(kit: ModuleType) -> None:
    data, watching = kit.batches(3, bad=[1]), kit.Watching()
    kit.fit(kit.AmpPrecision("fp16"), data, callbacks=[watching], gradient_clip_val=0.01)
    assert [math.isfinite(norm) for norm in watching.norms] == [True, False, True]
    assert watching.norms[0] > 0.01


def test_without_lightning_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import amp_core.lightning

    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(
        ImportError, match=r"^amp_core\.lightning needs Lightning: pip install 'amp-gates\[lightning\]'$"
    ):
        importlib.reload(amp_core.lightning)
