"""Starts the processes of a measurement and carries lines between them and the gate; stands alone.

It is the one child that the gate starts: what it starts is found, counted and ended with it. The gate's lines come on
one pipe, its own go out on another (`GATES_HOST=in,out`); an end of the first means that the gate wants no more.
A worker reads from stdin and writes to the descriptor that `GATES_WORKER` names; stdout and stderr are the log's.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Any

LONGEST = 1 << 20
DRAIN_S = 1.0  # after the end of a worker, where somebody that it started holds its pipe
Told = dict[str, Any]
Process = subprocess.Popen[bytes]


class Host:
    """Obeys the gate; a thread for each process reads its lines, another waits for its end."""

    def __init__(self, orders: IO[bytes], out: int) -> None:
        self._orders, self._out = orders, out
        self._processes: dict[str, Process] = {}
        self._telling = threading.Lock()

    def serve(self) -> None:
        """Serve until the gate is gone, then end what is left."""
        for line in self._orders:
            order = json.loads(line)
            getattr(self, f"_{order.pop('do')}")(**order)
        for arm in list(self._processes):
            self._kill(arm)

    def _start(self, arm: str, argv: list[str], env: dict[str, str], cwd: str, *, talks: bool) -> None:
        """Start a process; one that talks has a pipe each way."""
        replies, theirs = os.pipe()
        told = {**os.environ, **env, **({"GATES_WORKER": str(theirs)} if talks else {})}
        given, passed = (subprocess.PIPE, (theirs,)) if talks else (subprocess.DEVNULL, ())
        begun = time.perf_counter()
        try:
            process = subprocess.Popen(argv, cwd=cwd, env=told, stdin=given, start_new_session=True, pass_fds=passed)
        except (OSError, ValueError) as error:
            self._tell({"arm": arm, "not_started": str(getattr(error, "strerror", None) or error)})
            os.close(replies)
            return
        finally:
            os.close(theirs)
        self._processes[arm] = process
        reader = threading.Thread(target=self._read, args=(arm, os.fdopen(replies, "rb")), daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=(arm, process, begun, reader), daemon=True).start()

    def _say(self, arm: str, line: str) -> None:
        """Hand a line to a worker; where it is gone, its end says so."""
        process = self._processes.get(arm)
        with suppress(OSError, ValueError):
            if process is not None and process.stdin is not None:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()

    def _kill(self, arm: str) -> None:
        if (process := self._processes.get(arm)) is not None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def _read(self, arm: str, replies: IO[bytes]) -> None:
        with replies:
            while line := replies.readline(LONGEST):
                if line.endswith(b"\n"):
                    self._tell({"arm": arm, "said": line[:-1].decode("utf-8", "backslashreplace")})
                elif len(line) == LONGEST:
                    self._tell({"arm": arm, "said": "a line without an end"})
                    self._kill(arm)
                    return

    def _wait(self, arm: str, process: Process, begun: float, reader: threading.Thread) -> None:
        """Tell how a process ended, and what it and those it waited for used."""
        _, status, usage = os.wait4(process.pid, 0)
        took = {"wall_s": time.perf_counter() - begun, "cpu_s": usage.ru_utime + usage.ru_stime}
        process.returncode = os.waitstatus_to_exitcode(status)
        self._kill(arm)  # the rest of its group
        reader.join(DRAIN_S)
        del self._processes[arm]
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        unit = 1 if sys.platform == "darwin" else 1024
        self._tell({"arm": arm, "ended": process.returncode, **took, "peak_memory_bytes": usage.ru_maxrss * unit})

    def _tell(self, told: Told) -> None:
        text = json.dumps(told).encode() + b"\n"
        with self._telling, suppress(OSError):  # where the gate is gone, its orders end, too
            while text:
                text = text[os.write(self._out, text) :]


if __name__ == "__main__":
    told_in, told_out = map(int, os.environ.pop("GATES_HOST").split(","))
    os.set_inheritable(told_in, False)
    os.set_inheritable(told_out, False)
    Host(os.fdopen(told_in, "rb"), told_out).serve()
