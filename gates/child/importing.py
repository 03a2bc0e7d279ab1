"""Imports modules of the tested project one by one, and tells of each what came of it.

    python -m gates_probe.importing QUESTION
    python -m gates_probe.importing:about

What modules import from others (torch takes seconds) is loaded once; each module is imported in a fork of its own, so
that none leans on what another of the project has loaded.
"""

import contextlib
import gc
import importlib
import importlib.metadata
import json
import linecache
import platform
import signal
import sys
import time
import traceback
from types import ModuleType
from typing import Any

from .asking import DONE, Teller, in_fork, program

Facts = dict[str, object]
BOUND = 500


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
    """Import a module in a fork that tells what came of it, or tell that it did not."""

    code = in_fork(tell, lambda: tell("module", **module, **_alone(module["name"])), asked["root"], asked["each_s"])
    if code != DONE:
        why = f"killed by {signal.Signals(-code).name}" if code < 0 else f"it exited with code {code}"
        tell("module", **module, error="no end", message=why)


def _alone(name: str) -> Facts:
    try:
        __import__(name)
    except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever it raises, it did not import
        return _failure(error)
    return {}


def _failure(error: BaseException) -> Facts:
    """Describe why an import failed: the error, the modules that are missing, and the way to it."""
    missing: list[str] = []
    chain: BaseException | None = error
    while chain is not None and len(missing) < 9:
        if isinstance(chain, ModuleNotFoundError) and chain.name:
            missing.append(chain.name)
        chain = chain.__cause__ or chain.__context__
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 1))
    owner = error.name if isinstance(error, ImportError) else None
    of = getattr(error, "obj", None)  # of an AttributeError
    if isinstance(of, ModuleType):
        owner = of.__name__
    code = linecache.getline(*frames[-1]).strip() if frames else ""
    return {
        "error": type(error).__name__,
        "kinds": [kind.__name__ for kind in type(error).__mro__],
        "message": str(error).split("\n")[0][:BOUND],
        "missing": missing,
        "of": owner or "",
        "frames": frames[-50:],
        "refused": code.startswith("raise"),
    }


PACKAGES = ("pytest", "pytest-json-report", "coverage", "torch", "numpy", "hypothesis")


def about() -> None:
    """Tell what this interpreter has: versions of what the gates use, and the devices that torch sees."""
    told: dict[str, object] = {"python": platform.python_version(), "implementation": sys.implementation.name}
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    told["versions"] = versions
    clocks = {name: time.get_clock_info(name) for name in ("perf_counter", "process_time")}
    told["clocks"] = {name: [clock.implementation, clock.resolution] for name, clock in clocks.items()}
    told["devices"] = ["cpu"]
    if "torch" in versions:
        try:
            torch = importlib.import_module("torch")
            found = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            told["devices"] = ["cpu", *(f"{'rocm' if torch.version.hip else 'cuda'}: {name}" for name in found)]
            told["threads"] = torch.get_num_threads()
        except Exception as error:  # noqa: BLE001  # a broken install is what this is to tell
            told["torch_problem"] = f"{type(error).__name__}: {str(error)[:200]}"
    sys.stdout.write(json.dumps(told) + "\n")
