"""The processes of the arms: started, asked, timed and ended, whatever they do."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import Field, ValidationError

from gates.child.asking import command
from gates.child.process import ProcessRun
from gates.measuring.samples import Device
from gates.measuring.wire import ArmEnded, ArmFailed, Told, Wire
from gates.model import Model
from gates.task.measurement import Arm
from gates.words import printable, visible

M = TypeVar("M", bound=Model)
PROTOCOL = "gates.worker/1"
START_S = 120.0
POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SLACK_S = 0.001


@dataclass(frozen=True)
class Launch:
    """How the process of an arm is started: its command, what it adds to the environment, and where.

    `asked` is what our own worker is asked for, where the arm is a call.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] | None = None

    @property
    def module(self) -> str:
        """Return the module that makes the step of a call."""
        return str(self.asked["call"]).partition(":")[0] if self.asked else ""

    def shares_with(self, other: "Launch") -> bool:
        """Return whether one process can import what both arms need, and nothing that only one of them does."""
        shared = self.argv[:-1], self.cwd, self.env, self.module
        return bool(self.module) and shared == (other.argv[:-1], other.cwd, other.env, other.module)


class Hello(Model):
    """What a worker tells of itself before it is asked for anything."""

    hello: str
    device: Device
    environment: dict[str, str] = Field(default_factory=dict)
    threads: int | None = None


class Ran(Model):
    """One segment, as the worker timed it; `first_s` is what came before the timed steps, after a switch of arms.

    `passed_s` is the gate's own: what passed between question and answer, the part of the timed steps.
    """

    ran: int = Field(ge=1)
    wall_s: float = Field(gt=0)
    cpu_s: float | None = Field(default=None, gt=0)
    device_s: float | None = Field(default=None, gt=0)
    first_s: float | None = Field(default=None, ge=0)
    halves_s: tuple[float, float] | None = None
    items: float | None = Field(default=None, gt=0)
    digest: str = ""
    switches: int | None = None
    passed_s: float | None = None

    @property
    def step_s(self) -> float:
        """Return the seconds of a step, by the device's own clock where it has one."""
        return (self.device_s or self.wall_s) / self.ran


class Collected(Model):
    """What a worker tells of its memory since its steps began."""

    collected: bool
    peak_memory_bytes: float | None = Field(default=None, gt=0)


class Ended(Model):
    """How a process of an arm ended, and what it and all that it waited for used, as the system counted it."""

    arm: str
    ended: int
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int

    @property
    def words(self) -> str:
        """Return the end in words."""
        return f"exit code {self.ended}" if self.ended >= 0 else f"signal {-self.ended}"


class Bench:
    """The processes of a measurement behind one host; use it as a context."""

    def __init__(self, folder: Path, *, timeout_s: float) -> None:
        self._wire = Wire(folder, timeout_s=timeout_s)
        self._log = folder / "workers.stderr.txt"
        self._waiting: dict[str, list[Told]] = {}
        self._ends: dict[str, Ended] = {}
        self._within: dict[str, str] = {}  # the process that carries the lines of an arm that it has forked
        self._count = 0
        self.process: ProcessRun | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process = self._wire.hang_up()

    @property
    def last_words(self) -> str:
        """Return what is known of why a process ended, once all is over: for want of memory, and the last line."""
        if self.process is None:
            return ""
        wrote = self.process.stdout.bytes + self.process.stderr.bytes
        words = ["out of memory"] if self.process.out_of_memory else []
        words += [f"the last line written is {visible(self.process.last_words)!r:.300}"] if wrote else []
        return f" ({'; '.join(words)})" if words else ""

    def start(self, name: str, launch: Launch) -> "Worker":
        """Start a worker; it has said nothing yet."""
        return Worker(self, name, self._launched(name, launch, talks=True))

    def start_all(self, launches: Mapping[str, Launch]) -> dict[str, "Worker"]:
        """Start workers, all from one process that has imported what they need, where they need the same."""
        first = next(iter(launches.values()))
        if not all(first.shares_with(other) for other in launches.values()):
            return {name: self.start(name, launch) for name, launch in launches.items()}
        keys = {name: self._key(name) for name in launches}
        arms = {keys[name]: launch.asked for name, launch in launches.items()}
        asked = {"module": first.module, "paths": first.asked["paths"] if first.asked else [], "arms": arms}
        argv = (*first.argv[:-2], "arms", json.dumps(asked))
        carrier = self._launched("the arms", Launch(argv, first.cwd, first.env), talks=True)
        self._within |= dict.fromkeys(keys.values(), carrier)
        return {name: Worker(self, name, key) for name, key in keys.items()}

    def time(self, name: str, launch: Launch, *, timeout_s: float) -> Ended:
        """Run a command from its start to its end; raise `ArmFailed` where it does not end well."""
        key = self._launched(name, launch, talks=False)
        self.next_line(key, name, timeout_s, what="end")
        ended = self._ends[key]
        if ended.ended != 0:
            raise ArmEnded(f"{name} ended with {ended.words}")
        if ended.wall_s <= 0 or ended.cpu_s < 0:
            raise ArmFailed(f"{name}: the clock says that it took {ended.wall_s:g} s, expected above 0")
        return ended

    def say(self, key: str, told: Told) -> None:
        """Hand a worker a line; raise `ArmFailed` where it has spoken without being asked."""
        while not self._has_spoken(key) and (early := self._wire.receive(0)) is not None:
            self._take(early)
        if self._has_spoken(key):
            raise ArmFailed(f"{key.rpartition(' ')[0]} spoke without being asked")
        carrier = self._within.get(key)
        line = json.dumps({"arm": key, **told} if carrier else told)
        self._wire.send({"do": "say", "arm": carrier or key, "line": line})

    def _has_spoken(self, key: str) -> bool:
        return any("said" in line for line in self._waiting.get(key, ()))

    def next_line(self, key: str, name: str, timeout_s: float, *, what: str = "answer") -> str | None:
        """Return the next line of a process, or `None` at its end; raise `ArmFailed` where none comes in time."""
        limit = time.monotonic() + timeout_s
        while not self._waiting.get(key):
            told = self._wire.receive(max(limit - time.monotonic(), 0))
            if told is None:
                self.kill(key)
                raise ArmFailed(f"{name} did not {what} within {timeout_s:g} s")
            self._take(told)
        first = self._waiting[key].pop(0)
        if "not_started" in first:
            raise ArmFailed(f"{name} cannot be started: {first['not_started']}")
        return printable(str(first["said"])) if "said" in first else None

    def end_of(self, key: str) -> Ended | None:
        """Return how a process ended, where it did."""
        return self._ends.get(key)

    def kill(self, key: str) -> None:
        """Have a process and its group killed."""
        self._wire.send({"do": "kill", "arm": self._within.get(key, key)})

    def _take(self, told: Told) -> None:
        key = str(told["arm"])
        within = [arm for arm, carrier in self._within.items() if carrier == key and arm not in self._ends]
        if within and "said" in told:
            self._take(_carried(str(told["said"]), within))
            return
        for arm in within:
            self._take({**told, "arm": arm})
        if "ended" in told:
            self._ends[key] = Ended.model_validate(told)
        self._waiting.setdefault(key, []).append(told)

    def _launched(self, name: str, launch: Launch, *, talks: bool) -> str:
        key = self._key(name)
        order: Told = {"do": "start", "arm": key, "argv": list(launch.argv), "env": {**launch.env}, "talks": talks}
        self._wire.send({**order, "cwd": str(launch.cwd)})
        return key

    def _key(self, name: str) -> str:
        self._count += 1
        return f"{name} {self._count}"


class Worker:
    """A process that takes the steps of one arm when asked; every answer of it is checked before it is believed."""

    def __init__(self, bench: Bench, name: str, key: str) -> None:
        self.name = name
        self._bench, self._key = bench, key

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
        if ran.halves_s and min(ran.halves_s) < 0:
            raise ArmFailed(f"the clock of {self.name} went backwards")
        return ran.model_copy(update={"passed_s": observed * ran.ran / (ran.ran + discard)})

    def collect(self, *, timeout_s: float = START_S) -> Collected:
        """Have it collect garbage and tell its memory."""
        return self._asked({"do": "collect"}, Collected, timeout_s)

    def stop(self, *, timeout_s: float = 10.0) -> Ended | None:
        """Have it end; one that does not is killed."""
        self._bench.say(self._key, {"do": "stop"})
        limit = time.monotonic() + timeout_s
        try:
            while self._bench.end_of(self._key) is None:
                self._bench.next_line(self._key, self.name, max(limit - time.monotonic(), 0))
        except ArmFailed:
            return None
        return self._bench.end_of(self._key)

    def _asked(self, order: Told, form: type[M], timeout_s: float) -> M:
        self._bench.say(self._key, order)
        return self._answer(form, timeout_s)

    def _answer(self, form: type[M], timeout_s: float) -> M:
        line = self._bench.next_line(self._key, self.name, timeout_s)
        if line is None:
            ended = self._bench.end_of(self._key)
            raise ArmEnded(f"{self.name} ended with {ended.words if ended else 'no word'} when asked")
        return _read(line, form, self.name)


def launch(arm: Arm, *, python: str, paths: Sequence[Path], threads: int, device: str = "", seed: int = 0) -> Launch:
    """Return how an arm is started: in the first of `paths`, from which it also imports, with so many threads.

    The same arm in another folder, such as the work tree of an earlier revision, is the same call with other paths.
    """
    env = {**dict.fromkeys(POOLS, str(threads)), "PYTHONHASHSEED": str(seed)}
    filled = arm.model_dump_json(include={"call", "args", "run", "time"}).replace("{device}", device)
    asked = Arm.model_validate_json(filled)
    if asked.call:
        told = {"call": asked.call, "args": asked.args, "paths": [str(path) for path in paths], "threads": threads}
        return Launch(tuple(command(python, "arm", json.dumps(told))), paths[0], env, told)
    words = asked.run or asked.time or ()
    argv = (python, *words[1:]) if words[0] in {"python", "python3"} else words
    return Launch(argv, paths[0], env)


def _carried(line: str, arms: Sequence[str]) -> Told:
    """Return what was said of one of some arms; raise `ArmFailed` where it is of none."""
    try:
        told = json.loads(line)
        if isinstance(told, dict) and told.get("arm") in arms:
            return told
    except (ValueError, RecursionError):
        pass
    raise ArmFailed(f"the process of the arms said {line!r:.60}, expected an arm's answer")


def _read(line: str, form: type[M], name: str) -> M:
    """Read an answer; raise `ArmFailed` for an error, for numbers that no clock gives, and for what is no answer."""
    try:
        told = json.loads(line, parse_constant=lambda token: token)
        if isinstance(told, dict) and "error" in told:
            raise ArmFailed(f"{name}: {str(told['error'])[:300]}")
        return form.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        backwards = " (did its clock go backwards?)" if first["type"] == "greater_than" and where.endswith("_s") else ""
        message = f"{first['msg'][0].lower()}{first['msg'][1:]}{backwards}"
        raise ArmFailed(f"{name} answered {where} = {first['input']!r:.60}: {message}") from error
    except (ValueError, RecursionError) as error:
        raise ArmFailed(f"{name} answered {line!r:.60}, expected a line of JSON") from error
