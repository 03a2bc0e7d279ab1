"""Calls one training step of the tested project with everything around it recorded.

    GATES_WITNESS=3,4,5 python -m gates_recorder '{"call": "pkg.mod:name", "args": [], "paths": [], "root": "/x",
                                                   "overflow": null}'

The numbers are the descriptors of the pipe for the journal, of its secret, and of a file. The journal ends with what
came of the call; an exception is raised on, so that its traceback reaches stderr.
"""

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from types import AsyncGeneratorType, GeneratorType, TracebackType
from typing import Any

import torch

from .by_hand import ByHand
from .calls import Calls
from .clearing import Clearing
from .forwards import Forwards
from .host_reads import ReadsPerStep
from .journal import Journal, safely
from .observing import Scene
from .overflow import Overflow
from .places import HERE
from .reference import Reference
from .sealing import attached
from .steps import Steps
from .trackers import Trackers


def main() -> None:
    """Record the call that was asked for."""
    asked, send = json.loads(sys.argv[1]), attached(os.environ.pop("GATES_WITNESS"))
    sys.argv, sys.excepthook = [asked["call"]], _print
    sys.path[:1] = asked["paths"][:1]
    sys.path += [path for path in asked["paths"][1:] if path not in sys.path]
    journal = Journal(send, asked["root"])
    journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    scene = Scene(journal)
    Calls(scene), Steps(scene), Forwards(scene)
    trackers = Trackers(scene)
    journal.watched = trackers.look
    scene.observers += [Clearing(scene), ByHand(scene)]
    if asked["overflow"]:
        scene.observers.append(Overflow(scene, **asked["overflow"]))
    else:
        scene.observers += [Reference(scene), ReadsPerStep(scene)]
    returned = _left(lambda: _ended(_found(asked["call"], journal)(*asked["args"])))
    safely(journal, "what was returned", lambda: trackers.returned(returned), None)
    scene.let_know(lambda each: each.ended())
    journal.tell("end")


def _left(run: Callable[[], object]) -> object:
    """Return what a call returned; one that leaves with exit code 0, as a command does, has come to its end, too."""
    try:
        return run()
    except SystemExit as leaving:
        if leaving.code not in {None, 0}:
            raise
        return None


def _found(call: str, journal: Journal) -> Any:  # noqa: ANN401
    """Return the callable, or leave with what is missing."""
    module, _, names = call.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            _leave(journal, f"there is no module {error.name!r}")
        raise
    for name in names.split("."):
        if not hasattr(found, name):
            _leave(journal, f"{module} has no {names!r}")
        found = getattr(found, name)
    return found


def _ended(returned: object) -> object:
    """Run a generator or a coroutine to its end: not begun, it would have run nothing."""
    if inspect.isawaitable(returned):
        return _ended(asyncio.run(_awaited(returned)))
    if isinstance(returned, AsyncGeneratorType):
        return asyncio.run(_listed(returned))
    return list(returned) if isinstance(returned, GeneratorType) else returned


async def _awaited(returned: Awaitable[object]) -> object:
    return await returned


async def _listed(returned: AsyncGeneratorType[object, None]) -> list[object]:
    return [each async for each in returned]


def _leave(journal: Journal, problem: str) -> None:
    journal.tell("problem", what=problem)
    raise SystemExit(2)


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the frames of the recorder."""
    shown = traceback.TracebackException(kind, error, trace)
    shown.stack = traceback.StackSummary.from_list([each for each in shown.stack if not each.filename.startswith(HERE)])
    sys.stderr.write("".join(shown.format()))


if __name__ == "__main__":
    main()
