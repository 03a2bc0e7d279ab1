"""The claims gate: a contradicted claim blocks, one that nothing supports is unknown, and nothing is invented."""

import re
from pathlib import Path

import pytest
from building import a_context, a_project, a_record, a_run, a_task, all_evidence, gates, result, written

from gates import pipeline
from gates.check import EvidenceSet
from gates.claims.claim import Claim
from gates.claims.reading import read
from gates.claims.sources import Looked
from gates.evidence.claims import Claims, ClaimsSource
from gates.evidence.test_records import TestOutcome
from gates.model import Decision, Finding, Level, Outcome
from gates.report import GateReport
from gates.stages.claims import GATE
from gates.task.task import Task

PATH = "report.md"
TASK = a_task(claims=[PATH])


def a_page(text: str, *, level: Level = Level.ADVISORY, path: str = PATH) -> Claims:
    """The claims of a page that speaks of no file."""
    found: list[Claim] = list(read(text, path, level=level))
    return Claims(how="read", sources=(ClaimsSource(path=path, claims=tuple(Looked(claim=one) for one in found)),))


def judged(text: str, *, level: Level = Level.ADVISORY, task: Task = TASK) -> GateReport:
    """The gate's report on a page, with the rest of the evidence good: one test, which passed."""
    return pipeline.judge(GATE, task, all_evidence(task, a_page(text, level=level)))


def outcomes(report: GateReport) -> list[tuple[str, Outcome]]:
    return [(finding.rule, finding.outcome) for finding in report.findings]


def test_gate_applies_where_the_task_names_claims() -> None:
    assert not GATE.applies(a_task())
    assert GATE.applies(TASK)
    assert pipeline.judge(GATE, a_task(), EvidenceSet()).decision is Decision.NOT_APPLICABLE


def test_confirmed_claims_pass() -> None:
    report = judged("# Tests\n1 passed\n\nScore: 1/2 (50%)\n")
    assert report.decision is Decision.PASS
    assert outcomes(report) == [("CL001", Outcome.PASSED)]
    assert "2 confirmed, 0 contradicted, 0 unsupported" in report.findings[0].message


def test_contradicted_claim_blocks_whatever_its_level() -> None:
    report = judged("# Tests\n2 passed\n\nScore: 1/2 (50%)\n")
    assert report.decision is Decision.BLOCK
    (finding,) = report.findings
    assert (finding.rule, finding.outcome, str(finding.location)) == ("CL001", Outcome.FAILED, "report.md:2")
    assert (finding.expected, finding.actual) == ("2 passed", "1 passed, 1 tests in all")


def test_unsupported_claim_is_unknown_and_leaves_the_verdict_open_only_where_it_must() -> None:
    page = "Speedup: 1.72x on cuda\n\nScore: 1/2 (50%)\n"
    advisory, must = judged(page), judged(page, level=Level.MUST)
    assert ("CL002", Outcome.UNKNOWN) in outcomes(advisory)
    assert advisory.decision is Decision.PASS
    assert must.decision is Decision.INCONCLUSIVE


def test_nothing_that_can_be_checked_is_no_pass() -> None:
    for page in ("It is a joy to use.\n", "", "Speedup: 1.72x on cuda\n"):
        assert judged(page).decision is Decision.INCONCLUSIVE


def test_claims_that_were_not_read_leave_the_verdict_open() -> None:
    unread = Claims(how="read", sources=(ClaimsSource(path=PATH, problem="it is not UTF-8"),))
    for evidence in (all_evidence(TASK, unread), all_evidence(TASK), EvidenceSet()):
        report = pipeline.judge(GATE, TASK, evidence)
        assert report.decision is Decision.INCONCLUSIVE
        assert {finding.rule for finding in report.findings} == {"CL003"}


@pytest.mark.parametrize(
    "page", ["# Tests\n2 passed\n2 passed\n2 passed\n", "Speedup: 2x on cuda\nSpeedup: 2x on cuda\n"]
)
def test_claims_of_one_text_are_told_apart(page: str) -> None:
    prints = [finding.fingerprint for finding in judged(page).findings]
    assert len(set(prints)) == len(prints) > 1


def test_lines_that_words_alone_describe_are_counted_not_listed(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {PATH: "`pkg/core.py:1`: does the work\n\n`pkg/core.py:2` (`return x + x`)\n"})
    claims = Claims.collect(TASK, a_context(project))
    report = pipeline.judge(GATE, TASK, all_evidence(TASK, claims))
    assert outcomes(report) == [("CL001", Outcome.PASSED)]
    assert "1 of the unsupported name lines" in report.findings[0].message
    assert [row[3] for row in report.sections[0].rows] == ["confirmed"]


def test_verdict_and_criteria_are_compared_with_the_other_gates() -> None:
    table = "| ID | Text | Status |\n|---|---|---|\n| AC1 | a | PASS |\n"
    page = f"# Execution Verification Report\n**Decision**: PASS\n\n{table}"
    failing = a_run(a_record(TestOutcome.FAILED))
    bad = pipeline.judge(GATE, TASK, all_evidence(TASK, a_page(page), failing))
    assert judged(page).decision is Decision.PASS
    assert [finding.expected for finding in bad.findings if finding.outcome is Outcome.FAILED] == [
        "execution PASS",
        "AC1 met",
    ]


def test_files_of_claims_are_read_or_refused_with_the_reason(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.md": "2/4 (50%)",
        "b.yaml": "claims: [exit]\n",
        "c.md": b"\xff",
        "d.yaml": "x: 1\n",
        "e.md": b"\0" * 3_000_000,
    }
    project = written(tmp_path / "p", files)
    task = a_task(claims=[*files, "f.md"])
    sources = Claims.collect(task, a_context(project)).sources
    told = ["", "", "not UTF-8", "expected a key 'claims'", "more than", "No such file"]
    for source, problem in zip(sources, told, strict=True):
        assert problem in source.problem
        assert bool(source.problem) is bool(problem)
    assert [len(source.claims) for source in sources[:2]] == [1, 1]


def findings_of(project: Path) -> list[Finding]:
    return [
        Finding.model_validate(f)
        for gate in result(project)["gates"]
        if gate["name"] == "claims"
        for f in gate["findings"]
    ]


def test_our_own_reports_hold_what_they_say(tmp_path: Path) -> None:
    skipped = "import pytest\n\n\n@pytest.mark.skip(reason='no device')\ndef test_gpu():\n    assert 1\n"
    project = a_project(tmp_path / "p", {"tests/test_gpu.py": skipped})
    assert gates(project, "run", "T1", "--out", "old").code == 0
    pages = sorted((project / "old").glob("*.md"))
    assert len(pages) == 5
    for page in pages:  # how long a run took holds of that run alone
        page.write_text(re.sub(r"- \*\*Duration\*\*: .*\n", "", page.read_text(encoding="utf-8")), encoding="utf-8")
    ended = gates(project, "run", "T1", *[word for page in pages for word in ("--claims", page)])
    assert (ended.code, "claims" in ended.out) == (0, True)
    found = findings_of(project)
    assert found
    assert [finding.message for finding in found if finding.outcome is not Outcome.PASSED] == []
    assert len(found) == len(pages)
