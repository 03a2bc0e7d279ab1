"""Starts the arms of a measurement, and takes their steps.

Where one module makes the steps of several arms, it is imported once and each arm is a fork, if that is safe: not with
CUDA in use. Others are started by their command. Orders and answers are lines of JSON over a pipe each; how an arm
ended is told on `ends`. Work on a GPU is timed by events of its stream, with one synchronisation a segment.
"""

import atexit
import gc
import hashlib
import json
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .asking import (
    as_step,
    called,
    can_fork,
    cuda_of_project,
    end_notes,
    found,
    import_from,
    leave,
    said,
    torch_of_project,
)
from .memory import peak, reset_peak, resident
from .timing import own_pipes, started, tell_of, wait_for
from .values import encode
from .warm import children, given

PROTOCOL = "gates.worker/1"
FLAGS = {"amx_bf16", "amx_fp16", "avx2", "avx512_bf16", "avx512_fp16", "avx512f"}
NATIVE = {"bf16": {"amx_bf16", "avx512_bf16", "bf16"}, "fp16": {"amx_fp16", "avx512_fp16", "asimdhp"}}
AT = " at 0x"
perf_counter, process_time = time.perf_counter, time.process_time  # as they are before the project is imported
Told = dict[str, Any]


def main() -> None:
    """Import the module, start the arms, and tell of each how it ended."""
    asked = json.loads(sys.argv[1])
    for each in (asked, *asked["arms"].values()):
        each.update({end: given.get(each[end], each[end]) for end in ("orders", "answers", "ends") if end in each})
    arms, ends, go, numbers = asked["arms"], asked["ends"], asked["go"], own_pipes(asked)
    forks = bool(asked["module"]) and _import(asked["module"], next(iter(arms.values()))["asked"]["paths"])
    if go is not None:
        tell_of(ends, {"arm": "", "quiet": forks and asked["module"] in sys.modules and _is_childless()})
        if not os.read(go, 1):
            leave()
    if asked["processor"] is not None:
        os.sched_setaffinity(0, {asked["processor"]})
    begun: dict[int, tuple[str, float]] = {}
    for key, arm in arms.items():
        pid = os.fork() if forks else started(key, arm, ends)
        if pid:
            begun[pid] = key, perf_counter()
        elif forks:
            for number in numbers - {arm["orders"], arm["answers"]}:
                os.close(number)
            serve(arm["asked"], arm["orders"], arm["answers"])
            return
    wait_for(begun, numbers, ends)
    leave()


def _import(module: str, paths: list[str]) -> bool:
    """Import the module of arms; return whether these may be forked."""
    sys.argv = [module]
    import_from(paths)
    gc.disable()  # next to nothing of what an import makes is garbage
    try:
        __import__(module)
    except BaseException:  # noqa: BLE001  # each arm says so for itself
        traceback.print_exc()
    gc.freeze()  # no fork needs to look for garbage in it, which would copy all of it
    gc.enable()
    return can_fork()


def _is_childless() -> bool:
    """Return whether an import has left no process that runs on, as far as this system tells."""
    with suppress(OSError):
        return not children()
    return False


def alone() -> None:
    """Take the steps of one arm: orders come on stdin, answers go to the descriptor that `GATES_WORKER` names."""
    orders, answers = os.dup(0), int(os.environ.pop("GATES_WORKER"))
    os.set_inheritable(answers, False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    asked = json.loads(sys.argv[1])
    import_from(asked["paths"])
    serve(asked, orders, answers)


def serve(asked: Told, orders_from: int, replies_to: int) -> None:
    """Make the step that is asked for, then do as told until told to stop."""
    replies = os.fdopen(replies_to, "w", buffering=1, encoding="utf-8")

    def say(told: Told) -> None:
        replies.write(json.dumps(told) + "\n")

    sys.argv = [asked["call"]]
    try:
        worker = Worker(lambda: found(asked["call"])(*asked["args"]), int(asked["threads"]))
        say(worker.hello())
        for line in os.fdopen(orders_from, encoding="utf-8"):
            order = json.loads(line)
            if order["do"] == "stop":
                atexit._run_exitfuncs()  # noqa: SLF001  # no more is owed: to take torch apart takes a second
                leave()
            say(worker.run(order["steps"], order["discard"]) if order["do"] == "run" else worker.collect())
    except BaseException as error:  # noqa: BLE001  # whatever stops it is told, and then it stops
        traceback.print_exc()
        end_notes()  # before anybody who hears of it ends this process
        say({"error": said(error, 500)})
        atexit._run_exitfuncs()  # noqa: SLF001
        leave(1)


class Worker:
    """A step, and the clock, memory and device that it is seen with."""

    def __init__(self, make: Callable[[], object], threads: int) -> None:
        self._threads = threads
        self._set_threads()
        self._before = resident()
        self._step = as_step(make())
        self._set_threads()
        self._items = getattr(self._step, "items_per_step", None)
        self._call(1)
        cuda = cuda_of_project()
        self._cuda = cuda if cuda and cuda.memory_allocated() else None
        if self._cuda:
            self._cuda.synchronize()
            self._cuda.reset_peak_memory_stats()
        reset_peak()
        gc.collect()
        gc.disable()

    def hello(self) -> Told:
        """Tell where the step runs."""
        environment = {"python": platform.python_version(), "platform": platform.platform()}
        versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "numpy")}
        environment |= {name: str(version) for name, version in versions.items() if version}
        return {"hello": PROTOCOL, "device": self._device(), "environment": environment, "threads": self._threads}

    def run(self, steps: int, discard: int) -> Told:
        """Take steps that nobody times, then those that are timed together."""
        begun = perf_counter()
        self._call(discard)  # on a GPU it is in the queue before the first event, so nothing waits for it here
        first = perf_counter() - begun
        events = [self._cuda.Event(enable_timing=True) for _ in range(2)] if self._cuda else []
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        wall, cpu = perf_counter(), process_time()
        if events:
            events[0].record()
        result = self._call(steps)
        if self._cuda:
            events[1].record()
            self._cuda.synchronize()
        end, cpu_end = perf_counter(), process_time()
        told: Told = {
            "ran": steps,
            "wall_s": end - wall,
            "cpu_s": cpu_end - cpu,
            "device_s": events[0].elapsed_time(events[1]) / 1000 if events else None,
            "first_s": first,
            "digest": "" if result is None else digest(result),
            "switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
        }
        if self._items is not None:
            told["items"] = self._items * steps
        return told

    def collect(self) -> Told:
        """Collect garbage, and tell the peak of memory since the steps began."""
        most = self._cuda.max_memory_allocated() if self._cuda else peak() - self._before
        gc.collect()
        return {"collected": True, "peak_memory_bytes": most if most > 0 else None}

    def _call(self, count: int) -> object:
        step = self._step
        for _ in range(count - 1):
            step()
        return called(step) if count else None

    def _set_threads(self) -> None:
        if torch := torch_of_project():
            torch.set_num_threads(self._threads)

    def _device(self) -> Told:
        if self._cuda is None:
            name, capabilities = _processor()
            return {"type": "cpu", "name": name, "capabilities": capabilities}
        major, minor = self._cuda.get_device_capability()
        found = {"fp16", *(["bf16"] if self._cuda.is_bf16_supported(including_emulation=False) else [])}
        hip = torch_of_project().version.hip
        found |= {"rocm"} if hip else {f"sm_{major}{minor}", *(["tf32"] if major >= 8 else [])}
        return {"type": "cuda", "name": self._cuda.get_device_name(), "capabilities": sorted(found)}


def digest(value: object) -> str:
    """Return a digest of all that a step returned; nothing where part of it has but an address, or it is too much."""
    with suppress(Exception):
        told = json.dumps(encode(value, array=_bits))
        return "" if AT in told else hashlib.sha256(told.encode()).hexdigest()[:16]
    return ""


def _bits(array: Any) -> str:  # noqa: ANN401  # an array of whatever library
    """Return a digest of the elements of an array, bit by bit."""
    whole = array.detach().cpu() if hasattr(array, "detach") else array
    plain = whole.float() if "bfloat16" in str(whole.dtype) else whole  # which is exact
    return hashlib.sha256(memoryview(plain.numpy() if hasattr(plain, "numpy") else plain).tobytes()).hexdigest()


def _processor() -> tuple[str, list[str]]:
    fields: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    native = {dtype for dtype, instructions in NATIVE.items() if instructions & flags}
    name = fields.get("model name") or platform.processor() or platform.machine() or "unknown CPU"
    return name, sorted(native | (flags & FLAGS))
