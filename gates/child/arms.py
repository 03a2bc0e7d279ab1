"""Times the steps of several arms that one module makes: it is imported once, and each arm is a fork of this process.

    python -m gates_probe.arms '{"module": "package.module", "paths": [...], "arms": {"KEY": {... as of arm.py}}}'

An order has the key of its arm, and so has an answer: `{"arm": KEY, "said": LINE}` and at last `{"arm": KEY, "ended":
CODE, ...}` with what it used. Where this process can't be forked, as with CUDA in use, the arms are started anew.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
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
    orders: int
    answers: int
    started: float

    @property
    def ends(self) -> tuple[int, int]:
        """Return our ends of its pipes."""
        return self.orders, self.answers


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
        arms[key] = Arm(pid, ours[1], theirs[0], time.perf_counter())
    carry(arms, orders, answers)


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


def carry(arms: dict[str, Arm], orders: int, answers: int) -> None:
    """Carry each order to its arm, and what an arm says to the gate, until every arm has ended.

    Where nobody asks any more, end them and this process.
    """
    telling = threading.Lock()

    def tell(key: str, told: Told) -> None:
        text = json.dumps({"arm": key, **told}).encode() + b"\n"
        with telling:
            while text:
                text = text[os.write(answers, text) :]

    def answered(key: str, one: Arm) -> None:
        with os.fdopen(one.answers, "rb") as said:
            while line := said.readline(LONGEST):
                if len(line) == LONGEST:
                    os.kill(one.pid, signal.SIGKILL)
                tell(key, {"said": line.rstrip(b"\n").decode("utf-8", "backslashreplace")})
        _, status, usage = os.wait4(one.pid, 0)
        took = {"wall_s": time.perf_counter() - one.started, "cpu_s": usage.ru_utime + usage.ru_stime}
        unit = 1 if sys.platform == "darwin" else 1024
        code = os.waitstatus_to_exitcode(status)
        tell(key, {"ended": code, **took, "peak_memory_bytes": usage.ru_maxrss * unit})

    def ordered() -> None:
        with os.fdopen(orders, "rb") as given:
            for line in given:
                with suppress(OSError):  # where it is gone, its end says so
                    os.write(arms[json.loads(line)["arm"]].orders, line)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=ordered, daemon=True).start()
    carriers = [threading.Thread(target=answered, args=each) for each in arms.items()]
    for each in carriers:
        each.start()
    for each in carriers:
        each.join()
