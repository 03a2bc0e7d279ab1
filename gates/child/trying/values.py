"""The kind of what functions give back, heard while tests run them, and other values of that kind."""

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FrameType

Profile = Callable[[FrameType, str, object], None]
HEARD = "GATES_PROVE_KINDS"  # the variable that says where the kinds are written down
KINDS: dict[str, tuple[str, str]] = {
    "bool": ("False", "True"),
    "int": ("0", "1"),
    "float": ("0.0", "1.0"),
    "str": ('""', '"A"'),
    "bytes": ('b""', 'b"A"'),
    "list": ("[]", "[1]"),
    "tuple": ("()", "(1,)"),
    "set": ("set()", "{1}"),
    "dict": ("{}", "{1: 1}"),
    "Tensor": ('__import__("torch").zeros(0)', '__import__("torch").ones(2)'),
    "scalar": ('__import__("torch").zeros(())', '__import__("torch").ones(())'),
    "loss": ('__import__("torch").zeros((), requires_grad=True)', '__import__("torch").ones((), requires_grad=True)'),
    "ndarray": ('__import__("numpy").zeros(0)', '__import__("numpy").ones(2)'),
    "Callable": ("lambda *given, **_: given[0] if given else None", "lambda *_, **__: ..."),  # a decorator decorates
}
CALLABLES = dict.fromkeys(("function", "builtin_function_or_method", "method", "partial"), "Callable")


def hearing(keys: Mapping[str, tuple[str, int]], tell: Callable[[str, str], None]) -> Profile:
    """Return a profile function that tells the kind of what some functions give back, each by its key, once."""
    wanted = {(os.path.realpath(path), line): key for key, (path, line) in keys.items()}
    known: dict[tuple[str, int], str] = {}  # equal code may lie in two files

    def heard(frame: FrameType, event: str, value: object) -> None:
        """Take the end of a call; one that raises gives back nothing, as the interpreter tells it."""
        if event != "return" or value is None:
            return
        place = path, line = frame.f_code.co_filename, frame.f_code.co_firstlineno
        if place not in known:
            known[place] = wanted.get((os.path.realpath(path), line), "")
        if (key := known[place]) and (kind := kind_of(value)):
            known[place] = ""
            tell(key, kind)

    return heard


def kind_of(value: object) -> str:
    """Return the kind of a value, of a tuple with its length, a tensor of one number apart; nothing for any other."""
    names = (CALLABLES.get(base.__name__, base.__name__) for base in type(value).__mro__)
    kind = next((name for name in names if name in KINDS), "")
    if kind == "Tensor" and getattr(value, "shape", None) == ():
        return "loss" if getattr(value, "requires_grad", False) else "scalar"
    return f"tuple {len(value)}" if kind == "tuple" and isinstance(value, tuple) and value else kind


def another(key: str, turn: int) -> object:
    """Return a value of the kind that a function gave back, one of two in turn, or what nobody has use for."""
    kind = _heard(os.environ.get(HEARD, "")).get(key, "")
    return _made(kind, turn) if kind else (None, ...)[turn]


def other(value: object, turn: int, mark: Callable[[], object]) -> object:
    """Return another value of the kind of one, and leave a mark; the same where no other can be made."""
    if kind := kind_of(value):
        mark()
    return _made(kind, turn) if kind else value


def _made(kind: str, turn: int) -> object:
    name, _, count = kind.partition(" ")
    return (turn,) * int(count) if count else eval(KINDS[name][turn])  # noqa: S307  # it is written above


@cache
def _heard(path: str) -> dict[str, str]:
    """Return the kinds that are written down; a stub may be called thousands of times."""
    try:
        return dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
