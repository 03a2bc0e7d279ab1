"""Entry points, run for real: how they end, and the line of the project that a crash comes from."""

from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_project, a_task, collected, evidence, written

from gates.checks import entry_points as _entries
from gates.checks.entry_points import EntryPointRuns, EntryRun, scripts_of
from gates.child.probing import advice_on, crash_of
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Outcome, Severity

CRASHING = "import json\n\n\ndef go():\n    json.loads('{')\n\n\ngo()\n"


def ran(tmp_path: Path, files: dict[str, str | bytes] | None = None, **entry: Any) -> EntryRun:
    root = written(tmp_path / "project", {"pkg/__init__.py": "", **(files or {})})
    (one,) = EntryPointRuns.collect(a_task(entry_points=[entry]), a_context(root)).runs
    return one


def test_good_entry_point_ends_with_0(tmp_path: Path) -> None:
    one = ran(tmp_path, run=["python", "-c", "open(r'{out}', 'w').write('x')"])
    assert (one.process and one.process.exit_code, one.crash, one.problem) == (0, None, "")
    assert (tmp_path / "project-evidence/entry_points/0.out").read_text(encoding="utf-8") == "x"


def test_crash_is_located_at_the_innermost_line_of_the_project(tmp_path: Path) -> None:
    one = ran(tmp_path, {"pkg/go.py": CRASHING}, run=["python", "-m", "pkg.go"])
    assert (one.process and one.process.exit_code, str(one.crash)) == (1, "pkg/go.py:5")


def test_entry_point_that_hangs_is_stopped_at_its_own_limit(tmp_path: Path) -> None:
    one = ran(tmp_path, run=["python", "-c", "import time; time.sleep(60)"], timeout_s=0.5)
    assert one.process and one.process.ended == "stopped at the time limit of 0.5 s"


def test_command_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    one = ran(tmp_path, run=["no-such-command"])
    assert (one.process, one.problem) == (None, "'no-such-command' cannot be started: No such file or directory")


FRAME = 'Traceback (most recent call last):\n  File "pkg/{}.py", line {}, in f\n'
TRACES = {
    "first line of none": ("ValueError: x\n", None),
    "outside only": ('Traceback (most recent call last):\n  File "/usr/lib/x.py", line 3, in f\n', None),
    "installed": ('Traceback (most recent call last):\n  File "ROOT/v/site-packages/x.py", line 3, in f\n', None),
    "relative": (FRAME.format("m", 3), "pkg/m.py:3"),
    "the last of two": (FRAME.format("a", 1) + "\nDuring handling\n\n" + FRAME.format("b", 2), "pkg/b.py:2"),
    "a forged line of nothing": (FRAME.format("m", 0), None),
}


@pytest.mark.parametrize("case", TRACES)
def test_innermost_frame_of_the_project(tmp_path: Path, case: str) -> None:
    text, expected = TRACES[case]
    (tmp_path / "project").mkdir()
    context = a_context(tmp_path / "project")
    crash = crash_of(text.replace("ROOT", str(context.root)), context)
    found = crash.location if crash else None
    assert (crash is not None, str(found) if found else None) == (text.startswith("Traceback"), expected)


def called(tmp_path: Path, call: str, *args: object, files: dict[str, str | bytes] | None = None) -> EntryRun:
    return ran(tmp_path, {"pkg/core.py": CALLED, **(files or {})}, call=call, args=list(args))


CALLED = """\
import os, sys, warnings


def add(a, b):
    return a + b


async def later(x):
    return x + 1


def many(n):
    yield from range(n)
    raise ValueError("at the end")


def leaving(code):
    sys.exit(code)


def vanishing():
    os._exit(0)


def long():
    return "x" * 100_000


class Made:
    @staticmethod
    def here(x):
        return {"x": x}
"""
RETURNED: dict[str, tuple[tuple[object, ...], str]] = {
    "pkg.core:add": ((1, 2.5), "3.5"),
    "pkg.core:later": ((1,), "2"),
    "pkg.core:Made.here": (([1, {"a": None}],), "{'x': [1, {'a': None}]}"),
    "pkg.core:leaving": ((0,), "SystemExit(0)"),
}


@pytest.mark.parametrize("call", RETURNED)
def test_call_tells_what_it_returned(call: str, tmp_path: Path) -> None:
    args, returned = RETURNED[call]
    one = called(tmp_path, call, *args)
    assert (one.process and one.process.exit_code, one.returned, one.error) == (0, returned, "")


RETURNING = """\
import enum


Exit = enum.IntEnum("Exit", ["BAD"])


def main(value=None):
    return Exit.BAD if value == "bad" else value


async def later(value):
    return value
"""
SCRIPTS = """\
[project.scripts]
one = "pkg.cli:later"
[project.gui-scripts]
two = "pkg.window : open_it [gui]"
[tool.poetry.scripts]
three = {reference = "x", type = "file"}
"""
HANDED: dict[str, tuple[str, object, int]] = {
    "nothing": ("pkg.cli:main", None, 0),
    "success": ("pkg.cli:main", 0, 0),
    "an exit code": ("pkg.cli:main", 1, 1),
    "a member of an enumeration": ("pkg.cli:main", "bad", 1),
    "yes": ("pkg.cli:main", True, 0),
    "a number that counts nothing": ("pkg.cli:main", 2.5, 0),
    "a text": ("pkg.cli:main", "done", 0),
    "another function's number": ("pkg.core:add", 3, 0),
    "success of a command": ("pkg.cli:later", False, 0),
    "nothing from a command": ("pkg.cli:later", None, 0),
    "a text from a command": ("pkg.cli:later", "no such file", 1),
    "yes from a command": ("pkg.cli:later", True, 1),
}


@pytest.mark.parametrize("case", HANDED)
def test_what_a_command_returns_is_its_exit_code(tmp_path: Path, case: str) -> None:
    call, value, code = HANDED[case]
    args = (value, 0) if call.endswith("add") else (value,)
    one = called(tmp_path, call, *args, files={"pkg/cli.py": RETURNING, "pyproject.toml": SCRIPTS})
    assert one.process and one.process.exit_code == code


def test_commands_are_read_as_pyproject_writes_them(tmp_path: Path) -> None:
    assert scripts_of(written(tmp_path, {"pyproject.toml": SCRIPTS})) == {"pkg.cli:later", "pkg.window:open_it"}
    assert scripts_of(written(tmp_path, {"pyproject.toml": "[project"})) == set()
    assert scripts_of(written(tmp_path, {"pyproject.toml": "project = 1"})) == set()


def test_returned_value_is_bounded(tmp_path: Path) -> None:
    assert len(called(tmp_path, "pkg.core:long").returned or "") == 2000


def test_call_that_raises_names_its_error_function_and_line(tmp_path: Path) -> None:
    one = called(tmp_path, "pkg.core:add", 1, "x")
    assert one.error == "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
    assert (str(one.crash), one.function) == ("pkg/core.py:5", "add")
    assert one.process and "calculating" not in one.process.stderr.tail


def test_generator_runs_to_its_end(tmp_path: Path) -> None:
    assert called(tmp_path, "pkg.core:many", 3).error == "ValueError: at the end"


PROBLEMS = {
    "pkg.core:vanishing": "the process ended before the call returned",
    "pkg.core:absent": "pkg.core has no 'absent'",
    "pkg.absent:f": "there is no module 'pkg.absent'",
}


@pytest.mark.parametrize("call", PROBLEMS)
def test_call_that_was_not_seen_is_a_problem(call: str, tmp_path: Path) -> None:
    one = called(tmp_path, call)
    assert (one.process, one.problem) == (None, PROBLEMS[call])


def test_module_that_breaks_when_it_is_imported_is_a_crash(tmp_path: Path) -> None:
    one = called(tmp_path, "pkg.bad:f", files={"pkg/bad.py": "import pkg.core\nx = undefined\n"})
    assert (one.error, str(one.crash)) == ("NameError: name 'undefined' is not defined", "pkg/bad.py:2")


def test_call_finds_a_package_under_src(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"src/lib/__init__.py": "def f():\n    return 'here'\n"}
    assert called(tmp_path, "lib:f", files=files).returned == "'here'"


ERRORS = {
    "plain": ("ValueError: x: y\n", "ValueError", "x: y"),
    "no message": ("KeyboardInterrupt\n", "KeyboardInterrupt", ""),
    "dotted": ("pkg.core.OwnError: more\nlines: of it\n", "pkg.core.OwnError", "more"),
    "talk afterwards": ("ValueError: x\nDone: 3 of 4\n", "ValueError", "x"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_error_of_a_traceback(case: str, tmp_path: Path) -> None:
    text, *said = ERRORS[case]
    (tmp_path / "project").mkdir()
    crash = crash_of(FRAME.format("m", 3) + "    x()\n" + text, a_context(tmp_path / "project"))
    assert crash and (crash.error, crash.function) == (": ".join(filter(None, said)), "f")


@pytest.mark.parametrize("name", ["<frozen runpy>", "<string>", "<frozen importlib._bootstrap>"])
def test_code_that_lies_in_no_file_is_no_place(name: str, tmp_path: Path) -> None:
    context = a_context(written(tmp_path / "project", {"pkg/m.py": ""}))
    told = f'  File "{name}", line 88, in _run\n    x()\nValueError: x\n'
    crash = crash_of(f"Traceback (most recent call last):\n{told}", context)
    assert (crash and crash.location, crash and crash.error) == (None, "ValueError: x")
    crash = crash_of(FRAME.format("m", 3) + "    x()\n" + told, context)
    assert crash and str(crash.location) == "pkg/m.py:3"


TRAINING = """\
def set_up(use_amp):
    return {"use_amp": use_amp, "train_loader": [1, 2], "val_loader": [3]}


def run_training(use_amp=False):
    env = set_up(use_amp)
    print(f"Training samples: {len(env['train_data'])}")
    return env
"""
GREEN = "from pkg.training import set_up\n\n\ndef test_set_up():\n    assert set_up(True)['use_amp']\n"


def test_key_that_a_callee_no_longer_returns_is_found_behind_a_green_suite(tmp_path: Path) -> None:
    """A caller was left behind by a change of what its callee returns; no test calls the caller."""
    root = a_project(tmp_path / "project", {"pkg/training.py": TRAINING, "tests/test_training.py": GREEN})
    task = a_task(entry_points=[{"call": "pkg.training:run_training", "args": [True]}])
    seen = collected(task, a_context(root), PytestRun, EntryPointRuns, ExecutedLines)
    run = seen.get(PytestRun)
    assert run and run.process.exit_code == 0
    (finding,) = _entries.judge(task, seen)
    assert (finding.outcome, finding.severity) == (Outcome.FAILED, Severity.CRITICAL)
    assert str(finding.location) == "pkg/training.py:7"
    assert "KeyError: 'train_data' in `run_training`" in finding.message
    assert "`run_training` (pkg/training.py:5-8) was executed by no test." in finding.impact


RESULTS = {
    "an error": ("return {'error': 'CUDA not available', 'speedup': None}", "it returned error: CUDA not available"),
    "a skip": ("return {'skipped': True}", "it returned skipped: True"),
    "nothing": ("return {'speedup': None}", "it returned None for speedup"),
    "a line": ("print('verdict: BLOCK')", "its output says 'verdict: BLOCK'"),
    "a count of failures": ("print('3 FAILED, 2 passed')", "its output says '3 FAILED, 2 passed'"),
    "JSON": ('print(\'{"error": "CUDA not available", "n": null}\')', "it returned error: CUDA not available"),
    "a headline": ("print('FAILED (2 of 3)')", "its output says 'FAILED (2 of 3)'"),
    "a measured error": ("return {'error': 0.01}", ""),
    "no error": ("return {'error': None, 'speedup': 1.5}", ""),
    "a count": ("return {'done': 3, 'skipped': 1}", ""),
    "none failed": ("print('FAILED: 0'); print('0 FAILED')", ""),
    "a measured error in JSON": ("print('{\"error\": 0.01}')", ""),
    "a word in a sentence": ("print('FAILED jobs are tried again'); print('BLOCKS 3')", ""),
    "None": ("return None", ""),
}


@pytest.mark.parametrize("case", RESULTS)
def test_an_entry_point_that_says_it_failed_shows_nothing_and_one_with_a_result_passes(
    tmp_path: Path, case: str
) -> None:
    body, why = RESULTS[case]
    root = written(tmp_path / "project", {"pkg/__init__.py": "", "pkg/go.py": f"def go():\n    {body}\n"})
    task = a_task(entry_points=[{"call": "pkg.go:go"}])
    runs = EntryPointRuns.collect(task, a_context(root))
    (finding,) = _entries.judge(task, evidence(runs))
    assert (runs.runs[0].no_result, finding.outcome) == (why, Outcome.UNKNOWN if why else Outcome.PASSED)


@pytest.mark.parametrize(
    ("arguments", "plugin"),
    [("--json-report --cov", "pytest-json-report"), ("--cov=pkg --json-report-file=x", "pytest-json-report"),
     ("--benchmark-skip --x", "the pytest plugin that has --benchmark-skip")],
)  # fmt: skip
def test_a_plugin_that_is_missing_is_named(arguments: str, plugin: str) -> None:
    assert advice_on(f"error: unrecognized arguments: {arguments}").startswith(f"Install {plugin} for the interpreter")


def test_module_that_its_package_lacks_is_none_to_install() -> None:
    assert advice_on("No module named 'pkg.gone'").startswith("There is pkg, and no gone in it: fix the import")
    assert "has no pkg: install it there" in advice_on("No module named 'pkg'")
