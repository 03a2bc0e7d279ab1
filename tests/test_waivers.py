"""Waivers: what they cover, until when, and what they never do."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from bar import TODAY, a_waiver, on
from building import (
    TASK_FILE,
    a_criterion,
    a_finding,
    a_measure,
    a_project,
    a_record,
    a_run,
    a_task,
    all_evidence,
    folded,
    gates,
    measured,
    refused,
    samples,
)
from pydantic import ValidationError

from gates.check import Evidence
from gates.criteria import waive
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Decision, Level, Outcome, Status
from gates.pipeline import rule_texts
from gates.render import markdown, text
from gates.report import Report
from gates.task.measurement import NEVER_WAIVED, Standing, Waiver
from gates.task.task import Task

SLOW = measured(samples(old=[1.0, 1.01] * 6, new=[1.01, 1.0] * 6))
F, U = Outcome.FAILED, Outcome.UNKNOWN


def of(task: Task, *instead: Evidence, today: date | None = TODAY) -> Report:
    return folded(task, all_evidence(task, *instead, *([on(today)] if today else [])))


def a_waived_task(*waivers: dict[str, Any], **changes: Any) -> Task:
    return a_task(waivers=waivers or [a_waiver()], **changes)


def rules(report: Report, rule: str) -> list[tuple[Outcome, str]]:
    return [(f.outcome, f.message) for f in report.every_finding if f.rule == rule]


@pytest.mark.parametrize(
    ("days", "standing"),
    [
        (-1, Standing.ENDED), (0, Standing.ENDED), (1, Standing.ENDS_SOON), (14, Standing.ENDS_SOON),
        (15, Standing.IN_FORCE), (366, Standing.IN_FORCE), (367, Standing.TOO_LONG),
    ],
)  # fmt: skip
def test_waiver_works_until_the_day_before_it_expires_and_for_a_year_at_most(days: int, standing: Standing) -> None:
    assert Waiver.model_validate(a_waiver(days)).standing(TODAY) is standing
    report = of(a_waived_task(a_waiver(days)), SLOW)
    works = standing in {Standing.IN_FORCE, Standing.ENDS_SOON}
    assert report.verdict.decision is (Decision.PASS if works else Decision.BLOCK)
    assert report.criteria[1].status is (Status.WAIVED if works else Status.FAIL)


def test_waived_finding_keeps_its_outcome_and_names_who_answers_for_it() -> None:
    report = of(a_waived_task(), SLOW)
    (finding,) = [f for f in report.every_finding if f.waived]
    assert (finding.rule, finding.outcome, finding.blocks, finding.leaves_open) == ("PF001", F, False, False)
    assert str(finding.waived) == "waived by ada until 2026-06-09: the new card comes in spring"
    assert report.headline == "PASS (1 waived)"
    assert report.verdict.exit_code == 0
    lines = {line.title: (line.got, line.note) for gate in report.gates for line in gate.score.lines}
    assert lines["AC2: ratio old/new of step_time_s >= 1.5 on cpu"] == (0, "waived")
    assert [g.decision for g in report.gates if g.name == "performance"] == [Decision.WAIVED]


def test_unknown_finding_of_a_must_criterion_is_waived_too() -> None:
    report = of(a_waived_task(), measured("no samples"))
    assert (report.verdict.decision, report.criteria[1].status) == (Decision.PASS, Status.WAIVED)


def test_report_of_a_waiver_says_so_on_every_page() -> None:
    report = of(a_waived_task(), SLOW)
    pages = markdown.render(report, None)
    assert pages["summary.md"].startswith("# PASS (1 waived) - T1 ")
    assert "Nothing failed, save for what is waived of AC2." in pages["summary.md"]
    assert "(owner ada) is in force until 2026-06-09, for 100 days more" in pages["summary.md"]
    assert "**PASS**: 1 of 1 criteria (100.0%) are verified, 1 waived" in pages["business-logic.md"]
    assert "every required check was seen to pass\n" not in pages["performance.md"]
    assert "## Waived" in pages["performance.md"]
    assert "waived: AC2" in text.summary(report)


def test_report_is_rendered_to_the_same_bytes_whenever_that_is() -> None:
    report = of(a_waived_task(), SLOW)
    again = Report.model_validate_json(text.JSON.render(report, None)["result.json"])
    assert again == report
    assert markdown.render(again, None) == markdown.render(report, None)


def test_without_a_day_no_waiver_works() -> None:
    report = of(a_waived_task(), SLOW, today=None)
    assert report.verdict.decision is Decision.BLOCK
    assert [outcome for outcome, _ in rules(report, "BL012")] == [U]


@pytest.mark.parametrize("rule", ["EX001", "BL003", "BL011", "BL012", *(r for r in rule_texts() if r[:2] == "GT")])
def test_rules_that_say_what_can_be_believed_are_never_waived(rule: str) -> None:
    finding = a_finding(F, rule=rule, criterion="AC2")
    assert waive(a_waived_task(), [finding], TODAY) == (finding,)
    assert rule in NEVER_WAIVED
    with pytest.raises(ValidationError, match="can't be waived"):
        Waiver.model_validate(a_waiver(rule=rule))


def test_waiver_covers_its_criterion_and_rule_alone() -> None:
    task = a_waived_task(a_waiver(rule="PF001"))
    of = [a_finding(F, rule=r, criterion=c) for r, c in (("PF001", "AC2"), ("BL002", "AC2"), ("PF001", "AC1"))]
    assert [bool(f.waived) for f in waive(task, of, TODAY)] == [True, False, False]
    assert waive(task, [a_finding(criterion="AC2", rule="PF001")], TODAY)[0].waived is None


def test_unwaived_failure_beside_a_waived_one_blocks() -> None:
    criteria = [a_criterion(), a_criterion(id="AC2", measures=[a_measure()])]
    task = a_waived_task(a_waiver(rule="PF001"), criteria=criteria)
    report = of(task, SLOW, a_run(a_record(TestOutcome.FAILED)))
    assert report.verdict.decision is Decision.BLOCK
    assert report.criteria[1].status is Status.FAIL
    assert report.headline == "BLOCK (1 waived)"


def test_headline_of_what_is_waived_and_inconclusive() -> None:
    criteria = [a_criterion(tests=["tests/none.py"]), a_criterion(id="AC2", tests=[], measures=[a_measure()])]
    report = of(a_waived_task(criteria=criteria, entry_points=[]), SLOW)
    assert report.headline == "INCONCLUSIVE: merge blocked until AC1 is verified (1 waived)"


def test_task_of_which_every_must_criterion_is_waived_is_no_pass() -> None:
    criteria = [a_criterion(level="should"), a_criterion(id="AC2", tests=[], measures=[a_measure()])]
    report = of(a_waived_task(criteria=criteria, coverage_at_least=0), SLOW)
    assert report.verdict.decision is Decision.INCONCLUSIVE
    assert any("Every required criterion is waived" in message for _, message in rules(report, "GT004"))


STANDS = {
    100: "Waiver of AC2 (owner ada) is in force until 2026-06-09, for 100 days more: the new card comes in spring",
    3: "Waiver of AC2 (owner ada) stops working on 2026-03-04, in 3 days: the new card comes in spring",
    1: "Waiver of AC2 (owner ada) stops working on 2026-03-02, in 1 day: the new card comes in spring",
    0: "Waiver of AC2 (owner ada) stopped working on 2026-03-01, today; what it covered counts again: "
    "the new card comes in spring",
    -4: "Waiver of AC2 (owner ada) stopped working on 2026-02-25, 4 days ago; what it covered counts again: "
    "the new card comes in spring",
}


@pytest.mark.parametrize("days", STANDS)
def test_how_a_waiver_stands_is_plain_in_the_first_lines_and_as_the_first_reason(days: int) -> None:
    report = of(a_waived_task(a_waiver(days)), SLOW)
    assert f"\nwaiver: {STANDS[days]}\n" in text.summary(report).partition("stage ")[0]
    page = markdown.render(report, None)["summary.md"]
    assert f"\n- **Waiver**: {STANDS[days]}\n" in page
    assert report.criteria[1].reasons[0] == STANDS[days]
    assert report.criteria[1].status is (Status.WAIVED if days > 0 else Status.FAIL)
    (row,) = [line for line in page.splitlines() if f"{report.criteria[1].status.value} | **AC2** Be fast" in line]
    assert f"| {STANDS[days]}" in row
    assert report.criteria[0].reasons == ()


def test_many_waivers_are_counted_on_the_terminal() -> None:
    told = text.summary(of(a_waived_task(*(a_waiver(100 + n, line=30 + n) for n in range(7))), SLOW))
    assert "\nwaiver: 5 more: see business-logic.md\n" in told
    assert told.count("\nwaiver: ") == 4


def test_waiver_that_waives_nothing_is_named_as_unneeded() -> None:
    report = of(a_waived_task())
    assert [message for _, message in rules(report, "BL012")][-1] == "Waiver of AC2 (owner ada) waives nothing."
    assert (report.verdict.decision, report.headline) == (Decision.PASS, "PASS")
    assert [c.status for c in report.criteria] == [Status.PASS, Status.PASS]


def test_coverage_leaves_waived_criteria_out_and_counts_every_status() -> None:
    ((outcome, message),) = rules(of(a_waived_task(), SLOW), "BL003")
    assert (outcome, "1 waived and left out (1 PASS, 1 WAIVED)" in message) == (Outcome.PASSED, True)


def test_coverage_is_counted_from_the_findings_of_all_gates() -> None:
    ((outcome, message),) = rules(of(a_task(), SLOW), "BL003")
    assert (outcome, message.startswith("1 of 2 criteria (50.0%) are verified (1 PASS, 1 FAIL)")) == (F, True)


WRONG = {
    "expires: 2026-02-30": "expires: expected a valid date",
    "expires: soon": "expires: expected a valid date",
    "expires: 2026-12-31T12:00:00": "expires: datetimes provided to dates should have zero time",
    "expires: 2026-12-31, rule: EX001": "EX001 can't be waived",
    "expires: 2026-12-31, rule: PF1": "rule",
    "expires: 2026-12-31, until: x": "unknown key 'until'",
    "reason: x": "duplicate key 'reason'",
    "": "missing key 'expires'",
}


@pytest.mark.parametrize("keys", WRONG)
def test_waiver_that_is_wrong_is_named_with_its_place(keys: str, tmp_path: Path) -> None:
    tail = f", {keys}" if keys else ""
    said = refused(tmp_path, f"{TASK_FILE}waivers:\n  - {{criterion: AC2, reason: r, owner: ada{tail}}}\n")
    assert WRONG[keys] in said
    assert said.startswith("21:")


def test_waiver_of_a_criterion_that_there_is_not_is_refused(tmp_path: Path) -> None:
    waiver = "{criterion: AC9, reason: r, owner: ada, expires: 2026-12-31}"
    said = refused(tmp_path, f"{TASK_FILE}waivers:\n  - {waiver}\n")
    assert said.startswith("21:17: unknown criterion 'AC9'; did you mean")


def test_waiver_of_a_rule_that_there_is_not_is_refused(tmp_path: Path) -> None:
    waiver = "waivers:\n  - {criterion: AC2, rule: PF901, reason: r, owner: ada, expires: 2026-12-31}\n"
    ended = gates(a_project(tmp_path / "project", {"tasks/T1.yaml": TASK_FILE + waiver}), "run", "T1")
    line = TASK_FILE.count("\n") + 2
    assert (ended.code, ended.err.splitlines()[0]) == (
        2, f"error: tasks/T1.yaml:{line}:28: there is no rule 'PF901'; did you mean 'PF001'?",
    )  # fmt: skip


def test_one_more_waiver_never_turns_a_pass_into_anything_else() -> None:
    for level in Level:
        task = a_waived_task(a_waiver(criterion="AC1"), a_waiver(), criteria=[
            a_criterion(), a_criterion(id="AC2", level=level, tests=[], measures=[a_measure()])])  # fmt: skip
        assert of(task).verdict.decision is Decision.PASS
