"""Time `gates trace` over many tasks.

`python -m benchmarks.matrix` makes a project of 1,000 tasks with 10,000 criteria, each bound to a symbol and a test,
and writes benchmarks/results/matrix.md; 1 if it is slower than the bar of 10 s.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

RESULTS = Path(__file__).parent / "results" / "matrix.md"
TASKS, CRITERIA, ROUNDS = 1000, 10, 5
BAR_S = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if the median misses a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="matrix-") as name:
        root = _project(Path(name) / "project", arguments.tasks)
        seen = [_timed(root) for _ in range(arguments.rounds)]
    lines = ["| s, median | least | most |", "|---|---|---|"]
    lines += [f"| {median(seen):.2f} | {min(seen):.2f} | {max(seen):.2f} |"]
    print("\n".join(lines))
    where = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    what = f"{arguments.tasks} tasks with {arguments.tasks * CRITERIA} criteria"
    head = [
        "# The matrix over many tasks",
        "",
        f"Written by `python -m benchmarks.matrix` on {where}: {what}, as many files of code and of tests;",
        f"whole processes of `gates trace`, {arguments.rounds} rounds. The bar is {BAR_S:g} s.",
        "",
    ]
    arguments.out.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return int(median(seen) > BAR_S)


def _timed(root: Path) -> float:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "gates", "trace"]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, encoding="utf-8")
    passed = time.perf_counter() - begun
    assert done.returncode == 0, done.stderr + done.stdout[-500:]
    return passed


def _project(root: Path, tasks: int) -> Path:
    for folder in ("pkg", "tests", "tasks"):
        (root / folder).mkdir(parents=True)
    (root / "pkg" / "__init__.py").write_text("", encoding="utf-8")
    (root / "pyproject.toml").write_text("[tool.gates]\n", encoding="utf-8")
    numbers = range(CRITERIA)
    for i in range(tasks):
        code = "\n\n".join(f"def step_{n}(value):\n    total = value + {n}\n    return total * 2" for n in numbers)
        tests = "\n\n".join(f"def test_{n}():\n    assert step_{n}(1) == {2 + 2 * n}" for n in numbers)
        criteria = "\n".join(
            f"  - id: AC{n}\n    text: Do step {n}\n    code: [{{symbol: 'pkg.m{i}:step_{n}'}}]\n"
            f"    tests: ['tests/test_m{i}.py::test_{n}']"
            for n in numbers
        )
        head = f"id: T{i}\ntitle: Part {i}\nimplementation: [pkg/m{i}.py]\ntests: [tests/test_m{i}.py]\ncriteria:\n"
        _write(root / "pkg" / f"m{i}.py", code)
        _write(root / "tests" / f"test_m{i}.py", tests)
        _write(root / "tasks" / f"T{i}.yaml", head + criteria)
    return root


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
