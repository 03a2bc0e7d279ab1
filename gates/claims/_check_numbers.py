"""Claimed numbers against the measurements of this run: a number that was never measured is unsupported."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from gates.check import EvidenceSet
from gates.claims._answer import Answer, confirmed, contradicted, unsupported
from gates.claims.claim import Number
from gates.evidence.measurements import Measurements
from gates.measuring.interval import Estimate, NotEnough, estimate
from gates.measuring.samples import Metric, Samples
from gates.task.task import Measure

BASES = {"fp32", "float32", "full", "baseline", "base", "old", "before", "reference", "off", "tf32"}
TOPICS = {"speedup": ("ratio", ("time", "latency", "duration")), "memory": ("reduction", ("mem", "bytes", "vram")),
          "accuracy": ("difference", ("acc",))}  # fmt: skip
TITLES = {"memory": "memory reduction", "accuracy": "accuracy difference"}


@dataclass(frozen=True)
class Seen:
    """A number of this run that a claim may mean, and in words what it is."""

    name: str
    value: Estimate


def number(said: Number, evidence: EvidenceSet) -> Answer:
    """Answer a number; of several that it may mean, one that agrees confirms it, and all must differ to contradict."""
    expected = _expected(said)
    measurements = evidence.get(Measurements)
    guess = "; the report itself calls it a projection" if said.guessed else ""
    if measurements is None:
        return unsupported(expected, f"never measured here: {evidence.why_missing(Measurements)}{guess}")
    if said.part:
        return unsupported(expected, f"nothing here measures this part alone{guess}")
    seen = [*_seen(said, measurements)]
    if not seen:
        return unsupported(expected, f"no measurement of this run gives it{guess}")
    text = "; ".join(f"{one.name}: {one.value}" for one in seen[:4])
    if any(one.value.low <= said.high and said.low <= one.value.high for one in seen):
        return confirmed(expected, text + guess)
    return contradicted(expected, text + guess)


def _expected(said: Number) -> str:
    middle = (said.low + said.high) / 2
    name = (
        f"{said.what} {'/'.join(said.arms)} of {said.of}"
        if said.of
        else TITLES.get(said.about, said.about or said.what)
    )
    where = "" if said.on == "any" else f" on {said.on}"
    narrow = said.high - said.low < abs(middle) / 5
    return f"{name} {middle:.4g}{where}" if narrow else f"{name} {said.low:.4g} to {said.high:.4g}{where}"


def _seen(said: Number, measurements: Measurements) -> Iterator[Seen]:
    for run in measurements.runs:
        if run.samples is None or (said.source and run.id != said.source):
            continue
        if said.on != "any" and run.samples.device.type != said.on:
            continue
        yield from _of_samples(said, run.id, run.samples)


def _of_samples(said: Number, source: str, samples: Samples) -> Iterator[Seen]:
    words = TOPICS.get(said.about, ("", ()))[1]
    for metric_name, metric in sorted(samples.metrics.items()):
        if said.of and metric_name != said.of:
            continue
        if not said.of and not any(word in metric_name.lower() for word in words):
            continue
        for arms in _arms(said, metric):
            facts = {"from": source, "of": metric_name, said.what: arms if len(arms) > 1 else arms[0], "at_least": 1}
            try:
                value = estimate(Measure.model_validate(facts), metric)
            except (NotEnough, ValidationError):
                continue
            name = f"{said.what} {'/'.join(arms)} of {metric_name} on {samples.device.type}"
            yield Seen(name, value)


def _arms(said: Number, metric: Metric) -> Iterator[tuple[str, ...]]:
    """Yield the arms that a number is made of: those that are named, or else each against what it is compared with."""
    if said.arms:
        yield said.arms
    elif said.what == "value":
        yield from ((arm,) for arm in sorted(metric.arms))
    else:
        bases = [arm for arm in metric.arms if arm.lower() in BASES]
        yield from ((base, arm) for base in bases for arm in sorted(metric.arms) if arm not in bases)
