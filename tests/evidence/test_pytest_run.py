"""Real pytest runs over tiny suites, from the process to the execution gate: nothing bad may look like a pass."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from building import PATIENCE_S, QUICK, a_context, a_criterion, a_task, all_evidence, pytest_options, written

from gates.check import EvidenceSet
from gates.criteria import decide
from gates.errors import EvidenceUnavailable
from gates.evidence.tests import pytest_run
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Out, TestOutcome, TestRecord
from gates.model import Decision, Finding, Outcome, Severity
from gates.stages import BUSINESS_LOGIC, EXECUTION
from gates.task.task import Task

GOOD = "def test_good() -> None:\n    assert print\n"
BAD = "def test_bad() -> None:\n    assert 1 == 2\n"
TASK = a_task(entry_points=[], criteria=[a_criterion(tests=[])], measurements=[])


@dataclass(frozen=True)
class Seen:
    """A run, and what the execution gate finds in it."""

    run: PytestRun
    findings: list[Finding]

    def of(self, rule: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.rule == rule]

    def outcome(self, rule: str) -> Outcome:
        (only,) = {finding.outcome for finding in self.of(rule)}
        return only

    @property
    def decision(self) -> Decision:
        return decide(self.findings).decision

    def test(self, name: str) -> TestRecord:
        (one,) = [test for test in self.run.tests if test.id.endswith(f"::{name}")]
        return one


def seen_in(tmp_path: Path, files: dict[str, str | bytes], *, timeout_s: float = PATIENCE_S, task: Task = TASK) -> Seen:
    root = written(tmp_path / "project", {"pyproject.toml": pytest_options(), **files})
    run = PytestRun.derive(task, a_context(root, timeout_s=timeout_s), EvidenceSet())
    return Seen(run, list(EXECUTION.judge(task, EvidenceSet({PytestRun: run}))))


TRACED = """
import sys

def test_traced() -> None:
    monitoring = getattr(sys, "monitoring", None)
    assert sys.gettrace() is None
    assert monitoring is None or monitoring.get_tool(monitoring.COVERAGE_ID) is None
"""
AT_FIRST = """
from pathlib import Path

def test_at_first():
    ran = Path("ran.txt")
    had = ran.exists()
    ran.touch()
    assert had
"""


def test_a_test_that_only_a_tracer_disturbs_passes_without_it(tmp_path: Path) -> None:
    seen = seen_in(tmp_path, {"tests/test_traced.py": GOOD + TRACED})
    assert seen.decision is Decision.PASS
    assert seen.run.how.endswith("run again without a tracer, by which alone tests/test_traced.py::test_traced failed")
    assert seen.run.process.exit_code == 0


@pytest.mark.parametrize("other", [BAD, AT_FIRST], ids=["bad", "unstable"])
def test_a_test_that_fails_by_itself_or_by_chance_fails(other: str, tmp_path: Path) -> None:
    seen = seen_in(tmp_path, {"tests/test_traced.py": TRACED, "tests/test_other.py": other})
    assert seen.decision is Decision.BLOCK
    assert {test.outcome for test in seen.run.tests} == {TestOutcome.FAILED}


ORDINARY = r"""
import unittest
import warnings
import pytest

def helper() -> None:
    raise RuntimeError("in the | helper\nand `more` <b>")

def test_pass() -> None: pass

def test_fail() -> None:
    helper()

@pytest.fixture
def broken() -> None:
    raise OSError("no set-up")

@pytest.fixture
def leaking():
    yield
    raise OSError("no teardown")

def test_setup_error(broken: None) -> None: pass

def test_no_such_fixture(nowhere: None) -> None: pass

def test_teardown_error(leaking: None) -> None: pass

def test_fail_and_teardown_error(leaking: None) -> None:
    assert False, "both"

@pytest.mark.skip(reason="no device here")
def test_skip() -> None: assert False

def test_skip_inside() -> None:
    pytest.skip("none inside")

@pytest.mark.xfail(reason="known")
def test_xfail() -> None: assert False

def test_xfail_inside() -> None:
    pytest.xfail("known inside")

@pytest.mark.xfail(reason="known", strict=False)
def test_xpass() -> None: pass

@pytest.mark.xfail(reason="strictly known", strict=True)
def test_xpass_strict() -> None: pass

def test_subtests_pass(subtests) -> None:
    for i in range(3):
        with subtests.test(i=i): assert i >= 0

def test_subtests_fail(subtests) -> None:
    for i in range(3):
        with subtests.test(i=i): assert i != 1

def test_system_exit() -> None: raise SystemExit(0)

def test_warns() -> None: warnings.warn("an odd | `warning`", UserWarning, stacklevel=1)

class TestUnit(unittest.TestCase):
    def test_unit_pass(self) -> None: self.assertTrue(True)
    def test_unit_fail(self) -> None: self.assertEqual(1, 2)
    def test_unit_skip(self) -> None: self.skipTest("unit")
    @unittest.expectedFailure
    def test_unit_xfail(self) -> None: self.assertEqual(1, 2)

@pytest.mark.skip(reason="bad \\udcff name")
def test_skip_without_unicode() -> None: pass

@pytest.mark.xfail
def test_xfail_unexplained(tmp_path) -> None: assert tmp_path is None

@pytest.mark.parametrize("text", ["a|b", "a\nb", "`", "<b>", "\u202e", "\u00e9", "\ud800", "\x00", " ", "[x](y)", "::"])
def test_odd(text: str) -> None: assert text

@pytest.mark.criterion("T1/AC1")
@pytest.mark.xfail("warnings is None", reason="a name of this module")
def test_marked() -> None: pass

@pytest.mark.criterion("T1/AC9")
def test_marked_for_nothing() -> None: pass

@pytest.mark.criterion("T2/AC1", "T1/AC1")
class TestMarked:
    def test_marked_by_its_class(self) -> None: pass

@pytest.mark.criterion(id="T1/AC1", reason="it is so")
def test_marked_by_keyword() -> None: pass
"""


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest_run, "MOST_DISTURBED", 0)  # its tests fail without a tracer, too
        return seen_in(tmp_path_factory.mktemp("ordinary"), {"tests/test_all.py": ORDINARY})


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(ORDINARY.splitlines(), 1) if text in line)


P, F, E, S, X, XP = (
    TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.SKIPPED, TestOutcome.XFAILED,
    TestOutcome.XPASSED,
)  # fmt: skip
ENDS = {
    "test_marked_by_keyword": P,
    "test_pass": P, "test_fail": F, "test_setup_error": E, "test_teardown_error": E, "test_fail_and_teardown_error": F,
    "test_skip": S, "test_skip_inside": S, "test_xfail": X, "test_xfail_inside": X, "test_xpass": XP,
    "test_xpass_strict": F, "test_subtests_pass": P, "test_subtests_fail": F, "test_system_exit": F, "test_warns": P,
    "test_skip_without_unicode": S, "test_xfail_unexplained": X, "test_no_such_fixture": E,
    "test_unit_pass": P, "test_unit_fail": F, "test_unit_skip": S, "test_unit_xfail": X,
}  # fmt: skip


def test_ordinary_ends_are_told_and_witnesses_agree(ordinary: Seen) -> None:
    assert {name: ordinary.test(name).outcome for name in ENDS} == ENDS
    odd = [test for test in ordinary.run.tests if "::test_odd[" in test.id]
    assert [test.outcome for test in odd] == [P] * 11
    assert len({id(test.model_fields_set) for test in odd}) == 1  # of 60,000 tests they would be 44 MB
    assert (ordinary.run.disagreements, ordinary.run.process.exit_code) == ((), 1)
    assert (ordinary.outcome("EX001"), ordinary.decision) == (Outcome.PASSED, Decision.BLOCK)


def test_failure_is_located_at_the_line_that_raised(ordinary: Seen) -> None:
    (finding,) = [f for f in ordinary.of("EX002") if f.subject.endswith("::test_fail")]
    assert str(finding.location) == f"tests/test_all.py:{line_of('raise RuntimeError')}"
    assert finding.message == "tests/test_all.py::test_fail failed: RuntimeError: in the | helper"
    assert finding.command == "python -m pytest tests/test_all.py::test_fail"
    assert finding.severity is Severity.HIGH
    assert ordinary.test("test_no_such_fixture").reason == "fixture 'nowhere' not found"


def test_each_bad_test_has_its_own_finding(ordinary: Seen) -> None:
    named = {f.subject.rpartition("::")[2] for f in ordinary.of("EX002")}
    assert named == {name for name, end in ENDS.items() if end in {F, E}}
    assert len({f.fingerprint for f in ordinary.findings}) == len(ordinary.findings)


def test_what_was_left_out_is_listed_and_passes_nothing(ordinary: Seen) -> None:
    named = {f.subject.rpartition("::")[2]: f.outcome for f in ordinary.of("EX003")}
    assert named == dict.fromkeys((name for name, end in ENDS.items() if end in {S, X, XP}), Outcome.UNKNOWN)


def test_reason_of_a_skip_is_kept(ordinary: Seen) -> None:
    assert "no device here" in ordinary.test("test_skip").message
    assert "none inside" in ordinary.test("test_skip_inside").message
    assert "\\udcff" in ordinary.test("test_skip_without_unicode").message
    assert ordinary.test("test_xfail_unexplained").message == "no reason given"


def test_warning_is_told_with_its_place(ordinary: Seen) -> None:
    assert ("UserWarning", "an odd | `warning`", f"tests/test_all.py:{line_of('warnings.warn(')}") in [
        (w.category, w.message, str(w.location)) for w in ordinary.run.warnings
    ]


def test_markers_bind_tests_to_criteria(ordinary: Seen) -> None:
    assert ordinary.test("test_marked").criteria == ("T1/AC1",)
    assert ordinary.test("test_marked_by_its_class").criteria == ("T1/AC1", "T2/AC1")
    assert ordinary.test("test_marked_by_keyword").criteria == ("T1/AC1",)
    assert ordinary.test("test_pass").criteria == ()


def test_marker_of_an_unknown_criterion_fails(ordinary: Seen) -> None:
    findings = [*BUSINESS_LOGIC.judge(TASK, all_evidence(TASK, ordinary.run))]
    (loose,) = [f for f in findings if f.rule == "BL004" and f.subject.endswith(" T1/AC9")]
    assert loose.outcome is Outcome.FAILED
    assert loose.message.endswith("did you mean 'T1/AC1'?")


def test_good_suite_passes_whatever_the_environment_and_however_much_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing_at_all")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    flood = (
        "import os\ndef test_flood() -> None:\n    for _ in range(80): os.write(1, b'x' * 65536); print('y' * 65536)\n"
        "    __import__('logging').warning('no JSON has such keys', extra={'odd': {(1, 2): 3}})\n"
    )
    seen = seen_in(tmp_path, {"tests/test_good.py": GOOD + flood, "pyproject.toml": pytest_options("-s")})
    of_the_suite = [f for f in seen.findings if f.check in {"suite", "tests", "left-out"}]
    assert [f.outcome for f in of_the_suite] == [Outcome.PASSED] * 3
    assert seen.run.process.stdout.bytes > 8192
    assert sum(f.stat().st_size for f in (tmp_path / "project-evidence").rglob("*") if f.is_file()) < 4 * 1024 * 1024


def test_files_that_cannot_be_collected_fail_each_with_its_name(tmp_path: Path) -> None:
    seen = seen_in(
        tmp_path,
        {"tests/test_good.py": GOOD, "tests/test_import.py": "import nowhere_at_all\n" + GOOD,
         "tests/test_syntax.py": "def test_x(:\n", "tests/test_bytes.py": b"x = '\xff'\n"},
    )  # fmt: skip
    assert {(str(f.location), f.outcome, f.severity) for f in seen.of("EX001")} == {
        (f"tests/test_{name}.py", Outcome.FAILED, Severity.CRITICAL) for name in ("import", "syntax", "bytes")
    }
    assert any("No module named 'nowhere_at_all'" in f.message for f in seen.of("EX001"))
    assert (seen.outcome("EX002"), seen.decision) == (Outcome.UNKNOWN, Decision.BLOCK)


def test_error_of_collection_that_is_carried_on_from_still_fails(tmp_path: Path) -> None:
    options = pytest_options("--continue-on-collection-errors")
    broken = {"tests/test_import.py": "import nowhere\n", "pyproject.toml": options}
    seen = seen_in(tmp_path, {"tests/test_good.py": GOOD, **broken})
    assert (seen.outcome("EX001"), seen.decision) == (Outcome.FAILED, Decision.BLOCK)


BESIDE: dict[str, str | bytes] = {
    "tests/conftest.py": "collect_ignore = ['test_ignored.py']\n",
    "tests/test_one.py": GOOD,
    "tests/test_ignored.py": BAD,
    "tests/test_whole.py": "import pytest\npytest.importorskip('nowhere_at_all')\n" + BAD,
    "tests/test_subtests.py": (
        "import pytest\ndef test_one(subtests):\n    with subtests.test(): pytest.skip('no gpu')\n"
    ),
    "tests/test_unit.py": (
        "import unittest\nclass TestOne(unittest.TestCase):\n    def test_one(self):\n"
        "        with self.subTest(i=1): self.skipTest('no gpu')\n"
    ),
    "tests/test_patching.py": (
        "import json, os\ndef test_patch(monkeypatch):\n    for name in ('open', 'write', 'getpid'):\n"
        "        monkeypatch.setattr(os, name, None)\n    monkeypatch.setattr(json, 'dumps', None)\n"
    ),
    "tests/test_helpers.py": "def build() -> None: ...\n",
    "tests/test_a.py": GOOD + "class EnsureTests:\n    def test_it(self):\n        assert False\n",
    "tests/test_b.py": (
        "class SharedTests:\n    def test_it(self):\n        assert True\n\n\nclass TestB(SharedTests):\n    x = 1\n"
    ),
    "tests/test_c.py": GOOD + "class Machine:\n    def test_it(self):\n        return 1\n",
}


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("beside")
    seen = seen_in(folder, BESIDE)
    left = {path.relative_to(folder / "project").as_posix() for path in (folder / "project").rglob("*")}
    assert left == {"pyproject.toml", "tests", *BESIDE}  # the run leaves nothing in the project
    return seen


def test_what_was_left_out_beside_good_tests_is_listed_and_contradicts_nobody(beside: Seen) -> None:
    assert (beside.run.disagreements, beside.outcome("EX001"), beside.decision) == ((), Outcome.PASSED, Decision.PASS)
    assert {str(f.location).split(":")[0]: "1 subtests skipped" in f.message for f in beside.of("EX003")} == {
        "tests/test_ignored.py": False, "tests/test_whole.py": False, "tests/test_subtests.py": True,
        "tests/test_unit.py": True, "tests/test_a.py": False,
    }  # fmt: skip
    assert beside.outcome("EX003") is Outcome.UNKNOWN
    assert [one.id for one in beside.run.out(Out.UNCOLLECTED)] == ["tests/test_ignored.py"]
    assert {test.id.split("::")[0] for test in beside.run.tests if not test.passed} == {
        "tests/test_subtests.py", "tests/test_unit.py",
    }  # fmt: skip


def test_class_whose_name_keeps_it_from_being_collected_is_named(beside: Seen) -> None:
    stray = beside.run.out(Out.UNPLANNED)
    assert [(one.id, one.doubted) for one in stray] == [("tests/test_a.py::EnsureTests::test_it", False)]
    assert "'EnsureTests'" in stray[0].why


def test_report_that_is_a_pipe_does_not_hang(tmp_path: Path) -> None:
    pipes = (
        "import atexit, os, sys\ndef replace():\n"
        "    path = [a.split('=')[1] for a in sys.argv if a.startswith('--json-report-file')][0]\n"
        "    os.remove(path); os.mkfifo(path)\natexit.register(replace)\n"
    )
    files: dict[str, str | bytes] = {"tests/conftest.py": pipes, "tests/test_one.py": GOOD}
    assert seen_in(tmp_path, files).outcome("EX001") is Outcome.UNKNOWN


def test_tests_left_out_by_a_mark_are_listed_and_stand_for_nothing(tmp_path: Path) -> None:
    slow = "import pytest\n" + GOOD + "@pytest.mark.slow\n@pytest.mark.criterion('T1/AC1')\n" + BAD
    options = f"[pytest]\naddopts = {QUICK} -m 'not slow'\nmarkers =\n  slow\n  criterion\n"
    seen = seen_in(tmp_path, {"pytest.ini": options, "tests/test_one.py": slow})
    (left_out,) = seen.of("EX003")
    assert (left_out.outcome, "test_bad" in left_out.message) == (Outcome.UNKNOWN, True)
    assert (seen.outcome("EX001"), seen.decision) == (Outcome.PASSED, Decision.PASS)
    assert [(t.id, t.doubted) for t in seen.run.out(Out.DESELECTED)] == [("tests/test_one.py::test_bad", False)]
    (open_,) = [f for f in BUSINESS_LOGIC.judge(TASK, all_evidence(TASK, seen.run)) if f.rule == "BL002"]
    assert (open_.outcome, open_.actual) == (Outcome.UNKNOWN, "deselected")


def test_witness_cannot_be_turned_off_and_paths_hold_where_pytest_has_a_root_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_run, "MOST_DISTURBED", 0)  # one run shows it
    off = f"[pytest]\naddopts = {QUICK} -p no:gates_probe.witness.hooks -p no:gates_probe.witness\n"
    seen = seen_in(tmp_path, {"tests/pytest.ini": off, "tests/test_one.py": GOOD + BAD})
    assert (seen.outcome("EX001"), seen.decision) == (Outcome.PASSED, Decision.BLOCK)
    assert [str(test.location) for test in seen.run.tests] == ["tests/test_one.py:1", "tests/test_one.py:3"]


def test_a_task_without_tests_runs_none(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pkg/__init__.py": ""})
    with pytest.raises(EvidenceUnavailable, match="names no 'tests'"):
        PytestRun.derive(a_task(tests=[]), a_context(root), EvidenceSet())


def test_conftest_that_fails_in_the_workers_is_the_cause(tmp_path: Path) -> None:
    conftest = "import os\n\nif os.environ.get('PYTEST_XDIST_WORKER'):\n    raise RuntimeError('no database here')\n"
    options = pytest_options("-p xdist -n 2 --max-worker-restart 0")
    seen = seen_in(tmp_path, {"tests/conftest.py": conftest, "tests/test_a.py": GOOD, "pyproject.toml": options})
    (finding,) = [one for one in seen.findings if one.rule == "EX001"]
    assert "a worker was ended by RuntimeError: no database here (conftest.py:4)" in finding.message
