"""Times the steps of several arms that one module makes: it is imported once, and each arm is a fork of this process.

    python -m gates_probe.arms '{"module": "package.module", "paths": [...], "arms": {"KEY": {... as of arm.py}}}'

An order has the key of its arm, and so has an answer: `{"arm": KEY, "said": LINE}` and at last `{"arm": KEY, "ended":
CODE, ...}` with what it used. Where this process can't be forked, as with CUDA in use, the arms are started anew.
"""

import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import arm
from .asking import command, import_from

LONGEST = 1 << 19
Told = dict[str, Any]


@dataclass
class Arm:
    """The process of an arm, and the pipes to it and from it."""

    pid: int
    ends: tuple[int, int]
    started: float
    rest: bytes = b""

    def ended(self) -> Told:
        """Wait for its end; return that with what it used."""
        for number in self.ends:
            os.close(number)
        _, status, usage = os.wait4(self.pid, 0)
        unit = 1 if sys.platform == "darwin" else 1024
        used = {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_memory_bytes": usage.ru_maxrss * unit}
        return {"ended": os.waitstatus_to_exitcode(status), "wall_s": time.perf_counter() - self.started, **used}


def main() -> None:
    """Import the module, start the arms, and carry lines until all have ended or nobody asks any more."""
    orders, answers = arm.pipes()
    asked = json.loads(sys.argv[1])
    sys.argv = [asked["module"]]
    import_from(asked["paths"])
    try:
        importlib.import_module(asked["module"])
    except BaseException:  # noqa: BLE001  # each arm says so for itself
        traceback.print_exc()
    arms: dict[str, Arm] = {}
    for key, told in asked["arms"].items():
        ours, theirs = os.pipe(), os.pipe()
        pid = os.fork() if _can_fork() else _spawned(told, ours[0], theirs[1])
        if not pid:
            for number in (orders, answers, ours[1], theirs[0], *(end for one in arms.values() for end in one.ends)):
                os.close(number)
            arm.serve(told, ours[0], theirs[1])
            return
        os.close(ours[0])
        os.close(theirs[1])
        arms[key] = Arm(pid, (ours[1], theirs[0]), time.perf_counter())
    Carrier(arms, orders, answers).carry()


def _can_fork() -> bool:
    """Return whether no thread and no device would be lost in a fork."""
    torch = sys.modules.get("torch")
    with suppress(OSError):
        return len([*Path("/proc/self/task").iterdir()]) == 1 and not (torch and torch.cuda.is_initialized())
    return False


def _spawned(told: Told, orders: int, answers: int) -> int:
    env = {**os.environ, "GATES_WORKER": str(answers)}
    argv = command(sys.executable, "arm", json.dumps(told))
    process = subprocess.Popen(argv, env=env, stdin=orders, pass_fds=(answers,))
    process.returncode = 0  # its end is waited for by its number
    return process.pid


class Carrier:
    """Carries each order to its arm, and what an arm says to the gate, until every arm has ended."""

    def __init__(self, arms: dict[str, Arm], orders: int, answers: int) -> None:
        self._arms, self._orders, self._answers, self._rest = arms, orders, answers, b""

    def carry(self) -> None:
        """Carry until there is no arm any more; where nobody asks any more, end them and this process."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._orders, selectors.EVENT_READ, "")
            for key, one in self._arms.items():
                selector.register(one.ends[1], selectors.EVENT_READ, key)
            while self._arms:
                for ready, _ in selector.select():
                    chunk = os.read(ready.fd, 65536)
                    if not ready.data:
                        self._ordered(chunk)
                    elif chunk:
                        self._said(ready.data, chunk)
                    else:
                        selector.unregister(ready.fd)
                        self._tell({"arm": ready.data, **self._arms.pop(ready.data).ended()})

    def _ordered(self, chunk: bytes) -> None:
        if not chunk:
            os.killpg(0, signal.SIGKILL)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            one = self._arms.get(json.loads(line)["arm"])
            with suppress(OSError):  # where it is gone, its end says so
                os.write(one.ends[0], line + b"\n") if one else None

    def _said(self, key: str, chunk: bytes) -> None:
        one = self._arms[key]
        *lines, one.rest = (one.rest + chunk).split(b"\n")
        for line in lines:
            self._tell({"arm": key, "said": line.decode("utf-8", "backslashreplace")})
        if len(one.rest) > LONGEST:
            os.kill(one.pid, signal.SIGKILL)

    def _tell(self, told: Told) -> None:
        text = json.dumps(told).encode() + b"\n"
        while text:
            text = text[os.write(self._answers, text) :]
