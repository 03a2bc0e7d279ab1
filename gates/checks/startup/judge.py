"""Build and start-up: what blocks, and what only costs score."""

from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet
from gates.checks.startup.collect import Startup
from gates.model import Finding, Level, Location, Outcome, Planned, Severity, as_rules
from gates.report import Section
from gates.task.task import Task

BUILT = {Outcome.PASSED: "built", Outcome.FAILED: "failed", Outcome.UNKNOWN: "not seen"}


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell build and imports."""
    seen = evidence.get(Startup)
    if seen is None:
        yield Section(title="Build and Start-up", text=f"Not seen: {evidence.why_missing(Startup)}.")
        return
    built = seen.build
    imported = sum(module.ending is Outcome.PASSED for module in seen.modules)
    by = f" ({built.backend})" if built.backend else ""
    facts = (
        ("Build", f"{BUILT.get(built.ending, 'no package')}{by}: {built.problem or built.wheel}"),
        ("Modules imported by themselves", f"{imported} of {len(seen.modules)}"),
        ("Not imported", ", ".join(seen.aside[:10]) or "-"),
    )
    yield Section(title="Build and Start-up", facts=facts)


RAW = "Startup.json"

RULES = as_rules(
    EX007="The package builds. A wheel is built of a copy by the installed backend, else by one that pip gets. A "
    "build that fails both ways is high. A backend that is not installed is unknown.",
    EX008="Each module imports by itself. Each module is imported in its own process. Syntax errors, undefined names, "
    "cycles and missing modules of the project are high. Needs of something that is not here or of another platform "
    "are listed.",
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the build and the imports."""
    yield Planned(id="build", title="The package builds", level=Level.SHOULD)
    yield Planned(id="imports", title="Each module imports by itself", level=Level.SHOULD)


BUILD = About(rule="EX007", check="build", evidence=RAW)
IMPORTS = About(rule="EX008", check="imports", evidence=RAW)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge what was seen of build and imports."""
    seen = evidence.get(Startup)
    if seen is None:
        yield from (
            _unseen(a, f"It was not seen starting up: {evidence.why_missing(Startup)}") for a in (BUILD, IMPORTS)
        )
    else:
        yield _build(seen)
        yield from _imports(seen)


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
    amiss = [module for module in seen.modules if module.ending is not Outcome.PASSED]
    for module in amiss:
        message, place = f"{module.name} {module.why}", {"location": module.location, "subject": module.name}
        own = about.but(severity=Severity.HIGH, actual=module.error, cause=module.error, **place)
        own = own.but(impact="Whoever imports it first meets this error.", command=f"python -c 'import {module.name}'")
        broken = module.ending is Outcome.FAILED
        yield own.failed(message, "Fix the import.") if broken else _unseen(IMPORTS, message, **place)
    if seen.problem:
        yield _unseen(IMPORTS, seen.problem, subject="unreached")
    elif not amiss:
        count = len(seen.modules)
        message, own = f"{count} modules import by themselves", about.but(actual=f"{count} imported")
        none = "The implementation holds no module of a package."
        yield own.passed(f"{message}.") if count else own.not_asked(none)


def _unseen(about: About, message: str, **own: object) -> Finding:
    fix = "Install what it needs, or run it where that is installed."
    return about.unknown(message, fix, level=Level.ADVISORY, actual="not seen", **own)


CHECK = Check("startup", "execution", 40, RULES, (Startup,), plan, judge, page)
