"""Tests of how a request becomes a precision."""

import dataclasses
import itertools
import sys
from unittest.mock import MagicMock

import pytest
import torch
from products import on_cuda, settable
from torch import nn

from amp_core.device import DeviceFacts
from amp_core.precision import (
    Precision,
    Resolved,
    compute_effective_precision,
    float32_products,
    precision_for,
    resolve,
)

CPU = DeviceFacts("cpu", "a CPU", ("avx2", "avx512_bf16", "avx512_fp16", "bf16", "fp16"))
OLD_CPU = DeviceFacts("cpu", "an old CPU", ("avx2",))
ROCM = DeviceFacts("cuda", "an AMD GPU", ("bf16", "fp16", "rocm"))
MPS = DeviceFacts("mps", "arm", ("fp16", "mps"))
XPU = DeviceFacts("xpu", "an Intel GPU", ("bf16", "fp16", "xpu"))
CUDA = DeviceFacts("cuda", "a GPU", ("bf16", "fp16", "sm_90", "tf32"))
OLD_CUDA = DeviceFacts("cuda", "an old GPU", ("fp16", "sm_75"))


@pytest.mark.criterion("T035/AC8")
@pytest.mark.parametrize("requested", ["16", "32"])
@pytest.mark.parametrize(("use_amp", "cuda", "gpu"), list(itertools.product([True, False], repeat=3)))
def test_the_sixteen_cases_of_the_compatibility_table(requested: str, use_amp: bool, cuda: bool, gpu: bool) -> None:
    expected = "16" if (use_amp, cuda, gpu) == (True, True, True) else "32"
    assert compute_effective_precision(requested, use_amp, cuda, gpu) == expected


@pytest.mark.criterion("T035/AC8")
@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize("requested", ["16", "32", "bf16-mixed"])
@pytest.mark.parametrize(("cuda_available", "use_gpu"), list(itertools.product([True, False], repeat=2)))
def test_without_use_amp_the_request_is_unchanged(requested: str, cuda_available: bool, use_gpu: bool) -> None:
    assert compute_effective_precision(requested, None, cuda_available, use_gpu) == requested


TURNED_OFF = [(name, False, "fp32") for name in (None, "fp32", "bf16", "fp16", "16-mixed")]
NAMED = [(name, use_amp, name) for name in ("bf16", "fp16") for use_amp in (True, None)]
ALIASES = [("16-mixed", None, "fp16"), ("bf16-mixed", None, "bf16"), ("32", None, "fp32"), ("float16", None, "fp16")]


@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize("device", [CPU, CUDA], ids=lambda device: device.type)
@pytest.mark.parametrize(("requested", "use_amp", "name"), [*TURNED_OFF, *NAMED, *ALIASES])
def test_a_precision_that_is_named_is_kept_unless_amp_is_turned_off(
    requested: str | None, use_amp: bool | None, name: str, device: DeviceFacts
) -> None:
    resolved = resolve(requested, use_amp, device)
    assert (resolved.precision, resolved.warnings) == (precision_for(name, device.type), ())
    assert (resolved.reason == "AMP is turned off by use_amp=False") is (use_amp is False)
    assert requested != name or use_amp is False or resolved.reason == f"{name} was requested by name"


@pytest.mark.criterion("T035/AC8")
@pytest.mark.parametrize("requested", [None, "fp32"])
def test_use_amp_on_a_cpu_falls_back_to_fp32_with_one_warning(requested: str | None) -> None:
    resolved = resolve(requested, True, CPU)
    assert resolved.precision == Precision("fp32", torch.float32, "cpu", needs_scaler=False)
    assert resolved.warnings == (resolved.reason,)
    assert "falls back to fp32" in resolved.reason


@pytest.mark.criterion("T035/AC7")
def test_emulated_bfloat16_is_kept_but_announced() -> None:
    resolved = resolve("bf16", None, OLD_CUDA)
    assert resolved.precision.name == "bf16"
    assert resolved.warnings == ("an old GPU has no native bf16: it is emulated and slow, 'fp16' may be faster",)


@pytest.mark.criterion("T035/AC8")
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_a_cpu_that_emulates_a_precision_keeps_it_without_calling_it_native(name: str) -> None:
    found = resolve(name, None, OLD_CPU)
    assert found.precision.name == name
    assert not found.native
    assert found.reason.endswith(f"{name} was requested by name; an old CPU has no instructions for it and emulates it")
    assert found.warnings == ()  # whoever asks a CPU for it by name wants just that
    assert resolve(name, None, CPU).native


@pytest.mark.criterion("T035/AC1")
@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize("requested", [None, "fp32"])
@pytest.mark.parametrize("device", [CUDA, OLD_CUDA, ROCM, MPS, XPU])
def test_use_amp_on_any_accelerator_is_fp16_with_a_scaler(device: DeviceFacts, requested: str | None) -> None:
    resolved = resolve(requested, True, device)
    assert resolved.precision == Precision("fp16", torch.float16, device.type, needs_scaler=True)
    assert (resolved.native, resolved.warnings, device.name in resolved.reason) == (True, (), True)


@pytest.mark.criterion("T035/AC7")
def test_tf32_is_kept_where_the_device_has_it_and_announced_as_fp32_elsewhere() -> None:
    assert resolve("tf32", None, CUDA) == Resolved(precision_for("tf32", "cuda"), "tf32 was requested by name")
    for device in (OLD_CUDA, ROCM, CPU):
        resolved = resolve("tf32", None, device)
        assert resolved.precision.name == "fp32"
        assert resolved.warnings == (f"tf32 was requested, but {device.name} has none: training runs in fp32",)


def test_float32_matrix_products_are_set_for_a_block_and_put_back_also_after_an_error() -> None:
    before = on_cuda()
    for rounded, setting in ((True, "tf32"), (False, "ieee")):
        with pytest.raises(KeyError), float32_products("cuda", rounded=rounded):
            assert on_cuda() == (setting, setting)
            raise KeyError
        assert on_cuda() == before


def test_fp8_is_torchao_s_where_the_device_has_it_and_refused_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = "^fp8 needs an NVIDIA GPU of compute capability 8.9 or newer, and torchao, found {}: request 'bf16'$"
    for device, found in ((CUDA, "a GPU"), (CPU, "a device of type 'cpu'")):
        with pytest.raises(ValueError, match=needs.format(found)):
            resolve("fp8", None, device)
    precision = resolve("fp8", None, dataclasses.replace(CUDA, capabilities=("fp8",))).precision
    assert (precision.compute_dtype, precision.needs_scaler) == (torch.bfloat16, False)
    monkeypatch.setitem(sys.modules, "torchao", None)
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 3))
    with pytest.raises(ValueError, match=needs.format("no torchao")):
        precision.prepare(model)
    torchao = MagicMock()
    monkeypatch.setitem(sys.modules, "torchao", torchao)
    monkeypatch.setitem(sys.modules, "torchao.float8", torchao.float8)
    precision.prepare(model)
    fits = torchao.float8.convert_to_float8_training.call_args.kwargs["module_filter_fn"]
    assert [fits(layer, "") for layer in (*model, nn.ReLU())] == [True, False, False]


@settable
def test_a_setting_goes_on_following_a_wider_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends, "fp32_precision", "tf32")
    with float32_products("cuda", rounded=False):
        assert on_cuda() == ("ieee", "ieee")
    assert on_cuda() == ("tf32", "tf32")
    monkeypatch.setattr(torch.backends, "fp32_precision", "ieee")
    assert on_cuda() == ("ieee", "ieee")


@pytest.mark.criterion("T035/AC7")
@pytest.mark.parametrize("use_amp", [True, False, None])
def test_an_unknown_precision_is_refused_with_a_suggestion(use_amp: bool | None) -> None:
    with pytest.raises(
        ValueError, match=r"^unknown precision 'bf61' \(did you mean 'bf16'\?\): expected one of fp32, "
    ):
        resolve("bf61", use_amp, CPU)


@pytest.mark.criterion("T035/AC2")
@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_autocast_computes_in_the_precision_s_dtype(name: str, dtype: torch.dtype) -> None:
    with precision_for(name, "cpu").autocast():
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype == dtype
    assert not torch.is_autocast_enabled("cpu")
