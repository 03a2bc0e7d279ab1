"""Run the gate over the suites of well-known packages, as they are shipped, and set its verdict beside bare pytest's.

`python -m benchmarks.strangers` downloads source distributions, makes an environment for each under a temporary folder,
and writes benchmarks/results/strangers.md; 1 if the gate stops a suite that is sound. It needs a package index.
Beside it, the CPU time of the execution gate and of `pytest --cov --cov-context=test`, which tells the lines of each
test as the gate does.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "strangers.md"
TIMEOUT_S = 900
TOOLS = ("pytest", "pytest-json-report", "pytest-cov")


@dataclass(frozen=True)
class Stranger:
    """A package: the release, its import package, where its tests are, what they need, and one symbol of its code."""

    name: str
    version: str
    package: str
    symbol: str
    tests: str = "tests"
    needs: tuple[str, ...] = ()
    bound: str = ""


STRANGERS = (
    Stranger(
        "itsdangerous",
        "2.2.0",
        "src/itsdangerous",
        "itsdangerous.signer:Signer",
        needs=("freezegun",),
        bound="tests/test_itsdangerous/test_signer.py",
    ),
    Stranger("markupsafe", "3.0.4", "src/markupsafe", "markupsafe:Markup", bound="tests/test_markupsafe.py"),
    Stranger(
        "pluggy",
        "1.7.0",
        "src/pluggy",
        "pluggy._manager:PluginManager",
        tests="testing",
        bound="testing/test_pluginmanager.py",
    ),
    Stranger("six", "1.17.0", "six.py", "six:moves", tests="test_six.py", bound="test_six.py::test_integer_types"),
    Stranger("idna", "3.20", "idna", "idna.core:encode", needs=("hypothesis",), bound="tests/test_idna.py"),
    Stranger("click", "8.5.1", "src/click", "click.core:Command", bound="tests/test_commands.py"),
    Stranger(
        "jinja2", "3.1.6", "src/jinja2", "jinja2.environment:Environment", needs=("trio",), bound="tests/test_api.py"
    ),
    Stranger(
        "attrs",
        "26.1.0",
        "src/attr",
        "attr._make:attrs",
        needs=("hypothesis", "cloudpickle", "pympler", "pytest-xdist"),
        bound="tests/test_make.py",
    ),
    Stranger(
        "packaging",
        "26.3",
        "src/packaging",
        "packaging.version:Version",
        needs=("pretend", "hypothesis", "tomli_w"),
        bound="tests/test_tags.py",
    ),
)

GATES = (sys.executable, *f"-m gates run S1 --fresh --timeout {TIMEOUT_S}".split())
TASK = """\
id: S1
title: {name} {version}
implementation: [{package}]
tests: [{tests}]
criteria:
  - id: AC1
    text: Work as its tests say
    code: [{{symbol: "{symbol}"}}]
    tests: [{bound}]
"""


@dataclass(frozen=True)
class Seen:
    """What bare pytest and the gate said of one package."""

    stranger: Stranger
    bare: str
    bare_code: int
    bare_s: float
    verdict: str
    gate_s: float
    blocking: tuple[str, ...]
    open_execution: tuple[str, ...]
    doubts: tuple[str, ...]
    covered_cpu_s: float = 0.0
    execution_cpu_s: float = 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run each package, print and write; return 1 if a sound suite was stopped by the execution gate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the packages to run, separated by commas; all where empty")
    parser.add_argument("--folder", type=Path, help="keep downloads and environments here")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    names = arguments.only.split(",") if arguments.only else [stranger.name for stranger in STRANGERS]
    rows = []
    with tempfile.TemporaryDirectory(prefix="strangers-") as name:
        folder = (arguments.folder or Path(name)).resolve()
        for stranger in STRANGERS:
            if stranger.name in names:
                rows.append(_see(stranger, folder / stranger.name))
                print(_told(rows[-1]), flush=True)
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                arguments.out.write_text("\n".join(_page(rows)), encoding="utf-8")
    return int(any(row.bare_code == 0 and (row.blocking or row.open_execution) for row in rows))


def _see(stranger: Stranger, folder: Path) -> Seen:
    root, python = _prepared(stranger, folder)
    begun = time.monotonic()
    pytest = [str(python), "-m", "pytest", stranger.tests, "-q", "-p", "no:cacheprovider", f"--rootdir={root}"]
    bare = _run([*pytest, "-p", "no:cov"], root)
    bare_s = time.monotonic() - begun
    out = folder / "reports"
    begun = time.monotonic()
    gates = [*GATES, "--python", str(python)]
    gate = _run([*gates, "--out", str(out), "--keep-going"], root)
    gate_s = time.monotonic() - begun
    covered_s = _cpu_s([*pytest, f"--cov={stranger.package}", "--cov-context=test"], root)
    execution_s = _cpu_s([*gates, "--out", str(folder / "execution"), "--gate", "execution"], root)
    last = (bare.stdout.strip().splitlines() or ["nothing"])[-1].strip("= ")
    path = out / "result.json"
    if gate.returncode not in {0, 1, 3} or not path.is_file():
        said = f"no verdict ({gate.returncode})"
        return Seen(stranger, last, bare.returncode, bare_s, said, gate_s, (gate.stderr[-500:],), (), ())
    result = json.loads(path.read_text(encoding="utf-8"))
    findings = [finding for one in result["gates"] for finding in one["findings"]]
    told = {
        outcome: [f"{f['rule']} {f['message']}" for f in findings if f["outcome"] == outcome and f["level"] == "must"]
        for outcome in ("failed", "unknown")
    }
    doubts = [f"{f['rule']} {f['message']}" for f in findings if f["outcome"] in told and f["level"] != "must"]
    open_ = tuple(text for text in told["unknown"] if text.startswith(("EX", "GT")))
    decision = result["verdict"]["decision"]
    return Seen(
        stranger, last, bare.returncode, bare_s, decision, gate_s, tuple(told["failed"]), open_, tuple(doubts),
        covered_s, execution_s,
    )  # fmt: skip


def _prepared(stranger: Stranger, folder: Path) -> tuple[Path, Path]:
    """Download, unpack and install a package; return its folder and the interpreter of its environment."""
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "env" / "bin" / "python"
    if not python.is_file():
        _check([sys.executable, "-m", "venv", str(folder / "env")], folder)
    asked = f"{stranger.name}=={stranger.version}"
    if not (root := _unpacked(folder)):
        _check([str(python), "-m", "pip", "-q", "download", "--no-binary", ":all:", "--no-deps", asked], folder)
        shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder / "source")
        root = _unpacked(folder)
        assert root is not None
        _check([str(python), "-m", "pip", "-q", "install", *TOOLS, *stranger.needs, "-e", str(root)], folder)
    (root / "tasks").mkdir(exist_ok=True)
    bound = stranger.bound or stranger.tests
    facts = {**vars(stranger), "bound": bound}
    (root / "tasks" / "S1.yaml").write_text(TASK.format(**facts), encoding="utf-8")
    return root, python


def _unpacked(folder: Path) -> Path | None:
    return next((path for path in (folder / "source").glob("*") if path.is_dir()), None)


def _check(words: Sequence[str], folder: Path) -> None:
    done = _run(words, folder)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")


def _run(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(words), cwd=folder, check=False, capture_output=True, text=True, errors="replace", timeout=2 * TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _cpu_s(words: Sequence[str], folder: Path) -> float:
    """Return the CPU seconds of a command and all that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(words, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _told(row: Seen) -> str:
    lines = [f"{row.stranger.name}: bare {row.bare} ({row.bare_s:.1f} s); gate {row.verdict} ({row.gate_s:.1f} s)"]
    lines += [f"  FAILED {one[:300]}" for one in row.blocking]
    lines += [f"  OPEN {one[:300]}" for one in row.open_execution]
    lines += [f"  note {one[:200]}" for one in row.doubts[:6]]
    lines += [f"  ... {len(row.doubts) - 6} notes more"] if len(row.doubts) > 6 else []
    return "\n".join(lines)


def _page(rows: Sequence[Seen]) -> list[str]:
    lines = [
        "# Strangers' suites",
        "",
        "Written by `python -m benchmarks.strangers`: source distributions as they are, each in an environment of its",
        "own. `must` findings of the gate stop a change; notes are advisory. Last come CPU seconds: of `pytest --cov`",
        "with `--cov-context=test`, of `gates run --gate execution --fresh`, and their ratio.",
        "",
        "| Package | bare pytest | s | gate | s | failed | unknown (execution) | notes | cov | gate | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = f"{row.stranger.name} {row.stranger.version}"
        bare = f"{row.bare} (exit code {row.bare_code})".replace("|", " ")
        counts = f"{len(row.blocking)} | {len(row.open_execution)} | {len(row.doubts)}"
        cpu = f"{row.covered_cpu_s:.1f} | {row.execution_cpu_s:.1f} | {row.execution_cpu_s / row.covered_cpu_s:.2f}"
        lines.append(f"| {name} | {bare} | {row.bare_s:.1f} | {row.verdict} | {row.gate_s:.1f} | {counts} | {cpu} |")
    for row in rows:
        if row.blocking or row.open_execution or row.doubts:
            lines += ["", f"## {row.stranger.name}", ""]
            lines += [f"- {_plain(one)}" for one in (*row.blocking, *row.open_execution, *row.doubts[:10])]
            more = len(row.doubts) - 10
            lines += [f"- and {more} notes more"] if more > 0 else []
    return [*lines, ""]


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() and c not in "|`<>" else " " for c in text)[:240]


if __name__ == "__main__":
    sys.exit(main())
