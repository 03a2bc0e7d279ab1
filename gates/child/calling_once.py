"""Calls one function of the tested project, in the project's interpreter.

    python -m gates_probe.calling_once QUESTION

What came of it is told in the journal; an exception is raised on, so that its traceback reaches stderr.
"""

import sys

from .asking import Unreachable, asked, ended, give_up, named, print_without_us

BOUND = 2000


def main() -> None:
    """Call what was asked for, and run what it returns to its end."""
    question, tell = asked()
    sys.excepthook = print_without_us
    try:
        _, found = named(question["call"])
    except Unreachable as error:
        give_up(tell, str(error))
    try:
        returned = ended(found(*question["args"]))
    except SystemExit as error:
        tell("returned", text=_shown(error))
        raise
    tell("returned", text=_shown(returned), number=_is_number(returned), status=_status(returned))


def _is_number(returned: object) -> bool:
    return isinstance(returned, int) and not isinstance(returned, bool)


def _status(returned: object) -> int:
    """Return the exit code that `sys.exit` makes of a value."""
    if returned is None:
        return 0
    return int(returned) if isinstance(returned, int) else 1


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # a broken repr is no crash of the entry point
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()[:BOUND]
