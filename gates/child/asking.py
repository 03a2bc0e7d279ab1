"""What a program of ours is asked in the project's interpreter, and the journal of what it tells."""

import json
import os
import sys
from collections.abc import Callable
from hmac import new as hashed
from json import dumps
from os import O_APPEND, O_CREAT, O_WRONLY, close, getpid, write
from os import open as opened
from typing import Any, NoReturn

from .calculating.calling import Unreachable, resolve


class Teller:
    """Tells of what was seen; needs nothing that the project may have replaced in a module, or closed."""

    def __init__(self, path: str, secret: str) -> None:
        self._owner = getpid()
        self._path = os.path.abspath(path)  # noqa: PTH100  # the project may leave the folder
        self._secret = secret.encode()

    def __call__(self, word: str, **facts: object) -> None:
        """Write a line; a child that the project forked, and that came back here, ends instead."""
        if getpid() != self._owner:
            os._exit(1)
        text = dumps({"word": word, **facts}).encode()
        file = opened(self._path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        write(file, hashed(self._secret, text, "sha256").hexdigest().encode() + b" " + text + b"\n")
        close(file)

    def forked(self) -> None:
        """Go on telling in a fork of ours."""
        self._owner = getpid()


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
