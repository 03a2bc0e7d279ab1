"""What the report tells of build, imports and deprecations."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from gates.check import EvidenceSet
from gates.checks.startup.collect import Ending, Startup
from gates.evidence.entry_points import EntryPointRuns
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Warned
from gates.model import Location
from gates.report import Section
from gates.task.task import Task

OURS = "the project"
PYTHON = "Python"
INSTALLED = re.compile(r"(?:^|/)(?:site-packages|dist-packages)/([^/]+)")
DEPRECATIONS = {"DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"}


def owner_of(location: Location) -> str:
    """Return whose a file is, by its path; one inside of the project is given relative to its root."""
    if installed := INSTALLED.search(location.path):
        return installed[1].removesuffix(".py")
    return PYTHON if PurePath(location.path).is_absolute() else OURS


def is_deprecation(category: str) -> bool:
    """Return whether a warning speaks of deprecated use; many libraries derive categories of their own."""
    return category in DEPRECATIONS or "Deprecat" in category or "RemovedIn" in category


LISTED = 100


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell build, imports and deprecations."""
    seen = evidence.get(Startup)
    if seen is None:
        yield Section(title="Build and Start-up", text=f"Not seen: {evidence.why_missing(Startup)}.")
    else:
        yield _startup_section(seen)
    rows = [(source, warned) for source, warned in warned_of(evidence) if is_deprecation(warned.category)]
    yield Section(
        title="Deprecations",
        text=f"The first {LISTED} of {len(rows)}." if len(rows) > LISTED else "" if rows else "None was seen.",
        columns=("Place", "Owner", "Category", "Message", "Seen in"),
        rows=tuple((str(w.location), owner_of(w.location), w.category, w.message, s) for s, w in rows[:LISTED]),
    )


def warned_of(evidence: EvidenceSet) -> Iterator[tuple[str, Warned]]:
    """Yield each warning once, with where it was seen first."""
    run, entries, startup = evidence.get(PytestRun), evidence.get(EntryPointRuns), evidence.get(Startup)
    told = [
        *(("tests", warned) for warned in (run.warnings if run else ())),
        *((f"entry point {r.index + 1}", warned) for r in (entries.runs if entries else ()) for warned in r.warnings),
        *(("imports", warned) for warned in (startup.warnings if startup else ())),
    ]
    seen = set()
    for source, warned in told:
        if warned not in seen:
            seen.add(warned)
            yield source, warned


def _startup_section(seen: Startup) -> Section:
    built = seen.build
    imported = sum(module.ending is Ending.IMPORTED for module in seen.modules)
    told = built.problem or f"{built.wheel}, {built.files} files, {built.bytes} bytes"
    absent = (("Not in the wheel", ", ".join(built.absent[:10])),) if built.absent else ()
    others = [w for w in seen.warnings if owner_of(w.location) != OURS]
    facts = (
        ("Build", f"{built.ending.value}{f' ({built.backend})' if built.backend else ''}: {told}"),
        *absent,
        ("Modules imported by themselves", f"{imported} of {len(seen.modules)}"),
        ("Not imported", ", ".join(seen.aside[:10]) or "-"),
        ("Warnings at import", f"{len(seen.warnings) - len(others)} of the project, {len(others)} of others"),
    )
    return Section(
        title="Build and Start-up",
        facts=facts,
        columns=("Module", "Ended", "Error", "Place"),
        rows=tuple(
            (module.name, module.ending.value, module.error, str(module.location or module.path))
            for module in seen.modules if module.ending is not Ending.IMPORTED
        )[:LISTED],
    )  # fmt: skip
