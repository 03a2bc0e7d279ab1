"""What only some reports have to say at their head: what is waived, how the bar stands, what is not of the commit."""

from collections.abc import Sequence

from gates.model import Finding, Outcome
from gates.report import Report, ranked

STRAYS = 5
UNSEEN = "Whether the change lowers what judges it was not seen: "


def waived(report: Report) -> list[Finding]:
    """Return the findings that a waiver covers, worst first."""
    return [finding for finding in ranked(report.every_finding) if finding.waived]


def waivers(report: Report) -> list[str]:
    """Return how each waiver stands on the day of the run, what does not work any more or soon will not first."""
    return list(dict.fromkeys(f.message for f in ranked(report.every_finding) if f.rule == "BL012"))


def goalposts(report: Report) -> list[Finding]:
    """Return what was made lower of the bar that the change is judged by, what stops it first."""
    moved = [f for f in ranked(report.every_finding) if f.rule == "BL011" and f.outcome is Outcome.FAILED]
    return sorted(moved, key=lambda f: not f.blocks)


def uncompared(report: Report) -> list[str]:
    """Return why the bar was not compared with an earlier one, where the gate that does so ran."""
    found = [f for gate in report.gates if gate.ran for f in gate.findings if f.rule == "BL011" and not f.subject]
    return [f.message.removeprefix(UNSEEN) for f in found if f.outcome is Outcome.UNKNOWN]


def strays(report: Report) -> str:
    """Return the files that ran and that the commit does not have, and those that git does not say of that differ."""
    ran, hidden = report.revision.strays, report.revision.hidden
    parts = [f"{_named(ran)} ran and {'is' if len(ran) == 1 else 'are'} not in it"] if ran else []
    parts += [f"{_named(hidden)} {'differs' if len(hidden) == 1 else 'differ'} from it unseen by git"] if hidden else []
    return ", ".join(parts)


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - STRAYS} more" if len(files) > STRAYS else ""
    return f"{', '.join(files[:STRAYS])}{more}"


OFFERED = (waived, waivers, goalposts, uncompared, strays)  # to templates
