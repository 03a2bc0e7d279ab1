"""How the recorder is begun, and the call that it is asked to record."""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable
from types import GeneratorType
from typing import Any

import torch

from ..asking import Unreachable, import_from, named, print_without_us
from .journal import Journal
from .sealing import attached


def begun() -> tuple[dict[str, Any], Journal]:
    """Return what is asked for, and the journal, which has begun; the project's folders are on the path then."""
    asked, send = json.loads(sys.argv[1]), attached(os.environ.pop("GATES_WITNESS"))
    sys.argv, sys.excepthook = [asked["call"]], print_without_us
    import_from(asked["paths"])
    journal = Journal(send, asked["root"])
    journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    return asked, journal


def found(call: str, journal: Journal) -> Any:  # noqa: ANN401
    """Return the callable, or leave with what is missing."""
    try:
        return named(call)[1]
    except Unreachable as error:
        journal.tell("problem", what=str(error))
        raise SystemExit(2) from error


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
