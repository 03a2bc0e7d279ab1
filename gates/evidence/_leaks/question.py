"""The question that a program of ours is asked in the project's interpreter: a file of JSON, gone once it is read."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .._calculating.calling import Unreachable, resolve
from .._calculating.journal import Teller


def asked() -> tuple[dict[str, Any], Teller]:
    """Return what is asked for, and what tells of it; the project's folders are on the path then.

    The secret that is asked with signs the journal, so that no line of it is the project's.
    """
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        question = json.load(file)
    os.remove(sys.argv[1])  # noqa: PTH107
    tell = Teller(sys.argv[2], question["secret"])
    sys.argv = [question.get("call") or question["shared"]]
    sys.path[:1] = question["paths"][:1]
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = question["paths"][1:]  # before any copy that is installed
    return question, tell


def found(path: str) -> Callable[..., Any]:
    """Return what is called by its path; raise `Unreachable` where there is nothing that can be."""
    thing = resolve(path)[1]
    if not callable(thing):
        raise Unreachable(f"{path} is a {type(thing).__name__}, which cannot be called")
    return thing  # type: ignore[no-any-return]  # whatever can be called


def leave(code: int = 0) -> NoReturn:
    """Leave at once: what the project leaves running is none of what was asked for."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the project closed it
            continue
    os._exit(code)


def give_up(tell: Teller, problem: str, place: list[object] | None = None) -> NoReturn:
    """Tell why it cannot be done, and leave."""
    tell("problem", what=problem, place=place)
    leave(2)
