"""Regular expressions of rules; those of a project's own are searched in another process, which can be stopped."""

import atexit
import json
import queue
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from gates.scan.endless import Endless, path_of

LIMIT_S = 2.0  # of processor time, for one search in one piece of code
PATIENCE_S = 60.0  # of the clock: a busy machine may take long
PROGRAM = Path(__file__).with_name("_searching.py")


@dataclass(frozen=True)
class Doubted:
    """A regular expression that nobody vouches for."""

    pattern: str


Expression: TypeAlias = re.Pattern[str] | Doubted


def is_found(expression: Expression, text: str, where: object) -> bool:
    """Return whether an expression is found in a text from somewhere; raise `Endless` where that takes too long."""
    if isinstance(expression, re.Pattern):
        return expression.search(text) is not None
    pattern = expression.pattern
    if pattern not in _endless:
        try:
            return _found(pattern, text)
        except TimeoutError:
            _endless[pattern] = (path_of(where), f"{LIMIT_S:g} s in one piece of code")
    raise Endless(pattern, *_endless[pattern])


_endless: dict[str, tuple[str, str]] = {}  # each is tried once, however many files there are
_running: list["_Searcher"] = []
_lock = threading.Lock()


@lru_cache(maxsize=20_000)
def _found(expression: str, text: str) -> bool:
    with _lock:
        for _ in range(2):  # somebody else may have ended the process
            if not _running:
                _running.append(_Searcher())
            answer = _running[0].ask(expression, text)
            if answer is not None:
                return answer
            _end()
    raise TimeoutError


@atexit.register
def _end() -> None:
    while _running:
        _running.pop().close()


class _Searcher:
    """The process, and a thread that listens to it: plain reading knows no limit of time."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, encoding="ascii",
        )  # fmt: skip
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def ask(self, expression: str, text: str) -> bool | None:
        """Return whether the expression is found, or nothing where no answer comes; raise `TimeoutError` after long."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps([LIMIT_S, expression, text]) + "\n")
            self._child.stdin.flush()
            answer = self._answers.get(timeout=PATIENCE_S)
        except OSError:
            answer = ""
        except queue.Empty:
            _end()
            raise TimeoutError from None
        if not answer and self._child.wait() == -getattr(signal, "SIGPROF", 0):
            _end()
            raise TimeoutError
        return answer == "1\n" if answer else None

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.wait()
        self._listener.join()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):  # what was not read by the process
                pipe.close()  # type: ignore[union-attr]  # both are there

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._answers.put(line)
        self._answers.put("")
