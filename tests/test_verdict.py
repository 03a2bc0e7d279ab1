"""Property tests of the decision: order, bad news, empty hands; and of scores that add up."""

from random import Random

import pytest
from building import a_finding
from hypothesis import given
from hypothesis import strategies as st

from gates.criteria import decide, decide_gate, score_gate, score_task, share
from gates.model import Decision, Finding, Level, Outcome, Planned, Severity
from gates.report import ScoreLine

BADNESS = [Decision.PASS, Decision.INCONCLUSIVE, Decision.BLOCK]

a_check = st.sampled_from(["a", "b", "c", "d"])
some_finding = st.builds(
    a_finding,
    outcome=st.sampled_from(Outcome),
    severity=st.sampled_from(Severity),
    level=st.sampled_from(Level),
    check=a_check,
    subject=st.sampled_from(["", "x", "y"]),
)
some_findings = st.lists(some_finding, max_size=8)
bad_finding = st.builds(
    a_finding,
    outcome=st.sampled_from([Outcome.FAILED, Outcome.UNKNOWN]),
    severity=st.sampled_from(Severity),
    level=st.sampled_from(Level),
)
some_checks = st.lists(
    st.builds(Planned, id=a_check, title=st.just("A check"), level=st.sampled_from(Level)),
    unique_by=lambda check: check.id,
)


@given(some_findings, st.randoms())
def test_order_of_findings_does_not_matter(findings: list[Finding], random: Random) -> None:
    assert decide(findings) == decide(random.sample(findings, len(findings)))


@given(some_findings, bad_finding)
def test_one_more_bad_finding_never_improves_a_verdict(findings: list[Finding], bad: Finding) -> None:
    before, after = decide(findings), decide([*findings, bad])
    assert BADNESS.index(after.decision) >= BADNESS.index(before.decision)


@given(some_findings)
def test_pass_needs_a_finding_that_passed(findings: list[Finding]) -> None:
    if not any(f.outcome is Outcome.PASSED for f in findings):
        assert decide(findings).decision is not Decision.PASS


@given(some_findings)
def test_pass_hides_no_failed_or_open_must(findings: list[Finding]) -> None:
    if decide(findings).decision is Decision.PASS:
        assert all(f.outcome in {Outcome.PASSED, Outcome.NOT_APPLICABLE} for f in findings if f.level is Level.MUST)


@given(some_findings)
def test_exit_code_and_reasons_go_with_the_decision(findings: list[Finding]) -> None:
    verdict = decide(findings)
    assert verdict.exit_code == {"PASS": 0, "BLOCK": 1, "INCONCLUSIVE": 3}[verdict.decision.value]
    assert bool(verdict.reasons) == (verdict.decision is not Decision.PASS)


def test_no_finding_is_inconclusive() -> None:
    assert decide([]).decision is Decision.INCONCLUSIVE
    assert decide_gate([])[0] is Decision.INCONCLUSIVE


def test_gate_of_which_nothing_applies_says_so_and_does_not_pass_a_task() -> None:
    aside = [a_finding(Outcome.NOT_APPLICABLE)]
    assert decide_gate(aside) == (Decision.NOT_APPLICABLE, ())
    assert decide(aside).decision is Decision.INCONCLUSIVE


def test_reasons_name_the_worst_first() -> None:
    verdict = decide(
        [
            a_finding(Outcome.UNKNOWN, rule="BL001", message="open"),
            a_finding(Outcome.FAILED, rule="PF001", severity=Severity.HIGH, message="slow"),
            a_finding(Outcome.FAILED, rule="EX002", severity=Severity.CRITICAL, message="broken"),
        ]
    )
    assert verdict.reasons == ("EX002 broken", "PF001 slow", "BL001 open")


SEVERE = {Severity.CRITICAL, Severity.HIGH}


@pytest.mark.parametrize("severity", Severity)
@pytest.mark.parametrize("level", Level)
def test_failure_blocks_by_level_or_severity_and_only_an_open_must_is_inconclusive(
    level: Level, severity: Severity
) -> None:
    must, passes = level is Level.MUST, Decision.PASS
    failed = Decision.BLOCK if must or severity in SEVERE else passes
    for outcome, expected in ((Outcome.FAILED, failed), (Outcome.UNKNOWN, Decision.INCONCLUSIVE if must else passes)):
        assert decide([a_finding(), a_finding(outcome, level=level, severity=severity)]).decision is expected


@given(st.integers(0, 10_000), st.lists(st.integers(1, 1000), min_size=1))
def test_shares_add_up_and_differ_from_their_part_by_less_than_one(total: int, weights: list[int]) -> None:
    parts = share(total, weights)
    assert sum(parts) == total
    assert all(abs(part - total * w / sum(weights)) < 1 for part, w in zip(parts, weights, strict=True))


@pytest.mark.parametrize("weights", [[], [0], [0, 0]])
def test_nothing_is_shared_among_nobody(weights: list[int]) -> None:
    assert sum(share(100, weights)) == 0


@given(some_checks, some_findings)
def test_score_of_a_gate_adds_up_and_only_a_pass_earns(checks: list[Planned], findings: list[Finding]) -> None:
    score = score_gate(checks, findings)
    assert score.total == sum(line.got for line in score.lines)
    assert score.of == sum(line.of for line in score.lines) == (100 if score.lines else 0)
    assert all(line.got == (line.of if line.note == "passed" else 0) for line in score.lines)


@given(st.lists(st.tuples(some_checks, some_findings), max_size=4))
def test_score_of_a_task_adds_up(gates: list[tuple[list[Planned], list[Finding]]]) -> None:
    score = score_task([(f"gate {i}", 10 * i + 10, score_gate(*gate)) for i, gate in enumerate(gates)])
    assert score.total == sum(line.got for line in score.lines)
    assert score.of == sum(line.of for line in score.lines)
    assert score.of in {0, 100}


def test_check_without_a_finding_earns_nothing() -> None:
    assert score_gate([Planned(id="a", title="A"), Planned(id="b", title="B")], [a_finding(check="a")]).lines == (
        ScoreLine(title="A", check="a", got=50, of=50, note="passed"),
        ScoreLine(title="B", check="b", got=0, of=50, note="unknown"),
    )


def test_advisory_failure_costs_score_and_leaves_the_verdict() -> None:
    failed = a_finding(Outcome.FAILED, check="b", level=Level.ADVISORY, severity=Severity.LOW)
    checks = [Planned(id="a", title="A"), Planned(id="b", title="B", level=Level.ADVISORY)]
    assert score_gate(checks, [a_finding(check="a"), failed]).total == 80
    assert decide([a_finding(check="a"), failed]).decision is Decision.PASS


def test_what_could_not_be_seen_and_asks_nothing_costs_no_score() -> None:
    checks = [Planned(id="a", title="A", level=Level.SHOULD), Planned(id="b", title="B", level=Level.SHOULD)]
    unseen, asking = (a_finding(Outcome.UNKNOWN, check="b", level=level) for level in (Level.ADVISORY, Level.SHOULD))
    assert [(line.title, line.got) for line in score_gate(checks, [a_finding(check="a"), unseen]).lines] == [("A", 100)]
    assert score_gate(checks, [a_finding(check="a"), asking]).total == 50


def test_verdict_does_not_take_a_score() -> None:
    assert set(decide.__annotations__) == {"findings", "return"}
    assert "score" not in Finding.model_fields
