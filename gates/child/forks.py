"""A process that has imported what others need, and these others as forks of it."""

import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from gates.child.asking import command
from gates.child.guardian import stop_if_interrupted
from gates.child.noting import unnoted
from gates.child.process import Started, running
from gates.child.warm import PID

LIMIT_S, BEAT_S = 300.0, 0.1


class Fork:
    """A process as `subprocess.Popen` has it, which is the child of another."""

    def __init__(self, pid: int, answers: int, stdout: int, stderr: int) -> None:
        self.pid, self._answers = pid, answers
        self.stdout, self.stderr = os.fdopen(stdout, "rb"), os.fdopen(stderr, "rb")
        self.returncode: int | None = None

    def ended(self) -> tuple[int, int, int]:
        """Return its id, status and peak memory in KiB, zeros while it runs; raise where its parent is gone."""
        if not select.select([self._answers], [], [], 0)[0]:
            return 0, 0, 0
        told = os.read(self._answers, 64).split()
        os.close(self._answers)
        if len(told) != 2:
            raise ChildProcessError
        return self.pid, int(told[0]), int(told[1])

    def poll(self) -> int | None:
        """Return its exit code, where somebody has waited for it."""
        return self.returncode


class Warm:
    """The process that forks others; what it is to load first it loads meanwhile."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loading, self._can = 0, False
        self._lock = RLock()

    def load(self, roots: Iterable[Path], call: str, *args: object) -> None:
        """Have something loaded, of which nothing is to lie in these folders, nor to have a name that leads there."""
        with self._lock, suppress(OSError):
            self._connection.send(json.dumps({"load": call, "args": args, "roots": [*map(str, roots)]}).encode())
            self._loading += 1

    def ready(self) -> bool:
        """Wait until all is loaded; return whether it can fork."""
        limit = time.monotonic() + LIMIT_S
        with self._lock:
            while self._loading and time.monotonic() < limit:
                stop_if_interrupted()
                if select.select([self._connection], [], [], BEAT_S)[0]:
                    told = self._connection.recv(1)
                    self._loading, self._can = (self._loading - 1, told == b"1") if told else (0, False)
            return self._can and not self._loading

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], **others: Any) -> Fork | Started:  # noqa: ANN401
        """Return one of our programs as a fork that does what its command would, or else its command."""
        pass_fds: Sequence[int] = others.get("pass_fds", ())
        about = {"argv": argv[len(command("", "")) - 1 :], "cwd": str(cwd), "env": dict(env), "files": [*pass_fds]}
        pipes = [os.pipe() for _ in range(3)]
        (out, _), (err, _), (answers, _) = pipes
        sent = 0
        with self._lock, suppress(OSError):
            files = [*(theirs for _, theirs in pipes), *pass_fds]
            sent = self.ready() and socket.send_fds(self._connection, [json.dumps(about).encode()], files)
        for _, theirs in pipes:
            os.close(theirs)
        if pid := sent and os.read(answers, PID):
            return Fork(int(pid), answers, out, err)
        for ours, _ in pipes:
            os.close(ours)
        return Started(argv, cwd=cwd, env=env, **others)


@contextmanager
def warm(python: str, cwd: Path, log: Path, env: Mapping[str, str]) -> Iterator[Warm]:
    """Yield a process that forks others, or what only starts them; when the context is left, it is gone."""
    linux = sys.platform == "linux"  # elsewhere nothing tells whether a fork is safe
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET if linux else socket.SOCK_STREAM)
    with ours, ExitStack() as stack:
        with theirs, unnoted():
            argv = command(python, "warm", str(theirs.fileno()))
            if linux:
                stack.enter_context(running(argv, cwd=cwd, log=log, env=env, pass_fds=[theirs.fileno()]))
        yield Warm(ours)
