"""CUDA mapped to the CPU: what asks for a device gets the CPU, what asks for time or memory gets a refusal."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

Call = Callable[..., Any]
NOTHING = (
    "synchronize", "empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated", "manual_seed",
    "manual_seed_all", "seed_all", "set_device", "init", "ipc_collect", "_lazy_init", "set_sync_debug_mode",
    "set_per_process_memory_fraction",
)  # fmt: skip
NVTX = ("range_push", "range_pop", "range_start", "range_end", "mark")
REFUSED = (
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats",
    "mem_get_info", "memory_summary", "memory_snapshot", "utilization", "temperature", "power_draw", "CUDAGraph",
)  # fmt: skip
ANSWERS: dict[str, Any] = {
    "is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": (8, 0),
    "get_device_name": "emulated device (the CPU)", "is_bf16_supported": True, "is_initialized": True,
}  # fmt: skip

CALLED_WITH_A_DEVICE: tuple[tuple[Any, str], ...] = (
    (torch, "load"), (torch, "set_default_device"), (torch, "is_autocast_enabled"), (torch, "get_autocast_dtype"),
    (torch.nn.Module, "to_empty"),
)  # fmt: skip


class NotMeasured(RuntimeError):
    """An emulated device has neither speed nor memory of its own."""


class Stamp:
    """Stands for an event or a stream; it can be recorded and waited for, but tells no time."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_args: object) -> None:
        pass

    def record(self, *_args: object) -> None:
        """Note nothing."""

    wait = synchronize = wait_event = wait_stream = record_event = record

    def query(self) -> bool:
        """Return that all is done, as it is on a CPU."""
        return True

    def elapsed_time(self, _other: object) -> float:
        """Refuse to tell a time."""
        raise NotMeasured("an emulated device tells no time")


class Properties:
    """What an emulated device says of itself; how large it is, it does not know."""

    name = "emulated device (the CPU)"
    major, minor = 8, 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Refuse all that only a real device has."""
        raise NotMeasured(f"an emulated device has no {name}")


class _Generators(type):
    """Has what torch makes be an instance of `Generator`."""

    def __instancecheck__(cls, instance: object) -> bool:
        """Return whether this is a generator of torch's."""
        return isinstance(instance, torch._C.Generator)  # noqa: SLF001


class Generator(metaclass=_Generators):
    """Makes the generator of the CPU, whichever device is asked for."""

    def __new__(cls, device: Any = "cpu") -> Any:  # noqa: ANN401
        """Return a generator of torch's."""
        return torch._C.Generator(device=placed(device))  # noqa: SLF001


def placed(value: Any) -> Any:  # noqa: ANN401
    """Return the CPU for what can only be a device: also its number alone."""
    return "cpu" if isinstance(value, int) and not isinstance(value, bool) else here(value)


def here(value: Any) -> Any:  # noqa: ANN401  # whatever is handed to torch
    """Return the CPU for a CUDA device, and everything else as it is."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def mapped(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with each CUDA device replaced."""
    named = {name: placed(value) if name == "device" else here(value) for name, value in kwargs.items()}
    return tuple(here(arg) for arg in args), named


class OnTheCpu(TorchFunctionMode):
    """Replaces the device in each call of a torch function."""

    def __torch_function__(
        self, func: Call, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401
        """Call the function with the CPU for each CUDA device."""
        args, kwargs = mapped(args, kwargs or {})
        if func is torch.Tensor.to and len(args) > 1:
            args = (args[0], placed(args[1]), *args[2:])
        return func(*args, **kwargs)


def emulate() -> None:
    """Put the CPU in the place of a CUDA device, for the rest of the process."""
    for name in NOTHING:
        _put(torch.cuda, name, lambda *_args, **_kwargs: None)
    for name in REFUSED:
        _put(torch.cuda, name, functools.partial(_refuse, name))
    for name, answer in ANSWERS.items():
        _put(torch.cuda, name, functools.partial(_answer, answer))
    for name in ("Event", "Stream"):
        _put(torch.cuda, name, Stamp)
    for name in ("current_stream", "default_stream"):
        _put(torch.cuda, name, lambda *_args: Stamp())
    _put(torch.cuda, "stream", lambda *_args: nullcontext())
    _put(torch.cuda, "device", lambda *_args: nullcontext())
    _put(torch.Tensor, "cuda", lambda tensor, *_args, **_kwargs: tensor)
    _put(torch.Tensor, "pin_memory", lambda tensor, *_args, **_kwargs: tensor)
    for name in NVTX:
        _put(torch.cuda.nvtx, name, lambda *_args, **_kwargs: None)
    _put(torch.Tensor, "record_stream", lambda *_args: None)
    _put(torch.cuda, "get_device_properties", lambda *_args, **_kwargs: Properties())
    _put(torch.cuda, "get_rng_state", lambda *_args, **_kwargs: torch.get_rng_state())
    _put(torch.cuda, "get_rng_state_all", lambda: [torch.get_rng_state()])
    for name in ("set_rng_state", "set_rng_state_all"):
        _put(torch.cuda, name, lambda *_args, **_kwargs: None)
    _put(torch, "Generator", Generator)
    for owner, name in CALLED_WITH_A_DEVICE:
        _put(owner, name, _with_cpu(getattr(owner, name)))
    torch.nn.Module.to = _moving(torch.nn.Module.to)  # type: ignore[method-assign]
    _put(torch.nn.Module, "cuda", lambda module, *_args, **_kwargs: module)
    torch.amp.autocast.__init__ = _autocast(torch.amp.autocast.__init__)  # type: ignore[method-assign]
    torch.amp.GradScaler.__init__ = _with_cpu(torch.amp.GradScaler.__init__, default=True)  # type: ignore[method-assign]
    OnTheCpu().__enter__()  # type: ignore[no-untyped-call]  # as torch has it


def _put(owner: Any, name: str, value: Any) -> None:  # noqa: ANN401
    if hasattr(owner, name):
        setattr(owner, name, value)


def _answer(answer: Any, *_args: object, **_kwargs: object) -> Any:  # noqa: ANN401
    return answer


def _refuse(name: str, *_args: object, **_kwargs: object) -> None:
    raise NotMeasured(f"an emulated device has no {name}")


def _with_cpu(original: Call, *, default: bool = False) -> Call:
    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        args, kwargs = mapped(args, kwargs)
        if default and len(args) < 2:
            kwargs.setdefault("device", "cpu")
        return original(*args, **kwargs)

    return called


def _moving(original: Call) -> Call:
    @functools.wraps(original)
    def to(module: object, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        args, kwargs = mapped(args, kwargs)
        return original(module, *(placed(args[0]), *args[1:]) if args else (), **kwargs)

    return to


def _autocast(original: Call) -> Call:
    """Have autocast of CUDA compute on the CPU, in the dtype that CUDA would have taken."""

    @functools.wraps(original)
    def begun(self: object, device_type: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        there = here(device_type)
        if there != device_type and dtype is None:
            dtype = torch.float16
        original(self, there, dtype, *args, **kwargs)

    return begun
