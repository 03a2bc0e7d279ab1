"""The procedure of a measurement: arms in turn, restarted, watched, and stopped as soon as they decide."""

import math
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gates import progress
from gates.measuring import machine
from gates.measuring.bench import GONE_S, START_S, ArmEnded, ArmFailed, Bench, Launch, Worker
from gates.measuring.interval import LEAST_RESTARTS, MANY, looks_until
from gates.measuring.samples import Device, Hello, Ran, Samples
from gates.measuring.taken import SPLIT, End, Gathered, Taken
from gates.task.measurement import Measurement
from gates.words import counted

SEGMENT_S, SEGMENT_ELSEWHERE_S = {"cpu": 0.030}, 0.010
WINDOW, CONVERGED, MOST_WARMUPS = 5, 0.05, 50
EXPENSIVE_S, MOST_START_S, LEAVES_S = 5.0, 300.0, 2.0
FIXED, LEAST, LEAST_UNIT_S = 8, 6, 0.002
FIRST_BLOCKS = 24  # pairs: by then there have been all the restarts that were asked for
LEAST_STEPS = 2  # of a segment: one alone would be moved by whatever follows a switch
COPY = "a second copy of "
FIRST_COPIES, COPIES_APART = 6, 8  # pairs
AHEAD = 4  # starts that import at the same time, where there are so many processors
Workers = tuple[Bench, Mapping[str, Worker]]  # of a start
Settled = Callable[[Samples, Taken], bool]


class Plan(NamedTuple):
    """What is measured, as it is asked for, and how each arm is started with a hash seed; a start has a limit."""

    asked: Measurement
    arms: Mapping[str, Callable[[int], Launch]]
    limit_s: float = START_S
    segment_s: float | None = None
    applies: Callable[[Device], bool] = lambda _: True  # anything asked to a device; else one pair is taken
    one_processor: bool = False  # all arms of a start share one, so that they do not differ by which one they got

    @property
    def names(self) -> tuple[str, ...]:
        """Return the arms; the first is the baseline."""
        return tuple(self.arms)

    @property
    def talks(self) -> bool:
        """Return whether the arms are workers that take steps when asked, and not commands that are timed."""
        return not any(arm.time for arm in self.asked.arms.values())

    @property
    def start_s(self) -> float:
        """Return how long a start may take."""
        return self.asked.timeout_s or min(self.limit_s, MOST_START_S)


def turn(arms: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Return the order of a pair: forwards, then backwards; of three arms each comes first, between and last."""
    first = number // 2 % len(arms) if len(arms) > 2 else 0
    order = (*arms[first:], *arms[:first])
    return order if number % 2 == 0 else order[::-1]


def is_copy_due(pairs: int, arms: int, split: int) -> bool:
    """Return whether the baseline and its copy are due: less often where pairs are short or there is one arm."""
    return (pairs - FIRST_COPIES) % (COPIES_APART * (2 if split > 1 or arms == 1 else 1)) == 0


@dataclass
class _Running:
    number: int
    left: int
    workers: Mapping[str, Worker] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    round_s: float = 0.0


def measure(plan: Plan, folder: Path, settled: Settled) -> tuple[Samples, Taken]:
    """Measure until the samples decide, or all pairs are taken, or the budget is spent; raise `ArmFailed`."""
    session = Session(plan, folder)
    try:
        progress.so_far = lambda: f"{counted(session.pairs, 'pair')} taken"
        with session.stack:
            return session.run(settled)
    except ArmFailed as error:
        failed = ArmFailed(f"{error}{session.bench.last_words if isinstance(error, ArmEnded) else ''}")
        failed.pairs = session.pairs
        raise failed from error


class Session:
    """The state of one measurement while it goes on."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._asked, self._folder, self.stack = plan, plan.asked, folder, ExitStack()
        self.bench = self.stack.enter_context(Bench(folder))
        self._begun, self._ahead, self._alone = 0, list[Workers](), os.cpu_count() == 1
        self._began, self._before = time.monotonic(), machine.observe()
        self._most, self._split = plan.asked.pairs, 1
        self._copy, self._patience = COPY + plan.names[0], max(5.0, plan.asked.budget_s)
        self._got = Gathered(plan.names)
        self._hellos: dict[str, Hello] = {}
        self._measured_s, self._starting_s, self._waited_s = 0.0, 0.0, 0.0
        self._gpu: machine.Gpu | None = None
        self._source = random.SystemRandom()
        self._running: _Running | None = None
        self._block = max(1, min(FIRST_BLOCKS, self._most) // plan.asked.restarts)

    @property
    def pairs(self) -> int:
        """Return how many pairs were taken so far."""
        return len(self._got.rounds)

    def run(self, settled: Settled) -> tuple[Samples, Taken]:
        """Take round after round; look where looking was planned."""
        ended: End = "all pairs"
        while self.pairs < self._most:
            if self._spent() and self.pairs:
                ended = "budget"
                break
            self._round()
            self._end_block_where_due()  # before the look, so that it sees what they held
            is_due = self.pairs in looks_until(self._most) or not self._plan.applies(self._device)
            if is_due and settled(*self._seen("decided")):
                ended = "decided" if self.pairs < self._most else ended
                break
        self._end_processes()
        return self._seen(ended)

    def _round(self) -> None:
        """Take one pair: every arm once, forwards in even rounds and backwards in odd ones."""
        number, names = self.pairs, self._plan.names
        if self._plan.talks:
            self._restart_where_due()
        elif not number:
            self._turn(names)  # what comes first finds cold caches: it is not counted
        begun, waited = time.monotonic(), machine.pressure()
        self._got.rounds.append(self._turn(turn(names, number)))
        if self._running:
            self._got.restarts.append(self._running.number)
            self._running.left -= 1
        if is_copy_due(self.pairs, len(names), self._split):
            for order in ((names[0], self._copy), (self._copy, names[0])):  # as two arms: who follows whom matters
                ran = self._turn(order)
                self._got.copied.append((ran[names[0]], ran[self._copy]))
        self._measured_s += time.monotonic() - begun
        now = machine.pressure()
        self._waited_s += now - waited if now is not None and waited is not None else 0.0

    def _turn(self, order: tuple[str, ...]) -> dict[str, Ran]:
        """Take a segment of each arm, or run its command from start to end."""
        if self._running:
            workers, steps = self._running.workers, self._running.steps
            return {name: workers[name].run(steps[name], timeout_s=self._patience) for name in order}
        seed = self._source.randrange(1, 2**32)
        arms = {name: self._plan.arms[name.removeprefix(COPY)] for name in order}
        return {name: self.bench.time(name, arm(seed), timeout_s=self._patience).as_step for name, arm in arms.items()}

    @property
    def _left_s(self) -> float:
        return self._asked.budget_s - (time.monotonic() - self._began)

    def _spent(self) -> bool:
        """Return whether the time is up: so that the next round would end after it."""
        arms = len(self._plan.names)
        segment_s = self._measured_s / max(self.pairs * arms + 2 * len(self._got.copied), 1)
        return self._left_s < segment_s * (arms + 4 * is_copy_due(self.pairs + 1, arms, self._split))

    def _end_block_where_due(self) -> None:
        """End the processes where a block is over, unless their next start takes most of the time that is left."""
        if (running := self._running) is None or running.left > 0:
            return
        few = running.number < min(LEAST_RESTARTS, self._asked.restarts)
        if self._starting_s / running.number > (self._left_s - running.round_s if few else self._left_s / 2):
            running.left = self._most
        else:
            self._end_processes()

    def _restart_where_due(self) -> None:
        """Start the processes, the first time and after each block."""
        if (running := self._running) and running.left > 0:
            return
        begun = time.monotonic()
        number = running.number + 1 if running else 1
        self._running = self._started(number, self._block * (1 if number <= self._asked.restarts else 2))
        self._starting_s += time.monotonic() - begun
        if number == 1:
            self._fit_to_budget(self._running)

    def _started(self, number: int, block: int) -> _Running:
        """Start a process for each arm and a copy of the first, all at once; then warm them up, one after the other."""
        self._ahead = self._ahead or self._begin()
        self.bench, workers = self._ahead.pop(0)
        self.bench.go()
        running = _Running(number, block, workers)
        for name, worker in workers.items():
            hello = worker.hello(timeout_s=self._plan.start_s)
            self._refuse_another_device(name, hello)
            self._hellos[name] = hello
        step_s = {name: self._warm_up(worker) for name, worker in workers.items()}
        if number == 1:
            self._split_pairs(max(step_s.values()))
            running.left = self._block
        for name, one_s in step_s.items():
            least = LEAST_STEPS if one_s < self._segment_s else 1
            running.steps[name] = max(least, math.ceil(self._segment_s / self._split / one_s))
            running.round_s += one_s * (running.steps[name] + 1)
        return running

    def _begin(self) -> list[Workers]:
        """Begin the next starts, which import at the same time, and do no more until they are due.

        Where that fails, or leaves anything that would run beside what is measured, each start begins when it is due.
        """
        needs = {arm(0).needs for arm in self._plan.arms.values()}
        if self._alone or len(needs) > 1 or () in needs:
            return [self._begin_one(waits=False)]
        begun = [self._begin_one(waits=True) for _ in range(min(AHEAD, os.cpu_count() or 1))]
        self._alone = not all(bench.is_quiet(self._plan.start_s) for bench, _ in begun)
        for bench, _ in begun if self._alone else ():
            bench.end(LEAVES_S)
        return self._begin() if self._alone else begun

    def _begin_one(self, *, waits: bool) -> Workers:
        self._begun += 1
        bench = self.stack.enter_context(Bench(self._folder, f"workers-{self._begun}"))
        seed, first = self._source.randrange(1, 2**32), self._plan.arms[self._plan.names[0]]
        arms = {name: arm(seed) for name, arm in {**self._plan.arms, self._copy: first}.items()}
        processor = self._source.choice(sorted(os.sched_getaffinity(0))) if self._plan.one_processor else None
        return bench, bench.start_all(arms, processor, waits=waits)

    @property
    def _segment_s(self) -> float:
        return self._plan.segment_s or SEGMENT_S.get(self._device.type, SEGMENT_ELSEWHERE_S)

    def _split_pairs(self, longest_s: float) -> None:
        """Take several short pairs in the place of each, as many as the longest step lets there be."""
        if self._device.type != "cpu" or self._asked.pairs < MANY or len(self._plan.names) == 1:
            return  # a level is that of long segments: what comes with each switch is not its own
        self._split = min(SPLIT, math.ceil(self._segment_s / (LEAST_STEPS * longest_s)))
        self._most *= self._split
        self._block *= self._split

    def _warm_up(self, worker: Worker) -> float:
        """Take steps until their time settles; return the seconds of one."""
        times: list[float] = []
        unit, begun = 1, time.monotonic()
        most_s = self._asked.budget_s / (4 * self._asked.restarts * (len(self._plan.names) + 1))
        while len(times) < MOST_WARMUPS and (len(times) < 3 or time.monotonic() - begun <= most_s):
            times.append(worker.run(unit, discard=0, timeout_s=self._patience).step_s)
            unit = max(1, min(1000, math.ceil(LEAST_UNIT_S / times[-1])))
            before, last = times[-2 * WINDOW : -WINDOW], statistics.median(times[-WINDOW:])
            if len(before) == WINDOW and abs(last / statistics.median(before) - 1) <= CONVERGED:
                break
        return min(times[-WINDOW:])

    def _fit_to_budget(self, running: _Running) -> None:
        """Take a fixed, small number of pairs where a segment is dear; refuse where not even the fewest fit."""
        if running.round_s > EXPENSIVE_S * len(self._plan.names):
            self._most = min(self._most, FIXED)
            self._block = running.left = 2
        if running.round_s * LEAST > self._left_s:
            needed_s, budget_s = running.round_s * LEAST + time.monotonic() - self._began, self._asked.budget_s
            raise ArmFailed(f"{LEAST} pairs take about {needed_s:.0f} s, the budget is {budget_s:g} s; raise budget_s")

    def _end_processes(self) -> None:
        if (running := self._running) is None or not running.workers:
            return
        if self._device.type == "cuda" and self._gpu is None:
            self._gpu = machine.gpu(len(running.workers))
        collected = {name: running.workers[name].collect(timeout_s=self._patience) for name in self._plan.names}
        ended = {name: worker.stop() for name, worker in running.workers.items()}
        self.bench.end(GONE_S if all(ended.values()) else 0.0)
        self._got.take_memory(collected, ended)
        self._running = _Running(running.number, 0)

    @property
    def _device(self) -> Device:
        hello = self._hellos.get(self._plan.names[0])
        return hello.device if hello else machine.processor()

    def _refuse_another_device(self, name: str, hello: Hello) -> None:
        """Raise `ArmFailed` where a process runs on another device than the first one of them all."""
        was, device = next(iter(self._hellos.values()), hello).device, hello.device
        if (was.type, was.name) != (device.type, device.name):
            first, other = f"{was.type} ({was.name})", f"{device.type} ({device.name})"
            raise ArmFailed(f"the arms ran on different devices: {name} on {other}, the first on {first}")

    def _seen(self, ended: End) -> tuple[Samples, Taken]:
        hello = self._hellos.get(self._plan.names[0])
        settings = {"threads": str(self._asked.threads), "clock": self._asked.clock}
        settings |= {"processors": "one for all arms of a start"} if self._plan.one_processor else {}
        samples = self._got.samples(self._device, hello.environment if hello else {}, settings)
        told: dict[str, object] = {
            **self._asked.model_dump(include={"threads", "clock", "budget_s", "same_result"}),
            **self._got.facts(),
            "baseline": self._plan.names[0],
            "planned_starts": self._asked.restarts,
            "most": self._most,
            "split": self._split,
            "one_processor": self._plan.one_processor,
            "ended": ended,
            "waiting": None if machine.pressure() is None else self._waited_s / max(self._measured_s, 1e-9),
            "before": self._before,
            "after": machine.observe(),
            "gpu": self._gpu,
            "measured_s": self._measured_s,
            "started_s": self._starting_s,
        }
        return samples, Taken.model_validate(told)
