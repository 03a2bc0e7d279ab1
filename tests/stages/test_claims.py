"""The claims gate: a contradicted claim blocks, one that nothing supports is unknown, and nothing is invented."""

import re
from pathlib import Path

import pytest
from building import a_context, a_project, a_task, all_evidence, gates, result, written

from gates import pipeline
from gates.check import EvidenceSet
from gates.claims.reports import Claims, ClaimsSource, claims_of
from gates.claims.sources import Sources
from gates.model import Decision, Finding, Outcome
from gates.report import GateReport
from gates.stages.claims import GATE

PATH = "report.md"
TASK = a_task(claims=[PATH])


def a_page(text: str) -> Claims:
    """The claims of a page that speaks of no file."""
    return Claims(how="read", sources=(claims_of(text, PATH, Sources(Path("nowhere"))),))


def judged(text: str) -> GateReport:
    """The gate's report on a page, with the rest of the evidence good: one test, which passed."""
    return pipeline.judge(GATE, TASK, all_evidence(TASK, a_page(text)))


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
    assert "2 confirmed, 0 contradicted, 0 unsupported. 4 of 4 numbers" in report.findings[0].message


def test_contradicted_claim_blocks_whatever_its_level() -> None:
    report = judged("# Tests\n2 passed\n\nScore: 1/2 (50%)\n")
    assert report.decision is Decision.BLOCK
    (finding,) = report.findings
    assert (finding.rule, finding.outcome, str(finding.location)) == ("CL001", Outcome.FAILED, "report.md:2")
    assert (finding.expected, finding.actual) == ("2 passed", "1 passed, 1 tests in all")


def test_nothing_that_can_be_checked_is_no_pass() -> None:
    for page in ("It is a joy to use.\n", "", "Speedup: 1.72x on cuda\n"):
        assert judged(page).decision is Decision.INCONCLUSIVE


def test_claims_that_were_not_read_leave_the_verdict_open() -> None:
    unread = Claims(how="read", sources=(ClaimsSource(path=PATH, problem="it is not UTF-8"),))
    for evidence in (all_evidence(TASK, unread), all_evidence(TASK), EvidenceSet()):
        report = pipeline.judge(GATE, TASK, evidence)
        assert report.decision is Decision.INCONCLUSIVE
        assert {finding.rule for finding in report.findings} == {"CL003"}


def test_claims_of_one_text_are_told_apart() -> None:
    prints = [finding.fingerprint for finding in judged("# Tests\n2 passed\n2 passed\n2 passed\n").findings]
    assert len(set(prints)) == len(prints) > 1


def test_reports_are_read_or_refused_with_the_reason(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.md": "2/4 (50%)", "c.md": b"\xff", "e.md": b"\0" * 3_000_000}
    project = written(tmp_path / "p", files)
    sources = Claims.collect(a_task(claims=[*files, "f.md"]), a_context(project)).sources
    for source, problem in zip(sources, ["", "not UTF-8", "more than", "No such file"], strict=True):
        assert problem in source.problem
        assert bool(source.problem) is bool(problem)
    assert len(sources[0].claims) == 1


def test_file_of_claims_in_yaml_is_refused_with_what_replaces_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ask for it in a criterion"):
        a_task(claims=["claims.yaml"])
    project = a_project(tmp_path / "p", {"claims.yaml": "claims: []\n"})
    ended = gates(project, "run", "T1", "--claims", str(project / "claims.yaml"))
    assert (ended.code, "ask for it in a criterion" in ended.err) == (2, True)


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
    assert [finding.message for finding in found if finding.outcome is Outcome.FAILED] == []
    assert len(found) == len(pages)
