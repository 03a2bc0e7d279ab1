"""Time the code rules beside semgrep: the same declarative rules over the same 2,000 files, in turn, in one run.

`python -m benchmarks.rules_speed --semgrep PATH` takes the sources of installed packages, writes each rule in both
forms, counts what is found, and writes benchmarks/results/rules_speed.md; 1 if semgrep is not slower by at least 3.
Without semgrep only the growth with the number of files and the second run, with everything known, are measured.
Beside them all shipped rules are run over the same trees once: how that grows, and what memory it takes.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

RESULTS = Path(__file__).parent / "results" / "rules_speed.md"
FILES, ROUNDS, BAR = 2000, 3, 3.0
PEAK = """
import atexit, os, pathlib, resource
place = pathlib.Path(os.environ["XDG_CACHE_HOME"], "peak")
place.parent.mkdir(parents=True, exist_ok=True)
atexit.register(lambda: place.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)))
from gates.__main__ import main
main()
"""
PACKAGES = ("accelerate", "lightning", "wandb", "tensorboard", "matplotlib", "hypothesis", "pydantic", "sympy")
RULES = {
    "old-autocast": "torch.cuda.amp.autocast(...)",
    "old-scaler": "torch.cuda.amp.GradScaler(...)",
    "stack-to": "torch.stack([$E for $X in $Y]).to(...)",
    "manual-seed": "torch.manual_seed(0)",
    "fresh-half": "torch.zeros(...).half()",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--semgrep", type=Path, help="the program; it is no dependency of this project")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="rules-") as name:
        folder = Path(name)
        rules = _rules(folder)
        sizes = (arguments.files // 4, arguments.files // 2, arguments.files)
        trees = {size: _tree(folder / f"tree-{size}", size) for size in sizes}
        semgrep = _semgrep(arguments.semgrep, rules, trees[sizes[-1]]) if arguments.semgrep else None
        seen, worked, places = _in_turn(trees, semgrep, folder, arguments.rounds)
        shipped = _shipped(trees, folder)
    lines = ["| Arm | s, median | least | most | CPU s, median | places found |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {arm} | {median(v):.2f} | {min(v):.2f} | {max(v):.2f} | {median(worked[arm]):.2f} | {places[arm]} |"
        for arm, v in seen.items()
    ]
    whole = f"gates, {sizes[-1]} files"
    ratios = [a / b for a, b in zip(seen.get("semgrep", []), seen[whole], strict=False)]
    if ratios:
        lines += ["", f"semgrep / gates, by round: {_listed(ratios)} (bar {BAR:g})."]
        computed = [a / b for a, b in zip(worked["semgrep"], worked[whole], strict=True)]
        lines += ["", f"The same in CPU seconds, which other work on the machine disturbs less: {_listed(computed)}."]
    lines += ["", *shipped]
    print("\n".join(lines))
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    head = [
        "# Code rules beside semgrep",
        "",
        f"Written by `python -m benchmarks.rules_speed` on {machine}: {len(RULES)} declarative rules over",
        f"{sizes[-1]} files of {', '.join(PACKAGES)}; whole processes, one thread each, {arguments.rounds} rounds,",
        "each with an empty cache at first. A smaller tree is a part of the larger.",
        f"The machine had {os.getloadavg()[0]:.1f} processes to run at the end: other work goes into seconds.",
        "",
    ]
    arguments.out.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return int(bool(ratios) and median(ratios) < BAR)


def _in_turn(
    trees: Mapping[int, Path], semgrep: list[str] | None, folder: Path, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]], dict[str, int]]:
    """Run every arm once a round; return the seconds and CPU seconds of each, and the places that it found."""
    largest = trees[max(trees)]
    arms = {f"gates, {size} files": (_gates(tree), tree) for size, tree in trees.items()}
    arms["gates again, nothing changed"] = (_gates(largest), largest)
    arms |= {"semgrep": (semgrep, largest)} if semgrep else {}
    seen: dict[str, list[float]] = {arm: [] for arm in arms}
    worked: dict[str, list[float]] = {arm: [] for arm in arms}
    places: dict[str, int] = {}
    for number in range(rounds):
        for arm, (command, tree) in arms.items():
            took, cpu, places[arm] = _timed(command, tree, folder / f"cache-{number}")
            seen[arm].append(took)
            worked[arm].append(cpu)
    return seen, worked, places


def _shipped(trees: Mapping[int, Path], folder: Path) -> list[str]:
    """Return the table of all shipped rules over each tree, everything unknown at first."""
    lines = [
        "All shipped rules, each tree once:",
        "",
        "| Files | s | CPU s | peak memory, MiB | findings |",
        "|---|---|---|---|---|",
    ]
    for size, tree in trees.items():
        command = [sys.executable, "-c", PEAK, "check", "--format", "json", str(tree / "tree")]
        took, cpu, found = _timed(command, tree, folder / f"shipped-{size}")
        peak = int((folder / f"shipped-{size}" / "peak").read_text(encoding="utf-8")) // 1024
        lines.append(f"| {size} | {took:.1f} | {cpu:.1f} | {peak} | {found} |")
    return lines


def _listed(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def _rules(folder: Path) -> Path:
    """Write the rules in semgrep's form; return the file."""
    rules = [
        {"id": name, "languages": ["python"], "severity": "WARNING", "message": name, "pattern": pattern}
        for name, pattern in RULES.items()
    ]
    path = folder / "semgrep.json"
    path.write_text(json.dumps({"rules": rules}), encoding="utf-8")
    return path


def _tree(root: Path, size: int) -> Path:
    """Copy the first files of some packages, by name, and write the rules in our form beside them."""
    site = Path(sysconfig.get_paths()["purelib"])
    files = [path for package in PACKAGES for path in sorted((site / package).rglob("*.py"))]
    for path in files[:size]:
        target = root / "tree" / path.relative_to(site)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    own = root / "gates-rules"
    own.mkdir()
    for name, pattern in RULES.items():
        told = dict.fromkeys(("problem", "impact", "fix"), name)
        shown: dict[str, list[str]] = {"good": [], "bad": []}
        ours = pattern.replace(".to(...)", ".to($$$)")
        facts = {"id": name, "tags": ["bench"], "severity": "low", "pattern": ours, **told, **shown}
        (own / f"{name}.yaml").write_text(json.dumps(facts), encoding="utf-8")
    (root / "pyproject.toml").write_text("[tool.gates]\n", encoding="utf-8")
    return root


def _gates(tree: Path) -> list[str]:
    return [sys.executable, "-m", "gates", "check", "--rule", "bench", "--format", "json", str(tree / "tree")]


def _semgrep(program: Path, rules: Path, tree: Path) -> list[str]:
    return [str(program), "scan", "--config", str(rules), "--metrics=off", "--disable-version-check", "--no-git-ignore",
            "-j", "1", "--quiet", "--json", str(tree / "tree")]  # fmt: skip


def _timed(command: list[str], tree: Path, cache: Path) -> tuple[float, float, int]:
    """Run a whole process; return its seconds, those that it computed, and how many places it names."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=tree, check=False, capture_output=True, encoding="utf-8", env=environment)
    took, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout)
    return took, cpu, len(found["results"] if "results" in found else found["findings"])


if __name__ == "__main__":
    sys.exit(main())
