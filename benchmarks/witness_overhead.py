"""Time the gate's pytest beside bare pytest over many small tests, in turn; and what the gate adds once.

`python -m benchmarks.witness_overhead` writes benchmarks/results/witness_overhead.md; 1 if the ratio is above the bar
beyond doubt. The witnessed arm is `PytestRun.collect` as a whole: process, witnesses, reports, and reading them back.
"""

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests"))

from building import pytest_options, written  # noqa: E402

from amp_core.benchmark.interval import Interval, around_median, ratio  # noqa: E402
from benchmarks.endings.ending import SOUND, TASK  # noqa: E402
from gates.child import process  # noqa: E402
from gates.config import Context  # noqa: E402
from gates.evidence.tests.pytest_run import PytestRun  # noqa: E402
from gates.task import loading as spec  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "witness_overhead.md"
TESTS, FILES, ROUNDS = 3000, 30, 10
BAR, FIXED_S = 1.15, 3.0
ARMS = ("bare", "bare, again", "with reports", "witnessed")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if the witnesses cost more than the bar beyond doubt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tests", type=int, default=TESTS)
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter of all arms; coverage counts if there"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="overhead-") as name:
        folder = Path(name).resolve()
        many = measure(_project(folder / "many", arguments.tests), arguments.rounds, arguments.python)
        one = measure(_project(folder / "one", 1), max(arguments.rounds, 6), arguments.python)
    fixed = {clock: around_median([b[i] - a[i] for a, b in zip(one["bare"], one["witnessed"], strict=True)])
             for i, clock in enumerate(("CPU", "wall"))}  # fmt: skip
    lines = ["| clock | arm | s | ratio to bare | less what is fixed |", "|---|---|---|---|---|"]
    net: dict[str, Interval] = {}
    for i, clock in enumerate(("CPU", "wall")):
        bare = [each[i] for each in many["bare"]]
        for arm in ARMS:
            ours = [each[i] for each in many[arm]]
            less = ratio([value - fixed[clock].value for value in ours], bare) if arm == "witnessed" else None
            net |= {clock: less} if less else {}
            shown = f"{less:.3f}" if less else ""
            lines.append(f"| {clock} | {arm} | {around_median(ours):.2f} | {ratio(ours, bare):.3f} | {shown} |")
    seen = {arm: around_median([wall for _, wall in many[arm]]).value for arm in ("bare", "witnessed")}
    limit = BAR * seen["bare"] + FIXED_S
    lines += [
        "",
        f"As one sum, wall: {seen['witnessed']:.2f} s, where {BAR:g} x bare + {FIXED_S:g} s are {limit:.2f} s.",
        "",
        f"Fixed, from one test: CPU {fixed['CPU']:.2f} s, wall {fixed['wall']:.2f} s (bar {FIXED_S:g} s).",
        "",
    ]
    print("\n".join(lines))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join([*_head(arguments), *lines]), encoding="utf-8")
    return int(net["wall"].low > BAR or fixed["wall"].low > FIXED_S)


def measure(root: Path, rounds: int, python: str) -> dict[str, list[tuple[float, float]]]:
    """Return CPU and wall seconds by arm, one a round, the order turned every other round; one round warms up."""
    arms: dict[str, Callable[[], None]] = {
        "bare": lambda: _bare(root, python),
        "bare, again": lambda: _bare(root, python),
        "with reports": lambda: _reported(root, python),
        "witnessed": lambda: _witnessed(root, python),
    }
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in ARMS}
    for index in range(rounds + 1):
        for name in ARMS[:: 1 if index % 2 else -1]:
            before, begun = _cpu_s(), time.perf_counter()
            arms[name]()
            if index:
                seen[name].append((_cpu_s() - before, time.perf_counter() - begun))
    return seen


def _project(root: Path, tests: int) -> Path:
    files = min(FILES, tests)
    body = "from pkg.core import double\n\n" + "\n\n".join(
        f"def test_{n}():\n    assert double({n}) == {2 * n}\n" for n in range(tests // files)
    )
    suite = {f"tests/test_{n}.py": body for n in range(files)}
    task = TASK % '["tests/test_0.py"]'
    return written(root, {**SOUND, "pyproject.toml": pytest_options(), "tasks/T1.yaml": task, **suite})


def _bare(root: Path, python: str, *more: str) -> None:
    ended = process.run(
        [python, "-m", "pytest", "tests", "--color=no", *more],
        cwd=root,
        timeout_s=600,
        log=root.parent / "bare",
    )
    assert ended.exit_code == 0, ended.last_words


def _reported(root: Path, python: str) -> None:
    _bare(
        root,
        python,
        "--json-report",
        f"--json-report-file={root.parent / 'r.json'}",
        f"--junit-xml={root.parent / 'r.xml'}",
    )


def _witnessed(root: Path, python: str) -> None:
    folder = root.parent / "evidence"
    folder.mkdir()
    run = PytestRun.collect(
        spec.load(root / "tasks" / "T1.yaml", root),
        Context(root=root, evidence=folder, python=python, timeout_s=600),
    )
    assert run.complete, run.disagreements
    shutil.rmtree(folder)


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of all its children that have ended."""
    times = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in times)


def _head(arguments: argparse.Namespace) -> list[str]:
    tests, rounds = arguments.tests, arguments.rounds
    found = (
        subprocess.run([arguments.python, "-c", "import coverage"], check=False, capture_output=True).returncode == 0
    )
    where = (
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, pytest {version('pytest')}"
    )
    return [
        "# Overhead of the witnesses",
        "",
        f"Written by `python -m benchmarks.witness_overhead` on {where}: {tests} small tests in {FILES} files,",
        f"{rounds} rounds, all arms in each round, their order turned every other round. Medians with sign-test",
        f"intervals at 95 %. `with reports` writes pytest-json-report and JUnit alone. The bar is {BAR} less what is",
        "fixed, and is asked of runs without coverage; what is fixed is the difference for a suite of one test.",
        f"Coverage was {'measured too' if found else 'not installed for these runs'}.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
