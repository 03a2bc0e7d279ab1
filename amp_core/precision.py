"""The precision that training runs in: the names it has, and how a request becomes one that the device can keep."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from amp_core.device import DeviceFacts, inspect, pick

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
DTYPES["fp8"] = torch.bfloat16  # of all but the products in linear layers
ALIASES = {
    "32": "fp32", "32-true": "fp32", "float32": "fp32",
    "16": "fp16", "16-mixed": "fp16", "float16": "fp16",
    "bf16-mixed": "bf16", "bfloat16": "bf16",
}  # fmt: skip
CACHES_CASTS = torch.__version__ >= "2.13"  # before, a cast under no_grad cost its weight the gradient
NARROW = ("bf16", "fp16", "fp8")
UNCHANGED = nullcontext()  # made once, as each step needs some
NO_FP8 = "fp8 needs an NVIDIA GPU of compute capability 8.9 or newer, and torchao, found {}: request 'bf16'"


@dataclass(frozen=True)
class Precision:
    """How one training step computes; parameters, gradients and optimizer states stay in float32.

    "tf32" is float32 whose products an NVIDIA GPU of compute capability 8.0 or newer rounds to 10 bits of mantissa. In
    all others float32 products and convolutions are exact: torch's own default rounds convolutions on such a GPU. Both
    are settings of the process, made for the length of a step (`products`). "fp8" is bf16 whose linear layers multiply
    in float8, by torchao (`prepare`).
    """

    name: str
    compute_dtype: torch.dtype
    device_type: str
    needs_scaler: bool

    def products(self) -> AbstractContextManager[None]:
        """Return a context in which float32 products are rounded, for tf32, or exact, for all others."""
        return float32_products(self.device_type, rounded=self.name == "tf32")

    def prepare(self, model: nn.Module) -> None:
        """Put torchao's layers in the place of linear ones that can multiply in fp8, if this is it; parameters stay.

        Raises:
            ValueError: torchao is not installed.
        """
        if self.name != "fp8":
            return
        try:
            from torchao.float8 import convert_to_float8_training
        except ImportError as error:
            raise ValueError(NO_FP8.format("no torchao")) from error
        convert_to_float8_training(model, module_filter_fn=_multiplies_in_fp8)

    def autocast(self) -> torch.amp.autocast:
        """Return a fresh autocast context for the forward pass; for fp32 and tf32 it turns autocast off."""
        narrow = self.compute_dtype is not torch.float32
        return torch.amp.autocast(
            device_type=self.device_type, dtype=self.compute_dtype, enabled=narrow, cache_enabled=CACHES_CASTS
        )


@dataclass(frozen=True)
class Resolved:
    """The precision that a request came to, why, and what the user must be told.

    `native` says whether the device has instructions for it; without them it is emulated, and slower than fp32.
    """

    precision: Precision
    reason: str
    warnings: tuple[str, ...] = ()
    native: bool = True


def _multiplies_in_fp8(module: nn.Module, _name: str) -> bool:
    """Say whether a layer is an ordinary linear one with the sizes that the kernels want."""
    return type(module) is nn.Linear and module.in_features % 16 == 0 == module.out_features % 16


def float32_products(device_type: str, *, rounded: bool) -> AbstractContextManager[None]:
    """Have float32 products, convolutions and recurrent layers rounded to TF32 or exact for a block.

    It is set by the interface that the installed torch wants, and what was found is put back.
    """
    exact = (_EXACT, _UNSET) if device_type == "cpu" else (_EXACT,)  # a CPU rounds nothing unless it is told to
    wanted = (_ROUNDED,) if rounded else exact
    others = [(place, value) for place, read in _PLACES.get(device_type, ()) if (value := read(_SETTING)) not in wanted]
    return _set_to(wanted[0], others) if others else UNCHANGED


@contextmanager
def _set_to(wanted: str | bool, found: Sequence[tuple[Any, str | bool]]) -> Iterator[None]:
    for place, _ in found:
        setattr(place, _SETTING, wanted)
    try:
        yield
    finally:
        for place, value in found:
            setattr(place, _SETTING, _UNSET)  # a setting that was inherited goes on following what it inherits from
            if getattr(place, _SETTING) != value:
                setattr(place, _SETTING, value)


_BACKENDS: Any = torch.backends  # its settings are made at import, which no type declares
_FLOAT32_SETTINGS: dict[str, tuple[Any, ...]]
_EXACT: str | bool
_ROUNDED: str | bool
_UNSET: str | bool
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # torch 2.9 and later
    _SETTING, _EXACT, _ROUNDED, _UNSET = "fp32_precision", "ieee", "tf32", "none"
    _FLOAT32_SETTINGS = {
        "cuda": (_BACKENDS.cuda.matmul, _BACKENDS.cudnn.conv, _BACKENDS.cudnn.rnn),
        "cpu": (_BACKENDS.mkldnn.matmul, _BACKENDS.mkldnn.conv, _BACKENDS.mkldnn.rnn),
    }
else:
    _SETTING, _EXACT, _ROUNDED, _UNSET = "allow_tf32", False, True, False
    _FLOAT32_SETTINGS = {"cuda": (_BACKENDS.cuda.matmul, _BACKENDS.cudnn)}
_PLACES = {  # and what reads each: where the type lacks the setting, a plain look-up would fail first, which takes long
    device: [(each, partial(getattr, each) if hasattr(type(each), _SETTING) else each.__getattr__) for each in places]
    for device, places in _FLOAT32_SETTINGS.items()
}


def precision_for(name: str | int, device_type: str) -> Precision:
    """Return the precision of that name (or Lightning-style alias, such as "16-mixed") on a device type.

    Raises:
        ValueError: the name is not accepted.
    """
    name = str(name)  # Lightning takes 16 and 32, too
    canonical = ALIASES.get(name, name)
    if canonical not in DTYPES:
        accepted = [*DTYPES, *ALIASES]
        close = difflib.get_close_matches(name, accepted, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown precision {name!r}{hint}: expected one of {', '.join(accepted)}")
    if canonical == "fp8" and device_type != "cuda":
        raise ValueError(NO_FP8.format(f"a device of type {device_type!r}"))
    return Precision(canonical, DTYPES[canonical], device_type, needs_scaler=canonical == "fp16")


def resolve(
    requested: str | int | None, use_amp: bool | None = None, device: DeviceFacts | torch.device | str | None = None
) -> Resolved:
    """Return the effective precision of a request on a device (by default the accelerator, else the CPU), and why.

    `use_amp=False` means fp32 whatever was requested. A 16-bit precision that was asked for by name is kept on
    every device. `use_amp=True` alone means fp16 on an accelerator, and fp32 with one warning on a CPU. "tf32" is
    kept where the device has it, and is fp32 with one warning elsewhere.

    Raises:
        ValueError: the requested name is not accepted, the device is not there, or it has no fp8.
    """
    device = device if isinstance(device, DeviceFacts) else inspect(pick(None if device is None else str(device)))
    asked = None if requested is None else precision_for(requested, device.type)
    fp32 = precision_for("fp32", device.type)
    if use_amp is False:
        return Resolved(fp32, "AMP is turned off by use_amp=False")
    if asked is not None and asked.name in NARROW:
        return _as_asked(asked, device)
    if use_amp is None and asked is not None and asked.name == "tf32":
        if "tf32" in device.capabilities:
            return Resolved(asked, "tf32 was requested by name")
        message = f"tf32 was requested, but {device.name} has none: training runs in fp32"
        return Resolved(fp32, message, (message,))
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


def _as_asked(asked: Precision, device: DeviceFacts) -> Resolved:
    """Return a narrow precision as it was asked for; an accelerator that only emulates it is warned of."""
    if asked.name in device.capabilities:
        return Resolved(asked, f"{asked.name} was requested by name")
    if asked.name == "fp8":
        raise ValueError(NO_FP8.format(device.name))
    reason = f"{asked.name} was requested by name; {device.name} has no instructions for it and emulates it"
    warn = device.type in ("cuda", "xpu", "mps")
    other = "fp16" if asked.name == "bf16" else "bf16"
    message = f"{device.name} has no native {asked.name}: it is emulated and slow, {other!r} may be faster"
    return Resolved(asked, reason, (message,) if warn else (), native=False)
