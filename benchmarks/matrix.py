"""Time `gates trace` over many tasks: with nothing known, with everything known, and after one file has changed.

`python -m benchmarks.matrix` makes a project of 1,000 tasks with 10,000 criteria, each bound to a symbol and a test,
and writes benchmarks/results/matrix.md; 1 if it is slower than the bars: 10 s cold, 1 s after one change.
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
COLD_S, CHANGED_S = 10.0, 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if the median misses a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    seen: dict[str, list[float]] = {"cold": [], "nothing changed": [], "one source changed": [], "one task changed": []}
    with tempfile.TemporaryDirectory(prefix="matrix-") as name:
        root = _project(Path(name) / "project", arguments.tasks)
        for number in range(arguments.rounds):
            cache = Path(name) / f"cache-{number}"
            seen["cold"].append(_timed(root, cache))
            seen["nothing changed"].append(_timed(root, cache))
            with (root / "pkg" / "m0.py").open("a", encoding="utf-8") as file:
                file.write("\n# changed\n")
            seen["one source changed"].append(_timed(root, cache))
            with (root / "tasks" / "T0.yaml").open("a", encoding="utf-8") as file:
                file.write("\n# changed\n")
            seen["one task changed"].append(_timed(root, cache))
    lines = ["| State | s, median | least | most |", "|---|---|---|---|"]
    lines += [f"| {name} | {median(v):.2f} | {min(v):.2f} | {max(v):.2f} |" for name, v in seen.items()]
    print("\n".join(lines))
    where = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    what = f"{arguments.tasks} tasks with {arguments.tasks * CRITERIA} criteria"
    head = [
        "# The matrix over many tasks",
        "",
        f"Written by `python -m benchmarks.matrix` on {where}: {what}, as many files of code and of tests;",
        f"whole processes of `gates trace`, {arguments.rounds} rounds, each with an empty cache at first. Bars:",
        f"{COLD_S:g} s cold, {CHANGED_S:g} s when one file changed.",
        "",
    ]
    arguments.out.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    changed = max(median(seen["one source changed"]), median(seen["one task changed"]))
    return int(median(seen["cold"]) > COLD_S or changed > CHANGED_S)


def _timed(root: Path, cache: Path) -> float:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "gates", "trace"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, encoding="utf-8", env=environment)
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
