"""Starts the processes of a measurement and carries lines between them and the gate; stands alone.

It is the one child that the gate starts: what it starts is found, counted and ended with it. The gate's lines come on
one pipe, its own go out on another (`GATES_HOST=in,out`); an end of the first means that the gate wants no more.
A worker reads from stdin and writes to the descriptor that `GATES_WORKER` names; stdout and stderr are the log's.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

LONGEST = 1 << 20
Told = dict[str, Any]


class Child:
    """A process of an arm, and the part of a line that has come from it so far."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", replies: int | None) -> None:
        self.name, self.process, self.replies = name, process, replies
        self.started, self.before = time.perf_counter(), b""

    def ended(self, status: int, usage: Any) -> Told:  # noqa: ANN401  # the struct that wait4 returns
        """Tell how it ended and what it and those it waited for used."""
        code = os.waitstatus_to_exitcode(status)
        unit = 1 if sys.platform == "darwin" else 1024
        took = {"wall_s": time.perf_counter() - self.started, "cpu_s": usage.ru_utime + usage.ru_stime}
        return {"arm": self.name, "ended": code, **took, "peak_memory_bytes": usage.ru_maxrss * unit}


class Host:
    """Waits for the gate, for the workers' lines and for their ends, all at once."""

    def __init__(self, orders: int, out: int) -> None:
        self._orders, self._out, self._rest = orders, out, b""
        self._children: dict[str, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ, "gate")
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._woken, selectors.EVENT_READ, "death")
        self._going_on = True

    def serve(self) -> None:
        """Serve until the gate is gone, then end what is left."""
        while self._going_on:
            for key, _ in self._selector.select():
                if key.data == "gate":
                    self._read_orders()
                elif key.data == "death":
                    os.read(self._woken, 4096)
                else:
                    self._read_replies(key.data)
            self._reap()
        for child in self._children.values():
            _kill(child)

    def _read_orders(self) -> None:
        chunk = os.read(self._orders, 65536)
        self._going_on = bool(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            order = json.loads(line)
            getattr(self, f"_{order.pop('do')}")(**order)

    def _start(self, arm: str, argv: list[str], env: dict[str, str], cwd: str, *, talks: bool) -> None:
        """Start a process; one that talks has a pipe each way."""
        replies, theirs = os.pipe() if talks else (None, None)
        told = {**os.environ, **env, **({"GATES_WORKER": str(theirs)} if talks else {})}
        try:
            given, passed = (subprocess.PIPE, (theirs,)) if theirs is not None else (subprocess.DEVNULL, ())
            process = subprocess.Popen(argv, cwd=cwd, env=told, stdin=given, start_new_session=True, pass_fds=passed)
        except (OSError, ValueError) as error:
            self._tell({"arm": arm, "not_started": str(getattr(error, "strerror", None) or error)})
            for number in (replies, theirs):
                if number is not None:
                    os.close(number)
            return
        self._children[arm] = child = Child(arm, process, replies)
        if replies is not None and theirs is not None:
            os.close(theirs)
            self._selector.register(replies, selectors.EVENT_READ, child)

    def _say(self, arm: str, line: str) -> None:
        """Hand a line to a worker; where it is gone, its end says so."""
        child = self._children.get(arm)
        if child is not None and child.process.stdin is not None:
            try:
                child.process.stdin.write(line.encode() + b"\n")
                child.process.stdin.flush()
            except OSError:
                return

    def _kill(self, arm: str) -> None:
        if arm in self._children:
            _kill(self._children[arm])

    def _read_replies(self, child: Child) -> None:
        assert child.replies is not None
        chunk = os.read(child.replies, 65536)
        if not chunk:
            self._close_replies(child)
            return
        *lines, child.before = (child.before + chunk).split(b"\n")
        for line in lines:
            self._tell({"arm": child.name, "said": line.decode("utf-8", "backslashreplace")})
        if len(child.before) > LONGEST:
            self._tell({"arm": child.name, "said": "a line without an end"})
            _kill(child)
            child.before = b""

    def _reap(self) -> None:
        for name, child in list(self._children.items()):
            pid, status, usage = os.wait4(child.process.pid, os.WNOHANG)
            if not pid:
                continue
            ended = child.ended(status, usage)
            child.process.returncode = ended["ended"]
            if child.replies is not None:
                os.set_blocking(child.replies, False)
                self._drain(child)
            _kill(child)  # the rest of its group
            if child.process.stdin is not None:
                with suppress(OSError):
                    child.process.stdin.close()
            del self._children[name]
            self._tell(ended)

    def _drain(self, child: Child) -> None:
        """Read what a worker said before it ended."""
        try:
            while child.replies is not None:
                self._read_replies(child)
        except BlockingIOError:  # somebody that it started holds the pipe
            self._close_replies(child)

    def _close_replies(self, child: Child) -> None:
        if child.replies is not None:
            self._selector.unregister(child.replies)
            os.close(child.replies)
            child.replies = None

    def _tell(self, told: Told) -> None:
        text = json.dumps(told).encode() + b"\n"
        try:
            while text:
                text = text[os.write(self._out, text) :]
        except OSError:
            self._going_on = False


def _kill(child: Child) -> None:
    try:
        os.killpg(child.process.pid, signal.SIGKILL)
    except OSError:
        return


if __name__ == "__main__":
    told_in, told_out = map(int, os.environ.pop("GATES_HOST").split(","))
    os.set_inheritable(told_in, False)
    os.set_inheritable(told_out, False)
    Host(told_in, told_out).serve()
