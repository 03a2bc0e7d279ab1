"""Imports modules one by one, in the project's interpreter; stands alone.

    python child.py ASKED RESULT

Both files are JSON, RESULT one value a line. What modules import from others (torch takes seconds) is loaded once; then
each module is imported in a fork of its own, so that none leans on what another has loaded.
"""

import contextlib
import gc
import json
import linecache
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

Facts = dict[str, object]
BOUND = 500


def main() -> None:
    """Import what is asked for, and write a line for each module."""
    asked, target = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    sys.argv = [sys.argv[0]]
    with target.open("a", encoding="utf-8") as file:
        for facts in imports(asked):
            file.write(json.dumps(facts) + "\n")
            file.flush()


def imports(asked: dict[str, Any]) -> Iterator[Facts]:
    """Load what others wrote, then import each module in a fork."""
    sys.path[:1] = asked["paths"][:1]
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = asked["paths"][1:]  # before any copy that is installed
    gc.disable()  # a collection in each fork would copy all that was loaded
    for name in asked["preload"]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.suppress(BaseException):  # whatever it is, it will come again where it is used
                __import__(name)
        if any(one.filename == __file__ for one in caught):  # it warns whoever imports it: let that be the project
            for loaded in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                del sys.modules[loaded]
    gc.freeze()
    for path, name in asked["modules"]:
        yield {"path": path, "name": name, **_in_fork(name, asked["limit_s"])}


def _in_fork(name: str, limit_s: float) -> Facts:
    """Import a module in a fork, and return what came of it."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork where a library has started threads
        pid = os.fork()
    if not pid:
        os.close(reading)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(json.dumps(_alone(name)).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(0)
    os.close(writing)
    text, ends = b"", time.monotonic() + limit_s
    while select.select([reading], [], [], max(ends - time.monotonic(), 0))[0]:
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        text += chunk
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    try:
        return dict(json.loads(text))
    except ValueError:
        signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        why = f"signal {signalled}" if signalled else f"it exited with code {os.waitstatus_to_exitcode(status)}"
        return {"error": "no end", "message": why}


def _alone(name: str) -> Facts:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            __import__(name)
            return {"warnings": [_warned(one) for one in caught]}
        except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever it raises, it did not import
            return {**_failure(error), "warnings": [_warned(one) for one in caught]}


def _failure(error: BaseException) -> Facts:
    """Describe why an import failed: the error, the modules that are missing, and the way to it."""
    missing: list[str] = []
    chain: BaseException | None = error
    while chain is not None and len(missing) < 9:
        if isinstance(chain, ModuleNotFoundError) and chain.name:
            missing.append(chain.name)
        chain = chain.__cause__ or chain.__context__
    frames: list[tuple[str, int]] = []
    at = error.__traceback__
    while at is not None:
        frames.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 1))
    owner = error.name if isinstance(error, ImportError) else None
    of = getattr(error, "obj", None)  # of an AttributeError
    if isinstance(of, ModuleType):
        owner = of.__name__
    code = linecache.getline(*frames[-1]).strip() if frames else ""
    return {
        "error": type(error).__name__, "kinds": [kind.__name__ for kind in type(error).__mro__],
        "message": str(error).split("\n")[0][:BOUND], "missing": missing, "of": owner or "",
        "frames": frames[-50:], "refused": code.startswith("raise"),
    }  # fmt: skip


def _warned(one: warnings.WarningMessage) -> Facts:
    message = str(one.message).split("\n")[0][:BOUND]
    return {"category": one.category.__name__, "message": message, "path": one.filename, "line": one.lineno}


if __name__ == "__main__":
    main()
