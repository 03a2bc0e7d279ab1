"""How the recorder is begun, and the call that it is asked to record."""

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from types import GeneratorType, TracebackType
from typing import Any

import torch

from ..places import HERE
from .journal import Journal
from .sealing import attached


def begun() -> tuple[dict[str, Any], Journal]:
    """Return what is asked for, and the journal, which has begun; the project's folders are on the path then."""
    asked, send = json.loads(sys.argv[1]), attached(os.environ.pop("GATES_WITNESS"))
    sys.argv, sys.excepthook = [asked["call"]], _print
    sys.path[:1] = asked["paths"][:1]
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = asked["paths"][1:]  # before any copy that is installed
    journal = Journal(send, asked["root"])
    journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    return asked, journal


def found(call: str, journal: Journal) -> Any:  # noqa: ANN401
    """Return the callable, or leave with what is missing."""
    module, _, names = call.partition(":")
    try:
        thing: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            _leave(journal, f"there is no module {error.name!r}")
        raise
    for name in names.split("."):
        if not hasattr(thing, name):
            _leave(journal, f"{module} has no {names!r}")
        thing = getattr(thing, name)
    return thing


def returned_by(run: Callable[[], object]) -> object:
    """Return what a call comes to; one that leaves with exit code 0, as a command does, has come to its end, too."""
    try:
        return _ended(run())
    except SystemExit as leaving:
        if leaving.code not in {None, 0}:
            raise
        return None


def _ended(returned: object) -> object:
    """Run a generator or a coroutine to its end: not begun, it would have run nothing."""
    if inspect.isawaitable(returned):
        return _ended(asyncio.run(_awaited(returned)))
    return list(returned) if isinstance(returned, GeneratorType) else returned


async def _awaited(returned: Awaitable[object]) -> object:
    return await returned


def _leave(journal: Journal, problem: str) -> None:
    journal.tell("problem", what=problem)
    raise SystemExit(2)


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the frames of the recorder."""
    shown = traceback.TracebackException(kind, error, trace)
    shown.stack = traceback.StackSummary.from_list([each for each in shown.stack if not each.filename.startswith(HERE)])
    sys.stderr.write("".join(shown.format()))
