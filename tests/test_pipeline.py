"""The whole flow on a tiny real project, and the promises that hold for every report."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bar import committed
from building import (
    TASK_FILE,
    Ended,
    a_criterion,
    a_finding,
    a_measure,
    a_project,
    a_record,
    a_run,
    a_task,
    all_evidence,
    entries,
    every_finding,
    folded,
    gates,
    measured,
    result,
    samples,
)

from gates import pipeline
from gates.check import Check, Evidence, EvidenceSet
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Decision, Finding, Level, Planned, Status
from gates.report import Report
from gates.task.task import Task, left_out, narrowed

NO_HISTORY = {"BL011", "BL022", "BL023"}  # these projects lie in no repository
PASSING = Check(
    name="rigged",
    gate="rigged",
    order=1,
    plan=lambda _task: (Planned(id="a", title="A"), Planned(id="b", title="B")),
    judge=lambda _task, _evidence: iter([a_finding(check="a"), a_finding(check="b")]),
)


def judged(**changes: Any) -> Any:
    check = dataclasses.replace(PASSING, **changes)
    return pipeline.judge(dataclasses.replace(pipeline.discover()[0], checks=(check,)), a_task(), EvidenceSet())


def nothing(_task: Task, _evidence: EvidenceSet) -> Iterator[Finding]:
    yield from ()


def test_gate_that_decides_what_it_planned_passes() -> None:
    report = judged()
    assert (report.decision, report.planned, report.decided) == (Decision.PASS, 2, 2)


RIGGED: dict[str, dict[str, Any]] = {
    "planned and not decided": {"judge": lambda _t, _e: iter([a_finding(check="a")])},
    "decided and not planned": {"judge": lambda _t, _e: iter([a_finding(check=c) for c in "abc"])},
    "nothing decided": {"judge": nothing},
    "nothing planned": {"plan": lambda _t: (), "judge": nothing},
    "planned twice": {"plan": lambda _t: tuple(Planned(id=c, title=c) for c in "aab")},
}


@pytest.mark.parametrize("fault", RIGGED)
def test_gate_that_does_not_decide_what_it_planned_passes_nothing(fault: str) -> None:
    report = judged(**RIGGED[fault])
    assert report.decision is Decision.INCONCLUSIVE
    assert "GT001" in {f.rule for f in report.findings}


def of(task: Task, *instead: Evidence) -> Report:
    return folded(task, all_evidence(task, *instead))


def test_good_evidence_is_a_pass_with_a_full_score() -> None:
    report = of(a_task())
    assert (report.verdict.decision, report.verdict.exit_code, report.score.total) == (Decision.PASS, 0, 100)
    assert [c.status for c in report.criteria] == [Status.PASS, Status.PASS]


HOLLOW: dict[str, tuple[dict[str, Any], Evidence]] = {
    "its only measure does not apply": (a_measure(when=["amx"]), measured()),
    "its only measure is advisory and was not seen": (a_measure(level="advisory"), measured("no samples")),
    "its only measure is advisory and was missed": (a_measure(level="advisory", at_least=9), measured()),
    "its only measure is on another device": (a_measure(on="cuda", level="should"), measured()),
}


@pytest.mark.parametrize("case", HOLLOW)
def test_must_criterion_that_nothing_was_seen_to_hold_is_no_pass(case: str) -> None:
    measure, seen = HOLLOW[case]
    report = of(a_task(criteria=[a_criterion(), a_criterion(id="AC2", tests=[], measures=[measure])]), seen)
    assert report.criteria[1].status is not Status.PASS
    assert report.verdict.decision is not Decision.PASS


@pytest.mark.parametrize("level", [Level.SHOULD, Level.ADVISORY])
@pytest.mark.parametrize(
    ("share", "wrong", "decision"),
    [(0, False, Decision.PASS), (0, True, Decision.INCONCLUSIVE),
     (0.5, True, Decision.PASS), (0.8, True, Decision.BLOCK)],
)  # fmt: skip
def test_task_that_requires_nothing_passes_only_where_all_was_seen_to_hold(
    level: Level, share: float, *, wrong: bool, decision: Decision
) -> None:
    criteria = [a_criterion(level=level), a_criterion(id="AC2", level=level, tests=[], measures=[a_measure()])]
    task = a_task(criteria=criteria, entry_points=[], coverage_at_least=share)
    report = of(task, *([measured(samples(old=[1.0, 1.01] * 6, new=[1.01, 1.0] * 6))] if wrong else []))
    assert report.verdict.decision is decision
    said = [f.message for f in report.every_finding if f.rule == "GT004"]
    assert bool(said) == (decision is Decision.INCONCLUSIVE)
    assert all("nothing that must hold was seen: AC2 FAIL." in message for message in said)


PIECES: list[Evidence] = [
    a_run(),
    a_run(a_record(TestOutcome.SKIPPED)),
    a_run(a_record(TestOutcome.FAILED)),
    a_run(disagreements=("they differ",)),
    measured(),
    measured("wrote no samples"),
    measured(samples(old=[1.0] * 9, new=[1.0] * 9)),
    entries(a_task()),
]


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("i", range(len(PIECES)))
def test_pass_is_said_only_when_every_must_criterion_passed(i: int, level: Level) -> None:
    task = a_task(criteria=[a_criterion(), a_criterion(id="AC2", level=level, tests=[], measures=[a_measure()])])
    report = of(task, PIECES[i])
    musts = {c.status for c in report.criteria if c.level is Level.MUST}
    if report.verdict.decision is Decision.PASS:
        assert musts == {Status.PASS}
    else:
        assert musts != {Status.PASS} or any(f.blocks or f.leaves_open for f in report.every_finding)


def test_same_evidence_gives_the_same_report() -> None:
    assert of(a_task()).model_dump_json() == of(a_task()).model_dump_json()


FAILING = "from pkg.core import double\n\n\ndef test_double() -> None:\n    assert double(2) == 5\n"


def gate_states(project: Path) -> dict[str, tuple[bool, str]]:
    return {gate["name"]: (gate["ran"], gate["decision"]) for gate in result(project)["gates"]}


def rules_of(project: Path, outcome: str) -> set[str]:
    return {f["rule"] for f in every_finding(project) if f["outcome"] == outcome}


def test_stage_after_one_that_blocks_is_not_run_unless_asked_and_its_waivers_hold(tmp_path: Path) -> None:
    soon = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()
    waiver = f"waivers:\n  - {{criterion: AC2, reason: r, owner: o, expires: {soon}}}\n"
    fast = TASK_FILE[TASK_FILE.index("  - id: AC2") : TASK_FILE.index("measurements:")]
    task = TASK_FILE.replace(fast, fast + fast.replace("AC2", "AC3")) + waiver
    project = a_project(tmp_path, {"tests/test_core.py": FAILING, "tasks/T1.yaml": task})
    assert gates(project, "run", "T1").code == 1
    assert gate_states(project) == {
        "execution": (True, "BLOCK"),
        "business-logic": (True, "BLOCK"),
        "performance": (False, "INCONCLUSIVE"),
    }
    assert not (project / "reports/T1/evidence/measurements").exists()
    assert ">    5     assert double(2) == 5\n" in (project / "reports/T1/execution.md").read_text(encoding="utf-8")
    (left,) = [gate for gate in result(project)["gates"] if not gate["ran"]]
    open_ = [finding for finding in left["findings"] if finding["outcome"] == "unknown"]
    assert open_ and all(f["remediation"].startswith("Fix first what blocks") for f in open_)
    assert [f["waived"]["owner"] for f in open_ if f["criterion"] == "AC2" and f["rule"] == "PF001"] == ["o"]
    assert gates(project, "run", "T1", "--keep-going").code == 1
    assert gate_states(project)["performance"] == (True, "PASS")


def test_gate_that_was_not_asked_for_passes_nothing(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    assert gates(project, "run", "T1", "--gate", "performance").code == 3
    assert gate_states(project) == {
        "execution": (False, "INCONCLUSIVE"),
        "business-logic": (False, "INCONCLUSIVE"),
        "performance": (True, "PASS"),
    }


def only(project: Path, *args: str) -> Ended:
    return gates(project, "run", "T1", "--only", "AC1", *args)


def test_several_criteria_may_be_asked_for_and_a_part_leaves_the_whole_report_alone(tmp_path: Path) -> None:
    project = a_project(tmp_path, {"reports/T1/result.json": "the whole"})
    assert only(project).code == 3
    assert {c["id"]: c["status"] for c in result(project)["criteria"]} == {"AC1": "PASS", "AC2": "UNVERIFIED"}
    assert rules_of(project, "unknown") == {"BL003", "GT003"} | NO_HISTORY
    ended = gates(project, "run", "T1", "--only", "AC1", "--only", "AC2", "--gate", "execution", "--quiet")
    assert (ended.code, ended.err) == (3, "")
    assert "(partial run: AC1, AC2 and gate execution)" in ended.out.splitlines()[0]
    assert (project / "reports/T1/result.json").read_text(encoding="utf-8") == "the whole"
    assert [c["id"] for c in result(project)["criteria"]] == ["AC1", "AC2"]
    assert ended.out.endswith("report: reports/T1/partial/summary.md\n")
    page = (project / "reports/T1/partial/summary.md").read_text(encoding="utf-8")
    for told in (ended.out.partition("next:")[2], page.partition("**Next**")[2]):
        assert " --out reports/T1/partial" in told.splitlines()[0]


def test_only_never_passes_what_the_whole_run_blocks(tmp_path: Path) -> None:
    one = TASK_FILE.partition("  - id: AC2")[0]
    task = one.replace("    criteria: [AC1]\n", "").replace("pkg.core.double(1)", "1/0")
    failing = FAILING.replace("test_double", "test_other")
    assert only(a_project(tmp_path, {"tasks/T1.yaml": task, "tests/test_other.py": failing})).code != 0


def test_run_that_changes_the_files_it_judges_is_no_pass(tmp_path: Path) -> None:
    writes = "".join(f"    open({file!r}, 'a').write('# more\\n')\n" for file in ("pkg/core.py", "tests/new.py"))
    good = (a_project(tmp_path) / "tests/test_core.py").read_text(encoding="utf-8")
    project = a_project(tmp_path, {"tests/test_core.py": f"{good}\n\ndef test_writes() -> None:\n{writes}"})
    assert gates(project, "run", "T1").code == 3
    assert rules_of(project, "unknown") == {"GT002"} | NO_HISTORY
    (said,) = [f["message"] for f in every_finding(project) if f["rule"] == "GT002"]
    assert "pkg/core.py" in said
    assert "tests/new.py" in said


def test_what_a_run_writes_is_named_and_two_runs_of_a_commit_say_the_same(tmp_path: Path) -> None:
    writes = "import os; os.path.exists('b') and os.remove('b'); [open(p, 'w') for p in ('a', 'tests/made.txt')]"
    good = (a_project(tmp_path) / "tests/test_core.py").read_text(encoding="utf-8")
    task = TASK_FILE.replace("pkg.core.double(1)", "pkg.core.double(1); open('data.txt', 'w').write('of a program')")
    files = {"tests/test_core.py": f"{good}\n\ndef test_writes() -> None:\n    {writes}\n", "tasks/T1.yaml": task}
    project = a_project(tmp_path, {**files, "data.txt": "1", "a": "1", "b": "1", ".gitignore": "reports/\n"})
    committed(project)
    assert gates(project, "run", "T1", "--fresh").code == 0
    told = [f["message"] for f in every_finding(project) if f["rule"] == "GT008"]
    assert told == ["The run wrote into the work tree: a, b, tests/made.txt."]
    assert gates(project, "run", "T1", "--fresh").code == 0
    assert (project / "data.txt").read_text(encoding="utf-8") == "1"


def test_one_criterion_alone_says_that_calculations_of_the_whole_task_were_left_out() -> None:
    called = {"call": "pkg.core:double", "table": [{"args": [1], "expected": 2}]}
    task = a_task(calculations=[called], criteria=[a_criterion()], measurements=[], entry_points=[], tests=[])
    assert any("calculations" in finding.message for finding in left_out(task, narrowed(task, "AC1")))
