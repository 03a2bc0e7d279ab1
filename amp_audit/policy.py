"""The autocast policy of CUDA, applied on a CPU, so that a prediction made there holds for a GPU."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

KEY = "AutocastCPU"
HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
LOWER = ("LOWER_PRECISION_FP",)
FLOAT32 = ("FP32", "FP32_SET_OPT_DTYPE")


@contextmanager
def cuda_autocast() -> Iterator[None]:
    """Let CPU autocast treat the operators that it leaves alone as CUDA's does, while the context lasts.

    That is layer_norm, group_norm, softmax, most losses and pow to float32, and some products to the autocast dtype,
    as listed in the header that torch installs. It holds for the whole process, and costs time: it is there to
    predict. Operators for which the CPU has a rule of its own keep it.

    Raises:
        ValueError: torch was installed without its headers.
    """
    library = torch.library.Library("aten", "IMPL", KEY)  # type: ignore[no-untyped-call]  # torch declares no types
    try:
        for name in operators(*LOWER):
            _register(library, name, lambda: torch.get_autocast_dtype("cpu"))
        for name in operators(*FLOAT32):
            _register(library, name, lambda: torch.float32)
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]  # noqa: SLF001  there is no public way


def operators(*lists: str) -> tuple[str, ...]:
    """Return the operators, such as "pow.Scalar", in some lists of the header, such as "FP32"."""
    if not HEADER.is_file():
        raise ValueError(
            f"expected torch's headers for CUDA's autocast policy, found no {HEADER}: install a torch wheel"
        )
    text = HEADER.read_text(encoding="utf-8").replace("\\\n", " ")
    bodies = [re.findall(rf"#define AT_FORALL_{name}\(_\)(.*)", text) for name in lists]
    found = re.findall(r"_\((\w+)(?:,\s*(\w+))?\)", " ".join(body for each in bodies for body in each))
    return tuple(f"{name}.{overload}" if overload else name for name, overload in found)


def _register(library: torch.library.Library, name: str, target: Callable[[], torch.dtype]) -> None:
    qualified = f"aten::{name}"
    if torch._C._dispatch_has_kernel_for_dispatch_key(qualified, KEY):  # noqa: SLF001  there is no public way
        return
    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    guard = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, KEY))  # noqa: SLF001

    def cast_and_call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  an operator's arguments are anything
        dtype = target()

        def cast(tensor: Tensor) -> Tensor:
            eligible = tensor.is_floating_point() and tensor.dtype != torch.float64
            return tensor.to(dtype) if eligible else tensor

        with torch._C._ExcludeDispatchKeyGuard(guard):  # noqa: SLF001  as torch.library.register_autocast does
            return op(*tree_map_only(Tensor, cast, args), **tree_map_only(Tensor, cast, kwargs))

    library.impl(name, cast_and_call)  # type: ignore[no-untyped-call]  # torch declares no types
