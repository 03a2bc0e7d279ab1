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


@pytest.mark.parametrize(
    ("cpuinfo", "capabilities"),
    [
        ("processor : 0\nFeatures : fp asimd asimdhp bf16\n", ("bf16", "fp16")),
        ("flags : avx2 avx512f\n", ("avx2", "avx512f")),
    ],
    ids=["ARM", "AVX-512 alone has no 16-bit type"],
)
def test_16_bit_types_with_instructions_are_native(cpuinfo: str, capabilities: tuple[str, ...]) -> None:
    assert _describe_cpu(cpuinfo)[1] == capabilities


def test_a_cpu_without_cpuinfo_still_has_a_name() -> None:
    name, capabilities = _describe_cpu("")
    assert name
    assert capabilities == ()


def test_this_cpu_is_described() -> None:
    facts = inspect(torch.device("cpu"))
    assert facts.type == "cpu"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text(encoding="utf-8")
        assert facts == DeviceFacts("cpu", *_describe_cpu(text))
        assert facts.name in text


@pytest.mark.criterion("T035/AC8")
def test_the_cpu_is_always_there() -> None:
    assert pick("cpu") == torch.device("cpu")


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
