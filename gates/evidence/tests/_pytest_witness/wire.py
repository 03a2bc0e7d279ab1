"""The pipe on which the witness tells what happens, as lines that other processes of the run may write between.

A line is the writer's process id, `.` (or `+` where more of it follows), and JSON that holds a nonce. The nonce comes
over a pipe of its own that is read once, so that the tested code finds it neither in its environment nor its arguments.
"""

import errno
import fcntl
import json
import os
from typing import IO

ATOMIC = 4000  # bytes of a write that other writers cannot come between, see PIPE_BUF
HIGH = 700  # file descriptors from here on: tests that close the low ones do not mean this one
ROOM = ATOMIC - 40

# bound here, because the tested code may patch modules
_encode = json.JSONEncoder(default=repr, skipkeys=True).encode
_write, _fstat, _pid, _open = os.write, os.fstat, os.getpid, os.open


class Wire:
    """The one line out of this process; without its pipe it tells nothing."""

    def __init__(self) -> None:
        self.seed = ""
        self.taken = ""
        self._nonce = ""
        self._again = ""
        self._pipe: int | None = None
        self._inode = 0
        self._stack: IO[bytes] | None = None
        self._lines: list[str] = []
        self._own = _pid()
        self._strayed = False
        self.in_test = False
        os.register_at_fork(after_in_child=self._forget)

    def attach(self, numbers: str) -> None:
        """Take the pipe, the secret and the file for stacks, by the numbers of their file descriptors."""
        if numbers:
            pipe, secret, stack = map(int, numbers.split(","))
            told = json.loads(_drained(secret))
            self._take(pipe, stack, told)

    def handed_on(self) -> dict[str, str]:
        """Return what a worker process needs to attach to the same pipe."""
        if self._pipe is None or self._stack is None:
            return {}
        stack = f"/proc/{self._own}/fd/{self._stack.fileno()}"
        return {"again": self._again, "stack": stack, "nonce": self._nonce, "seed": self.seed, "taken": self.taken}

    def take_over(self, handed: dict[str, str]) -> None:
        """Attach a worker process to the pipe of the process that started it."""
        try:
            pipe = _open(handed["again"], os.O_WRONLY)
            stack = _open(handed["stack"], os.O_WRONLY | os.O_APPEND)
        except (KeyError, OSError):
            return
        self._take(pipe, stack, handed)

    @property
    def stack(self) -> IO[bytes] | None:
        """Return the file for the stacks of a process that dies."""
        return self._stack

    def note(self, event: str, **facts: object) -> None:
        """Keep an event for the next that must be told at once."""
        if self._strayed:
            self._strayed = False
            self._lines.append(_encode({"event": "strayed", "nonce": self._nonce, "id": str(facts.get("id", ""))}))
            self.flush()
            self._pipe = None
        elif self._pipe is not None:
            self._lines.append(_encode({"event": event, "nonce": self._nonce, **facts}))

    def tell(self, event: str, **facts: object) -> None:
        """Tell an event now, and all that were kept: what comes next may be the end of the process."""
        self.note(event, **facts)
        self.flush()

    def flush(self) -> None:
        """Tell the events that were kept."""
        lines, self._lines = self._lines, []
        if self._pipe is None or not lines:
            return
        head = f"{self._own}"
        batch: list[str] = []
        size = 0
        for line in lines:
            for piece in _pieces(head, line):
                if size + len(piece) > ATOMIC:
                    self._send("".join(batch))
                    batch, size = [], 0
                batch.append(piece)
                size += len(piece)
        self._send("".join(batch))

    def _send(self, text: str) -> None:
        if self._pipe is None or not text:
            return
        line = text.encode("ascii", "backslashreplace")
        try:
            if _fstat(self._pipe).st_ino == self._inode:  # else its number is somebody else's now
                _write(self._pipe, line)
                return
        except OSError as error:
            if error.errno != errno.EBADF:
                self._pipe = None  # nobody listens: the reader finds that the end is missing
                return
        try:  # a test closed it
            self._pipe = _moved(_open(self._again, os.O_WRONLY))
            _write(self._pipe, line)
        except OSError:
            self._pipe = None

    def _take(self, pipe: int, stack: int, told: dict[str, str]) -> None:
        self._pipe, self._stack = _moved(pipe), os.fdopen(_moved(stack), "wb", buffering=0)
        self._inode = _fstat(self._pipe).st_ino
        self._nonce, self._again = told["nonce"], told["again"]
        self.seed, self.taken = told["seed"], told["taken"]

    def _forget(self) -> None:
        """Tell of a fork in a test only that it goes on as if it were the run; another fork may be part of the run."""
        self._strayed, self._lines = self.in_test, []


def _pieces(head: str, line: str) -> list[str]:
    if len(line) <= ROOM:
        return [f"{head}.{line}\n"]
    parts = [line[i : i + ROOM] for i in range(0, len(line), ROOM)]
    return [*(f"{head}+{part}\n" for part in parts[:-1]), f"{head}.{parts[-1]}\n"]


def _moved(number: int) -> int:
    """Move a file descriptor out of the way, where no program that is started inherits it."""
    try:
        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, HIGH)
    except OSError:  # a low limit of open files
        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(number)
    return moved


def _drained(number: int) -> bytes:
    with os.fdopen(number, "rb") as file:
        return file.read()
