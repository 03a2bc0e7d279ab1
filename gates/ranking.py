"""Findings in the order in which they matter, and in one line each."""

from collections.abc import Iterable

from gates.model import SEVERITIES, Finding, Level, Outcome


def reason(finding: Finding) -> str:
    """Return a finding as one line: rule, criterion, place, message."""
    parts = [finding.rule, finding.criterion or "", f"{finding.location}:" if finding.location else ""]
    return " ".join([part for part in parts if part] + [finding.message])


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings worst first; the order in which they came in does not matter."""
    outcomes = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.PASSED, Outcome.NOT_APPLICABLE)
    levels = tuple(Level)
    return sorted(
        findings,
        key=lambda f: (
            outcomes.index(f.outcome),
            levels.index(f.level),
            SEVERITIES.index(f.severity),
            f.rule,
            f.criterion or "",
            f.location.path if f.location else "",
            (f.location.line or 0) if f.location else 0,
            f.subject,
            f.message,
            f.model_dump_json(),
        ),
    )
