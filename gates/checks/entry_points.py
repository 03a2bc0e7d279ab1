"""Entry points: does the production code run to its end, and would a test notice?"""

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

from gates.check import About, Check, Evidence, EvidenceSet
from gates.child.probing import Probe, advice_on, crash_of, probing, written
from gates.child.process import ProcessRun
from gates.config import Context
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD
from gates.model import CommandRecord, Finding, Location, Model, Planned, Row, Severity
from gates.project.files import pyproject_of
from gates.report import Section
from gates.task.task import EntryPoint, Task
from gates.words import first_of, printable

TABLES = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))
NO_RESULT = ("error", "errors", "skipped")  # a number under such a key is a count or a measure
SAYS_FAILED = re.compile(
    r"(?:[\w ]{1,30}[:=]\s*|[1-9]\d*\s+)?(?:BLOCK|BLOCKED|FAIL|FAILED)(?:\s*(?:[:!.,(-]|$))(?!\s*0\b)"
)


class EntryRun(Model):
    """One entry point: how it ended, what it returned, why that is `no_result`, and where and by what it crashed."""

    index: int
    name: str
    process: ProcessRun | None
    problem: str = ""
    crash: Location | None = None
    error: str = ""
    function: str = ""
    returned: str | None = None
    no_result: str = ""


class EntryPointRuns(Evidence):
    """All entry points of a task, each run once."""

    noted: ClassVar[bool] = True
    runs: tuple[EntryRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each entry point in its own process."""
        probe = probing(task, context, EntryPoint.key)
        runs = tuple(_run(i, entry, probe) for i, entry in enumerate(task.entry_points))
        commands = tuple(_recorded(run, task.entry_points[run.index].run or (run.name,)) for run in runs)
        return cls(how="each command and each call made once, in a process of its own", commands=commands, runs=runs)


def _recorded(run: EntryRun, argv: tuple[str, ...]) -> CommandRecord:
    ended, duration_s = (run.process.ended, run.process.duration_s) if run.process else (run.problem, 0)
    return CommandRecord(purpose="entry point", argv=argv, ended=ended, duration_s=duration_s)


def _run(index: int, entry: EntryPoint, probe: Probe) -> EntryRun:
    context, limit = probe.context, entry.timeout_s or probe.context.timeout_s
    if entry.call:
        asked = {"call": entry.call, "args": entry.args, "script": entry.call in scripts_of(context.root)}
        seen = probe.ask("calculating:once", f"{index}", asked, limit, env={})
    else:
        seen = probe.run(context.argv(entry.run or (), out=str(probe.folder / f"{index}.out")), f"{index}", limit)
    problem, ended, returned = seen.problem, seen.process, next(iter(seen.of("returned")), None)
    clean_end = ended is not None and ended.exit_code == 0 and not ended.timed_out
    if entry.call and clean_end and returned is None:
        problem = problem or "the process ended before the call returned"
    trace = probe.moved(written(probe.folder / f"{index}.stderr.txt"))
    crash = None if problem or clean_end else crash_of(trace, context)
    wrote = ended.stdout.tail if ended else ""
    return EntryRun(
        index=index,
        name=entry.name,
        process=None if problem else ended,
        problem=problem,
        **({"crash": crash.location, "error": crash.error, "function": crash.function} if crash else {}),
        returned=str(returned["text"]) if returned else None,
        no_result=printable(_no_result(str((returned or {}).get("text", "")), wrote)) if clean_end else "",
    )


def _no_result(returned: str, written: str) -> str:
    """Return why an entry point that ended well has no result: what it returned or wrote says that it failed."""
    last = written.strip().rpartition("\n")[2]
    for text, read in ((returned, ast.literal_eval), (written, json.loads), (last, json.loads)):
        value: object = None
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = read(text)
        for name, each in value.items() if isinstance(value, dict) else ():
            if str(name).lower() in NO_RESULT and (each is True or (isinstance(each, str) and each)):
                return f"it returned {name!s}: {each!s}"
        if value and isinstance(value, dict) and all(each is None for each in value.values()):
            return f"it returned None for {', '.join(map(str, value))}"
    said = next((line.strip() for line in written.splitlines() if SAYS_FAILED.match(line.strip())), "")
    return f"its output says {said!r}" if said else ""


def scripts_of(root: Path) -> set[str]:
    """Return the functions that `pyproject.toml` makes commands of, as `package.module:name`."""
    told = (text for table in TABLES for text in _values(pyproject_of(root), table))
    return {"".join(text.partition("[")[0].split()) for text in told}


def _values(said: object, table: tuple[str, ...]) -> Iterator[str]:
    for name in table:
        said = said.get(name) if isinstance(said, dict) else None
    yield from (text for text in said.values() if isinstance(text, str)) if isinstance(said, dict) else ()


SHOWN = 3


def plan(task: Task) -> Iterator[Planned]:
    """Plan each entry point, and each criterion that one shows."""
    for i, entry in enumerate(task.entry_points):
        yield Planned(id=f"entry:{i}", title=f"Entry point ends well: {entry.name}")
    for i, entry in enumerate(task.entry_points):
        for one in task.criteria_of(entry):
            title = f"{one.id} is shown by entry point {i + 1}"
            yield Planned(id=f"entry:{i}:{one.id}", title=title, level=one.level, criterion=one.id)


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


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each entry point's end, and each crash in full."""
    runs = entries.runs if (entries := evidence.get(EntryPointRuns)) else ()
    ends = [(one.process.ended, f"{one.process.duration_s:.2f}") if one.process else (one.problem, "-") for one in runs]
    rows = tuple((ended, run.returned or "-", took, run.name) for run, (ended, took) in zip(runs, ends, strict=True))
    columns = ("Ended", "Returned", "Duration (s)", "Command or call")
    text = "" if entries else f"Not run: {evidence.why_missing(EntryPointRuns)}."
    yield Section(title="Entry Points", text=text, columns=columns, rows=rows)
    for run in runs:
        if run.error and run.process:
            last = "\n".join(run.process.stderr.tail.strip().splitlines()[-30:])
            yield Section(title=f"Crash in Entry Point {run.index + 1}", text=f"{run.name}: {run.error}", code=last)


def why_uncaught(crash: Location | None, evidence: EvidenceSet) -> str:
    """Say why no test caught a crash: which tests ran the line that it came from."""
    if (lines := evidence.get(ExecutedLines)) is None:
        return f"not known: {evidence.why_missing(ExecutedLines)}"
    if crash is None or crash.line is None:
        return "not known: the traceback names no line of the project"
    if (function := lines.function_at(crash)) is None:
        return f"not known: {crash} lies in no function of the task's implementation, whose lines alone are noted"
    here, around = lines.contexts_in(crash), named_tests(lines.contexts_in(function.body))
    unless = f", as far as was seen ({doubt})" if (doubt := lines.doubt()) else ""
    if at := named_tests(here):
        run = evidence.get(PytestRun)
        bad = [test.id for test in (run.tests if run else ()) if test.id in at and test.outcome in BAD]
        ended = "which did not fail: none of them gives it what this entry point does"
        ended = f"of which {first_of(bad, SHOWN)} failed" if bad else ended
        return f"line {crash.line} of `{function.name}` was executed by {first_of(at, SHOWN)}, {ended}"
    if here:
        return f"line {crash.line} of `{function.name}` was executed at import or in a fixture, by no test itself"
    if around:
        others = f"other lines of it were, by {first_of(around, SHOWN)}"
        return f"line {crash.line} of `{function.name}` was executed by no test{unless}; {others}"
    return f"`{function.name}` ({function.location}) was executed by no test{unless}"


def _entry(task: Task, index: int, entry: EntryPoint, seen: EntryRun | None, evidence: EvidenceSet) -> Finding:
    name, expected = entry.name, "it returns" if entry.call else "exit code 0"
    about = About(rule="EX004", check=f"entry:{index}", subject=name, location=task.place(entry), expected=expected)
    about = about.but(command=name if entry.run else "")
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


CHECK = Check("entry_points", "execution", 20, (EntryPointRuns,), plan, judge, page, row=Row.TEST, label="entry point")
