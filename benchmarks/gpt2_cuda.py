"""GPT-2 124M on a GPU: step time, MFU and peak memory by precision, and fp16 through overflows without a host read.

`python benchmarks/gpt2_cuda.py` writes benchmarks/results/gpt2_cuda.md and the raw samples beside it, gpt2_cuda.json.
`--device cpu --tiny` runs the same code in seconds on a tiny model: it shows that the script works, nothing else.
"""

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from amp_core.benchmark.arms import HALF, LEAN, precision_of
from amp_core.benchmark.interval import LEAST, Interval, around_median, ratio
from amp_core.benchmark.memory import predicted_memory, release
from amp_core.benchmark.steps import Timed, time_workers
from amp_core.benchmark.suite import environment
from amp_core.benchmark.timing import clock_for
from amp_core.benchmark.workload import Workload
from amp_core.device import DeviceFacts, DeviceUnavailable, inspect, pick
from amp_core.model import GPTConfig, next_token_loss
from amp_core.samples import Direction, Metric, Samples, refuse_unwritable, write, write_text
from amp_core.throughput import Throughput, count_training_flops, peak_for
from benchmarks.markdown import describe_machine, table
from benchmarks.overflows import Overflows, take_overflowing_steps
from benchmarks.wider.scaling import peak_or_none

GPT2 = Workload(GPTConfig(vocab_size=50304, context=1024, layers=12, heads=12, width=768, tied=True), batch_size=32)
TINY = Workload(GPTConfig(vocab_size=64, context=16, layers=1, heads=2, width=32, tied=True), batch_size=4)
ARMS = ("fp32", "tf32", *(name + end for name in HALF for end in ("", LEAN)))
SPEED_BARS = {"tf32": 1.7, "fp32": 6.0}  # how many times faster a 16-bit arm is
MEMORY_BAR = 0.60  # below the peak of plain fp32, for the lean arms
MFU_BAR = 0.40
PEAK_REPEATS = 2  # the allocator counts the same work to the same byte, or nearly
METHOD = (
    "medians with their sign-test interval at 95 % or above."
    " fp32 is `float32_matmul_precision` highest, tf32 is high; lean models keep 16-bit norms and a chunked loss."
)
GIB = 2.0**30
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Size:
    """What is trained, and how often each thing is done."""

    workload: Workload
    rounds: int
    segment_s: float
    overflow_steps: int
    overflow_every: int
    growth_interval: int
    overflow_batch: int


FULL = Size(
    GPT2, rounds=24, segment_s=0.1, overflow_steps=1000, overflow_every=50, growth_interval=20, overflow_batch=8
)
SMALL = Size(
    TINY, rounds=LEAST, segment_s=0.005, overflow_steps=41, overflow_every=10, growth_interval=3, overflow_batch=4
)


@dataclass(frozen=True)
class Found:
    """Everything that was measured; `peaks` has None for an arm that does not fit, and is empty on a CPU."""

    facts: DeviceFacts
    size: Size
    predicted: Mapping[str, float]
    peaks: Mapping[str, tuple[float, ...] | None]
    overflows: Overflows
    timed: Timed
    flops_per_step: int

    def mfu(self, arm: str) -> Interval | None:
        """Return the share of the device's peak in the arm's precision; None where no data sheet says."""
        peak = peak_for(self.facts.name, precision_of(arm, self.facts.type).name)
        if peak is None:
            return None
        tokens = self.size.workload.tokens
        throughput = Throughput(peak, flops_per_token=self.flops_per_step / tokens)
        shares = [throughput.mfu(None, tokens / time) for time in self.timed.step_time_s[arm]]
        return around_median([share for share in shares if share is not None])

    def speedup(self, arm: str, over: str) -> Interval | None:
        """Return how many times faster an arm is than another; None if one of them was not timed."""
        times = self.timed.step_time_s
        return ratio(times[over], times[arm]) if arm in times and over in times else None

    def saved(self, arm: str) -> float | None:
        """Return the share of plain fp32's measured peak that an arm does not need, at the worst pairing."""
        peaks, plain = self.peaks.get(arm), self.peaks.get("fp32")
        return 1.0 - max(peaks) / min(plain) if peaks and plain else None


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write the results; return 0, 1 if a bar is missed, or 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    samples_file, text_file = (arguments.out / f"gpt2_{arguments.device}{end}" for end in (".json", ".md"))
    try:
        device = pick(arguments.device)
        if device.type == "cpu" and not arguments.tiny:
            raise DeviceUnavailable("GPT-2 takes hours on a CPU: add --tiny, or use --device cuda")
        for path in (samples_file, text_file):
            refuse_unwritable(path)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    found = measure(device, SMALL if arguments.tiny else FULL)
    text = report(found, tiny=arguments.tiny)
    write(samples_file, as_samples(found))
    write_text(text_file, text)
    print(text)
    return 0 if arguments.tiny or all(word == "met" for _, _, word in bars(found)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda", help="where to measure (default cuda)")
    parser.add_argument("--tiny", action="store_true", help="a tiny model: only to see that the script works")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where the two files are written")
    return parser


def measure(device: torch.device, size: Size) -> Found:
    """Measure memory while the device is empty, then the overflows, then the times."""
    facts, workload = inspect(device), size.workload
    names = ARMS if device.type == "cpu" else ("fp32", *facts.capabilities)
    arms = [arm for arm in ARMS if precision_of(arm, device.type).name in names]
    predicted = {arm: predicted_memory(workload, arm, device) for arm in arms}
    peaks: dict[str, tuple[float, ...] | None] = {}
    if device.type == "cuda":
        for arm in arms:
            peaks[arm] = peak_or_none(workload, arm, device, repeats=PEAK_REPEATS)
        arms = [arm for arm in arms if peaks[arm]]
    overflows = take_overflowing_steps(
        dataclasses.replace(workload, batch_size=size.overflow_batch),
        device,
        steps=size.overflow_steps,
        every=size.overflow_every,
        growth_interval=size.growth_interval,
    )
    release(device)
    batches = workload.batches(device)
    workers = {arm: workload.worker(arm, device, batches) for arm in arms}
    timed = time_workers(workers, clock_for(device), rounds=size.rounds, segment_s=size.segment_s)
    cpu = torch.device("cpu")
    flops = count_training_flops(workload.build(cpu), next_token_loss, workload.batches(cpu, count=1)[0])
    return Found(facts, size, predicted, peaks, overflows, timed, flops)


def as_samples(found: Found) -> Samples:
    """Return the raw samples; the predicted peak has a metric of its own, as it is no measurement."""
    times, size = found.timed.step_time_s, found.size
    rates = {arm: tuple(size.workload.tokens / time for time in values) for arm, values in times.items()}
    predicted = {arm: (value,) for arm, value in found.predicted.items()}
    metrics = {
        "step_time_s": Metric("s", Direction.LOWER, paired=True, arms=times),
        "tokens_per_s": Metric("1/s", Direction.HIGHER, paired=True, arms=rates),
        "predicted_peak_memory_bytes": Metric("B", Direction.LOWER, paired=True, arms=predicted),
        "applied_steps": Metric("1", Direction.HIGHER, paired=False, arms={"fp16": (float(found.overflows.applied),)}),
        "skipped_steps": Metric("1", Direction.LOWER, paired=False, arms={"fp16": (float(found.overflows.skipped),)}),
    }
    peaks = {arm: values for arm, values in found.peaks.items() if values}
    if peaks:
        metrics["peak_memory_bytes"] = Metric("B", Direction.LOWER, paired=True, arms=peaks)
    settings = {
        "model": str(size.workload),
        "optimizer": "AdamW fused",
        "baseline": "fp32 with float32_matmul_precision=highest; tf32 with high",
        "flops_per_step": str(found.flops_per_step),
        "warmup_steps": ", ".join(f"{arm} {warmup.steps}" for arm, warmup in found.timed.warmups.items()),
        "steps_per_segment": str(found.timed.steps_per_segment),
    }
    timing = "Seconds per step over a segment, after one discarded step; arms in turn, every other round reversed."
    return Samples(found.facts, environment(), settings, timing, metrics)


def report(found: Found, *, tiny: bool) -> str:
    """Return the results as Markdown."""
    workload, timed = found.size.workload, found.timed
    notes = [
        "# GPT-2 124M by precision" if not tiny else "# A tiny model, to see that the script works: no result",
        "Generated by `python benchmarks/gpt2_cuda.py`.",
        f"{workload}, fused AdamW, eager; {found.flops_per_step / 1e12:.3g} TFLOP per step.",
        f"{found.size.rounds} rounds of {timed.steps_per_segment} timed steps, arms in turn: {METHOD}",
        describe_machine(found.facts),
    ]
    judged = [[text, value, word] for text, value, word in bars(found)]
    sections = [_speed_table(found), _memory_table(found), _overflow_line(found.overflows)]
    if not tiny:
        sections.append(table(["bar", "found", ""], judged))
    return "\n\n".join((*notes, *sections)) + "\n"


def _speed_table(found: Found) -> str:
    times, tokens = found.timed.step_time_s, found.size.workload.tokens
    rows = [
        [
            arm,
            f"{1e3 * statistics.median(values):.2f}",
            f"{tokens / statistics.median(values):,.0f}",
            *(_shown(found.speedup(arm, over), ".2f") for over in ("fp32", "tf32")),
            _shown(found.mfu(arm), ".1%"),
        ]
        for arm, values in times.items()
    ]
    return table(["arm", "step [ms]", "tokens/s", "times fp32's speed", "times tf32's speed", "MFU"], rows)


def _memory_table(found: Found) -> str:
    rows = []
    for arm, predicted in found.predicted.items():
        peaks, saved = found.peaks.get(arm, ()), found.saved(arm)
        measured = statistics.median(peaks) if peaks else None
        rows.append(
            [
                arm,
                "does not fit" if peaks is None else f"{measured / GIB:.2f}" if measured else "not measured",
                "" if saved is None else f"{saved:.1%}",
                f"{predicted / GIB:.4g}",
                f"{1.0 - predicted / found.predicted['fp32']:.1%}",
                f"{predicted / measured - 1.0:+.1%}" if measured else "",
            ]
        )
    header = ["arm", "peak, measured [GiB]", "below fp32", "peak, predicted [GiB]", "below fp32 (predicted)", "off by"]
    return table(header, rows)


def _overflow_line(seen: Overflows) -> str:
    return (
        f"fp16 with forced overflows: {seen.steps} steps under `{seen.watched_by}`, {seen.forced} overflows forced;"
        f" {seen.applied} steps applied, {seen.skipped} skipped, final loss scale {seen.scale:g},"
        f" loss {seen.first_loss:.3f} to {seen.last_loss:.3f}: {'held' if seen.held else 'FAILED'}."
    )


def bars(found: Found) -> list[tuple[str, str, str]]:
    """Return each bar, what was found, and the word for it: met, not met, or not measured."""
    halves = [arm for arm in ARMS if arm.startswith(HALF)]
    lines = []
    for arm in halves:
        for over, least in SPEED_BARS.items():
            seen = found.speedup(arm, over)
            lines.append(
                (
                    f"{arm} at least {least:g}x over {over}",
                    _shown(seen, ".2f"),
                    _word(seen.low if seen else None, least),
                )
            )
    for arm in ("bf16_lean", "fp16_lean"):
        saved = found.saved(arm)
        text = f"{arm} peak memory at least {MEMORY_BAR:.0%} below fp32"
        lines.append((text, "" if saved is None else f"{saved:.1%}", _word(saved, MEMORY_BAR)))
    for arm in halves:
        share = found.mfu(arm) if arm in found.timed.step_time_s else None
        lines.append(
            (f"{arm} MFU at least {MFU_BAR:.0%}", _shown(share, ".1%"), _word(share.low if share else None, MFU_BAR))
        )
    held = found.overflows.held
    lines.append((f"{found.overflows.steps} fp16 steps with overflows", "", "met" if held else "not met"))
    return lines


def _shown(seen: Interval | None, spec: str) -> str:
    return "unknown" if seen is None else format(seen, spec)


def _word(value: float | None, least: float) -> str:
    return "not measured" if value is None else "met" if value >= least else "not met"


if __name__ == "__main__":
    sys.exit(main())
