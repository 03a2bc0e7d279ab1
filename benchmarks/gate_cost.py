"""Time what the gate adds: to one test, to the suite of a real package, after an edit, where nothing changed.

`python -m benchmarks.gate_cost` downloads the sources of a package, times each run beside its peer in turn, and writes
benchmarks/results/gate_cost.md; 1 if an interval lies wholly above its bar. It needs a package index. The package's
tests must run in this interpreter.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from amp_core.benchmark.interval import Interval, around_median, difference, ratio  # noqa: E402
from benchmarks.kept_runs import git, put  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "gate_cost.md"
RELEASE, NEEDS, SOURCES, EDITED = "marshmallow==4.4.0", "simplejson", "src/marshmallow", "src/marshmallow/utils.py"
FUNCTION = "def timestamp(\n    value: dt.datetime,\n) -> float:\n"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
GATES = (sys.executable, "-m", "gates", "run", "T1", "-q")
TASK = """\
id: T1
title: what a run costs
implementation: [{source}]
tests: [tests]
criteria:
  - id: AC1
    text: Work as its tests say
    code: [{{symbol: "{symbol}"}}]
    tests: [{tests}]
"""
ONE = {
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
    "double.py": "def double(x):\n    return 2 * x\n",
    "tests/test_double.py": "from double import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "tasks/T1.yaml": TASK.format(source="double.py", symbol="double:double", tests="tests/test_double.py"),
}

MANY = {
    **ONE,
    "tests/test_double.py": "import pytest\nfrom double import double\n\n\n"
    "@pytest.mark.parametrize('x', range(60_000))\ndef test_double(x):\n    assert double(x) == x + x\n",
}
# `python -m gates run T1 -q`, which tells the most memory that it held, its own processes left out
PEAK = """
import atexit, os, resource, sys
sys.path[0], sys.argv[1:] = os.getcwd(), ["run", "T1", "-q"]
atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))
from gates.__main__ import main
main()
"""


@dataclass(frozen=True)
class Cost:
    """What one process took with its children, in seconds."""

    wall: float
    cpu: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if a bar is missed beyond doubt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="six are the fewest that have an interval")
    rounds = parser.parse_args(argv).rounds
    with tempfile.TemporaryDirectory(prefix="gate-cost-") as name:
        rows = [*_of_one_test(Path(name) / "one", rounds), *_of_a_package(Path(name), rounds)]
        rows += _of_many_tests(Path(name) / "many", rounds)
    lines = ["| What | Peer | Bar | Seen |", "|---|---|---|---|"]
    lines += [f"| {what} | {peer} | {bar} | {seen:.2f} |" for what, peer, bar, _, seen in rows]
    print("\n".join(lines))
    RESULTS.write_text("\n".join([*_head(rounds), *lines, ""]), encoding="utf-8")
    return int(any(seen.low > limit for *_, limit, seen in rows))


Row = tuple[str, str, str, float, Interval]


def _of_one_test(root: Path, rounds: int) -> list[Row]:
    _project(root, ONE)
    bare, gated, wrong = [], [], []
    misspelt = ONE["tasks/T1.yaml"].replace("[double.py]", "[doubel.py]")
    for index in range(rounds + 1):
        one = (_timed([*PYTEST, "tests"], root, 0), _timed([*GATES, "--fresh"], root, 0))
        (root / "tasks/T1.yaml").write_text(misspelt, encoding="utf-8")
        refused = _timed(GATES, root, 2)
        (root / "tasks/T1.yaml").write_text(ONE["tasks/T1.yaml"], encoding="utf-8")
        if index:  # the first one warms up
            bare.append(one[0].wall)
            gated.append(one[1].wall)
            wrong.append(refused.wall)
    return [
        ("one test, one criterion, `--fresh`, wall", f"`pytest`, {around_median(bare):.2f} s", "+1.5 s", 1.5,
         difference(gated, bare)),
        ("a path misspelt: exit code 2, wall", "", "1 s", 1.0, around_median(wrong)),
    ]  # fmt: skip


def _of_a_package(folder: Path, rounds: int) -> list[Row]:
    root, edited = _package(folder), ""
    covered, by_test, executed, walls, tests_s = [], [], [], [], []
    same, again, own, by_pytest = [], [], [], []
    for index in range(rounds + 1):
        arms = (
            _timed([*PYTEST, f"--cov={SOURCES}", "--cov-report="], root, 0),
            _timed([*PYTEST, f"--cov={SOURCES}", "--cov-report=", "--cov-context=test"], root, 0),
            _timed([*GATES, "--fresh", "--gate", "execution"], root, 3),
        )
        (root / ".coverage").unlink()
        by_gate = _took(root / "reports/T1/partial", "test suite")
        _timed(GATES, root, 0)
        nothing = _timed(GATES, root, 0)
        text = (root / EDITED).read_text(encoding="utf-8").replace(FUNCTION + edited, FUNCTION)
        edited = f"    _ = {index}\n"
        (root / EDITED).write_text(text.replace(FUNCTION, FUNCTION + edited), encoding="utf-8")
        after = _timed(GATES, root, 0)
        report = json.loads((root / "reports/T1/evidence/pytest/report.json").read_text(encoding="utf-8"))
        tests = {test["nodeid"].partition("[")[0] for test in report["tests"]}  # some have the time in their names
        alone = _timed([*PYTEST, *sorted(tests)], root, 0)
        mutants = json.loads((root / "reports/T1/evidence/ChangedLines.json").read_text(encoding="utf-8"))["tried"]
        each = sum(_timed([*PYTEST, *sorted(tests)], root, 0).wall for _ in range(mutants))
        if index:
            for values, value in zip((covered, by_test, executed), arms, strict=True):
                values.append(value.cpu)
            walls.append(arms[0].wall)
            tests_s.append(by_gate)
            same.append(nothing.wall)
            again.append(after.wall)
            own.append(alone.wall)
            by_pytest.append(alone.wall + each)
    suite, wall = (f"`pytest --cov`, {around_median(seconds):.2f} s" for seconds in (covered, walls))
    return [
        (f"{RELEASE}: its 1,192 tests with coverage by test, as the gate runs them, wall", wall, "1.3", 1.3,
         ratio(tests_s, walls)),
        ("the whole of `--gate execution --fresh`, with imports and build, CPU", suite, "1.3", 1.3,
         ratio(executed, covered)),
        ("`pytest --cov --cov-context=test`, CPU", suite, "", float("inf"), ratio(by_test, covered)),
        ("nothing changed, wall", "", "1.5 s", 1.5, around_median(same)),
        (f"one function changed: {len(report['tests'])} tests and {mutants} mutants, wall",
         f"`pytest` of these tests, and once more for each mutant, {around_median(by_pytest):.2f} s", "+2 s", 2.0,
         difference(again, by_pytest)),
        ("the same", f"`pytest` of these tests, {around_median(own):.2f} s", "", float("inf"), difference(again, own)),
    ]  # fmt: skip


def _of_many_tests(root: Path, rounds: int) -> list[Row]:
    _project(root, MANY)
    told = subprocess.run(
        [sys.executable, "-c", PEAK], cwd=root, env=_env(), capture_output=True, text=True, check=True
    )
    peak = float(told.stdout.split()[-1])
    same = [_timed(GATES, root, 0).wall for _ in range(rounds + 1)][1:]
    return [
        ("60,000 tests, nothing changed, wall", "", "1.5 s", 1.5, around_median(same)),
        ("60,000 tests, the first run: memory of `gates` itself, MiB", "", "400 MB", 400e6 / 2**20,
         Interval(peak, peak, peak, 1)),
    ]  # fmt: skip


def _took(reports: Path, purpose: str) -> float:
    """Return how long the commands of a purpose took, in seconds, as the report of a run says."""
    commands = json.loads((reports / "result.json").read_text(encoding="utf-8"))["commands"]
    return sum(float(one["duration_s"]) for one in commands if one["purpose"] == purpose)


def _package(folder: Path) -> Path:
    for words in (("download", "--no-deps", "--no-binary", ":all:", RELEASE), ("install", "--target", "needs", NEEDS)):
        subprocess.run([sys.executable, "-m", "pip", "-q", *words], cwd=folder, check=True)
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder)
    root = folder / re.sub(r"\.tar\.gz$", "", archive.name)
    assert FUNCTION in (root / EDITED).read_text(encoding="utf-8")
    task = TASK.format(source=SOURCES, symbol="marshmallow.utils:timestamp", tests="tests/test_serialization.py")
    settings = f"[pytest]\npythonpath = src {folder / 'needs'}\nnorecursedirs = mypy_test_cases\n"
    return _project(root, {"tasks/T1.yaml": task, "pytest.ini": settings, ".gitignore": "reports/\n.gates/\n"})


def _project(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        put(root, name, text)
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "start")):
        git(root, *words)
    return root


def _timed(argv: Sequence[str], root: Path, code: int) -> Cost:
    """Return what a command took, which must end with a code."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, cwd=root, env=_env(), capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != code:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in {"CI", "PYTHONDONTWRITEBYTECODE"}}


def _head(rounds: int) -> list[str]:
    begun = time.process_time()
    sum(i * i for i in range(20_000_000))
    speed = time.process_time() - begun
    return [
        "# What a run of the gate costs",
        "",
        f"`python -m benchmarks.gate_cost --rounds {rounds}` on {platform.machine()}, {os.cpu_count()} CPUs,",
        f"Python {platform.python_version()}, where the sum of 20 million squares takes {speed:.1f} s. Each run and",
        "its peer in turn; medians with sign-test intervals at 95 %.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
