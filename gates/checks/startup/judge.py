"""Build, start-up and deprecated API: what blocks, and what only costs score."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath, PurePosixPath

from gates.check import Check, EvidenceSet
from gates.checks.startup.collect import BuildEnding, Ending, Imported, Startup
from gates.evidence.entry_points import EntryPointRuns
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Warned
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
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
    others = [w for w in seen.warnings if owner_of(w.location) != OURS]
    by = f" ({built.backend})" if built.backend else ""
    facts = (
        ("Build", f"{built.ending.value}{by}: {built.problem or built.wheel}"),
        ("Modules imported by themselves", f"{imported} of {len(seen.modules)}"),
        ("Not imported", ", ".join(seen.aside[:10]) or "-"),
        ("Warnings at import", f"{len(seen.warnings) - len(others)} of the project, {len(others)} of others"),
    )
    return Section(
        title="Build and Start-up",
        facts=facts,
        columns=("Ended", "Module", "Error", "Place"),
        rows=tuple(
            (module.ending.value, module.name, module.error, str(module.location or module.path))
            for module in seen.modules
            if module.ending is not Ending.IMPORTED
        )[:LISTED],
    )


RAW = "Startup.json"
NAMED = 20

RULES = (
    RuleText(
        id="EX007",
        title="The package builds",
        meaning="A wheel is built of a copy by the installed backend, else by one that pip gets. A build that "
        "fails both ways is high. A backend that is not installed is unknown.",
    ),
    RuleText(
        id="EX008",
        title="Each module imports by itself",
        meaning="Each module is imported in its own process. Syntax errors, undefined names, cycles and "
        "missing modules of the project are high. Needs of something that is not here or of another "
        "platform are listed.",
    ),
    RuleText(
        id="EX009",
        title="No deprecated API is used",
        meaning="Deprecation warnings for lines of the project are listed: in tests, entry points and "
        "imports. Those for lines of a dependency carry its name. It never blocks.",
    ),
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the build, the imports, and the use of deprecated API."""
    yield Planned(id="build", title="The package builds", level=Level.SHOULD)
    yield Planned(id="imports", title="Each module imports by itself", level=Level.SHOULD)
    yield Planned(id="deprecations", title="No deprecated API is used", level=Level.ADVISORY)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge what was seen of build, imports and warnings."""
    seen = evidence.get(Startup)
    if seen is None:
        why = evidence.why_missing(Startup)
        for check, rule in (("build", "EX007"), ("imports", "EX008")):
            yield _unseen(rule, check, f"It was not seen starting up: {why}")
    else:
        yield _build(seen)
        yield from _imports(seen)
    yield from _deprecations(evidence)


def _build(seen: Startup) -> Finding:
    built = seen.build
    if built.ending is BuildEnding.UNSEEN:
        return _unseen("EX007", "build", f"The package was not built: {built.problem}")
    said = partial(Finding, rule="EX007", check="build", level=Level.SHOULD, actual=built.ending.value)
    if built.ending is BuildEnding.NONE:
        message = f"There is no package to build: {built.problem}."
        return said(outcome=Outcome.NOT_APPLICABLE, message=message, evidence=RAW)
    if built.ending is BuildEnding.BUILT:
        return said(outcome=Outcome.PASSED, message=f"{built.backend} built {built.wheel}.", evidence=RAW)
    return said(
        outcome=Outcome.FAILED,
        severity=Severity.MEDIUM if built.compiled else Severity.HIGH,
        location=Location(path="pyproject.toml") if built.backend else None,
        message=f"{built.backend} built no wheel: {built.problem}",
        expected="a wheel",
        impact="Nobody can install this version.",
        remediation="Fix what the backend names.",
        command="python -m pip wheel --no-deps .",
        evidence="startup/build.stderr.txt",
    )


def _imports(seen: Startup) -> Iterator[Finding]:
    said = partial(Finding, rule="EX008", check="imports", evidence=RAW)
    broken = _by_cause([module for module in seen.modules if module.ending is Ending.BROKEN])
    for module, others in broken[:NAMED]:
        yield said(
            outcome=Outcome.FAILED,
            severity=Severity.HIGH,
            level=Level.SHOULD,
            location=module.location,
            subject=module.name,
            expected="imported",
            actual=module.error,
            message=f"{module.name}{others} does not import by itself: {module.error}",
            impact="Whoever imports it first meets this error.",
            remediation="Fix the import.",
            command=f"python -c 'import {module.name}'",
        )
    aside = _by_cause([m for m in seen.modules if m.ending not in {Ending.BROKEN, Ending.IMPORTED}])
    for module, others in aside[:NAMED]:
        why = _why_aside(module, others)
        yield _unseen("EX008", "imports", why, location=module.location, subject=module.name)
    ours = [w for w in seen.warnings if owner_of(w.location) == OURS and not is_deprecation(w.category)]
    for warned in ours[:NAMED]:
        told = f"{warned.category}: {warned.message}"
        what = {"subject": told, "message": f"Importing it warns: {told}", "actual": warned.category}
        fix = {"expected": "no warning", "remediation": "Fix what the warning speaks of."}
        yield said(outcome=Outcome.FAILED, level=Level.ADVISORY, location=warned.location, **what, **fix)
    over = sum(max(count - NAMED, 0) for count in (len(broken), len(aside), len(ours)))
    if over:
        yield _unseen("EX008", "imports", f"{over} more modules or warnings are in {RAW}.", subject="more")
    if seen.problem:
        yield _unseen("EX008", "imports", seen.problem, subject="unreached")
    elif not broken and not aside and not ours:
        count = len(seen.modules)
        alone = f"{count} modules import by themselves, without a warning of their own code."
        message = alone if count else "The implementation holds no module of a package."
        outcome = Outcome.PASSED if count else Outcome.NOT_APPLICABLE
        yield said(
            outcome=outcome, level=Level.SHOULD, message=message, expected="imported", actual=f"{count} imported"
        )


def _by_cause(modules: list[Imported]) -> list[tuple[Imported, str]]:
    """Return one module for each cause, with what to say of the others that fail by the same."""
    causes: dict[tuple[str, str], list[Imported]] = {}
    for module in modules:
        causes.setdefault((str(module.location), module.error), []).append(module)
    return [
        (alike[0], f" (and {len(alike) - 1} more by the same)" if len(alike) > 1 else "") for alike in causes.values()
    ]


def _why_aside(module: Imported, others: str) -> str:
    if module.missing:
        return f"{module.name}{others} was not imported: it needs {module.missing}, which is not here"
    if module.ending is Ending.UNSEEN:
        return f"{module.name}{others} was not seen importing: {module.error}"
    return f"{module.name}{others} refuses to be imported alone: {module.error}"


def _deprecations(evidence: EvidenceSet) -> Iterator[Finding]:
    said = partial(Finding, rule="EX009", check="deprecations", level=Level.ADVISORY)
    warned = [warned for _, warned in warned_of(evidence) if is_deprecation(warned.category)]
    ours = [w for w in warned if owner_of(w.location) == OURS and not _is_test(w.location)]
    first = list({f"{w.location.path} {w.category} {w.message}": w for w in reversed(ours)}.items())[::-1]
    for key, one in first[:NAMED]:
        what = {"subject": key, "actual": one.category, "message": f"Deprecated use: {one.category}: {one.message}"}
        fix = {"impact": "A later version drops it.", "remediation": "Use what the warning names instead."}
        yield said(outcome=Outcome.FAILED, location=one.location, expected="no deprecated use", **what, **fix)
    if ours:
        return
    looked = [kind for kind in (PytestRun, EntryPointRuns, Startup) if evidence.get(kind)]
    none = f"No line of the implementation caused a deprecation warning; {len(warned)} came from elsewhere."
    message = none if looked else "Neither tests nor imports were seen, and so no warning of them."
    outcome = Outcome.PASSED if Startup in looked or PytestRun in looked else Outcome.UNKNOWN
    yield said(outcome=outcome, severity=Severity.INFO, actual="none" if looked else "not seen", message=message)


def _is_test(location: Location) -> bool:
    path = PurePosixPath(location.path)
    return path.stem.startswith("test_") or path.stem == "conftest" or bool({"tests", "test"} & {*path.parts})


def _unseen(rule: str, check: str, message: str, *, location: Location | None = None, subject: str = "") -> Finding:
    said = partial(Finding, rule=rule, check=check, outcome=Outcome.UNKNOWN, level=Level.ADVISORY, evidence=RAW)
    fix = "Install what it needs, or run it where that is installed."
    return said(message=message, location=location, subject=subject, actual="not seen", remediation=fix)


CHECK = Check(
    name="startup", gate="execution", order=40, rules=RULES, uses=(Startup,), plan=plan, judge=judge, page=page
)
