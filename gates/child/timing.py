"""Times commands from their start to their end, and tells how they, or the processes of other arms, ended.

It imports next to nothing: what this process holds is the least that a command which it starts seems to hold.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

perf_counter = time.perf_counter
Told = dict[str, Any]


def main() -> None:
    """Run commands one after the other, as they are ordered, and tell of each how it ended."""
    asked = json.loads(sys.argv[1])
    for number in asked.values():
        os.set_inheritable(number, False)
    with os.fdopen(asked["orders"], encoding="utf-8") as orders:
        for line in orders:
            arm, begun = json.loads(line), perf_counter()
            if pid := started(arm["key"], arm, asked["ends"]):
                _, status, usage = os.wait4(pid, 0)
                _tell_end(asked["ends"], arm["key"], begun, status, usage)
                with suppress(OSError):  # the rest of its group
                    os.killpg(pid, signal.SIGKILL)


def own_pipes(asked: Told) -> set[int]:
    """Return the pipes of all arms, and keep them from what is started."""
    pipes = {arm[end] for arm in asked["arms"].values() for end in ("orders", "answers")}
    pipes |= {asked["ends"], *([] if asked["go"] is None else [asked["go"]])}
    for number in pipes:
        os.set_inheritable(number, False)
    return pipes


def wait_for(begun: dict[int, tuple[str, float]], numbers: set[int], ends: int) -> None:
    """Wait for the ends of arms, each with its key and when it began, and tell of each."""
    for number in numbers - {ends}:
        os.close(number)
    while begun:
        pid, status, usage = os.wait3(0)
        if pid in begun:
            _tell_end(ends, *begun.pop(pid), status, usage)


def started(key: str, arm: Told, ends: int) -> int:
    """Start the process of an arm; return its id, or 0 where it cannot be started."""
    env, given, passed = {**os.environ, **arm["env"]}, subprocess.DEVNULL, list[int]()
    if "answers" in arm:
        given, passed = arm["orders"], [arm["answers"]]
        env["GATES_WORKER"] = str(arm["answers"])
    try:
        process = subprocess.Popen(
            arm["argv"], cwd=arm["cwd"], env=env, stdin=given, pass_fds=passed, start_new_session=not passed
        )
    except (OSError, ValueError) as error:
        tell_of(ends, {"arm": key, "not_started": str(getattr(error, "strerror", None) or error)})
        return 0
    process.returncode = 0  # its end is waited for by its number
    return process.pid


def _tell_end(ends: int, key: str, begun: float, status: int, usage: resource.struct_rusage) -> None:
    took = {"wall_s": perf_counter() - begun, "cpu_s": usage.ru_utime + usage.ru_stime}
    unit = 1 if sys.platform == "darwin" else 1024
    code = os.waitstatus_to_exitcode(status)
    tell_of(ends, {"arm": key, "ended": code, **took, "peak_memory_bytes": usage.ru_maxrss * unit})


def tell_of(ends: int, told: Told) -> None:
    """Tell the gate something of an arm, or of all."""
    with suppress(OSError):  # the gate is gone
        os.write(ends, json.dumps(told).encode() + b"\n")
