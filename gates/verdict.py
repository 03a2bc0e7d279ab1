"""From findings to a verdict, and to a score that no verdict reads."""

from collections.abc import Iterable, Sequence

from gates.model import EXIT_CODES, Basis, Decision, Finding, Level, Outcome, Planned, Verdict, worst
from gates.report import Score, ScoreLine, ranked, reason

LEVEL_WEIGHTS = {Level.MUST: 4, Level.SHOULD: 2, Level.ADVISORY: 1}
NO_EVIDENCE = "no check passed: nothing that was looked at speaks for the change"


def decide(findings: Iterable[Finding]) -> Verdict:
    """Block on a failure that matters, say so when required evidence is missing, else pass."""
    everything = ranked(findings)
    blocking = [f for f in everything if f.blocks]
    missing = [f for f in everything if f.leaves_open]
    if blocking:
        return _verdict(Decision.BLOCK, [*blocking, *missing])
    if missing:
        return _verdict(Decision.INCONCLUSIVE, missing)
    if not any(f.outcome is Outcome.PASSED and f.basis is not Basis.DECLARED for f in everything):
        return Verdict(
            decision=Decision.INCONCLUSIVE,
            exit_code=EXIT_CODES[Decision.INCONCLUSIVE],
            reasons=(NO_EVIDENCE,),
        )
    return _verdict(Decision.PASS, [])


def decide_gate(findings: Sequence[Finding]) -> tuple[Decision, tuple[str, ...]]:
    """Decide one gate; one to which nothing of the task applies says so."""
    applying = [f for f in findings if f.outcome is not Outcome.NOT_APPLICABLE]
    if findings and not applying:
        return Decision.NOT_APPLICABLE, ()
    if applying and all(f.waived for f in applying):
        return Decision.WAIVED, tuple(str(f.waived) for f in applying)
    verdict = decide(findings)
    return verdict.decision, verdict.reasons


def score_gate(checks: Sequence[Planned], findings: Sequence[Finding]) -> Score:
    """Share 100 points among the checks that apply, by level; only a check that passed gets its points.

    A check that asks for something, and of which all that is not known asks nothing of anybody, has no share.
    """
    by_check: dict[str, set[Outcome]] = {check.id: set() for check in checks}
    waived = {finding.check for finding in findings if finding.waived}
    for finding in findings:
        by_check.setdefault(finding.check, set()).add(finding.outcome)
    outcomes = {check.id: worst(by_check[check.id]) for check in checks}
    asks = {f.check for f in findings if f.outcome is Outcome.UNKNOWN and f.level is not Level.ADVISORY}
    unseen = {c.id for c in checks if outcomes[c.id] is Outcome.UNKNOWN and c.level is not Level.ADVISORY} - asks
    aside = unseen & {finding.check for finding in findings}
    applying = [c for c in checks if c.scored and c.id not in aside and outcomes[c.id] is not Outcome.NOT_APPLICABLE]
    points = share(100, [LEVEL_WEIGHTS[check.level] for check in applying])
    lines = tuple(
        ScoreLine(
            title=check.title,
            got=possible if outcomes[check.id] is Outcome.PASSED else 0,
            of=possible,
            note="waived" if check.id in waived else outcomes[check.id].value,
        )
        for check, possible in zip(applying, points, strict=True)
    )
    return Score(total=sum(line.got for line in lines), of=sum(points), lines=lines)


def score_task(gates: Sequence[tuple[str, int, Score]]) -> Score:
    """Fold the gates' scores into 100 points by the gates' weights; gates without points do not count."""
    counting = [(name, weight, score) for name, weight, score in gates if score.of]
    points = share(100, [weight for _, weight, _ in counting])
    lines = tuple(
        ScoreLine(title=name, got=possible * score.total // score.of, of=possible, note=f"{score.total}/{score.of}")
        for (name, _, score), possible in zip(counting, points, strict=True)
    )
    return Score(total=sum(line.got for line in lines), of=sum(points), lines=lines)


def share(total: int, weights: Sequence[int]) -> list[int]:
    """Split a whole number by weights, largest remainder first, so that the parts add up to it exactly."""
    whole = sum(weights)
    if not whole:
        return []
    parts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    return parts


def _verdict(decision: Decision, findings: Sequence[Finding]) -> Verdict:
    return Verdict(
        decision=decision,
        exit_code=EXIT_CODES[decision],
        reasons=tuple(reason(finding) for finding in findings),
    )
