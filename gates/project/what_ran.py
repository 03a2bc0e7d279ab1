"""What ran beside what the commit has: code that the commit lacks, and code that nobody can read."""

from collections.abc import Iterable

from gates.evidence.lines.imported_code import ImportedCode
from gates.model import Finding, Outcome, Revision, RuleText, Severity

NAMED = 5

UNREAD_CODE = RuleText(
    id="GT005",
    title="What ran can be read",
    meaning="Tests imported bytecode of the project that has no source. No check reads it, so the "
    "verdict cannot be a pass.",
)


def of_what_ran(revision: Revision, seen: ImportedCode | None) -> Revision:
    """Return the revision that the evidence speaks of: none of the commit alone where other files ran, too."""
    if seen is None or not seen.strays or revision.commit is None:
        return revision
    return revision.model_copy(update={"dirty": True, "strays": seen.strays, "web": None})


def unread(seen: ImportedCode | None) -> Iterable[Finding]:
    """Say so where code without a source ran."""
    if seen is None or not seen.sourceless:
        return
    yield Finding(
        rule="GT005",
        check="sources",
        outcome=Outcome.UNKNOWN,
        severity=Severity.HIGH,
        message=f"Bytecode without a source ran: {', '.join(seen.sourceless[:NAMED])}.",
        impact="What it does was not read, whatever the sources beside it say.",
        remediation="Commit the source in its place; remove the bytecode.",
    )
