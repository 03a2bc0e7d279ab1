"""The device that training runs on: what it is, what it can compute, and how it is chosen."""

import platform
from dataclasses import dataclass
from pathlib import Path

import torch

CPU_FLAGS = ("amx_bf16", "amx_fp16", "avx2", "avx512_bf16", "avx512_fp16", "avx512f")
NATIVE_ON_CPU = {  # the flags of Linux's /proc/cpuinfo, x86 and Arm, that stand for instructions on a 16-bit type
    "bf16": {"amx_bf16", "avx512_bf16", "bf16"},
    "fp16": {"amx_fp16", "avx512_fp16", "asimdhp"},
}
DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")


class DeviceUnavailable(ValueError):
    """The device that was asked for is unknown to torch, or not present on this machine."""


@dataclass(frozen=True)
class DeviceFacts:
    """What is known about a device; `capabilities` is sorted and holds what it computes natively."""

    type: str
    name: str
    capabilities: tuple[str, ...]


def pick(requested: str | None) -> torch.device:
    """Return the requested device, or the machine's accelerator (else the CPU) for None.

    Raises:
        DeviceUnavailable: the name is no device of torch's, or the device is not present.
    """
    if requested is None:
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(requested)
    except RuntimeError as error:
        raise DeviceUnavailable(_unknown(requested)) from error
    if device.type not in DEVICE_TYPES:
        raise DeviceUnavailable(_unknown(requested))
    count = _count(device.type)
    if (device.index or 0) >= count:
        found = f"only {count} {device.type.upper()} device(s) are" if count else f"no {device.type.upper()} device is"
        raise DeviceUnavailable(
            f"device {requested!r} was requested, but {found} visible: use 'cpu', or a machine that has it"
        )
    return device


def inspect(device: torch.device | str) -> DeviceFacts:
    """Return the type, name and native capabilities of a device that is present."""
    device = torch.device(device)
    if device.type == "cpu":
        return DeviceFacts("cpu", *_describe_cpu(_cpuinfo()))
    if device.type == "cuda":
        return _inspect_cuda(device)
    if device.type == "xpu":
        return DeviceFacts("xpu", torch.xpu.get_device_name(device), ("bf16", "fp16", "xpu"))
    return DeviceFacts(device.type, platform.processor() or device.type, ("fp16", device.type))


def _inspect_cuda(device: torch.device) -> DeviceFacts:
    """Return the facts of a CUDA device, or of a ROCm device, which torch also calls cuda."""
    found = {"fp16"}
    if torch.cuda.is_bf16_supported(including_emulation=False):
        found.add("bf16")
    if torch.version.hip:
        found.add("rocm")
    else:
        major, minor = torch.cuda.get_device_capability(device)
        found.add(f"sm_{major}{minor}")
        if major >= 8:  # Ampere brought TF32
            found.add("tf32")
        if (major, minor) >= (8, 9):  # Ada and Hopper brought products in 8 bits
            found.add("fp8")
    return DeviceFacts("cuda", torch.cuda.get_device_name(device), tuple(sorted(found)))


def _describe_cpu(cpuinfo: str) -> tuple[str, tuple[str, ...]]:
    """Return a CPU's model name and its capabilities from the text of /proc/cpuinfo ("" where there is none)."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    name = fields.get("model name") or platform.processor() or platform.machine() or "unknown CPU"
    native = [dtype for dtype, instructions in NATIVE_ON_CPU.items() if instructions & flags]
    return name, tuple(sorted({*native, *(flag for flag in CPU_FLAGS if flag in flags)}))


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _count(device_type: str) -> int:
    return int(torch.get_device_module(device_type).device_count())


def _unknown(requested: str) -> str:
    return f"unknown device {requested!r}: expected one of {', '.join(DEVICE_TYPES)}, such as 'cpu' or 'cuda:0'"
