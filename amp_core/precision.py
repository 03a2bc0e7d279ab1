"""The precision that training runs in: the names it has, and how a request becomes one that the device can keep."""

import difflib
from dataclasses import dataclass

import torch

from amp_core.device import DeviceFacts

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ALIASES = {
    "32": "fp32", "32-true": "fp32", "float32": "fp32",
    "16": "fp16", "16-mixed": "fp16", "float16": "fp16",
    "bf16-mixed": "bf16", "bfloat16": "bf16",
}  # fmt: skip
HALF = ("bf16", "fp16")


@dataclass(frozen=True)
class Precision:
    """How one training step computes; parameters, gradients and optimizer states stay in float32."""

    name: str
    compute_dtype: torch.dtype
    device_type: str
    needs_scaler: bool

    def autocast(self) -> torch.amp.autocast:
        """Return a fresh autocast context for the forward pass; for fp32 it turns autocast off."""
        return torch.amp.autocast(
            device_type=self.device_type,
            dtype=self.compute_dtype,
            enabled=self.compute_dtype is not torch.float32,
        )


@dataclass(frozen=True)
class Resolved:
    """The precision that a request came to, why, and what the user must be told."""

    precision: Precision
    reason: str
    warnings: tuple[str, ...] = ()


def precision_for(name: str, device_type: str) -> Precision:
    """Return the precision of that name (or Lightning-style alias, such as "16-mixed") on a device type.

    Raises:
        ValueError: the name is not accepted.
    """
    canonical = ALIASES.get(name, name)
    if canonical not in DTYPES:
        accepted = [*DTYPES, *ALIASES]
        close = difflib.get_close_matches(name, accepted, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown precision {name!r}{hint}: expected one of {', '.join(accepted)}")
    return Precision(canonical, DTYPES[canonical], device_type, needs_scaler=canonical == "fp16")


def resolve(requested: str | None, use_amp: bool | None, device: DeviceFacts) -> Resolved:
    """Return the effective precision of a request, with the reason.

    `use_amp=False` means fp32 whatever was requested. A 16-bit precision that was asked for by name is kept on
    every device. `use_amp=True` alone means fp16 on an accelerator, and fp32 with one warning on a CPU.

    Raises:
        ValueError: the requested name is not accepted.
    """
    asked = None if requested is None else precision_for(requested, device.type)
    fp32 = precision_for("fp32", device.type)
    if use_amp is False:
        return Resolved(fp32, "AMP is turned off by use_amp=False")
    if asked is not None and asked.name in HALF:
        return Resolved(asked, f"{asked.name} was requested by name", _emulation_warnings(asked, device))
    if use_amp is None:
        return Resolved(fp32, "fp32 was requested by name" if asked else "no precision was requested")
    if "fp16" in device.capabilities and device.type != "cpu":
        return Resolved(precision_for("fp16", device.type), f"use_amp=True on {device.type} ({device.name})")
    message = (
        f"use_amp=True, but device {device.type!r} is no accelerator: training falls back to fp32"
        " (request 'bf16' or 'fp16' by name to autocast here)"
    )
    return Resolved(fp32, message, (message,))


def compute_effective_precision(
    requested_precision: str, use_amp: bool | None, cuda_available: bool, use_gpu: bool
) -> str:
    """Return the Lightning-style precision string: "16" only for AMP on a CUDA device that is there and used.

    `use_amp=None` returns the request unchanged; `False` returns "32".
    """
    if use_amp is None:
        return requested_precision
    return "16" if use_amp and cuda_available and use_gpu else "32"


def _emulation_warnings(precision: Precision, device: DeviceFacts) -> tuple[str, ...]:
    if device.type != "cuda" or precision.name in device.capabilities:
        return ()
    return (f"{device.name} has no native {precision.name}: it is emulated and slow, 'fp16' may be faster",)
