"""The processes of the arms: started, asked, timed and ended, whatever they do."""

import json
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import ValidationError

from gates.child.asking import command
from gates.child.forks import Warm
from gates.child.guardian import remove, stop_if_interrupted
from gates.child.noting import noting_env
from gates.child.process import Running, running
from gates.errors import EvidenceUnavailable
from gates.measuring.samples import Collected, Ended, Hello, Ran, first_wrong
from gates.model import Model
from gates.task.measurement import Arm
from gates.words import printable, visible

M = TypeVar("M", bound=Model)
PROTOCOL = "gates.worker/1"
START_S = 120.0
POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SLACK_S, BEAT_S = 0.001, 0.5  # of the clocks, and between two looks whether somebody has interrupted
COMPILED = "compiled"  # the folder of what commands compiled, while they are timed
CHUNK, LONGEST = 1 << 16, 1 << 20
ENDED_S, GONE_S = 30.0, 30.0  # from the end of what an arm says to its own, to that of what started it
Told = dict[str, Any]


class Launch(NamedTuple):
    """How the process of an arm is started; `asked` is what our own worker is asked for, where the arm is a call."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = {}
    asked: Mapping[str, Any] | None = None

    @property
    def order(self) -> Told:
        """Return what is asked of the process that starts it."""
        return {"argv": [*self.argv], "env": noting_env(self.env), "cwd": str(self.cwd)}

    @property
    def module(self) -> str:
        """Return the module that makes the step of a call."""
        return str(self.asked["call"]).partition(":")[0] if self.asked else ""

    @property
    def needs(self) -> tuple[object, ...]:
        """Return what is the same of arms for which one process can import what all need, and no more; none is none."""
        return (self.argv[:-1], self.cwd, *self.env.items(), self.module) if self.module else ()


class ArmFailed(EvidenceUnavailable):
    """An arm that could not be measured, and why; it becomes an unknown, never a number. It had taken so many pairs."""

    pairs = 0


class ArmEnded(ArmFailed):
    """An arm whose process ended when it should not; what it wrote last may say why."""


class Lines:
    """Lines of JSON from a pipe."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.over = False
        self._rest = b""

    def next(self, limit: float) -> str | None:
        """Return the next line, or `None` at the end, or at a time limit."""
        while b"\n" not in self._rest:
            stop_if_interrupted()
            left_s = limit - time.monotonic()
            if not select.select([self._number], [], [], min(max(left_s, 0), BEAT_S))[0]:
                if left_s > 0:
                    continue
                return None
            chunk = os.read(self._number, CHUNK)
            self._rest += chunk
            if not chunk:
                self.over = True
                return None
            if len(self._rest) > LONGEST:
                raise ArmFailed(f"an arm answered {self._rest[:60]!r}, a line without an end")
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "backslashreplace")


class Start:
    """The process that starts arms, and the pipe on which it tells how they ended."""

    def __init__(self, started: Running, ends: int) -> None:
        self._started, self.lines = started, Lines(ends)
        self.told: dict[str, Told] = {}

    def end_of(self, key: str, timeout_s: float = 0.0) -> Ended | None:
        """Return how an arm ended, if it does in time; as this process did, where that is gone."""
        limit = time.monotonic() + timeout_s
        while key not in self.told and (line := self.lines.next(limit)):
            told: Told = json.loads(line)
            self.told[str(told["arm"])] = told
        if key not in self.told and self.lines.over:
            self._started.wait(GONE_S)
            used = {"wall_s": 0, "cpu_s": 0, "peak_memory_bytes": 0}
            self.told[key] = {"arm": key, "ended": self._started.code, **used}
        told = self.told.get(key, {})
        if "not_started" in told:
            raise ArmFailed(f"{key} cannot be started: {told['not_started']}")
        return Ended.model_validate(told) if told else None


class Bench:
    """The processes of a measurement; use it as a context, after which they are gone."""

    def __init__(self, folder: Path, log: str = "workers") -> None:
        self._folder, self._log = folder, folder / log
        self._stack = ExitStack()
        self._start: Start | None = None
        self._go: int | None = None
        self._running: Running | None = None
        self._commands: tuple[int, Start] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(0.0 if self._commands else 0.5)  # what starts arms ends by itself once they have

    def end(self, patience_s: float = 0.0) -> None:
        """End all processes; what has nothing left to do may take a moment."""
        self.go(b"")
        try:
            if patience_s and self._running is not None:
                self._running.wait(patience_s)
        finally:
            self._stack.close()
        self._commands = None

    @property
    def last_words(self) -> str:
        """Return what is known of why a process ended, once all is over: for want of memory, and the last line."""
        if self._running is None:
            return ""
        ended = self._running.result()
        wrote = ended.stdout.bytes + ended.stderr.bytes
        words = ["out of memory"] if ended.out_of_memory else []
        words += [f"the last line written is {visible(ended.last_words)!r:.300}"] if wrote else []
        return f" ({'; '.join(words)})" if words else ""

    def start(self, name: str, launch: Launch, forks: Warm | None = None) -> "Worker":
        """Start a worker; it has said nothing yet."""
        return self.start_all({name: launch}, forks=forks)[name]

    def start_all(
        self,
        launches: Mapping[str, Launch],
        processor: int | None = None,
        forks: Warm | None = None,
        *,
        waits: bool = False,
    ) -> dict[str, "Worker"]:
        """Start workers, from one process that has imported what they need where that is the same, on a processor.

        That process is one of the `forks`, where these are given. If it `waits`, it starts them when told to `go`.
        """
        first = next(iter(launches.values()))
        alike = first.needs and {launch.needs for launch in launches.values()} == {first.needs}
        shared = bool(alike) and (len(launches) > 1 or forks is not None)
        arms, ours, theirs = {}, dict[str, tuple[int, int]](), list[int]()
        for name, launch in launches.items():
            orders, ordered = os.pipe()
            heard, answers = os.pipe()
            ours[name] = ordered, heard
            theirs += [orders, answers]
            arms[name] = {**launch.order, "asked": launch.asked, "orders": orders, "answers": answers}
            self._closed_with_it(ordered, heard)
        like = first if shared else Launch((sys.executable,), first.cwd)
        go, self._go = os.pipe() if waits else (None, None)
        theirs += [] if go is None else [go]
        asked = {"module": like.module, "arms": arms, "processor": processor, "go": go}
        start = self._start = self._started("arms", asked, theirs, like, forks if shared else None)
        return {name: Worker(start, name, *pipe) for name, pipe in ours.items()}

    def is_quiet(self, timeout_s: float) -> bool:
        """Wait until workers that wait have imported all; return whether that worked and left nothing that runs on."""
        line = self._start.lines.next(time.monotonic() + timeout_s) if self._start else None
        return bool(line and json.loads(line)["quiet"])

    def go(self, word: bytes = b"1") -> None:
        """Have workers started that wait for it; without a word, end what would start them."""
        if self._go is not None:
            with suppress(OSError):  # where it is gone, its end says so
                os.write(self._go, word)
            os.close(self._go)
            self._go = None

    def time(self, name: str, launch: Launch, *, timeout_s: float) -> Ended:
        """Run a command from its start to its end; raise `ArmFailed` where it does not end well.

        It keeps its bytecode apart: in the project one arm could find more than another.
        """
        if self._commands is None:
            theirs, told = os.pipe()
            self._stack.callback(remove, self._folder / COMPILED)
            like = Launch((sys.executable,), self._folder)
            self._commands = told, self._started("timing", {"orders": theirs}, [theirs], like)
            self._closed_with_it(told)
        told, start = self._commands
        start.told.pop(name, None)
        with suppress(OSError):  # where nobody reads it, its end says so
            own = {"PYTHONPYCACHEPREFIX": str(self._folder / COMPILED), "PYTHONDONTWRITEBYTECODE": "", **launch.env}
            os.write(told, json.dumps({"key": name, **launch._replace(env=own).order}).encode() + b"\n")
        if (ended := start.end_of(name, timeout_s)) is None:
            raise ArmFailed(f"{name} did not end within {timeout_s:g} s")
        if ended.ended != 0:
            raise ArmEnded(f"{name} ended with {ended.words}")
        if ended.wall_s <= 0 or ended.cpu_s < 0:
            raise ArmFailed(f"{name}: the clock says that it took {ended.wall_s:g} s, expected above 0")
        return ended

    def _started(self, program: str, asked: Told, theirs: list[int], like: Launch, forks: Warm | None = None) -> Start:
        """Start what starts arms; the ends of pipes that are its own are given up."""
        heard, ends = os.pipe()
        self._closed_with_it(heard)
        argv = command(like.argv[0], program, json.dumps({**asked, "ends": ends}))
        argv[1:1] = ["-I", "-S"] if program == "timing" else []  # it needs the standard library alone
        try:
            start = forks.start if forks else None
            own = running(argv, cwd=like.cwd, log=self._log, env=like.env, pass_fds=(*theirs, ends), start=start)
            self._running = self._stack.enter_context(own)
        finally:
            for number in (*theirs, ends):
                os.close(number)
        return Start(self._running, heard)

    def _closed_with_it(self, *numbers: int) -> None:
        for number in numbers:
            self._stack.callback(os.close, number)


class Worker:
    """A process that takes the steps of one arm when asked; every answer of it is checked before it is believed."""

    def __init__(self, start: Start, name: str, orders: int, answers: int) -> None:
        self.name = name
        self._start, self._orders, self._lines = start, orders, Lines(answers)

    def hello(self, *, timeout_s: float = START_S) -> Hello:
        """Wait until it is ready, and return what it tells of itself."""
        hello = self._answer(Hello, timeout_s)
        if hello.hello != PROTOCOL:
            raise ArmFailed(f"{self.name} speaks {hello.hello!r:.60}, expected {PROTOCOL!r}")
        return hello

    def run(self, steps: int, *, discard: int = 1, timeout_s: float = START_S) -> Ran:
        """Have it take steps: those discarded first, then those that are timed together."""
        begun = time.monotonic()
        ran = self._asked({"do": "run", "steps": steps, "discard": discard}, Ran, timeout_s)
        observed = time.monotonic() - begun
        if ran.ran != steps:
            raise ArmFailed(f"{self.name} took {ran.ran} steps, asked for {steps}")
        claimed = ran.wall_s + (ran.first_s or 0.0)
        if max(claimed, ran.device_s or 0.0) > observed + SLACK_S:
            raise ArmFailed(f"{self.name} says that {claimed:.4g} s passed, our clock says {observed:.4g} s")
        return ran.model_copy(update={"passed_s": observed * ran.ran / (ran.ran + discard), "peak_memory_bytes": None})

    def collect(self, *, timeout_s: float = START_S) -> Collected:
        """Have it collect garbage and tell its memory."""
        return self._asked({"do": "collect"}, Collected, timeout_s)

    def stop(self, *, timeout_s: float = 10.0) -> Ended | None:
        """Have it end; return how it did, or `None` where it does not."""
        self._say({"do": "stop"})
        return self._start.end_of(self.name, timeout_s)

    def _asked(self, order: Told, form: type[M], timeout_s: float) -> M:
        if self._lines.next(time.monotonic()) is not None:
            raise ArmFailed(f"{self.name} spoke without being asked")
        self._say(order)
        return self._answer(form, timeout_s)

    def _say(self, order: Told) -> None:
        with suppress(OSError):  # where it is gone, its end says so
            os.write(self._orders, json.dumps(order).encode() + b"\n")

    def _answer(self, form: type[M], timeout_s: float) -> M:
        if (line := self._lines.next(time.monotonic() + timeout_s)) is None:
            if (ended := self._start.end_of(self.name, ENDED_S if self._lines.over else 0.0)) is not None:
                raise ArmEnded(f"{self.name} ended with {ended.words} when asked")
            raise ArmFailed(f"{self.name} did not answer within {timeout_s:g} s")
        return _read(printable(line), form, self.name)


def launch(arm: Arm, seed: int = 0, *, python: str, paths: Sequence[Path], threads: int, device: str = "") -> Launch:
    """Return how an arm is started, in the first of `paths`: another revision is the same call with other paths."""
    env = {**dict.fromkeys(POOLS, str(threads)), "PYTHONHASHSEED": str(seed)}
    filled = arm.model_dump_json(include={"call", "args", "run", "time"}).replace("{device}", device)
    asked = Arm.model_validate_json(filled)
    if asked.call:
        told = {"call": asked.call, "args": asked.args, "paths": [str(path) for path in paths], "threads": threads}
        return Launch(tuple(command(python, "arms:alone", json.dumps(told))), paths[0], env, told)
    words = asked.run or asked.time or ()
    return Launch((python, *words[1:]) if words[0] in {"python", "python3"} else words, paths[0], env)


def _read(line: str, form: type[M], name: str) -> M:
    """Read an answer; raise `ArmFailed` for an error, for numbers that no clock gives, and for what is no answer."""
    try:
        told = json.loads(line, parse_constant=lambda token: token)
        if isinstance(told, dict) and "error" in told:
            raise ArmFailed(f"{name}: {str(told['error'])[:300]}")
        return form.model_validate(told)
    except ValidationError as error:
        where, why = first_wrong(error)
        raise ArmFailed(f"{name} answered {where or 'a line'} = {error.errors()[0]['input']!r:.60}: {why}") from error
    except (ValueError, RecursionError) as error:
        raise ArmFailed(f"{name} answered {line!r:.60}, expected a line of JSON") from error
