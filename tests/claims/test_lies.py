"""An honest report comes out without contradiction; each kind of lie that is put into it is found at its line."""

from pathlib import Path

import pytest
from building import a_record, a_run, evidence, written
from reporting import REPORT, STEP, a_reported_project, audited, contradicted, not_understood, seen

from gates.check import EvidenceSet
from gates.claims import Standing
from gates.evidence.tests.test_records import TestOutcome

LIES = {
    "more passed": ("4 passed, 2 skipped, 1", "6 passed, 0 skipped, 1", "4 passed, 2 skipped"),
    "skips counted as passes": ("4/6 tests passing (2 skipped due to no CUDA)", "6/6 tests passing", "4 passed"),
    "more tests": ("4/6 tests passing (2 skipped", "4/7 tests passing (2 skipped", "6 tests in all"),
    "exit code": ("**Exit Code**: 0", "**Exit Code**: 1", "exit code 0"),
    "a skipped test passed": ("test_autocast - SKIPPED", "test_autocast - PASS", "skipped in this run"),
    "a passed test failed": ("test_overflow - PASS", "test_overflow - FAIL", "passed in this run"),
    "lines beyond the file": ("step.py:23-26", "step.py:60-70", "has 27 lines"),
    "a block elsewhere": ("step.py:23-26", "step.py:6-9", "line 23-26"),
    "code that is not there": ("    scaler.step(optimizer)\n", "    scaler.step(optimiser)\n", "optimiser"),
    "a file that is not there": ("(step.py:19-22)", "(stepper.py:19-22)", "no file 'stepper.py'"),
    "a percentage": ("6/8 (75%)", "6/8 (85%)", "75 %"),
    "a total": ("| **32** |", "| **42** |", "it is 32"),
    "a score": ("**Final Score: 70/100**", "**Final Score: 80/100**", "it is 70"),
    "another count": ("Results**: 4 passed", "Results**: 3 passed", "4 passed, 2 skipped"),
}
SOUND = {
    "kinds of tests": "## Test Results\n- Unit tests: 45 passed\n- Integration tests: 12 passed, 1 skipped\n",
    "suites": "## Backend Tests\n40 passed\n\n## Frontend Tests\n12 passed\n**Passed**: 12\n",
    "rounds": "## Tests\nIteration 1: 3 failed, 9 passed\nIteration 2: 12 passed\n",
    "a file of tests": "## Test Suite: tests/test_x.py\n**Results**: 9 passed\n",
    "another command": "# Test Report\n## Lint\nExit code: 1\n",
    "a file in passing": "## Code\nSee pkg/data.py too.\n\nIt returns early (line 300).\n",
    "other counts": "# Tests\n7 failed, 0 unknown, 5 passed, 1 not applicable.\n",
    "wishes": "# Tests\nOnce 16 passed, we merge. Verify that all tests pass. Expected 16 passed.\n",
    "the past": "## Before\n## Previous tests\n12 passed\n",
    "a fix": "**Fix** (pkg/data.py:1):\n```python\nx = run(1)\n```\n",
    "a page of our own": "# Audit of a.md\n\n## Contradicted\n\n3 tests passed, 1/2 (60%)\n",
}


def test_an_honest_report_is_not_contradicted(tmp_path: Path) -> None:
    project = a_reported_project(tmp_path)
    found = audited(REPORT, project, seen())
    assert [one for one in found if one.standing is Standing.CONTRADICTED] == []
    assert sum(one.standing is Standing.CONFIRMED for one in found) == len(found)
    text = REPORT.splitlines()
    assert {text[line - 1] for line in not_understood(REPORT, project, seen())} == {
        "**Stage**: 2 (Execution Verification)",
        "**Duration**: 1.1s (test execution)",
        "**Score**: 70/100",
        "**Results**: 4 passed, 2 skipped, 1 warning in 1.10s",
        "#### Passed Tests (4)",
        "#### Skipped Tests (2)",
        "### pkg/step.py (Lines 6-26)",
        "- Precision: `compute_precision()` (lines 6-10)",
        "- The transfer does not block (line 18: `batch.to(self.device, non_blocking=True)`)",
        "- The loop is run by `Trainer` (lines 13-26)",
        "- Speedup: **2.0x** on cpu",
        "- The promised target is a speedup of 3x.",
    }


@pytest.mark.parametrize(("old", "new", "why"), LIES.values(), ids=LIES.keys())
def test_lie_is_found_with_what_is_true_instead(old: str, new: str, why: str, tmp_path: Path) -> None:
    assert REPORT.count(old) == 1
    page = REPORT.replace(old, new)
    wrong = contradicted(page, a_reported_project(tmp_path), seen())
    assert any(why in one.seen for one in wrong), wrong
    text = page.splitlines()
    assert all(text[one.at - 1].strip() == one.text for one in wrong)


@pytest.mark.parametrize("page", SOUND.values(), ids=SOUND.keys())
def test_what_may_be_true_is_not_contradicted(page: str, tmp_path: Path) -> None:
    for found in (seen(), EvidenceSet()):
        assert contradicted(page, a_reported_project(tmp_path), found) == []


@pytest.mark.parametrize("page", ["Speedup: 1.72x", "Coverage is 97 %.", "Latency: 5 ms", "16 passed", "```\n9\n```"])
def test_number_that_nothing_computes_or_finds_is_not_understood(page: str, tmp_path: Path) -> None:
    assert not_understood(page, tmp_path) == [(page.count("\n") and 2) or 1]


def test_all_tests_passed_is_false_with_a_failure_and_open_with_a_skip(tmp_path: Path) -> None:
    for outcome, expected in (
        (TestOutcome.PASSED, Standing.CONFIRMED),
        (TestOutcome.SKIPPED, Standing.UNSUPPORTED),
        (TestOutcome.FAILED, Standing.CONTRADICTED),
    ):
        run = a_run(a_record(), a_record(outcome, id="tests/test_core.py::test_other"))
        (found,) = audited("# Tests\nAll tests passed.\n", tmp_path, evidence(run))
        assert found.standing is expected


def test_run_that_cannot_be_believed_supports_nothing(tmp_path: Path) -> None:
    found = audited("# Tests\n1 passed\n\nExit code: 0\n", tmp_path, evidence(a_run(disagreements=("they differ",))))
    assert [one.standing for one in found] == [Standing.UNSUPPORTED] * 2


def test_of_several_files_of_one_name_one_that_fits_is_enough(tmp_path: Path) -> None:
    root = written(a_reported_project(tmp_path), {"other/step.py": "x = 1\n"})
    (found,) = audited("`step.py:6`:\n```python\ndef compute_precision(use_amp: bool, cuda: bool) -> str:\n```", root)
    assert found.standing is Standing.CONFIRMED


def test_quote_survives_other_quotes_line_breaks_and_comments(tmp_path: Path) -> None:
    project = written(tmp_path, {"a.py": STEP.replace('"train/overflow"', "'train/overflow'")})
    lines = ["# the guard:", "grad_norm = self.clip(batch, limit=1.0)", "...", 'self.log("train/overflow", 1.0)  # x']
    spread = ["grad_norm = self.clip(", "    batch,", "    limit=1.0,", ")"]
    for code in (lines, spread):
        page = "\n".join(["`a.py:19-26`:", "```python", *code, "```"])
        assert [one.standing for one in audited(page, project)] == [Standing.CONFIRMED]
        assert not_understood(page, project) == []


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hosts.txt", "sub/../../outside.py"])
def test_nothing_outside_of_the_project_is_read(path: str, tmp_path: Path) -> None:
    written(tmp_path, {"outside.py": "secret = 1\n", "project/a.py": "x = 1\n"})
    (found,) = contradicted(f"`{path}:1`:\n```\nsecret = 1\n```", tmp_path / "project")
    assert "secret" not in found.seen
