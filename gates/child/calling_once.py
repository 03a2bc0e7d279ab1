"""Calls one function of the tested project, in the project's interpreter.

    python -m gates_probe.calling_once '{"call": "package.module:name", "args": [...], "paths": [...]}' RESULT

What came of it is written to RESULT as JSON; an exception is raised on, so that its traceback reaches stderr.
"""

import asyncio
import inspect
import json
import sys
from pathlib import Path
from types import GeneratorType

from .asking import Unreachable, import_from, named, print_without_us

BOUND = 2000


def main() -> None:
    """Call what was asked for, and run what it returns to its end."""
    asked, target = json.loads(sys.argv[1]), Path(sys.argv[2])
    sys.argv, sys.excepthook = [asked["call"]], print_without_us
    import_from(asked["paths"])
    try:
        _, found = named(asked["call"])
    except Unreachable as error:
        target.write_text(json.dumps({"problem": str(error)}), encoding="utf-8")
        raise SystemExit(2) from error
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


if __name__ == "__main__":
    main()
