"""Run a corpus of endings of pytest runs, and set what three simple readers would say beside what the gate says.

`python -m benchmarks.endings` writes benchmarks/results/endings.md; 1 if the gate is wrong about any of them. The
simple readers believe the exit code alone, `failed == 0` of pytest-json-report alone, and JUnit without a failure.
"""

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from bar import committed  # noqa: E402

from benchmarks.endings.corpus import FAMILIES  # noqa: E402
from benchmarks.endings.ending import Ending, Right, project  # noqa: E402
from gates.child import process  # noqa: E402
from gates.model import Decision  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "endings.md"
MARGIN_S = 60
BARE_LIMIT_S = 6


@dataclass(frozen=True)
class Said:
    """What was said of one ending: by the gate, and by the simple readers (whether each calls it good)."""

    ending: Ending
    verdict: Decision | None
    exit_code: int | None
    reasons: tuple[str, ...]
    named: bool
    duration_s: float
    simple: tuple[bool, bool, bool] | None

    @property
    def right(self) -> bool:
        """Return whether the gate is right, named what ran, and left nobody behind."""
        return self.ending.right.allows(self.verdict) and self.named


def main(argv: Sequence[str] | None = None) -> int:
    """Run the corpus, print what is wrong, write the table; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run the endings whose name contains this")
    parser.add_argument("--family", default="", help="run the families whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the tests, with plugins")
    parser.add_argument("--gate-only", action="store_true", help="leave the simple readers out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    chosen = [
        e for name, family in FAMILIES.items() if arguments.family in name for e in family if arguments.only in e.name
    ]
    able = {name: _has(arguments.python, name) for name in sorted({need for e in chosen for need in e.needs})}
    runnable = [e for e in chosen if all(able[need] for need in e.needs)]
    begun = time.monotonic()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        count = len(runnable)
        said = []
        for one in pool.map(_say, runnable, [arguments.python] * count, [not arguments.gate_only] * count):
            said.append(one)
            if not one.right:
                print(_wrong(one), flush=True)
    took_s = time.monotonic() - begun
    lines = [*_summary(said, len(chosen), took_s), *_tables(said)]
    print("\n".join(_summary(said, len(chosen), took_s)))
    if not arguments.gate_only:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join([*_head(arguments.python), *lines, ""]), encoding="utf-8")
        print(f"wrote {arguments.out}")
    return int(not all(one.right for one in said))


def _say(ending: Ending, python: str, simple: bool) -> Said:  # mapped over
    """Run one ending under the gate, and barely for the simple readers, each in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="endings-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        read = _bare(ending, project(ending, folder / "bare"), python, folder) if simple else None
        root = project(ending, folder / "gated")
        committed(root)
        argv = [sys.executable, "-m", "gates", "run", "T1", "--python", python, "--format", "json",
                "--timeout", f"{ending.timeout_s:g}", "--keep-going"]  # fmt: skip
        env = {"PYTHONPATH": str(ROOT), **ending.env}
        ended = process.run(argv, cwd=root, timeout_s=ending.timeout_s * 3 + MARGIN_S, log=folder / "gates", env=env)
        path = root / "reports" / "T1" / "result.json"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        verdict = json.loads(text)["verdict"] if text else {}
        decision = Decision(verdict["decision"]) if verdict and ended.exit_code == verdict["exit_code"] else None
        if decision is None and ended.exit_code == 0:
            decision = Decision.PASS  # exit code 0 is what a pull request would read
        said = tuple(verdict.get("reasons", ())) or (f"{ended.ended}: {ended.last_words}",)
        reasons = tuple(reason.replace(f"{root}/", "").replace(str(root), ".") for reason in said)
        named = not ending.running or json.dumps(ending.running)[1:-1] in text
        return Said(ending, decision, ended.exit_code, reasons, named, ended.duration_s, read)


def _bare(ending: Ending, root: Path, python: str, folder: Path) -> tuple[bool, bool, bool]:
    """Run bare pytest, and read its exit code, JSON report and JUnit file as simple readers do."""
    words = [
        python,
        "-m",
        "pytest",
        "tests",
        "--json-report",
        "--json-report-file=report.json",
        "--junit-xml=junit.xml",
    ]
    argv = ["sh", "-c", '"$@"; exit $?', "sh", *words]  # a parent that a test may kill
    ended = process.run(argv, cwd=root, timeout_s=BARE_LIMIT_S, log=folder / "bare-log", env=ending.env)
    return ended.exit_code == 0, _json_is_good(root / "report.json"), _junit_is_good(root / "junit.xml")


def _json_is_good(path: Path) -> bool:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["summary"].get("failed", 0) == 0
    except (OSError, ValueError, KeyError, AttributeError):
        return False


def _junit_is_good(path: Path) -> bool:
    try:
        suites = list(ET.fromstring(path.read_bytes()).iter("testsuite"))  # noqa: S314  # written by our own run
    except (OSError, ET.ParseError):
        return False
    return all(suite.get(name, "0") == "0" for suite in suites for name in ("failures", "errors"))


def _has(python: str, module: str) -> bool:
    """Return whether an interpreter has a module."""
    if python == sys.executable:
        return importlib.util.find_spec(module) is not None
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def _wrong(one: Said) -> str:
    expected = one.ending.right.value
    said = one.verdict.value if one.verdict else f"no verdict (exit code {one.exit_code})"
    more = "" if one.named else f"; {one.ending.running} is not named"
    return f"WRONG  {one.ending.name}: expected {expected}, got {said}{more}\n       {' / '.join(one.reasons)[:600]}"


def _head(python: str) -> list[str]:
    where = f"{platform.machine()}, Python {platform.python_version()}, pytest {version('pytest')}"
    plugins = "the same interpreter" if python == sys.executable else "an interpreter with the plugins"
    return [
        "# Endings",
        "",
        f"Written by `python -m benchmarks.endings` on {where}; the tests run under {plugins}.",
        "Each row is a real project of this benchmark. The simple readers call a run good by its exit code alone, by",
        "`failed == 0` of pytest-json-report alone, or by a JUnit file without failures and errors.",
        "",
    ]


def _summary(said: Sequence[Said], chosen: int, took_s: float) -> list[str]:
    bad = [one for one in said if one.ending.right is not Right.PASS]
    good = [one for one in said if one.ending.right is Right.PASS]
    crashes = [one for one in said if one.ending.running]
    counts = f"{len(bad)} that must not pass, {len(good)} sound; {chosen - len(said)} not run for want of a plugin"
    lines = [
        f"{len(said)} endings in {took_s:.0f} s ({counts}).",
        "",
        "| Reader | bad ones taken for good | sound ones stopped |",
        "|---|---|---|",
    ]
    if said and said[0].simple is not None:
        for index, name in enumerate(("exit code alone", "JSON report alone", "JUnit file alone")):
            missed = sum(bool(one.simple and one.simple[index]) for one in bad)
            stopped = sum(not (one.simple and one.simple[index]) for one in good)
            lines.append(f"| {name} | {missed} of {len(bad)} | {stopped} of {len(good)} |")
    missed = sum(one.verdict is Decision.PASS for one in bad)
    stopped = sum(one.verdict is not Decision.PASS for one in good)
    named = sum(one.named for one in crashes)
    exact = sum(one.ending.right.allows(one.verdict) for one in bad)
    return [
        *lines,
        f"| `gates run` | {missed} of {len(bad)} | {stopped} of {len(good)} |",
        "",
        f"The running test or file is named in {named} of {len(crashes)} endings where there is one. Where only one of",
        f"BLOCK and INCONCLUSIVE is right, that one is asked for: {exact} of {len(bad)} bad endings have a verdict",
        "that is right.",
    ]


def _tables(said: Iterable[Said]) -> list[str]:
    by_name = {one.ending.name: one for one in said}
    lines = []
    for family, endings in FAMILIES.items():
        rows = [by_name[ending.name] for ending in endings if ending.name in by_name]
        if not rows:
            continue
        lines += ["", f"## {family}", "", "| Ending | right | exit code | JSON | JUnit | gate | says first |",
                  "|---|---|---|---|---|---|---|"]  # fmt: skip
        lines += [_row(one) for one in rows]
    return lines


def _row(one: Said) -> str:
    simple = " | ".join("good" if good else "-" for good in one.simple or (False,) * 3)
    first = one.reasons[0] if one.reasons and one.verdict is not Decision.PASS else ""
    shown = "".join(c if c.isprintable() and c not in "|`<>" else " " for c in first)[:140]
    verdict = one.verdict.value if one.verdict else f"no verdict ({one.exit_code})"
    sign = "" if one.right else " **(wrong)**"
    return f"| {one.ending.name} | {one.ending.right.value} | {simple} | {verdict}{sign} | {shown} |"


if __name__ == "__main__":
    sys.exit(main())
