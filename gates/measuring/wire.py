"""The two pipes between the gate and the host of a measurement, and the thread in which the host is run."""

import json
import os
import select
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue

from gates.child import process
from gates.child.process import ProcessRun

HOST = Path(__file__).with_name("_host.py")
CHUNK = 65536
Told = dict[str, JsonValue]


class ArmFailed(Exception):
    """An arm that could not be measured, and why; it becomes an unknown, never a number. It had taken so many pairs."""

    pairs = 0


class ArmEnded(ArmFailed):
    """An arm whose process ended when it should not; what it wrote last may say why."""


class HostGone(ArmFailed):
    """The host of the processes has ended, or could not be started; nothing can be measured any more."""


class Wire:
    """A host and the lines to and from it; everything that it started is gone when this is closed.

    It hands the host its ends of the pipes as a `gates.child.channel.Channel` does.
    """

    def __init__(self, folder: Path, *, timeout_s: float) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self.theirs: tuple[int, ...] = (theirs_in, theirs_out)
        self.env = {"GATES_HOST": f"{theirs_in},{theirs_out}"}
        self._rest = b""
        self.ended: ProcessRun | None = None
        self._problem = ""
        self._thread = threading.Thread(target=self._run, args=(folder, timeout_s), daemon=True)
        self._thread.start()

    def started(self) -> None:
        """Give up the host's ends: when it is gone, its pipe ends."""
        for number in self.theirs:
            os.close(number)
        self.theirs = ()

    def ask_for_stacks(self, _pid: int) -> None:
        """Ask for nothing: what hangs is told by the arm that does not answer."""

    def close(self) -> None:
        """Do nothing when the host's process has ended: what it said last may still be in the pipe."""

    def send(self, told: Told) -> None:
        """Send a line; raise `HostGone` where nobody is there to read it."""
        text = json.dumps(told).encode() + b"\n"
        try:
            while text:
                text = text[os.write(self._out, text) :]
        except OSError as error:
            raise HostGone(self._why()) from error

    def receive(self, timeout_s: float) -> Told | None:
        """Return the next line, or `None` where none came in time; raise `HostGone` at the end."""
        limit = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                return None
            chunk = os.read(self._in, CHUNK)
            if not chunk:
                raise HostGone(self._why())
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        told: Told = json.loads(line)
        return told

    def hang_up(self) -> ProcessRun | None:
        """Have the host end what it started and itself; return how that went."""
        for number in (self._out, self._in):  # its end too: it may wait for us to read what a worker floods us with
            with suppress(OSError):
                os.close(number)
        self._thread.join()
        return self.ended

    def _run(self, folder: Path, timeout_s: float) -> None:
        argv = [sys.executable, "-I", str(HOST)]
        try:
            self.ended = process.run(argv, cwd=folder, timeout_s=timeout_s, log=folder / "workers", channel=self)  # type: ignore[arg-type]  # of a channel it has what `run` uses
        except OSError as error:
            self._problem = f"the host of the workers cannot be started: {error.strerror or error}"
        finally:
            if self.theirs:
                self.started()

    def _why(self) -> str:
        self._thread.join(5)
        if self._problem:
            return self._problem
        return (
            f"the host of the workers ended with {self.ended.ended}"
            if self.ended
            else "the host of the workers is gone"
        )
