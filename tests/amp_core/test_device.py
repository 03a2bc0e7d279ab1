"""Tests of how a device is chosen and described."""

from pathlib import Path

import pytest
import torch

from amp_core.device import DeviceFacts, DeviceUnavailable, _describe_cpu, inspect, pick

CPUINFO = """processor\t: 0
model name\t: Example CPU @ 2.50GHz
flags\t\t: fpu sse2 avx512f amx_bf16 avx2 avx512_bf16

processor\t: 1
model name\t: Another CPU
flags\t\t: fpu
"""


def test_a_cpu_is_described_by_its_first_processor_with_sorted_capabilities() -> None:
    assert _describe_cpu(CPUINFO) == ("Example CPU @ 2.50GHz", ("amx_bf16", "avx2", "avx512_bf16", "avx512f", "bf16"))


def test_16_bit_types_with_instructions_are_native_and_a_name_is_always_there() -> None:
    assert _describe_cpu("processor : 0\nFeatures : fp asimd asimdhp bf16\n")[1] == ("bf16", "fp16")
    assert _describe_cpu("flags : avx2 avx512f\n")[1] == ("avx2", "avx512f")  # AVX-512 alone has none
    name, capabilities = _describe_cpu("")
    assert (bool(name), capabilities) == (True, ())


def test_this_cpu_is_described() -> None:
    facts = inspect(torch.device("cpu"))
    assert facts.type == "cpu"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text(encoding="utf-8")
        assert facts == DeviceFacts("cpu", *_describe_cpu(text))
        assert facts.name in text


@pytest.mark.criterion("T035/AC8")
@pytest.mark.parametrize("requested", ["gpu", "", "meta", "cuda:x", "fpga"])
def test_an_unknown_device_is_refused_in_one_line(requested: str) -> None:
    with pytest.raises(DeviceUnavailable) as caught:
        pick(requested)
    message = str(caught.value)
    assert message == f"unknown device {requested!r}: expected one of cpu, cuda, mps, xpu, such as 'cpu' or 'cuda:0'"
    assert isinstance(caught.value, ValueError)


@pytest.mark.criterion("T035/AC8")
@pytest.mark.parametrize("requested", ["cuda:97", "xpu:97", "cpu:3"])
def test_an_absent_device_is_refused_in_one_line_that_says_what_to_do(requested: str) -> None:
    with pytest.raises(DeviceUnavailable) as caught:
        pick(requested)
    message = str(caught.value)
    assert message.startswith(f"device {requested!r} was requested, but ")
    assert message.endswith("visible: use 'cpu', or a machine that has it")
    assert "\n" not in message
