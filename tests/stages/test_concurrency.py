"""The judgement of what was done at once: pure, from what was seen."""

from typing import Any

import pytest
from building import a_task, evidence

from gates.checks.concurrency import CHECK, Concurrency, Differed, Together
from gates.model import Level, Location, Outcome, Severity

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
LINE = Location(path="pkg/a.py", line=7)
ASKED: dict[str, Any] = {"call": "pkg.a:train", "criteria": ["AC1"], "failure_rate": 0.15}
TRACKER: dict[str, Any] = {"shared": "pkg.a:Tracker", "use": "pkg.a:log", "read": "pkg.a:count", "workers": 4}
DIFFERED = Differed(expected="1", found="2, expected 1")


def seen(**changes: Any) -> Together:
    """Twenty rounds in which all met, and nothing else came of it."""
    return Together.model_validate({"rounds": 20, "met": 20, "pauses": 99, **changes})


def said(asked: dict[str, Any] = ASKED, **changes: Any) -> tuple[Outcome, str]:
    """Return what is said of the first thing that a task does at once."""
    task = a_task(concurrency=[asked])
    finding = next(iter(CHECK.judge(task, evidence(Concurrency(how="at once", seen=(seen(**changes),))))))
    return finding.outcome, finding.message


def test_rounds_without_a_failure_pass_with_their_bound() -> None:
    outcome, message = said()
    assert outcome is P
    assert "fewer than 0.15 of the rounds fail, at 95 %" in message
    assert "20 rounds in which all 2 met, with 99 forced switches" in message


@pytest.mark.parametrize(
    ("expected", "changes", "told"),
    [
        (U, {"met": 19}, "no failure in 19 rounds shows only that fewer than 0.16 fail, asked is 0.15"),
        (U, {"met": 0}, "the 2 never met in 20 rounds"),
        (U, {"problem": "no module"}, "no module"),
        (U, {"unclear": "alone it gives something else"}, "alone it gives something else"),
        (U, {"unclear": "not the same", "differed": [DIFFERED]}, "not the same"),
        (U, {"stood": ["thread 1 at pkg/a.py:7 (f)"], "slow": True}, "at pkg/a.py:7"),
        (F, {"differed": [DIFFERED], "failed": 2}, "2, expected 1, in 2 of 20 rounds"),
        (F, {"differed": [DIFFERED.model_copy(update={"error": "KeyError: 1"})], "failed": 1, "unclear": "random"},
         "it raises KeyError: 1, which it does not alone"),
        (F, {"stood": ["thread 1 at pkg/a.py:7 (f)", "thread 2 outside the project"], "stood_at": LINE,
             "problem": "end"},
         "2 of 2 threads stand still: thread 1 at pkg/a.py:7 (f); thread 2 outside the project"),
    ],
)  # fmt: skip
def test_too_little_is_unknown_and_what_went_wrong_fails(expected: Outcome, changes: dict[str, Any], told: str) -> None:
    outcome, message = said(**changes)
    assert outcome is expected
    assert told in message


def test_lost_updates_are_told_with_how_many_uses_there_were() -> None:
    lost = DIFFERED.model_copy(update={"found": "3987, expected 4000 (off by -13)"})
    outcome, message = said(TRACKER, differed=[lost], failed=1)
    assert outcome is F
    assert "3987, expected 4000 (off by -13) after 4000 uses, in 1 of 20 rounds" in message


def test_criterion_gets_its_own_finding_at_its_level() -> None:
    task = a_task(concurrency=[ASKED])
    found = list(CHECK.judge(task, evidence(Concurrency(how="", seen=(seen(differed=[DIFFERED]),)))))
    assert [f.check for f in found] == [check.id for check in CHECK.plan(task)]
    assert [f.criterion for f in found] == [None, "AC1"]
    assert {f.severity for f in found if f.level is Level.MUST} == {Severity.CRITICAL}


def test_section_tells_of_each_and_of_free_threading() -> None:
    task = a_task(concurrency=[ASKED])
    (section,) = CHECK.page(task, evidence(Concurrency(how="", seen=(seen(free_threaded=False),))))
    assert section.title == "Concurrency"
    assert section.rows[0][:-1] == ("passed", "0", "20 of 20", "99", "< 0.15", "2")
    assert section.facts[0][1].startswith("no free-threading")
