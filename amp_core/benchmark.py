"""Measure mixed precision against float32, and write the raw samples: `python -m amp_core.benchmark --help`."""

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from amp_core import quality
from amp_core.arguments import WRONG_USAGE, OneLineParser, plain_warnings
from amp_core.device import DeviceFacts, inspect, pick
from amp_core.memory import peak_memory
from amp_core.samples import Direction, Metric, Samples, refuse_unwritable, write
from amp_core.timing import Warmup, clock_for, measure, steps_per_segment, threads, warm_up
from amp_core.trainer import TrainConfig
from amp_core.workload import Workload, arms_for, workload_for

LEAST = 6  # fewer rounds or seeds give no confidence interval at 95 %
MEMORY_REPEATS = 6
QUALITY_ARMS = ("fp32", "bf16", "fp16")
MATMUL_PRECISION = "highest"


class BenchmarkFailed(RuntimeError):
    """The arms did not do the work that their times claim."""


@dataclass(frozen=True)
class Plan:
    """How much is measured: `rounds` of timing, then `seeds` of training with `train_steps` each."""

    rounds: int
    seeds: int
    train_steps: int
    threads: int


@dataclass(frozen=True)
class Timed:
    """Step times by arm, and how they came about."""

    step_time_s: dict[str, tuple[float, ...]]
    warmups: dict[str, Warmup]
    steps_per_segment: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if the measurement is worth nothing, or 2 for wrong usage."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        device = pick(arguments.device)
        refuse_unwritable(arguments.out)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USAGE
    try:
        plan = _plan(arguments)
        with plain_warnings(), threads(plan.threads):
            samples = run(device, plan)
    except (BenchmarkFailed, quality.NothingLearned) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write(arguments.out, samples)
    print(f"wrote {arguments.out}: {', '.join(samples.metrics)} on {samples.device.name}")
    return 0


def run(device: torch.device, plan: Plan) -> Samples:
    """Measure everything on a device that is present.

    Raises:
        BenchmarkFailed: an arm did other work than the others, or diverged.
        NothingLearned: the trained models are no better than chance.
    """
    facts = inspect(device)
    workload = workload_for(device)
    torch.set_float32_matmul_precision(MATMUL_PRECISION)
    timed = time_arms(workload, device, plan.rounds)
    metrics = {"step_time_s": Metric("s", Direction.LOWER, paired=True, arms=timed.step_time_s)}
    if device.type == "cuda":
        peaks = peak_memory(workload, arms_for(device), device, repeats=MEMORY_REPEATS)
        metrics["peak_memory_bytes"] = Metric("B", Direction.LOWER, paired=True, arms=peaks)
    config = TrainConfig(device=str(device), steps=plan.train_steps)
    runs = quality.train_arms(config, QUALITY_ARMS, plan.seeds)
    quality.refuse_untrained(runs)
    metrics |= quality.metrics(runs)
    settings = _settings(plan, workload, config, timed, facts)
    return Samples(facts, _environment(), settings, _how_timed(device), metrics)


def time_arms(workload: Workload, device: torch.device, rounds: int) -> Timed:
    """Time every arm of a device against the others.

    Raises:
        BenchmarkFailed: an arm took another number of steps than it should, or its loss is not finite.
    """
    clock = clock_for(device)
    batches = workload.batches(device)
    workers = {arm: workload.worker(arm, device, batches) for arm in arms_for(device)}
    warmups = {arm: warm_up(worker, clock) for arm, worker in workers.items()}
    steps = steps_per_segment(list(warmups.values()), _segment_s(device))
    step_time_s = measure(workers, clock, rounds=rounds, steps=steps)
    for arm, worker in workers.items():
        done = len(worker.losses) - warmups[arm].steps
        if done != rounds * (steps + 1):
            raise BenchmarkFailed(f"arm {arm!r} took {done} steps, expected {rounds * (steps + 1)}")
        if not torch.stack(worker.losses).isfinite().all():
            raise BenchmarkFailed(f"arm {arm!r} reached a loss that is not finite: its times say nothing")
    return Timed(step_time_s, warmups, steps)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m amp_core.benchmark", description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"), help="where to measure")
    parser.add_argument("--out", required=True, type=Path, help="the samples file to write (JSON)")
    parser.add_argument("--smoke", action="store_true", help="measure less: 8 rounds, 6 seeds, shorter training")
    parser.add_argument("--rounds", type=_number(LEAST), help="rounds of timing, at least 6 (default 24)")
    parser.add_argument("--seeds", type=_number(LEAST), help="training seeds, at least 6 (default 8)")
    parser.add_argument(
        "--threads",
        type=_number(1),
        default=1,
        help="CPU threads; more than one suffers on a shared machine (default 1)",
    )
    return parser


def _plan(arguments: argparse.Namespace) -> Plan:
    rounds, seeds, train_steps = (8, 6, 30) if arguments.smoke else (24, 8, 100)
    return Plan(arguments.rounds or rounds, arguments.seeds or seeds, train_steps, arguments.threads)


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a number of at least {least}, found {text!r}")
        return int(text)

    return parse


def _segment_s(device: torch.device) -> float:
    return 0.010 if device.type == "cuda" else 0.030


def _how_timed(device: torch.device) -> str:
    clock = "CUDA events, one synchronize" if device.type == "cuda" else "the monotonic clock"
    return (
        f"Seconds per step over segments of at least {_segment_s(device) * 1000:.0f} ms, {clock} per segment, after one"
        " discarded step; arms interleaved, their order reversed every other round, garbage collection paused."
    )


def _environment() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
        "cuda": torch.version.cuda or "none",
    }


def _settings(plan: Plan, workload: Workload, config: TrainConfig, timed: Timed, facts: DeviceFacts) -> dict[str, str]:
    warmups = ", ".join(
        f"{arm} {warmup.steps}{'' if warmup.converged else ' (not settled)'}" for arm, warmup in timed.warmups.items()
    )
    forwards = " ".join(timed.step_time_s)
    return {
        "rounds": str(plan.rounds),
        "order": f"{forwards}, reversed every other round",
        "steps_per_segment": str(timed.steps_per_segment),
        "warmup_steps": warmups,
        "model": str(workload),
        "optimizer": "AdamW fused",
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "baseline": f"fp32 with float32_matmul_precision={MATMUL_PRECISION} on {facts.type}",
        "seeds": str(plan.seeds),
        "quality_model": str(config.model),
        "quality_steps": f"{config.steps} of {config.batch_size} sequences",
        "quality_val_tokens": str(config.val_sequences * config.model.context),
    }


if __name__ == "__main__":
    sys.exit(main())
