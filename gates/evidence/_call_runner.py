"""Calls one function of the tested project, in the project's interpreter; stands alone (the standard library only).

    python _call_runner.py '{"call": "package.module:name", "args": [...], "paths": [...]}' RESULT

What came of it is written to RESULT as JSON; an exception is raised on, so that its traceback reaches stderr.
"""

import asyncio
import importlib
import inspect
import json
import sys
import traceback
from pathlib import Path
from types import GeneratorType, TracebackType
from typing import Any

BOUND = 2000


def main() -> None:
    """Call what was asked for, and run what it returns to its end."""
    asked, target = json.loads(sys.argv[1]), Path(sys.argv[2])
    sys.argv, sys.excepthook = [asked["call"]], _print
    sys.path[:1] = asked["paths"][:1]
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = asked["paths"][1:]  # before any copy that is installed
    module, _, names = asked["call"].partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            _leave(target, problem=f"there is no module {error.name!r}")
        raise
    for name in names.split("."):
        if not hasattr(found, name):
            _leave(target, problem=f"{module} has no {names!r}")
        found = getattr(found, name)
    try:
        returned = _ended(found(*asked["args"]))
    except SystemExit as error:
        target.write_text(json.dumps({"returned": _shown(error)}), encoding="utf-8")
        raise
    told = {"returned": _shown(returned), "number": _is_number(returned), "status": _status(returned)}
    target.write_text(json.dumps(told), encoding="utf-8")


def _is_number(returned: object) -> bool:
    return isinstance(returned, int) and not isinstance(returned, bool)


def _status(returned: object) -> int:
    """Return the exit code that `sys.exit` makes of a value."""
    if returned is None:
        return 0
    return int(returned) if isinstance(returned, int) else 1


def _ended(returned: object) -> object:
    """Run a coroutine or generator to its end: not begun, it would have run nothing."""
    if inspect.iscoroutine(returned):
        return asyncio.run(returned)
    if isinstance(returned, GeneratorType):
        for _ in returned:
            pass
    return returned


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # a broken repr is no crash of the entry point
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()[:BOUND]


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the frames of this file."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def _leave(target: Path, *, problem: str) -> None:
    target.write_text(json.dumps({"problem": problem}), encoding="utf-8")
    raise SystemExit(2)


if __name__ == "__main__":
    main()
