"""How the samples of a measurement were taken: everything beside the samples that a verdict on them needs."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from gates.child.process import ProcessRun
from gates.measuring.ledger import Recalled
from gates.measuring.machine import Gpu, Machine
from gates.measuring.samples import Samples
from gates.model import Model

Clock = Literal["wall", "cpu", "either"]
End = Literal["decided", "all pairs", "budget"]
SPLIT = 6  # of a pair on the CPU, where steps are short: noise stays for the whole of a segment, however long that is


class Warmup(Model):
    """How a process came to its pace: the steps that it took, and whether its step time settled."""

    arm: str
    steps: int
    settled: bool


class Taken(Model):
    """How pairs were taken in turn.

    Where steps are short each pair was split into `split` shorter ones: these are what `pairs` and `most` count.
    `restarts` tells for each pair which start of the processes it came from (none where each pair has processes of its
    own), `planned_starts` how many were asked for, `copies` the baseline's seconds beside those of a second copy of it
    (`cpu_copies` its CPU time), `halves` by arm the logarithm of a segment's first half over its second, `stretch` by
    arm wall time over CPU time, `whole` by arm what passed by the gate's own clock over what the worker timed of it,
    `waiting` the share of the time of measuring in which something waited for a processor.
    """

    baseline: str
    clock: Clock
    threads: int
    most: int
    split: int = Field(default=1, ge=1)
    budget_s: float
    frozen: str
    ended: End
    pairs: int
    restarts: tuple[int, ...] = ()
    planned_starts: int = 0
    block: int = 0
    seeds: tuple[int, ...] = ()
    steps: dict[str, int] = Field(default_factory=dict)
    copies: tuple[tuple[float, float], ...] = ()
    cpu_copies: tuple[tuple[float, float], ...] = ()
    halves: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    stretch: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    switches: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    whole: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    digests: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    warmups: tuple[Warmup, ...] = ()
    waiting: float | None = None
    before: Machine
    after: Machine
    gpu: Gpu | None = None
    measured_s: float
    started_s: float = 0.0

    @model_validator(mode="after")
    def _is_split_as_pairs_are(self) -> Self:
        if self.split > SPLIT or self.most % self.split:
            raise ValueError(f"expected pairs to be split into at most {SPLIT}, found {self.split} of {self.most}")
        return self

    def whole_pairs(self, values: Sequence[float]) -> Iterator[Sequence[float]]:
        """Yield the values of the short pairs that each pair was split into; of a last one as much as there is."""
        return (values[at : at + self.split] for at in range(0, len(values), self.split))

    @property
    def starts(self) -> int:
        """Return how many starts of the processes there are pairs from; 0 where each pair has its own."""
        return len(set(self.restarts))


def frozen_digest(facts: object) -> str:
    """Return the digest of what was laid down before the first sample."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


class MeasurementRun(Model):
    """One measurement on one device: its samples, or the reason why there are none.

    `elsewhere` names the bundle of one that was made on another machine.
    """

    id: str
    device: str
    process: ProcessRun | None
    samples: Samples | None
    problem: str = ""
    raw: str | None = None
    taken: Taken | None = None
    earlier: Recalled = Recalled()
    elsewhere: str = ""

    @property
    def ended(self) -> str:
        """Return how it ended, in words."""
        if self.taken:
            return f"{self.taken.ended}, after {self.taken.pairs} pairs"
        return self.process.ended if self.process else self.problem

    @property
    def duration_s(self) -> float:
        """Return how long it took."""
        if self.taken:
            return round(self.taken.measured_s + self.taken.started_s, 3)
        return self.process.duration_s if self.process else 0
