"""A pytest plugin that emulates a CUDA device and writes how each test ended, one line of JSON each."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cuda import NotMeasured, emulate

OF_THE_DEVICE = re.compile(r"\b(CUDA|cuda|NVTX|NCCL|nccl|cuDNN|cudnn|accelerator)\b|_cuda_|_get_device_properties")
_target = Path(os.environ["GATES_EMULATED"])


def pytest_addoption() -> None:
    """Emulate the device before any test file, or conftest, asks for it."""
    emulate()
    _target.write_text('{"emulated": "cuda"}\n', encoding="utf-8")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Write how a phase ended: in its set-up and teardown only what went wrong."""
    yield
    error = call.excinfo
    if error is None and call.when != "call":
        return
    ended, message, path, line = "passed", "", "", 0
    if error is not None:
        inside = [entry for entry in error.traceback if Path(str(entry.path)).is_relative_to(item.config.rootpath)]
        ended = _kind(error, raised_here=inside[-1:] == [error.traceback[-1]])
        message = f"{error.typename}: {str(error.value).splitlines()[0] if str(error.value) else ''}"
        if inside:
            path, line = str(inside[-1].path), inside[-1].lineno + 1
    record = {"id": item.nodeid, "ended": ended, "message": message[:500], "path": path, "line": line}
    with _target.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _kind(error: pytest.ExceptionInfo[BaseException], *, raised_here: bool) -> str:
    """Return what an exception says of the code: an assertion may speak of the device, which is not the real one.

    What torch itself says of a device that is missing is the emulation's want, not the code's.
    """
    if error.errisinstance(pytest.skip.Exception):
        return "skipped"
    if error.errisinstance(NotMeasured):
        return "not measured"
    if error.errisinstance(AssertionError):
        return "differs"
    of_names = error.errisinstance((AttributeError, NameError, TypeError, LookupError))
    wanting = OF_THE_DEVICE.search(str(error.value)) and not (of_names and raised_here)
    return "not emulated" if wanting else "crashed"
