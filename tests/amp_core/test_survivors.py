"""Tests of what no other test noticed when it was broken on purpose."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amp_core import device as devices
from amp_core import observation
from amp_core.benchmark import memory, quality
from amp_core.device import DeviceUnavailable, inspect, pick
from amp_core.ema import Ema
from amp_core.precision import precision_for, resolve
from amp_core.scaler import LossScaler
from amp_core.step import Batch, TrainStep
from amp_core.trainer import TrainConfig


def a_model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))


def squared(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = model(batch[0]).float().square().mean()
    return loss


def a_step(name: str = "bf16", **options: Any) -> TrainStep:
    model = options.pop("model", None) or a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    return TrainStep(model, optimizer, precision_for(name, "cpu"), squared, **options)


@pytest.mark.criterion("T035/AC1")
@pytest.mark.parametrize(("given", "kept"), [(2.5, 2.5), (math.inf, None), (None, None), (0.25, 0.25)])
def test_the_limit_of_the_norm_is_kept_unless_it_limits_nothing(given: float | None, kept: float | None) -> None:
    assert a_step("fp32", max_grad_norm=given).max_grad_norm == kept


@pytest.mark.criterion("T035/AC1")
def test_the_parts_of_a_step_are_those_that_it_was_given() -> None:
    model = a_model()
    parts: dict[str, Any] = {"ema": Ema(model.parameters(), 0.9), "scaler": LossScaler("cpu", dynamic=True)}
    step = a_step("fp16", model=model, weigh=len, **parts)
    assert (step.ema, step.scaler, step.weigh) == (parts["ema"], parts["scaler"], len)


@pytest.mark.criterion("T035/AC1")
def test_a_scale_between_nothing_and_one_is_in_range() -> None:
    scaler = LossScaler("cpu", dynamic=True, init_scale=0.5, min_scale=0.25, max_scale=0.5)
    assert scaler.get_scale() == 0.5


@pytest.mark.criterion("T035/AC1")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_scale": 0.0}, "expected 0 < min_scale <= max_scale, found 0.0"),
        ({"min_scale": 4.0, "max_scale": 2.0}, "expected 0 < min_scale <= max_scale, found 4.0 and 2.0"),
        ({"max_scale": math.inf}, "expected 0 < min_scale <= max_scale"),
        ({"init_scale": 0.0}, "init_scale and growth_interval must be positive, found 0.0"),
        ({"init_scale": math.inf}, "init_scale and growth_interval must be positive, found inf"),
        ({"growth_interval": 0}, "init_scale and growth_interval must be positive, found 65536.0 and 0"),
    ],
)
def test_scales_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LossScaler("cpu", dynamic=True, **options)


@pytest.mark.criterion("T035/AC1")
def test_a_scaler_grows_every_2000_steps_unless_it_is_told() -> None:
    assert LossScaler("cpu", dynamic=True).get_growth_interval() == 2000


@pytest.mark.criterion("T035/AC1")
def test_a_loaded_scale_stays_within_the_limits() -> None:
    high, low = (LossScaler("cpu", dynamic=True, init_scale=scale).state_dict() for scale in (2.0**20, 2.0))
    scaler = LossScaler("cpu", dynamic=True, min_scale=4.0, max_scale=1024.0)
    scaler.load_state_dict(high)
    assert scaler.loss_scale.item() == 1024.0
    scaler.load_state_dict(low)
    assert scaler.loss_scale.item() == 4.0


@pytest.mark.criterion("T035/AC2")
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_every_step_runs_in_autocast_and_only_the_first_is_watched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, seen = [], []

    def counted(model: nn.Module) -> Any:
        watched.append(model)
        return observation.observed_dtypes(model)

    monkeypatch.setattr("amp_core.step.observed_dtypes", counted)
    step = a_step(name)
    assert isinstance(step.model, nn.Sequential)
    step.model[0].register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))
    for _ in range(3):
        step((torch.ones(2, 3),))
    assert seen == [precision_for(name, "cpu").compute_dtype] * 3
    assert watched == [step.model]
    assert step.observed_dtypes == {precision_for(name, "cpu").compute_dtype}


@pytest.mark.criterion("T035/AC5")
def test_a_peak_is_that_of_the_steps_alone_read_when_the_device_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    device, batches, told = torch.device("cuda", 0), ((torch.ones(1),),), []

    class Work:
        def worker(self, *asked: object) -> "Work":
            told.append(("worker", *asked))
            return self

        def run(self, steps: int) -> None:
            told.append(("run", steps))

    monkeypatch.setattr(memory, "release", lambda asked: told.append(("release", asked)))
    for name in ("reset_peak_memory_stats", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda asked, name=name: told.append((name, asked)))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda asked: 7 if asked == device else None)
    work: Any = Work()
    assert memory._peak(work, "fp16", device, batches) == 7.0
    assert told == [
        ("release", device), ("reset_peak_memory_stats", device), ("worker", "fp16", device, batches), ("run", 3),
        ("synchronize", device),
    ]  # fmt: skip


@pytest.mark.criterion("T035/AC6")
def test_each_arm_is_trained_by_its_name_whatever_the_configuration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[TrainConfig] = []

    def noted(config: TrainConfig) -> None:
        seen.append(config)

    monkeypatch.setattr(quality, "train", noted)
    config = TrainConfig(device="cpu", use_amp=False, precision="bf16", seed=9)
    quality.train_arms(config, ("fp32", "fp16"), seeds=2)
    assert [(each.precision, each.use_amp, each.seed) for each in seen] == [
        ("fp32", None, 0), ("fp16", None, 0), ("fp32", None, 1), ("fp16", None, 1)
    ]  # fmt: skip


@pytest.mark.criterion("T035/AC7")
def test_a_configuration_asks_for_no_precision_unless_it_is_told() -> None:
    defaults = {each.name: each.default for each in dataclasses.fields(TrainConfig) if each.name != "model"}
    assert defaults == {
        "use_amp": None, "precision": None, "device": None, "steps": 100, "batch_size": 16, "lr": 1e-2, "seed": 0,
        "max_grad_norm": 1.0, "accumulate": 1, "log_every": 10, "workers": 0, "train_sequences": 1024,
        "val_sequences": 512, "sharpness": 3.0, "ema_decay": None, "validate_every": None, "patience": None,
    }  # fmt: skip


@pytest.mark.criterion("T035/AC7")
def test_without_a_device_the_machine_s_own_is_resolved_for() -> None:
    assert resolve("bf16").precision.device_type == inspect(pick(None)).type


@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ema_decay": 1.0}, "ema_decay must be at least 0 and below 1, found 1.0"),
        ({"seed": 2**62}, "seed must be below 2..62"),
        ({"lr": math.inf}, "lr must be a positive number, found inf"),
        ({"lr": 0.0}, "lr must be a positive number, found 0.0"),
    ],
)
def test_numbers_at_the_edge_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**changes)


@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize(
    "changes", [{"ema_decay": 0.0}, {"seed": 2**62 - 1}, {"lr": 2.0}, {"steps": 1}, {"workers": 0}]
)
def test_numbers_at_the_edge_are_accepted(changes: dict[str, Any]) -> None:
    assert dataclasses.replace(TrainConfig(), **changes) == TrainConfig(**changes)


@pytest.mark.criterion("T035/AC8")
def test_a_device_is_there_up_to_the_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_count", lambda _type: 2)
    assert pick("cuda:1") == torch.device("cuda:1")
    with pytest.raises(DeviceUnavailable, match=r"'cuda:2' was requested, but only 2 CUDA device\(s\) are visible"):
        pick("cuda:2")


@pytest.mark.criterion("T035/AC8")
def test_a_device_of_which_there_is_none_is_named_as_people_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_count", lambda _type: 0)
    with pytest.raises(DeviceUnavailable, match="'cuda' was requested, but no CUDA device is visible: use 'cpu', or"):
        pick("cuda")


@pytest.mark.criterion("T035/AC8")
def test_without_an_accelerator_the_cpu_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: None)
    assert pick(None) == torch.device("cpu")


@pytest.mark.criterion("T035/AC8")
def test_the_machine_s_accelerator_is_taken_where_it_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def current(*, check_available: bool) -> torch.device | None:
        return torch.device("cuda", 0) if check_available else torch.device("mps")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", current)
    assert pick(None) == torch.device("cuda", 0)
