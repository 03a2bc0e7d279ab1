"""Looks that nobody hears: neither modes of the tested code (such as one that counts host reads) nor our own count."""

import threading
from collections.abc import Callable
from typing import TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes

R = TypeVar("R")


class _Looking(threading.local):
    """How deep in looks of the recorder a thread is."""

    depth = 0


_looking = _Looking()


def is_looking() -> bool:
    """Return whether what happens now in this thread is the recorder's own doing."""
    return _looking.depth > 0


def unheard(look: Callable[[], R]) -> R:
    """Return what a look comes to, with the modes of the tested code put aside while it lasts."""
    _looking.depth += 1
    try:
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():  # noqa: SLF001  # no other way
            with _disable_current_modes(), torch._C.DisableTorchFunction():  # noqa: SLF001
                return look()
        return look()
    finally:
        _looking.depth -= 1
