"""What the witness tells from inside of a run: how it died, what it executed, and that nobody speaks in its place."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from building import PATIENCE_S, a_context, a_criterion, a_task, evidence, patient, pytest_options, written

from gates.check import EvidenceSet
from gates.checks.test_run import judge as _suite
from gates.criteria import decide
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Decision, Finding, Outcome

TASK = a_task(entry_points=[], criteria=[a_criterion(tests=["tests"])], measurements=[])
GOOD = "def test_good() -> None:\n    assert print\n"


def run_of(
    tmp_path: Path, code: str, *, conftest: str = "", timeout_s: float = PATIENCE_S, repeat: int = 1, options: str = ""
) -> PytestRun:
    files = {"pyproject.toml": pytest_options(options), "tests/test_one.py": code, "tests/conftest.py": conftest}
    root = written(tmp_path / "project", files)
    return PytestRun.derive(TASK, replace(a_context(root, timeout_s=timeout_s), repeat=repeat), EvidenceSet())


def found(run: PytestRun) -> list[Finding]:
    return list(_suite.judge(TASK, evidence(run)))


def texts(run: PytestRun) -> str:
    return "\n".join(finding.message for finding in found(run) if finding.outcome is not Outcome.PASSED)


def report(run: PytestRun) -> str:
    return "\n".join(f"{s.title} {s.facts} {s.rows} {s.code}" for s in _suite.describe(TASK, evidence(run)))


DEATHS = {
    "abort": ("import os\ndef test_it(): os.abort()\n", "killed by SIGABRT", "in test_it"),
    "stack overflow": (
        ("import sys\ndef test_it():\n    sys.setrecursionlimit(10**9)\n"
        "    class A:\n        def __repr__(self): return repr([self])\n    repr(A())\n"),
        "killed by SIGSEGV", "__repr__"),
    "kill": ("import os\ndef test_it(): os.kill(os.getpid(), 9)\n", "killed by SIGKILL", "No stack was written"),
    "exit": ("import os\ndef test_it(): os._exit(0)\n", "never came to the end", "exit code 0"),
    "hang": ("import time\ndef test_it(): time.sleep(600)\n", "stopped at the time limit", "in test_it"),
}  # fmt: skip


@pytest.mark.parametrize("case", DEATHS)
def test_death_names_the_test_the_cause_the_memory_and_the_last_stack(tmp_path: Path, case: str) -> None:
    code, cause, stack = DEATHS[case]
    first_s = 4 if case == "hang" else PATIENCE_S
    run = patient(first_s, lambda limit_s: run_of(tmp_path, GOOD + code, timeout_s=limit_s), lambda run: run.running)
    assert run.running == ("tests/test_one.py::test_it",)
    assert [test.outcome for test in run.tests] == [TestOutcome.PASSED, TestOutcome.NOT_RUN]
    (first, *_) = [finding for finding in found(run) if finding.rule == "EX001"]
    assert str(first.location) == "tests/test_one.py:4"
    assert cause in texts(run)
    assert "tests/test_one.py::test_it" in texts(run)
    assert stack in report(run)
    assert "Death Certificate" in report(run)
    assert 10 * 2**20 < (run.process.peak_memory_bytes or 0) < 2**34
    assert decide(found(run)).decision is not Decision.PASS


@pytest.mark.parametrize("leave", ["import os\nos._exit(0)\n", "import sys\nsys.exit(0)\n"])
def test_exit_during_import_names_the_file(tmp_path: Path, leave: str) -> None:
    run = run_of(tmp_path, leave)
    assert "while collecting tests/test_one.py" in texts(run)
    assert decide(found(run)).decision is Decision.INCONCLUSIVE


TELLS = (
    "import gc\ndef test_told():\n    for each in gc.get_objects():\n"
    "        if type(each).__name__ == 'Teller': open(each._path, 'ab').write(b'{}\\n')\n    assert 1\n"
)
HARNESS = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and item.name == 'test_known':
        report.outcome, report.wasxfail = 'skipped', 'known'
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem):
    try: return (yield)
    except AssertionError:
        if pyfuncitem.name != 'test_swallowed': raise
        return True
"""
# the tests, the conftest.py, and what is said of which test
HIDDEN: dict[str, tuple[str, str, dict[str, str]]] = {
    "as tests are collected": (
        GOOD + "def test_x(): assert 0\ndef test_x(): assert 1\ndef test_nothing(): assert 0\n"
        "def test_gone(): assert 0\ndel test_gone\n",
        "def pytest_pycollect_makeitem(name):\n    if name == 'test_nothing': return []\n",
        {"test_x": "defined again below", "test_gone": "pytest took it for none",
         "test_nothing": "pytest took it for none"}),
    "by somebody else who tells": (GOOD + TELLS, "", {"": "are not its own"}),
    "as they run": (
        GOOD + "".join(f"def test_{name}(): assert 0\n" for name in ("known", "swallowed")), HARNESS,
        {"test_known": "only its report calls an expected failure",
         "test_swallowed": "but its report does not say so"}),
    "by both sides of a fork": (("import os\ndef test_x():\n    pid = os.fork()\n    if pid == 0: assert 0\n"
        "    os.waitpid(pid, 0)\n"), "", {"": "a fork of the process went on"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", HIDDEN)
def test_what_is_hidden_is_named_and_the_run_not_believed(tmp_path: Path, case: str) -> None:
    code, conftest, said = HIDDEN[case]
    run = run_of(tmp_path, code, conftest=conftest)
    lines = texts(run).splitlines()
    assert [name for name, why in said.items() if not any(name in line and why in line for line in lines)] == [], lines
    assert decide(found(run)).decision is not Decision.PASS


def test_harness_that_passes_everything_is_rigged_and_blocks(tmp_path: Path) -> None:
    passes = (
        "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    (yield).get_result().outcome = 'passed'\n"
    )
    (finding, *_) = [f for f in found(run_of(tmp_path, GOOD, conftest=passes)) if f.rule == "EX001"]
    assert finding.outcome is Outcome.FAILED
    assert "asserts 1 + 1 == 3 raised AssertionError, and the harness called it passed" in finding.message


def test_test_with_two_ends_fails_and_names_both(tmp_path: Path) -> None:
    run = run_of(tmp_path, "seen = []\ndef test_one():\n    seen.append(1)\n    assert 1\ndef test_two(): assert seen",
                 repeat=2)  # fmt: skip
    (flaky,) = [f for f in found(run) if f.rule == "EX011"]
    assert (flaky.outcome, flaky.subject) == (Outcome.FAILED, "tests/test_one.py::test_two")
    assert "passed in the first run and failed in run 2 (seed 2)" in flaky.message
    assert "shuffled, seeds 2" in report(run)


SOUND = """
import os, pytest
def test_closes(): os.closerange(100, 4096)
def test_forks():
    pid = os.fork()
    if pid == 0: os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
def test_reads(): assert not [n for n in os.environ if 'WITNESS' in n]
@pytest.mark.skipif(True, reason='needs CUDA')
def test_skips(): pass
"""


def test_sound_suite_passes_in_every_order_and_leaves_no_open_file_and_its_skip_is_listed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    run = run_of(tmp_path, SOUND + GOOD, options="-W error", repeat=2)
    assert decide(found(run)).decision is Decision.PASS, texts(run)
    assert (len(run.repeats), "needs CUDA" in report(run)) == (1, True)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
