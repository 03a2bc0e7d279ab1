"""What can be said of one aspect of a recorded training step."""

from dataclasses import dataclass

from gates.model import Level, Location, Outcome, Severity

WORTH = {Level.MUST: Severity.CRITICAL, Level.SHOULD: Severity.MEDIUM, Level.ADVISORY: Severity.MEDIUM}


@dataclass(frozen=True)
class Said:
    """One conclusion about a training step; `subject` tells it from others of the same aspect."""

    outcome: Outcome
    message: str
    actual: str
    location: Location | None = None
    expected: str = ""
    impact: str = ""
    remediation: str = ""
    subject: str = ""
    level: Level = Level.MUST

    @property
    def severity(self) -> Severity:
        """Return how much it matters: what is unknown or only advised never stops a change by its severity."""
        if self.outcome is Outcome.FAILED:
            return WORTH[self.level]
        open_ = self.outcome is Outcome.UNKNOWN
        return (Severity.HIGH if self.level is Level.MUST else Severity.LOW) if open_ else Severity.INFO


def unseen(why: str, *, needed: bool) -> Said:
    """Say that something could not be seen; that leaves a verdict open only where it is needed."""
    return Said(
        Outcome.UNKNOWN, f"Not seen: {why}.", "not seen", level=Level.MUST if needed else Level.ADVISORY,
        remediation="Make the training step show it, on a CPU." if needed else "",
    )  # fmt: skip


def absent(why: str, *, needed: bool) -> Said:
    """Say that there is nothing to see, which is a failure where it is needed."""
    if needed:
        return Said(
            Outcome.FAILED, f"{why[0].upper()}{why[1:]}.", "absent", expected="what the training step 'needs'",
            impact="What the training step is to show does not happen in it.",
            remediation="Mend the training step, or take this out of its 'needs'.",
        )  # fmt: skip
    return Said(Outcome.NOT_APPLICABLE, f"{why[0].upper()}{why[1:]}.", "nothing to see", level=Level.ADVISORY)
