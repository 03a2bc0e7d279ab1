"""Time a training step of each library beside the same operations by hand, in turn.

`python -m benchmarks.step_overhead` writes benchmarks/results/step_overhead.md. All arms train the same model on the
same batches with fused AdamW, on one CPU thread, in alternating order. The CPU's clock counts; the wall's is beside it.
"""

import argparse
import gc
import itertools
import platform
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch

from amp_core.benchmark.interval import LEAST, Interval, around_median, ratio
from benchmarks.step_arms import AMP_CORE_WHOLE, ARMS, BY_HAND_WHOLE, NEEDS, Elapsed, Segment, Setting

RESULTS = Path(__file__).parent / "results" / "step_overhead.md"
BAR = 1.04
STEPS = 100
ROUNDS = 40
HEAD = (
    "| setting | arm | CPU us a step | ratio by CPU time | ratio by wall time | CPU time above by hand |",
    "|---|---|---|---|---|---|",
)
EXPLAINED = (
    "An MLP of 2 916 parameters, batch of 8, fused AdamW, one thread; {rounds} rounds of {steps} steps, all arms in"
    " each round, their order reversed every other round. Medians with sign-test intervals at 95 %. Ratios are to"
    " `by hand` in the same round, and `by hand, again` shows the noise. amp_core skips a step with non-finite"
    " gradients in every precision, for which it computes their norm also where nothing is clipped;"
    " `by hand, guarded` does so, too. The whole stack has a schedule, averages of the parameters, and a log of all"
    " steps that is copied to the host every ten steps."
)

Samples = dict[str, list[Elapsed]]


def measure(setting: Setting, *, rounds: int, steps: int) -> tuple[Samples, dict[str, str]]:
    """Return the times by arm, one a round, and why an arm has none."""
    segments, without = _begin(setting, steps)
    samples: Samples = {name: [] for name in segments}
    gc.collect()
    gc.disable()
    for index in range(rounds):
        for name in list(segments)[:: 1 if index % 2 == 0 else -1]:
            samples[name].append(segments[name](steps))
    gc.enable()
    return samples, without


def _begin(setting: Setting, steps: int) -> tuple[dict[str, Segment], dict[str, str]]:
    """Return the arms that are installed and take the setting, warmed up, and why the others do not."""
    segments: dict[str, Segment] = {}
    without: dict[str, str] = {}
    for name, build in ARMS.items():
        if name in NEEDS and find_spec(NEEDS[name]) is None:
            without[name] = "not installed"
            continue
        try:
            segment = build(setting)
            segment(max(5, steps // 5))
        except (NotImplementedError, RuntimeError) as error:
            without[name] = f"refused: {error}".partition(".")[0]
        else:
            segments[name] = segment
    return segments, without


def rows(setting: Setting, samples: Samples, without: dict[str, str]) -> list[str]:
    """Return the table's lines for one setting."""
    return [
        f"| {setting} | {name} | | | | {without[name]} |" if name in without else _row(setting, name, samples)
        for name in ARMS
        if name in samples or name in without
    ]


def _row(setting: Setting, name: str, samples: Samples) -> str:
    mine, hand = samples[name], samples["by hand"]
    cpu_us = around_median([each.cpu_s * 1e6 for each in mine])
    if name == "by hand":
        return f"| {setting} | {name} | {cpu_us:.0f} | | | |"
    by_wall = ratio([each.wall_s for each in mine], [each.wall_s for each in hand])
    above = around_median([(a.cpu_s - b.cpu_s) * 1e6 for a, b in zip(mine, hand, strict=True)])
    return f"| {setting} | {name} | {cpu_us:.0f} | {_by_cpu(mine, hand):.3f} | {by_wall:.3f} | {above:+.0f} us |"


def _by_cpu(above: Sequence[Elapsed], below: Sequence[Elapsed]) -> Interval:
    return ratio([each.cpu_s for each in above], [each.cpu_s for each in below])


def held_to(setting: Setting, samples: Samples) -> Interval:
    """Return amp_core's ratio by CPU time to the recipe by hand; unclipped, to the one that computes a norm as well."""
    return _by_cpu(samples["amp_core"], samples["by hand" if setting.clip else "by hand, guarded"])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if amp_core is above the bar beyond doubt."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"at least {LEAST}")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps a segment")
    parser.add_argument("--precisions", default="fp32,bf16,fp16")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    lines, held, above = [*HEAD], [], []
    print("\n".join(HEAD))
    for name, clip in itertools.product(arguments.precisions.split(","), (1.0, None)):
        setting = Setting(name, clip)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' own
            samples, without = measure(setting, rounds=arguments.rounds, steps=arguments.steps)
        found = rows(setting, samples, without)
        print("\n".join(found), flush=True)
        lines += found
        ours = held_to(setting, samples)
        held.append(f"- {setting}: {ours:.3f}")
        above += [str(setting)] if ours.low > BAR else []
        if AMP_CORE_WHOLE in samples:
            held.append(f"- {setting}, whole stack: {_by_cpu(samples[AMP_CORE_WHOLE], samples[BY_HAND_WHOLE]):.3f}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(_report(lines, held, arguments.rounds, arguments.steps), encoding="utf-8")
    print("\n".join([f"amp_core to the same operations by hand (bar {BAR}):", *held, f"wrote {arguments.out}"]))
    if above:
        print(f"amp_core is above {BAR}: {'; '.join(above)}", file=sys.stderr)
    return int(bool(above))


def _report(lines: Sequence[str], held: Sequence[str], rounds: int, steps: int) -> str:
    installed = ", ".join(f"{name} {version(name)}" for name in ("torch", "accelerate", "lightning") if find_spec(name))
    where = f"{platform.machine()}, Python {platform.python_version()}"
    parts = [
        "# Overhead of a training step",
        f"Written by `python -m benchmarks.step_overhead` on {where}, {installed}.",
        EXPLAINED.format(rounds=rounds, steps=steps),
        "\n".join(lines),
        f"amp_core to the same operations by hand, by CPU time; the bar is {BAR}:",
        "\n".join(held),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
