"""An honest report comes out without contradiction; each kind of lie that is put into it is found at its line."""

from pathlib import Path

import pytest
from building import a_record, a_run, evidence, written
from reporting import REPORT, STEP, a_reported_project, rulings, seen, standing

from gates.check import EvidenceSet
from gates.claims.claim import Standing
from gates.evidence.test_records import TestOutcome

LIES = {
    "more passed": ("4 passed, 2 skipped, 1", "6 passed, 0 skipped, 1", "4 passed, 2 skipped"),
    "skips counted as passes": ("4/6 tests passing (2 skipped due to no CUDA)", "6/6 tests passing", "4 passed"),
    "every test passed": ("4/6 tests passing (2 skipped", "4/7 tests passing (2 skipped", "6 tests in all"),
    "exit code": ("**Exit Code**: 0", "**Exit Code**: 1", "exit code 0"),
    "count of a list": ("Passed Tests (4)", "Passed Tests (5)", "4 listed"),
    "a skipped test passed": ("test_autocast - SKIPPED", "test_autocast - PASS", "skipped in this run"),
    "a passed test failed": ("test_overflow - PASS", "test_overflow - FAIL", "passed in this run"),
    "lines beyond the file": ("(lines 6-10)", "(lines 60-70)", "has 27 lines"),
    "a symbol elsewhere": ("(lines 6-10)", "(lines 13-20)", "lines 6"),
    "code elsewhere": ("(line 18: `batch", "(line 25: `batch", "line 18"),
    "a block elsewhere": ("step.py:23-26", "step.py:6-9", "lines 23-26"),
    "code that is not there": ("    scaler.step(optimizer)\n", "    scaler.step(optimiser)\n", "optimiser"),
    "a file that is not there": ("(step.py:19-22)", "(stepper.py:19-22)", "no file 'stepper.py'"),
    "a number outside of its interval": ("Speedup: **2.0x**", "Speedup: **2.6x**", "2 [2, 2]"),
    "a percentage": ("6/8 (75%)", "6/8 (85%)", "75.0 %"),
    "a total": ("| **32** |", "| **42** |", "20 +12 = 32"),
    "a score": ("**Final Score: 70/100**", "**Final Score: 80/100**", "= 70"),
    "another score": ("**Score**: 70/100", "**Score**: 90/100", "a score of 70 here, of 90 there"),
    "another count": ("Results**: 4 passed", "Results**: 3 passed", "3 passed here, 4 passed there"),
}
SAID_TWICE = {
    "decisions": ("**Decision**: PASS\n\n## Recommendation: BLOCK\n", "BLOCK here, PASS there"),
    "speedups": ("- Speedup: 1.7x\n- Overall speedup of 1.4x\n", "two numbers for the speedup"),
    "coverage": ("Coverage: 80%\n\nCoverage: 61%\n", "61 % here, 80 % there"),
    "criteria": (
        "## Criteria\n### Verified: 2/8 (25%)\n\n## Specification\n**Met: 1.5/8 (19%)**\n",
        "1.5 of 8 here, 2 of 8 there",
    ),
    "tests": ("# Tests\n- 16 passed\n- 15 passed\n", "15 passed here, 16 passed there"),
    "parts of a whole": ("# Tests\n3/2 tests passed\n", "3 tests ended, of 2"),
    "change": ("Peak memory: 2.5 GB -> 1.6 GB (46% reduction)\n", "36.0 %"),
    "deductions": ("- Style: -10\n- Tests: -5\n\n**Score: 90/100**\n", "= 85"),
    "points possible": ("## Score Breakdown\n- Style: 10/20\n- Tests: 10/20\n\n**Score: 20/100**\n", "out of 40"),
    "length": ("### File: pkg/data.py\n- **Lines of Code**: 88\n", "1 lines"),
}


def test_an_honest_report_is_not_contradicted(tmp_path: Path) -> None:
    found = standing(REPORT, a_reported_project(tmp_path), seen())
    assert Standing.CONTRADICTED not in {how for _, how in found}
    assert (
        sum(how is Standing.CONFIRMED for _, how in found) == len(found) - 1
    )  # a heading that names lines says no more


@pytest.mark.parametrize(("old", "new", "told"), LIES.values(), ids=LIES.keys())
def test_lie_is_found_with_what_is_true_instead(old: str, new: str, told: str, tmp_path: Path) -> None:
    assert REPORT.count(old) == 1
    page = REPORT.replace(old, new)
    wrong = [r for r in rulings(page, a_reported_project(tmp_path), seen()) if r.standing is Standing.CONTRADICTED]
    assert wrong
    assert any(told in ruling.seen for ruling in wrong), wrong
    text = page.splitlines()
    assert all(text[ruling.claim.at.line - 1].strip() == ruling.claim.text for ruling in wrong if ruling.claim.at.line)


@pytest.mark.parametrize(("page", "told"), SAID_TWICE.values(), ids=SAID_TWICE.keys())
def test_report_that_contradicts_itself_needs_no_evidence(page: str, told: str, tmp_path: Path) -> None:
    wrong = [r for r in rulings(page, a_reported_project(tmp_path)) if r.standing is Standing.CONTRADICTED]
    assert [told in ruling.seen for ruling in wrong] == [True]


SOUND = {
    "kinds of tests": "## Test Results\n- Unit tests: 45 passed\n- Integration tests: 12 passed, 1 skipped\n",
    "suites": "## Backend Tests\n40 passed\n\n## Frontend Tests\n12 passed\n**Passed**: 12\n",
    "rounds": "## Tests\nIteration 1: 3 failed, 9 passed\nIteration 2: 12 passed\n",
    "models": "### ResNet50\n- Speedup: 1.7x\n\n### BERT\n- Speedup: 2.1x\n",
    "batches": "## Results\n- Batch 32 speedup: 1.7x\n- Batch 64 speedup: 2.1x\n",
    "parts with verdicts": "### Loader\n**Decision**: PASS\n\n### Step\n**Decision**: BLOCK\n",
    "parts with scores": "### Style\n**Score**: 80/100\n\n### Speed\n**Score**: 90/100\n",
    "phases": "### Phase 1\nMet: 3/5\n\n### Phase 2\nMet: 4/5\n",
    "modules": "### Loader\nCoverage: 80%\n\n### Step\nCoverage: 91%\n",
    "an average": "## Score Breakdown\n- Style: 80/100\n- Speed: 90/100\n\n**Overall Score: 85/100**\n",
    "weights": "## Score Breakdown\n- Style (40%): 8/10\n- Speed (60%): 9/10\n\n**Final Score: 86/100**\n",
    "what is no breakdown": "## Metrics\n- Tests: 16/19\n- Criteria: 6/8\n\n**Score: 85/100**\n",
    "groups": "### Unit Tests (45)\n1. TestA: 20 tests\n2. TestB: 25 tests\n",
    "what tests do": "### Unit Tests (45)\n- Cover the precision\n- Cover the callbacks\n",
    "counted rows": "### Unit Tests (45)\n\n| Class | Tests |\n|---|---|\n| A | 20 |\n| B | 25 |\n",
    "a share and another": "6/8 of the rules (60% of the lines)\n",
    "another command": "# Test Report\n## Lint\nExit code: 1\n",
    "rounding": "1.5/8 (19%)\n1.5/8 (18%)\n2/3 (66.67%)\n2/3 (66.6%)\n",
    "a file in passing": "## Code\nSee pkg/data.py too.\n\nIt returns early (line 300).\n",
}


@pytest.mark.parametrize("page", SOUND.values(), ids=SOUND.keys())
def test_what_may_be_true_is_not_contradicted(page: str, tmp_path: Path) -> None:
    for found in (seen(), EvidenceSet()):
        assert Standing.CONTRADICTED not in {how for _, how in standing(page, a_reported_project(tmp_path), found)}


def test_number_that_was_never_measured_is_unsupported(tmp_path: Path) -> None:
    project = a_reported_project(tmp_path)
    for page in ("Speedup: 1.72x", "Projected overall speedup: **1.72x**", "Memory reduction: 36%", "Latency: 5 ms"):
        assert standing(page, project) == [("number", Standing.UNSUPPORTED)]
        assert standing(f"{page} on cuda", project, seen())[0][1] is Standing.UNSUPPORTED


def test_number_about_a_part_is_not_compared_with_the_whole(tmp_path: Path) -> None:
    for page in ("~22% speedup from prefetching\n", "- Batch 64 speedup: 3.1x\n"):
        assert standing(page, tmp_path, seen()) == [("number", Standing.UNSUPPORTED)]


def test_all_tests_passed_is_false_with_a_failure_and_open_with_a_skip(tmp_path: Path) -> None:
    page = "# Tests\nAll tests passed.\n"
    good = a_record()
    for outcome, expected in (
        (TestOutcome.PASSED, Standing.CONFIRMED),
        (TestOutcome.SKIPPED, Standing.UNSUPPORTED),
        (TestOutcome.FAILED, Standing.CONTRADICTED),
    ):
        run = a_run(good, a_record(outcome, id="tests/test_core.py::test_other"))
        assert standing(page, tmp_path, evidence(run)) == [("all passed", expected)]


def test_run_that_cannot_be_believed_supports_nothing(tmp_path: Path) -> None:
    found = evidence(a_run(disagreements=("they differ",)))
    assert standing("# Tests\n1 passed\n", tmp_path, found) == [("tests", Standing.UNSUPPORTED)]
    assert standing("# Tests\nExit code: 0\n", tmp_path, found) == [("exit code", Standing.UNSUPPORTED)]


def test_without_evidence_only_files_and_arithmetic_are_ruled_on(tmp_path: Path) -> None:
    found = standing(REPORT, a_reported_project(tmp_path), EvidenceSet())
    assert {kind for kind, how in found if how is Standing.CONFIRMED} == {"place", "tally", "share", "sum"}


def test_of_several_files_of_one_name_one_that_fits_is_enough(tmp_path: Path) -> None:
    project = written(a_reported_project(tmp_path), {"other/step.py": "x = 1\n"})
    assert standing("`compute_precision()` (step.py:6-10)", project) == [("place", Standing.CONFIRMED)]


def test_quote_survives_other_quotes_line_breaks_and_comments(tmp_path: Path) -> None:
    project = written(tmp_path, {"a.py": STEP.replace('"train/overflow"', "'train/overflow'")})
    lines = ["# the guard:", "grad_norm = self.clip(batch, limit=1.0)", "...", 'self.log("train/overflow", 1.0)  # x']
    spread = ["grad_norm = self.clip(", "    batch,", "    limit=1.0,", ")"]
    for code in (lines, spread):
        page = "\n".join(["`a.py:19-26`:", "```python", *code, "```"])
        assert standing(page, project) == [("place", Standing.CONFIRMED)]


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hosts.txt", "sub/../../outside.py"])
def test_nothing_outside_of_the_project_is_read(path: str, tmp_path: Path) -> None:
    written(tmp_path, {"outside.py": "secret = 1\n", "project/a.py": "x = 1\n"})
    for ruling in rulings(f"`{path}:1` (`secret = 1`)", tmp_path / "project"):
        assert ruling.standing is Standing.CONTRADICTED
        assert "secret" not in ruling.seen
