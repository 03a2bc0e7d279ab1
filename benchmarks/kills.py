"""Kill `gates run` at random times and look for what it leaves: processes, temporary files, torn reports.

`python -m benchmarks.kills` sends 100 signals, SIGKILL, SIGTERM and SIGINT in turn, and writes
benchmarks/results/kills.md; 1 if anything survived one of them.
"""

import argparse
import platform
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from building import a_project, gates  # noqa: E402
from killing import Left, busy, killed  # noqa: E402

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
RESULTS = Path(__file__).parent / "results" / "kills.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, print and write; return 1 if anything survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    left, draw = [], random.Random(arguments.seed)  # noqa: S311  # no secret
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        scratch = Path(name).resolve()
        project = a_project(scratch / "project")
        assert gates(project, "run", "T1").code == 0
        begun = time.monotonic()
        assert gates(busy(project), "run", "T1", "--out", scratch / "whole").code is not None
        longest_s = (time.monotonic() - begun) * 1.05
        for index in range(arguments.count):
            number, after_s = SIGNALS[index % len(SIGNALS)], draw.uniform(0.05, longest_s)
            left.append(killed(project, scratch, number=number, after_s=after_s, name=str(index)))
            if _survived(left[-1]):
                print(left[-1], flush=True)
    lines = [*_table(left), ""]
    print("\n".join(lines))
    head = [
        "# Kills",
        "",
        f"Written by `python -m benchmarks.kills` on {platform.machine()}, Python {platform.python_version()}: a run",
        f"of {longest_s:.1f} s, whose suite starts children, one in a session of its own, is sent a signal at random.",
        "",
    ]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join([*head, *lines]), encoding="utf-8")
    return int(any(map(_survived, left)))


def _survived(left: Left) -> bool:
    return bool(left.processes or left.files or left.reports)


def _table(left: Sequence[Left]) -> list[str]:
    lines = ["| Signal | kills | came before the end | left processes | left files | left torn reports |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for number in SIGNALS:
        ours = [one for one in left if one.signal == number.name]
        early = sum(one.exit_code in {130, -number} for one in ours)
        kinds = [[one.processes for one in ours], [one.files for one in ours], [one.reports for one in ours]]
        counts = [sum(map(bool, kind)) for kind in kinds]
        lines.append(f"| {number.name} | {len(ours)} | {early} | {' | '.join(map(str, counts))} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
