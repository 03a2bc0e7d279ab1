"""Time `import amp_core` beside `import torch`, each in a process of its own, in turn; list what it must not load.

Other modules can be named in their places.

`python -m benchmarks.import_time` writes benchmarks/results/import_time.md; 1 if the ratio is above the bar.
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from amp_core.benchmark.interval import around_median, ratio

RESULTS = Path(__file__).parent / "results" / "import_time.md"
ROUNDS = 20
BAR = 1.1
OPTIONAL = (
    "accelerate",
    "lightning",
    "matplotlib",
    "pytorch_lightning",
    "tensorboard",
    "torch.utils.tensorboard",
    "wandb",
)
CLOCKS = "import time; cpu, wall = time.process_time(), time.perf_counter(); import {}; "
PRINTED = "print(time.process_time() - cpu, time.perf_counter() - wall)"


def import_s(module: str) -> tuple[float, float]:
    """Return the seconds of CPU and on the wall that a new process needs to import a module."""
    done = _python(CLOCKS.format(module) + PRINTED)
    cpu_s, wall_s = map(float, done.split())
    return cpu_s, wall_s


def loaded_by(module: str) -> list[str]:
    """Return which of the optional libraries importing a module loads."""
    return _python(f"import sys, {module}; print(*sorted({set(OPTIONAL)!r} & set(sys.modules)))").split()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if an import is above the bar beyond doubt, or loads what it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--module", default="amp_core")
    parser.add_argument("--beside", default="torch")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    pair = arguments.beside, arguments.module
    times: dict[str, list[tuple[float, float]]] = {module: [] for module in pair}
    for index in range(arguments.rounds + 1):
        for module in pair[:: 1 if index % 2 else -1]:
            seen = import_s(module)
            if index:  # the first pair warms the file cache
                times[module].append(seen)
    lines = [f"| clock | import {pair[0]}, ms | import {pair[1]}, ms | ratio |", "|---|---|---|---|"]
    ratios = []
    for clock, name in enumerate(("CPU", "wall")):
        theirs, ours = ([each[clock] for each in times[module]] for module in pair)
        ratios.append(ratio(ours, theirs))
        medians = " | ".join(f"{around_median([1e3 * value for value in values]):.0f}" for values in (theirs, ours))
        lines.append(f"| {name} | {medians} | {ratios[-1]:.3f} |")
    heavy = loaded_by(arguments.module)
    lines += ["", f"Optional libraries that `import {arguments.module}` loads: {', '.join(heavy) or 'none'}.", ""]
    print("\n".join(lines))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join([*_head(arguments.rounds), *lines]), encoding="utf-8")
    print(f"wrote {arguments.out}")
    return int(ratios[0].low > BAR or bool(heavy))


def _head(rounds: int) -> list[str]:
    where = f"{platform.machine()}, Python {platform.python_version()}, torch {version('torch')}"
    return [
        "# Import time",
        "",
        f"Written by `python -m benchmarks.import_time` on {where}: {rounds} pairs of processes, in alternating order.",
        f"Medians with sign-test intervals at 95 %; the bar is a ratio of {BAR}.",
        "",
    ]


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
