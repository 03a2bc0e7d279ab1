"""Record, replay, or compare live: `python -m benchmarks.deciding --help`.

Writes benchmarks/results/deciding.md; 1 if a bar is missed.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.deciding import live, replay, simulate
from benchmarks.deciding.live import Tally, promise
from benchmarks.deciding.load import LOADS
from benchmarks.deciding.windows import question
from gates.measuring import machine
from gates.model import Outcome

RESULTS = Path(__file__).parents[1] / "results" / "deciding.md"
LIMIT, SLOWED = 1.05, 1.10
PARTS = ["simulated", "replay", "live"]
WHAT = (
    f"The candidate may take at most {LIMIT:g} times as long as the baseline. A BLOCK of equal arms is false, so is "
    f"a PASS of an arm slowed to {SLOWED:g}."
)
REPLAYED = (
    "Two equal arms were timed in turn under each load; windows of that are judged, one arm slowed exactly. Other "
    "tools' rules get half of a window's samples of one arm, then half of the other. Pairs are counted before they are "
    "split."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="live comparisons a row, twice at 1.00 [default: 100]")
    parser.add_argument("--trials", type=int, default=1000, help="replayed comparisons for each row [default: 1000]")
    parser.add_argument("--pairs", type=int, default=320, help="pairs of each recorded trace [default: 320]")
    parser.add_argument("--loads", nargs="*", choices=sorted(LOADS), default=["idle", "one", "bursty", "two"])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args(argv)
    where = f"`python -m benchmarks.deciding` on {machine.processor().name}, {machine.observe().cores} cores."
    lines = ["# Verdicts on timed arms: how often they are wrong", "", where, "", WHAT, ""]
    missed: list[str] = []
    if "simulated" in asked.parts:
        lines += _simulated(asked.trials, missed)
    if "replay" in asked.parts:
        lines += _replayed(asked.loads, asked.pairs, asked.trials)
    if "live" in asked.parts:
        lines += _live(asked.loads, asked.runs, missed)
    asked.out.write_text("\n".join([*lines, *missed]) + "\n", encoding="utf-8")
    print("\n".join([*lines, *missed]))
    return 1 if missed else 0


def _simulated(trials: int, missed: list[str]) -> Iterator[str]:
    yield from (
        "## Simulated",
        "",
        f"{trials} comparisons of arms with known noise. At the limit either verdict is wrong; each may be in 2.5 %.",
        "",
        "| Noise | True ratio | PASS | BLOCK | INCONCLUSIVE | pairs |",
        "|---|---|---|---|---|---|",
    )
    for name, noise in simulate.NOISES.items():
        for factor in (1.0, LIMIT, SLOWED):
            ends, pairs = simulate.table(noise, factor, LIMIT, trials)
            shares = [100 * ends[outcome] / trials for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN)]
            yield f"| {name} | {factor:g} | {' | '.join(f'{share:.1f} %' for share in shares)} | {pairs:.0f} |"
            wrong = shares[0] if factor > LIMIT else shares[1] if factor < LIMIT else max(shares[:2])
            _require(missed, wrong <= (2.5 if factor == LIMIT else 1.0), f"{name}: {wrong:.1f} % wrong at {factor:g}")
    yield ""


def _replayed(loads: Sequence[str], pairs: int, trials: int) -> Iterator[str]:
    yield from (
        "## Replayed",
        "",
        f"Traces of {pairs} pairs, {trials} windows of each. {REPLAYED}",
        "",
        "| Load | Rule | false BLOCK | open at 1.00 | false PASS | open at 1.10 | pairs at 1.00 | pairs at 1.10 |",
        "|---|---|---|---|---|---|---|---|",
    )
    for name in loads:
        _say(f"recording {name}")
        with tempfile.TemporaryDirectory() as folder:
            trace = replay.record(name, pairs, Path(folder))
        same, slow = (replay.table(trace, factor, LIMIT, trials) for factor in (1.0, SLOWED))
        for rule, (ends, used) in same.items():
            others, more = slow[rule]
            shares = (ends["BLOCK"], ends["INCONCLUSIVE"], others["PASS"], others["INCONCLUSIVE"])
            yield (
                f"| {name} | {rule} | "
                + " | ".join(f"{100 * n / trials:.1f} %" for n in shares)
                + (f" | {used:.0f} | {more:.0f} |")
            )
    yield ""


def _live(loads: Sequence[str], runs: int, missed: list[str]) -> Iterator[str]:
    yield from (
        "## Live",
        "",
        "Processes of their own for each comparison, started anew several times in each.",
        "",
        "| Load | True ratio | Asked | Runs | PASS | BLOCK | INCONCLUSIVE | pairs | seconds | why open |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    for name in loads:
        equal = live.run(name, 1.0, question(LIMIT), 2 * runs, _say)
        yield _row(name, "1.00", f"<= {LIMIT:g}", equal)
        slowed = live.run(name, SLOWED, question(LIMIT), runs, _say)
        yield _row(name, f"{SLOWED:.2f}", f"<= {LIMIT:g}", slowed)
        _require(missed, equal.blocked <= 0.02 * runs, f"{name}: {equal.blocked} false BLOCKs of {2 * runs}")
        _require(missed, slowed.passed <= 0.01 * runs, f"{name}: {slowed.passed} false PASSes of {runs}")
        if name == "idle":
            _require(missed, slowed.blocked >= 0.95 * runs, f"idle: {slowed.blocked} of {runs} slow-downs blocked")
            kept = live.run(name, 1 / 1.75, promise(1.5), runs, _say)
            yield _row(name, "1.75 faster", ">= 1.5", kept)
            _require(missed, kept.passed >= 0.95 * runs, f"idle: {kept.passed} of {runs} kept promises passed")
            _require(missed, kept.pairs < 64 / 3, f"idle: {kept.pairs:.1f} pairs for a kept promise, a third is 21.3")
    yield ""


def _row(name: str, true: str, asked: str, tally: Tally) -> str:
    why = ", ".join(f"{reason} ({count})" for reason, count in tally.reasons.items()) or "-"
    return (
        f"| {name} | {true} | {asked} | {tally.runs} | {tally.passed} | {tally.blocked} | {tally.open} | "
        f"{tally.pairs:.0f} | {tally.seconds:.1f} | {why} |"
    )


def _require(missed: list[str], kept: bool, what: str) -> None:
    if not kept:
        missed.append(f"- missed: {what}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
