"""Where in the user's code an operation was asked for."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import torch

TORCH = str(Path(torch.__file__).parent) + os.sep
INTERNAL = (TORCH, str(Path(__file__).parent) + os.sep, "<")
HOST_COUNTER = (TORCH + str(Path("optim", "optimizer.py")), "_get_value")
"""Where unfused optimizers read their step counters: tensors that live on the CPU wherever the parameters are."""


def user_place() -> str:
    """Return `path:line` of the innermost frame that is neither torch's nor ours; relative below the current folder."""
    *_, frame = _until_user()
    path, here = Path(frame.f_code.co_filename), Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{frame.f_lineno}"


def reads_host_counter() -> bool:
    """Return whether an unfused optimizer is reading its step counter, which no accelerator holds."""
    return any((frame.f_code.co_filename, frame.f_code.co_name) == HOST_COUNTER for frame in _until_user())


def _until_user() -> Iterator[FrameType]:
    """Yield the frames from here outwards, up to and including the user's innermost one."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  the only fast way to the stack
    while frame is not None:
        yield frame
        if not frame.f_code.co_filename.startswith(INTERNAL):
            return
        frame = frame.f_back
