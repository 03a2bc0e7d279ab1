"""The journal of a run: a line for each event, with the place in the project that it came from."""

import asyncio
import inspect
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import GeneratorType
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..asking import Teller, Unreachable, asked, named, print_without_us
from ..places import Place, Places

R = TypeVar("R")
MOST = 5_000
ALWAYS = {"overflow", "after_overflow", "problem", "end"}  # however much was told before


class _Looking(threading.local):
    """How deep in looks of the recorder a thread is."""

    depth = 0


_looking = _Looking()


def is_looking() -> bool:
    """Return whether what happens now in this thread is the recorder's own doing."""
    return _looking.depth > 0


def unheard(look: Callable[[], R]) -> R:
    """Return what a look comes to, with the modes of the tested code put aside while it lasts."""
    _looking.depth += 1
    try:
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():  # noqa: SLF001  # no other way
            with _disable_current_modes(), torch._C.DisableTorchFunction():  # noqa: SLF001
                return look()
        return look()
    finally:
        _looking.depth -= 1


class Journal:
    """Tells events as they happen; what was told stays, however the process ends."""

    def __init__(self, tell: Teller, root: str) -> None:
        self._write = tell.note
        self.places = Places(root)
        self._numbers: dict[int, tuple[int, object]] = {}
        self._kinds: dict[str, int] = {}
        self._threads = {threading.get_ident(): 0}
        self._told = 0
        self._troubles: set[str] = set()
        self.watched: Callable[[], None] = lambda: None

    def number(self, thing: object, kind: str) -> int:
        """Return the number of an object among those of its kind, from 1 on; it is kept, so that its id is its own."""
        if id(thing) not in self._numbers:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            self._numbers[id(thing)] = (self._kinds[kind], thing)
        return self._numbers[id(thing)][0]

    def tell(self, word: str, **facts: object) -> None:
        """Note an event, with the innermost line of the project that led to it."""
        self._told += 1
        self.watched()
        if self._told < MOST or word in ALWAYS:
            self._write({"word": word, "place": self.place(), **self._thread(), **facts})
        elif self._told == MOST:
            self._write({"word": "truncated"})

    def trouble(self, what: str, error: Exception) -> None:
        """Note that the recorder itself could not do something; each such thing once."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{what}: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        if what not in self._troubles:
            self._troubles.add(what)
            self._write({"word": "trouble", "what": text[:500]})

    def place(self) -> Place | None:
        """Return path and line of the innermost frame that lies in the project."""
        return self.places.of(sys._getframe(1))  # noqa: SLF001  # as logging does

    def _thread(self) -> dict[str, object]:
        """Return the number of a thread that is not the first."""
        number = self._threads.setdefault(threading.get_ident(), len(self._threads))
        return {"thread": number} if number else {}


def safely(journal: Journal, what: str, look: Callable[[], R], default: R) -> R:
    """Return what a look of the recorder comes to; a fault of the recorder must not become one of the project."""
    try:
        return unheard(look)
    except Exception as error:  # noqa: BLE001  # noted, and the evidence that it would have given stays missing
        journal.trouble(what, error)
        return default


def begun() -> tuple[dict[str, Any], Journal]:
    """Return what is asked for, and the journal, which has begun; the project's folders are on the path then."""
    question, tell = asked()
    sys.excepthook = print_without_us
    journal = Journal(tell, question["root"])
    journal.tell("start", torch=torch.__version__, cuda=torch.cuda.is_available())
    return question, journal


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
