"""Findings about one check of one criterion, as severe as their outcome and its level make them."""

from gates.model import Finding, Level, Location, Outcome, Severity
from gates.task.task import Criterion

FAILED = {Level.MUST: Severity.CRITICAL, Level.SHOULD: Severity.MEDIUM, Level.ADVISORY: Severity.LOW}
UNKNOWN = {Level.MUST: Severity.HIGH, Level.SHOULD: Severity.MEDIUM, Level.ADVISORY: Severity.LOW}


class About:
    """Makes findings about one check of one criterion, so that each says only what is its own."""

    def __init__(self, criterion: Criterion, rule: str, check: str) -> None:
        self._criterion = criterion
        self._rule = rule
        self._check = check

    def __call__(
        self, *, outcome: Outcome, message: str, location: Location | None, actual: str, expected: str = "",
        subject: str = "", impact: str = "", remediation: str = "", evidence: str | None = None,
        command: str = "",
    ) -> Finding:  # fmt: skip
        """Make a finding; how severe it is follows from its outcome and the criterion's level."""
        worth = {Outcome.FAILED: FAILED, Outcome.UNKNOWN: UNKNOWN}.get(outcome, {})
        return Finding(
            rule=self._rule, check=self._check, criterion=self._criterion.id, level=self._criterion.level,
            outcome=outcome, severity=worth.get(self._criterion.level, Severity.INFO), message=message,
            location=location, subject=subject, expected=expected, actual=actual, impact=impact,
            remediation=remediation, evidence=evidence, command=command,
        )  # fmt: skip
