"""Calls one training step of the tested project with everything around it recorded.

    python -m gates_recorder '{"call": "pkg.mod:name", "args": [], "paths": [], "root": "/x", "overflow": null}' JOURNAL

The journal ends with what came of the call; an exception is raised on, so that its traceback reaches stderr.
"""

import asyncio
import importlib
import inspect
import json
import sys
import traceback
from collections.abc import Awaitable
from pathlib import Path
from types import AsyncGeneratorType, GeneratorType, TracebackType
from typing import Any

import torch

from .calls import Calls
from .clearing import Clearing
from .forwards import Forwards
from .journal import HERE, Journal, safely
from .observing import Scene
from .overflow import Overflow
from .reference import Reference
from .steps import Steps
from .trackers import Trackers


def main() -> None:
    """Record the call that was asked for."""
    asked, target = json.loads(sys.argv[1]), Path(sys.argv[2])
    sys.argv, sys.excepthook = [asked["call"]], _print
    sys.path[:1] = asked["paths"][:1]
    sys.path += [path for path in asked["paths"][1:] if path not in sys.path]
    journal = Journal(target, asked["root"])
    journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    scene = Scene(journal)
    Calls(scene), Steps(scene), Forwards(scene)
    trackers = Trackers(scene)
    journal.watched = trackers.look
    scene.observers.append(Clearing(scene))
    if asked["overflow"]:
        scene.observers.append(Overflow(scene, **asked["overflow"]))
    else:
        scene.observers.append(Reference(scene))
    returned = _ended(_found(asked["call"], journal)(*asked["args"]))
    safely(journal, "what was returned", lambda: trackers.returned(returned), None)
    scene.let_know(lambda each: each.ended())
    journal.tell("end")


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
