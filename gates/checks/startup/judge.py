"""Build, start-up and deprecated API: what blocks, and what only costs score."""

import re
from collections.abc import Iterator
from pathlib import PurePath, PurePosixPath

from gates.check import About, Check, EvidenceSet
from gates.checks.startup.collect import Imported, Startup
from gates.evidence.entry_points import EntryPointRuns
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Warned
from gates.model import Finding, Level, Location, Outcome, Planned, Severity, as_rules
from gates.report import Section
from gates.task.task import Task

OURS = "the project"
PYTHON = "Python"
BUILT = {Outcome.PASSED: "built", Outcome.FAILED: "failed", Outcome.UNKNOWN: "not seen"}
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


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell build, imports and deprecations."""
    seen = evidence.get(Startup)
    if seen is None:
        yield Section(title="Build and Start-up", text=f"Not seen: {evidence.why_missing(Startup)}.")
    else:
        yield _startup_section(seen)
    rows = [(source, warned) for warned, source in warned_of(evidence).items() if is_deprecation(warned.category)]
    yield Section(
        title="Deprecations",
        text="" if rows else "None was seen.",
        columns=("Place", "Owner", "Category", "Message", "Seen in"),
        rows=tuple((str(w.location), owner_of(w.location), w.category, w.message, s) for s, w in rows),
    )


def warned_of(evidence: EvidenceSet) -> dict[Warned, str]:
    """Return each warning with where it was seen first."""
    run, entries, startup = evidence.get(PytestRun), evidence.get(EntryPointRuns), evidence.get(Startup)
    sources = {"tests": run.warnings if run else ()}
    sources |= {f"entry point {r.index + 1}": r.warnings for r in (entries.runs if entries else ())}
    sources |= {"imports": startup.warnings if startup else ()}
    found: dict[Warned, str] = {}
    for source, warnings in sources.items():
        found |= {warned: source for warned in warnings if warned not in found}
    return found


def _startup_section(seen: Startup) -> Section:
    built = seen.build
    imported = sum(module.ending is Outcome.PASSED for module in seen.modules)
    others = [w for w in seen.warnings if owner_of(w.location) != OURS]
    by = f" ({built.backend})" if built.backend else ""
    facts = (
        ("Build", f"{BUILT.get(built.ending, 'no package')}{by}: {built.problem or built.wheel}"),
        ("Modules imported by themselves", f"{imported} of {len(seen.modules)}"),
        ("Not imported", ", ".join(seen.aside[:10]) or "-"),
        ("Warnings at import", f"{len(seen.warnings) - len(others)} of the project, {len(others)} of others"),
    )
    return Section(title="Build and Start-up", facts=facts)


RAW = "Startup.json"

RULES = as_rules(
    EX007="The package builds. A wheel is built of a copy by the installed backend, else by one that pip gets. A "
    "build that fails both ways is high. A backend that is not installed is unknown.",
    EX008="Each module imports by itself. Each module is imported in its own process. Syntax errors, undefined names, "
    "cycles and missing modules of the project are high. Needs of something that is not here or of another platform "
    "are listed.",
    EX009="No deprecated API is used. Deprecation warnings for lines of the project are listed: in tests, entry "
    "points and imports. Those for lines of a dependency carry its name. It never blocks.",
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the build, the imports, and the use of deprecated API."""
    yield Planned(id="build", title="The package builds", level=Level.SHOULD)
    yield Planned(id="imports", title="Each module imports by itself", level=Level.SHOULD)
    yield Planned(id="deprecations", title="No deprecated API is used", level=Level.ADVISORY)


BUILD = About(rule="EX007", check="build", evidence=RAW)
IMPORTS = About(rule="EX008", check="imports", evidence=RAW)
DEPRECATED = About(rule="EX009", check="deprecations", level=Level.ADVISORY)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge what was seen of build, imports and warnings."""
    seen = evidence.get(Startup)
    if seen is None:
        yield from (
            _unseen(a, f"It was not seen starting up: {evidence.why_missing(Startup)}") for a in (BUILD, IMPORTS)
        )
    else:
        yield _build(seen)
        yield from _imports(seen)
    yield from _deprecations(evidence)


def _build(seen: Startup) -> Finding:
    built, about = seen.build, BUILD.but(level=Level.SHOULD, actual=BUILT.get(seen.build.ending, "no package"))
    if built.ending is Outcome.UNKNOWN:
        return _unseen(BUILD, f"The package was not built: {built.problem}")
    if built.ending is Outcome.NOT_APPLICABLE:
        return about.not_asked(f"There is no package to build: {built.problem}.")
    if built.ending is Outcome.PASSED:
        return about.passed(f"{built.backend} built {built.wheel}.")
    about = about.but(severity=Severity.MEDIUM if built.compiled else Severity.HIGH, expected="a wheel")
    about = about.but(location=Location(path="pyproject.toml") if built.backend else None)
    about = about.but(impact="Nobody can install this version.", command="python -m pip wheel --no-deps .")
    message = f"{built.backend} built no wheel: {built.problem}"
    return about.failed(message, "Fix what the backend names.", evidence="startup/build.stderr.txt")


def _imports(seen: Startup) -> Iterator[Finding]:
    about = IMPORTS.but(level=Level.SHOULD, expected="imported")
    broken = _by_cause([module for module in seen.modules if module.ending is Outcome.FAILED])
    for module, others in broken:
        own = about.but(severity=Severity.HIGH, location=module.location, subject=module.name, actual=module.error)
        own = own.but(impact="Whoever imports it first meets this error.", command=f"python -c 'import {module.name}'")
        yield own.failed(f"{module.name}{others} {module.why}", "Fix the import.")
    aside = _by_cause([module for module in seen.modules if module.ending is Outcome.UNKNOWN])
    for module, others in aside:
        yield _unseen(IMPORTS, f"{module.name}{others} {module.why}", location=module.location, subject=module.name)
    ours = [w for w in seen.warnings if owner_of(w.location) == OURS and not is_deprecation(w.category)]
    for warned in ours:
        told = f"{warned.category}: {warned.message}"
        own = IMPORTS.but(location=warned.location, subject=told, expected="no warning", actual=warned.category)
        message, fix = f"Importing it warns: {told}", "Fix what the warning speaks of."
        yield own.failed(message, fix, level=Level.ADVISORY)
    if seen.problem:
        yield _unseen(IMPORTS, seen.problem, subject="unreached")
    elif not broken and not aside and not ours:
        count = len(seen.modules)
        message, own = f"{count} modules import by themselves", about.but(actual=f"{count} imported")
        none = "The implementation holds no module of a package."
        yield own.passed(f"{message}, without a warning of their own code.") if count else own.not_asked(none)


def _by_cause(modules: list[Imported]) -> list[tuple[Imported, str]]:
    """Return one module for each cause, with what to say of the others that fail by the same."""
    causes: dict[tuple[str, str], list[Imported]] = {}
    for module in modules:
        causes.setdefault((str(module.location), module.error), []).append(module)
    counts = [(alike[0], len(alike) - 1) for alike in causes.values()]
    return [(module, f" (and {more} more by the same)" if more else "") for module, more in counts]


def _deprecations(evidence: EvidenceSet) -> Iterator[Finding]:
    warned = [warned for warned in warned_of(evidence) if is_deprecation(warned.category)]
    ours = [w for w in warned if owner_of(w.location) == OURS and not _is_test(w.location)]
    first = list({f"{w.location.path} {w.category} {w.message}": w for w in reversed(ours)}.items())[::-1]
    for key, one in first:
        own = DEPRECATED.but(location=one.location, subject=key, expected="no deprecated use", actual=one.category)
        message, fix = f"Deprecated use: {one.category}: {one.message}", "Use what the warning names instead."
        yield own.failed(message, fix, impact="A later version drops it.")
    looked = [kind for kind in (PytestRun, EntryPointRuns, Startup) if evidence.get(kind)]
    if ours:
        return
    none = f"No line of the implementation caused a deprecation warning; {len(warned)} came from elsewhere."
    message = none if looked else "Neither tests nor imports were seen, and so no warning of them."
    outcome = Outcome.PASSED if Startup in looked or PytestRun in looked else Outcome.UNKNOWN
    yield DEPRECATED(outcome, message, severity=Severity.INFO, actual="none" if looked else "not seen")


def _is_test(location: Location) -> bool:
    path = PurePosixPath(location.path)
    return path.stem.startswith("test_") or path.stem == "conftest" or bool({"tests", "test"} & {*path.parts})


def _unseen(about: About, message: str, **own: object) -> Finding:
    fix = "Install what it needs, or run it where that is installed."
    return about.unknown(message, fix, level=Level.ADVISORY, actual="not seen", **own)


CHECK = Check("startup", "execution", 40, RULES, (Startup,), plan, judge, page)
