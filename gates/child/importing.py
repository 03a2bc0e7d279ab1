"""Imports each module of the project in a fork of its own; what they all need, such as torch, is loaded once."""

import contextlib
import gc
import json
import signal
import sys
import time
import traceback
from types import ModuleType
from typing import Any

from .asking import DONE, Places, Teller, in_fork, program, said

BOUND = 500
DEEPEST = 9  # causes of an error
DEFECTS = (SyntaxError, NameError, ImportError, AttributeError, TypeError)
# what of the standard library is there on some platforms only
PLATFORM = {"ctypes", "os", "signal", "socket", "select", "asyncio", "multiprocessing", "subprocess", "time", "mmap"}


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Load what others wrote, then import each module in a fork."""
    gc.disable()  # a collection in each fork would copy all that was loaded
    for name in question["preload"]:
        with contextlib.suppress(BaseException):  # whatever it is, it will come again where it is used
            __import__(name)
    gc.freeze()
    for path, name in question["modules"]:
        _import(tell, {"path": path, "name": name}, question)


def _import(tell: Teller, module: dict[str, Any], asked: dict[str, Any]) -> None:
    code = in_fork(tell, lambda: tell("module", **module, **_alone(module, asked)), asked["root"], asked["each_s"])
    if code != DONE:
        why = f"no end: killed by {signal.Signals(-code).name}" if code < 0 else f"no end: it exited with code {code}"
        tell("module", **module, ending="unknown", error=why, why=f"was not seen importing: {why}")


def _alone(module: dict[str, Any], asked: dict[str, Any]) -> dict[str, object]:
    try:
        __import__(module["name"])
    except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever it raises, it did not import
        places, told = Places(asked["root"]), said(error, BOUND)
        place = places.innermost(error.__traceback__)
        if isinstance(error, SyntaxError) and (path := places.shown(error.filename or "<string>")):
            place = {"path": path, "line": error.lineno or 1}
        ending, why = _ended(error, told, asked["own"])
        return {"ending": ending, "error": told, "why": why, "location": place or {"path": module["path"]}}
    return {"ending": "passed"}


def _ended(error: BaseException, told: str, own: list[str]) -> tuple[str, str]:
    """Return how an import that raised ended, and why: a defect, or unknown where it refuses or lacks something."""
    needs = "was not imported: it needs {}, which is not here"
    broken = "failed", f"does not import by itself: {told}"
    frames = traceback.extract_tb(error.__traceback__)
    refused = bool(frames) and (frames[-1].line or "").startswith("raise")
    chain: BaseException | None = error
    for _ in range(DEEPEST):
        if isinstance(chain, ModuleNotFoundError) and chain.name:
            if chain.name.split(".")[0] not in own:
                return "unknown", needs.format(chain.name)
            if not refused:
                return broken
        chain = chain and (chain.__cause__ or chain.__context__)
    if refused or not isinstance(error, DEFECTS):
        return "unknown", f"refuses to be imported alone: {told}"
    of = getattr(error, "obj", None)  # of an AttributeError
    owner = of.__name__ if isinstance(of, ModuleType) else isinstance(error, ImportError) and error.name
    return ("unknown", needs.format(owner)) if owner and owner.split(".")[0] in PLATFORM else broken


PACKAGES = ("pytest", "pytest-json-report", "coverage", "torch", "numpy", "hypothesis")


def about() -> None:
    """Tell what this interpreter has: versions of what the gates use, and the devices that torch sees."""
    import importlib.metadata
    import platform

    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    clocks = {name: time.get_clock_info(name) for name in ("perf_counter", "process_time")}
    told: dict[str, object] = {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "versions": versions,
        "clocks": {name: [clock.implementation, clock.resolution] for name, clock in clocks.items()},
        "devices": ["cpu"],
    }
    if "torch" in versions:
        try:
            torch = importlib.import_module("torch")
            found = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            told["devices"] = ["cpu", *(f"{'rocm' if torch.version.hip else 'cuda'}: {name}" for name in found)]
        except Exception as error:  # noqa: BLE001  # a broken install is what this is to tell
            told["torch_problem"] = f"{type(error).__name__}: {str(error)[:200]}"
    sys.stdout.write(json.dumps(told) + "\n")
