"""Builds a package, or imports modules one by one, in the project's interpreter; stands alone.

    python _startup_runner.py build ASKED RESULT      python _startup_runner.py imports ASKED RESULT

Both files are JSON, RESULT one value a line. What many modules import from others (torch takes seconds) is loaded once;
then each module is imported in a fork of its own, so that none leans on what another has loaded.
"""

import contextlib
import gc
import importlib
import importlib.metadata
import json
import linecache
import os
import re
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

Facts = dict[str, object]
BOUND = 500


def main() -> None:
    """Do what the command line asks for."""
    what, asked, target = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")), Path(sys.argv[3])
    sys.argv = [sys.argv[0]]
    with target.open("a", encoding="utf-8") as file:
        for facts in iter([build(asked)]) if what == "build" else imports(asked):
            file.write(json.dumps(facts) + "\n")
            file.flush()


def build(asked: dict[str, object]) -> Facts:
    """Build a wheel by the backend's own hook, in the folder that holds a copy of the project."""
    source, requires, backend = Path(str(asked["source"])), asked["requires"], str(asked["backend"])
    absent = _absent(requires)
    if absent:
        return {"absent": absent}
    os.chdir(source)
    paths = asked["paths"]
    sys.path[:1] = [str(source / path) for path in (paths if isinstance(paths, list) else [])]
    module, _, name = backend.partition(":")
    try:
        hooks = importlib.import_module(module)
    except ModuleNotFoundError as error:
        return {"absent": [str(error.name)]}
    for part in name.split(".") if name else []:
        hooks = getattr(hooks, part)
    more = getattr(hooks, "get_requires_for_build_wheel", None)
    absent = _absent(more()) if more else []
    return {"absent": absent} if absent else {"wheel": hooks.build_wheel(str(asked["target"]))}


def _absent(requires: object) -> list[str]:
    """Return the requirements that are not met here; without `packaging`, those that are not installed at all."""
    absent = []
    for text in requires if isinstance(requires, list | tuple) else ():
        name = re.match(r"[A-Za-z0-9._-]+", str(text))
        try:
            from packaging.requirements import Requirement

            wanted = Requirement(str(text))
            if wanted.marker and not wanted.marker.evaluate():
                continue
            met = wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True)
        except ImportError:  # importlib.metadata's PackageNotFoundError is one too
            met = name is None or _is_installed(name[0])
        if not met:
            absent.append(str(text))
    return absent


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def imports(asked: dict[str, object]) -> Iterator[Facts]:
    """Load what others wrote, then import each module in a fork."""
    modules, preload, paths, limit_s = asked["modules"], asked["preload"], asked["paths"], asked["limit_s"]
    assert isinstance(modules, list) and isinstance(preload, list) and isinstance(paths, list)
    assert isinstance(limit_s, float | int)
    sys.path[:1] = paths[:1]
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = paths[1:]  # before any copy that is installed
    gc.disable()  # a collection in each fork would copy all that was loaded
    for name in preload:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.suppress(BaseException):  # whatever it is, it will come again where it is used
                __import__(name)  # from here, so that a warning to its importer names this file
        told = [warned for warned in map(_warned, caught) if warned["path"] == __file__]
        yield from ({"preloaded": name, **warned} for warned in told)
    gc.freeze()
    for module in modules:
        yield {"path": module["path"], **_in_fork(module["names"], limit_s)}


def _in_fork(names: list[str], limit_s: float) -> Facts:
    """Import a module in a fork, under the first of its names that works, and return what came of it."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork where a library has started threads
        pid = os.fork()
    if not pid:
        os.close(reading)
        try:
            text = json.dumps(_alone(names)).encode("utf-8", "backslashreplace")
            while text:
                text = text[os.write(writing, text) :]
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
        hung = signalled == signal.SIGKILL and time.monotonic() >= ends
        why = f"signal {signalled}" if signalled else f"it exited with code {os.waitstatus_to_exitcode(status)}"
        return {"name": names[0], "error": "hung" if hung else "died", "message": why}


def _alone(names: list[str]) -> Facts:
    first: Facts = {}
    for name in names:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                __import__(name)
                return {"name": name, "warnings": [_warned(one) for one in caught]}
            except BaseException as error:  # noqa: BLE001  # SystemExit too: whatever it raises, it did not import
                first = first or {"name": name, **_failure(error), "warnings": [_warned(one) for one in caught]}
    return first


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
        "error": type(error).__name__,
        "kinds": [kind.__name__ for kind in type(error).__mro__],
        "message": str(error).split("\n")[0][:BOUND],
        "missing": missing,
        "of": owner or "",
        "frames": frames[-50:],
        "refused": code.startswith("raise"),
    }


def _warned(one: warnings.WarningMessage) -> Facts:
    message = str(one.message).split("\n")[0][:BOUND]
    return {"category": one.category.__name__, "message": message, "path": one.filename, "line": one.lineno,
            "kinds": [kind.__name__ for kind in one.category.__mro__]}  # fmt: skip


if __name__ == "__main__":
    main()
