"""Tests of what no other test noticed when it was broken on purpose."""

import math
from typing import Any
from unittest.mock import MagicMock, call

import pytest
import torch

from amp_core import device as devices
from amp_core.benchmark import memory
from amp_core.device import DeviceUnavailable, inspect, pick
from amp_core.precision import resolve
from amp_core.scaler import LossScaler


@pytest.mark.criterion("T035/AC1")
def test_a_scale_between_nothing_and_one_is_in_range_and_grows_every_2000_steps() -> None:
    scaler = LossScaler("cpu", dynamic=True, init_scale=0.5, min_scale=0.25, max_scale=0.5)
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (0.5, 2000)


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
def test_a_loaded_scale_stays_within_the_limits() -> None:
    high, low = (LossScaler("cpu", dynamic=True, init_scale=scale).state_dict() for scale in (2.0**20, 2.0))
    scaler = LossScaler("cpu", dynamic=True, min_scale=4.0, max_scale=1024.0)
    scaler.load_state_dict(high)
    assert scaler.loss_scale.item() == 1024.0
    scaler.load_state_dict(low)
    assert scaler.loss_scale.item() == 4.0


@pytest.mark.criterion("T035/AC5")
def test_a_peak_is_that_of_the_steps_alone_read_when_the_device_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    device, batches, noted = torch.device("cuda", 0), ((torch.ones(1),),), MagicMock()
    noted.max_memory_allocated.return_value = 7
    monkeypatch.setattr(memory, "release", noted.release)
    for name in ("reset_peak_memory_stats", "synchronize", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, getattr(noted, name))
    assert memory._peak(noted, "fp16", device, batches) == 7.0
    assert noted.mock_calls == [
        call.release(device), call.reset_peak_memory_stats(device), call.worker("fp16", device, batches),
        call.worker().run(3), call.synchronize(device), call.max_memory_allocated(device),
    ]  # fmt: skip


@pytest.mark.criterion("T035/AC7")
def test_without_a_device_the_machine_s_own_is_resolved_for() -> None:
    assert resolve("bf16").precision.device_type == inspect(pick(None)).type


@pytest.mark.criterion("T035/AC8")
def test_a_device_is_there_up_to_the_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_count", lambda _type: 2)
    assert pick("cuda:1") == torch.device("cuda:1")
    with pytest.raises(DeviceUnavailable, match=r"'cuda:2' was requested, but only 2 CUDA device\(s\) are visible"):
        pick("cuda:2")
    monkeypatch.setattr(devices, "_count", lambda _type: 0)
    with pytest.raises(DeviceUnavailable, match="'cuda' was requested, but no CUDA device is visible: use 'cpu', or"):
        pick("cuda")


@pytest.mark.criterion("T035/AC8")
def test_the_machine_s_accelerator_is_taken_where_it_can_be_used_else_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def current(*, check_available: bool) -> torch.device | None:
        return torch.device("cuda", 0) if check_available else torch.device("mps")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", current)
    assert pick(None) == torch.device("cuda", 0)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: None)
    assert pick(None) == torch.device("cpu")
