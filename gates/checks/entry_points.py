"""Entry points: does the production code run to its end, and would a test notice?"""

from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet, for_criteria
from gates.child.probing import advice_on
from gates.evidence.entry_points import EntryPointRuns, EntryRun
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD
from gates.model import Finding, Location, Planned, Row, Severity, as_rules
from gates.report import Section
from gates.task.task import EntryPoint, Task
from gates.words import first_of

SHOWN = 3

RULES = as_rules(
    EX004="Entry points run to their end. Each entry point must end with exit code 0; a callable must return. A crash "
    "is critical. It names the exception, the project's line, and why no test caught it.",
    EX012="Entry points come to a result. An entry point shows nothing where it ends well but returns an error, a "
    "skip or None, or writes BLOCK or FAILED. Its criteria stay inconclusive.",
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan each entry point, and each criterion that one shows."""
    for i, entry in enumerate(task.entry_points):
        yield Planned(id=f"entry:{i}", title=f"Entry point ends well: {entry.name}")
    for i, entry in enumerate(task.entry_points):
        yield from for_criteria(task, entry, f"entry:{i}", f" is shown by entry point {i + 1}")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each entry point by its end, for itself and for the criteria that it shows."""
    entries = evidence.get(EntryPointRuns)
    for i, entry in enumerate(task.entry_points):
        seen = next((r for r in entries.runs if r.index == i), None) if entries else None
        finding = _entry(task, i, entry, seen, evidence)
        yield finding
        for criterion in task.criteria_of(entry):
            own = {"check": f"entry:{i}:{criterion.id}", "criterion": criterion.id, "level": criterion.level}
            yield Finding.model_validate({**finding.model_dump(exclude={"fingerprint"}), **own})


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each entry point's end, and each crash in full."""
    entries = evidence.get(EntryPointRuns)
    runs = entries.runs if entries else ()
    ends = [(one.process.ended, f"{one.process.duration_s:.2f}") if one.process else (one.problem, "-") for one in runs]
    yield Section(
        title="Entry Points",
        text="" if entries else f"Not run: {evidence.why_missing(EntryPointRuns)}.",
        columns=("Ended", "Returned", "Duration (s)", "Command or call"),
        rows=tuple((ended, run.returned or "-", took, run.name) for run, (ended, took) in zip(runs, ends, strict=True)),
    )
    for run in runs:
        if run.error and run.process:
            last = "\n".join(run.process.stderr.tail.strip().splitlines()[-30:])
            yield Section(title=f"Crash in Entry Point {run.index + 1}", text=f"{run.name}: {run.error}", code=last)


def why_uncaught(crash: Location | None, evidence: EvidenceSet) -> str:
    """Say why no test caught a crash: which tests ran the line that it came from."""
    lines = evidence.get(ExecutedLines)
    if lines is None:
        return f"not known: {evidence.why_missing(ExecutedLines)}"
    if crash is None or crash.line is None:
        return "not known: the traceback names no line of the project"
    function = lines.function_at(crash)
    if function is None:
        return f"not known: {crash} lies in no function of the task's implementation, whose lines alone are noted"
    here, around = lines.contexts_in(crash), named_tests(lines.contexts_in(function.body))
    doubt = lines.doubt()
    unless = f", as far as was seen ({doubt})" if doubt else ""
    if at := named_tests(here):
        ended = _how_they_ended(at, evidence)
        return f"line {crash.line} of `{function.name}` was executed by {first_of(at, SHOWN)}, {ended}"
    if here:
        return f"line {crash.line} of `{function.name}` was executed at import or in a fixture, by no test itself"
    if around:
        others = f"other lines of it were, by {first_of(around, SHOWN)}"
        return f"line {crash.line} of `{function.name}` was executed by no test{unless}; {others}"
    return f"`{function.name}` ({function.location}) was executed by no test{unless}"


def _how_they_ended(tests: list[str], evidence: EvidenceSet) -> str:
    run = evidence.get(PytestRun)
    bad = [test.id for test in (run.tests if run else ()) if test.id in tests and test.outcome in BAD]
    if bad:
        return f"of which {first_of(bad, SHOWN)} failed"
    return "which did not fail: none of them gives it what this entry point does"


def _entry(task: Task, index: int, entry: EntryPoint, seen: EntryRun | None, evidence: EvidenceSet) -> Finding:
    name, expected = entry.name, "it returns" if entry.call else "exit code 0"
    about = About(rule="EX004", check=f"entry:{index}", subject=name, command=name, expected=expected)
    about = about.but(location=task.place(entry))
    if seen is None or seen.process is None:
        why = seen.problem if seen else evidence.why_missing(EntryPointRuns)
        fix = "Name a callable that there is." if entry.call else "Name a command that can be started."
        return about.unknown(f"The entry point was not seen running: {why}", fix, actual="not run")
    ended, about = seen.process, about.but(evidence=f"entry_points/{index}.stderr.txt")
    if ended.exit_code == 0:
        return _ended_well(about, name, seen)
    uncaught = f" Why no test caught it: {why_uncaught(seen.crash, evidence)}." if seen.error else ""
    facts = {"actual": ended.ended, "location": seen.crash or task.place(entry), "severity": Severity.CRITICAL}
    where = f" in `{seen.function}`" if seen.function and not seen.function.startswith("<") else ""
    returned = f" (it returned {seen.returned})" if seen.returned else ""
    message = f"`{name}`: {ended.ended}: {f'{seen.error}{where}' if seen.error else ended.last_words}{returned}"
    fix = advice_on(ended.last_words) or "Fix the crash and add a test that runs this path."
    said = about.unknown if ended.timed_out else about.failed
    return said(message, fix, impact=f"Users of this entry point meet this crash.{uncaught}", **facts)


def _ended_well(about: About, name: str, seen: EntryRun) -> Finding:
    if seen.no_result:
        message = f"`{seen.name}` ended well without a result: {seen.no_result}."
        fix = "Let it raise, or end with another exit code, where it failed or was skipped."
        none = about.but(rule="EX012", expected="a result", actual="no result")
        return none.unknown(message, fix, impact="It shows nothing of its criteria.")
    return about.passed(f"`{name}` ran to its end.", actual=seen.process.ended if seen.process else "")


CHECK = Check(
    "entry_points", "execution", 20, RULES, (EntryPointRuns,), plan, judge, describe, row=Row.TEST, label="entry point"
)
