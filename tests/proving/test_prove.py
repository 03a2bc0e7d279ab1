import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from building import PATIENCE_S, ROOT, a_project, awaited, clean, gates, patient
from rigging import CORE, a_rigged_project

from gates.child.trying.keeping import lines_in
from gates.commands.prove import ProveRequest, perform
from gates.config import Project, Settings
from gates.errors import UsageError
from gates.proving.proof import CriterionProof, End, Proof, Standing


def a_request(root: Path, **changes: object) -> ProveRequest:
    project = Project(root, Settings(), timeout_s=float(str(changes.pop("timeout_s", PATIENCE_S))))
    facts = {"task": "T1", "project": project, "only": None, "at_least": 0.8, "budget_s": PATIENCE_S, "jobs": 1}
    return ProveRequest(**{**facts, "out": None, **changes})


def proof_of(root: Path) -> Proof:
    return Proof.model_validate_json((root / "reports/T1/proof.json").read_bytes())


@pytest.fixture(scope="module")
def rigged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Proof, int, str]:
    root = a_rigged_project(tmp_path_factory.mktemp("rigged"))
    text, code = perform(a_request(root, jobs=2), say=lambda _line: None)
    return root, proof_of(root), code, text


def of(rigged: tuple[Path, Proof, int, str], name: str) -> CriterionProof:
    return next(criterion for criterion in rigged[1].criteria if criterion.id == name)


Rigged = tuple[Path, Proof, int, str]


def test_evidence_that_asserts_is_proved(rigged: Rigged) -> None:
    good = of(rigged, "GOOD")
    assert good.rate == 1.0
    assert {fault.by for fault in good.faults} == {"tests/test_good.py::test_double"}
    assert all(fault.location.path == "pkg/core.py" for fault in good.faults)


def test_tests_that_run_nothing_of_the_code_cannot_prove_it(rigged: Rigged) -> None:
    vacuous = of(rigged, "VACUOUS")
    assert (vacuous.passed_by, vacuous.problem) == (True, "")
    assert not vacuous.faults
    said = "its tests run none of its code: they would pass whatever it does"
    assert f"VACUOUS must      vacuous                {said}\n" in rigged[3]
    assert said in (rigged[0] / "reports/T1/proof.md").read_text(encoding="utf-8")


def test_a_fault_that_hangs_is_noticed_by_the_time_limit(rigged: Rigged) -> None:
    assert of(rigged, "HANG").count(End.TIMEOUT) >= 1


def test_tests_that_need_their_order_are_run_in_it(rigged: Rigged) -> None:
    order = of(rigged, "ORDER")
    assert order.count(End.UNSTEADY) == 0
    assert "seen.append(number) -> seen.append(None)" in {fault.title for fault in order.survivors}
    assert {fault.title for fault in order.noticed} >= {"seen.append(number) left out", "len(seen) -> len(None)"}


def test_tests_that_write_into_the_tree_spoil_neither_copy_nor_project(rigged: Rigged) -> None:
    root, *_ = rigged
    assert (root / "pkg/core.py").read_text(encoding="utf-8") == CORE
    assert sorted(path.name for path in (root / "pkg").glob("*.py")) == ["__init__.py", "core.py", "held.py"]


def test_a_test_that_looks_at_the_text_of_the_code_notices_no_fault(rigged: Rigged) -> None:
    text, both = of(rigged, "TEXT"), of(rigged, "BOTH")
    assert text.standing is not Standing.PROVED
    assert not text.noticed
    assert text.count(End.UNSTEADY) >= 1
    assert {fault.by for fault in both.noticed} == {"tests/test_good.py::test_double"}


STANDINGS = {
    **dict.fromkeys(("GOOD", "HANG", "WRITER", "BOTH"), Standing.PROVED),
    "VACUOUS": Standing.VACUOUS,
    "FAILS": Standing.UNPROVED,
    "SKIPPED": Standing.NOTHING,
    "NOTHING": Standing.NOTHING,
    "ENTRY": Standing.MEASURED,
    "TABLE": Standing.MEASURED,
}


def test_each_criterion_stands_as_its_evidence_does(rigged: Rigged) -> None:
    assert {name: of(rigged, name).standing for name in STANDINGS} == STANDINGS
    assert "its own evidence fails: tests/test_fails.py::test_fails" in of(rigged, "FAILS").problem
    assert "skipped" in of(rigged, "SKIPPED").notes[0]
    assert not of(rigged, "ENTRY").faults


def test_a_fault_that_breaks_the_import_is_not_counted(rigged: Rigged) -> None:
    held = of(rigged, "IMPORT")
    assert held.count(End.BROKEN) >= 1
    assert not [fault for fault in held.noticed if "'one'" in fault.diff and fault.end is not End.BROKEN]


def test_the_exit_code_and_the_page_tell_of_the_worst(rigged: Rigged) -> None:
    root, proof, code, text = rigged
    page = (root / "reports/T1/proof.md").read_text(encoding="utf-8")
    assert (code, proof.exit_code) == (1, 1)
    assert "VACUOUS must      vacuous" in text
    assert "### Survivor `pkg/core.py:" in page
    assert "```text\n--- pkg/core.py" in page


def test_one_criterion_is_proved_alone(rigged: Rigged, monkeypatch: pytest.MonkeyPatch) -> None:
    said, (root, *_) = list[str](), rigged
    monkeypatch.setattr("gates.commands.prove.TELL_S", 0.01)
    _, code = perform(a_request(root, only="GOOD"), say=said.append)
    assert any(line.endswith(" tried") for line in said)
    assert ([criterion.id for criterion in proof_of(root).criteria], code) == (["GOOD"], 0)


SMALL = {
    "tasks/T1.yaml": "id: T1\ntitle: Doubling\nimplementation: [pkg]\ntests: [tests]\ncriteria:\n"
    "  - id: AC1\n    text: Double\n    code: [{symbol: 'pkg.core:double'}]\n    tests: [tests]\n"
}


def of_two(code: str, *tests: str) -> str:
    """The task with two criteria for one code, each with a test of its own."""
    each = "  - {{id: AC{}, text: Both, code: [{{{}}}], tests: ['tests/test_core.py::{}']}}\n"
    criteria = "".join(each.format(i, code, test) for i, test in enumerate(tests, 1))
    return SMALL["tasks/T1.yaml"].partition("  - id")[0] + criteria


MARKED = """\
import pytest

from pkg.core import double


@pytest.mark.criterion("T1/AC1")
def test_double():
    assert double(2) == 4
"""
PLUGINS = "-p no:hypothesispytest -n 1 --cov=pkg --cov-fail-under=100"


def test_a_project_may_refuse_unknown_markers_and_put_plugins_to_work(tmp_path: Path) -> None:
    task = SMALL["tasks/T1.yaml"].replace("    tests: [tests]\n", "")
    strict = f"[pytest]\naddopts = {PLUGINS} --strict-markers\nfilterwarnings = error\n"
    files = {"tasks/T1.yaml": task, "tests/test_core.py": MARKED, "pytest.ini": strict}
    text, code = perform(a_request(a_project(tmp_path / "project", files)), say=lambda _line: None)
    assert code == 0, text


HANGING = """\
import time

from pkg.core import double


def test_double():
    time.sleep(1000)


def test_later():
    assert double(2) == 4
"""


def test_tests_that_do_not_end_are_unproved_and_not_skipped(tmp_path: Path) -> None:
    task = of_two("symbol: 'pkg.core:double'", "test_double", "test_later")
    root = a_project(tmp_path / "project", {"tasks/T1.yaml": task, "tests/test_core.py": HANGING})
    while_running = r"stopped at the time limit of \d+ s while running tests/test_core\.py::test_double$"

    def looked(limit_s: float) -> Proof:
        assert perform(a_request(root, timeout_s=limit_s), say=lambda _line: None)[1] == 3
        return proof_of(root)

    proof = patient(6, looked, lambda proof: re.search(while_running, proof.criteria[0].problem))
    assert [one.standing for one in proof.criteria] == [Standing.UNPROVED] * 2
    assert [one.notes for one in proof.criteria] == [()] * 2
    assert all(re.search(while_running, one.problem) for one in proof.criteria)


def test_tests_that_import_something_else_than_the_copy_prove_nothing(tmp_path: Path) -> None:
    root = a_project(tmp_path / "project", SMALL)
    (root / "tests/conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(root)!r})\n", encoding="utf-8")
    text, code = perform(a_request(root), say=lambda _line: None)
    assert code == 3
    assert f"its tests import {root}/pkg/" in text


def test_the_command_proves_a_source_layout_from_the_copy_and_exits_with_0(tmp_path: Path) -> None:
    files = {"src/pkg/__init__.py": "", "src/pkg/core.py": "def double(x):\n    return x + x\n"}
    task = SMALL["tasks/T1.yaml"].replace("[pkg]", "[src/pkg]")
    root = a_project(tmp_path / "project", {**files, "tasks/T1.yaml": task})
    for path in (root / "pkg").glob("*"):
        path.unlink()
    (root / "pkg").rmdir()
    ended = gates(
        root, "prove", "T1", "--jobs", "1", env={"PYTHONPATH": f"{root / 'src'}:{ROOT}"}
    )  # as an editable install would have it
    assert (ended.code, ended.out.splitlines()[0][:11]) == (0, "T1  PROVED ")
    assert "looking at the evidence without a fault" in ended.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("    faults: [{replace: 'x', by: 'y', in: pkg/core.py}]\n", "'faults' is gone: BL016 stubs the code out"),
        ("proof: {killed_at_least: 0.9}\n", "'proof' is gone: run `gates prove TASK --at-least 0.8`"),
    ],
)
def test_a_task_that_asks_for_what_is_gone_is_told_what_does_it_now(tmp_path: Path, more: str, said: str) -> None:
    root = a_project(tmp_path / "project", {"tasks/T1.yaml": SMALL["tasks/T1.yaml"] + more})
    with pytest.raises(UsageError, match=said):
        perform(a_request(root), say=lambda _line: None)


RULE = """\
id: audited
severity: high
problem: A commit without an audit entry.
impact: Nobody knows who did it.
fix: Call audit.
pattern: $C.commit()
inside: {pattern: function, not_has: $C.audit(...)}
kept: {pattern: $C.commit(), inside: {pattern: function, has: $C.audit(...)}}
good: |
  def f(con):
      con.audit("x")
      con.commit()
bad: |
  def f(con):
      con.commit()  # <- here
"""
BANK = """\
class Con:
    def __init__(self):
        self.log = []

    def audit(self, text):
        self.log.append(text)

    def commit(self):
        self.log.append("commit")


def transfer(con):
    con.audit("transfer")
    con.commit()


def other(con):
    con.audit("other")
    con.commit()
"""
AUDITED = """\
from pkg.core import Con, transfer


def test_transfer():
    con = Con()
    transfer(con)
    assert con.log == ["transfer", "commit"]


def test_nothing():
    assert Con().log == []
"""


def test_faults_of_a_rule_are_put_where_the_tests_run(tmp_path: Path) -> None:
    task = of_two("rule: audited", "test_transfer", "test_nothing")
    files = {"pkg/core.py": BANK, "tests/test_core.py": AUDITED, "gates-rules/audited.yaml": RULE}
    root = a_project(tmp_path / "project", {**files, "tasks/T1.yaml": task})
    text, code = perform(a_request(root), say=lambda _line: None)
    one, two = proof_of(root).criteria
    assert {str(fault.location) for fault in one.faults} <= {"pkg/core.py:13", "pkg/core.py:14"}, text
    assert (one.standing, two.standing, two.passed_by, code) == (Standing.PROVED, Standing.VACUOUS, True, 1)


def test_code_that_tests_run_in_other_processes_alone_gets_faults(tmp_path: Path) -> None:
    test = (
        "import subprocess, sys\ndef test_double():\n"
        "    code = 'from pkg.core import double; assert double(3) == 6'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    root = a_project(tmp_path / "project", {**SMALL, "tests/test_core.py": test})
    text, code = perform(a_request(root), say=lambda _line: None)
    assert (proof_of(root).criteria[0].standing, code) == (Standing.PROVED, 0), text


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    slow = "import time\n\n\ndef test_double():\n    time.sleep(1)\n"
    root = a_project(tmp_path / "project", {**SMALL, "tests/test_core.py": slow})
    asked = [sys.executable, "-m", "gates", "prove", "T1", "--jobs", "1"]
    env = clean({"TMPDIR": str(tmp_path)})
    with subprocess.Popen(asked, cwd=root, env=env, stderr=subprocess.PIPE, text=True) as running:
        try:
            awaited(lambda: "looking at" in str(running.stderr and running.stderr.readline()))
            running.send_signal(signal.SIGINT)
            assert running.wait(PATIENCE_S) == 130
        finally:
            running.kill()  # else it would be awaited without a limit
    assert not (root / "reports/T1/proof.json").exists()
    assert not [*tmp_path.glob("gates-*")]


def test_a_budget_that_is_up_leaves_the_criterion_open(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path / "project", SMALL), "prove", "T1", "--jobs", "1", "--budget", "0.01")
    assert (ended.code, "AC1 not decided: " in ended.out) == (3, True)


def test_only_whole_lines_of_what_is_done_are_read(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text('{"id": "AC1 a", "end": "killed"}\n{"id": "AC1 b", "en', encoding="utf-8")
    assert [line["id"] for line in lines_in(results)] == ["AC1 a"]
    assert lines_in(tmp_path / "none") == []
