"""The records of a test run, folded from the events that its witness told; and where its witnesses disagree."""

import json
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from gates.child.process import ProcessRun
from gates.config import Context
from gates.evidence.tests.test_records import UNAWAITED, Event, LeftOut, Out, TestOutcome, TestRecord, Warned
from gates.model import Location
from gates.words import grouped, printable

Told = Mapping[str, list[Event]]
Tests = tuple[TestRecord, ...]


def tests(told: Told, context: Context) -> Iterator[TestRecord]:
    """Yield a record of each planned test."""
    reports = grouped(told["report"], lambda event: str(event["id"]))
    for test_id, plan in {event["id"]: event for event in told["planned"]}.items():
        yield _record(test_id, plan, reports[test_id], context)


def _record(test_id: str, plan: Event, seen: list[Event], context: Context) -> TestRecord:
    telling = next((event for event in seen if event["outcome"] == "failed"), None)
    telling = telling or next((event for event in seen if event["outcome"] in {"skipped", "rerun"}), {})
    path, line = telling.get("path", ""), telling.get("line", 0)
    inside = path and line > 0 and (context.root / path).is_relative_to(context.root)
    return TestRecord(
        id=test_id,
        location=_place(plan, context),
        criteria=tuple(plan["criteria"]),
        outcome=outcome_of(seen),
        duration_s=round(sum(event["duration"] for event in seen), 4),
        message=str(telling.get("message") or telling.get("reason") or ""),
        crash=_place(telling, context) if inside else None,
        subtests_left_out=sum(event["subtest"] and event["outcome"] == "skipped" for event in seen),
        reruns=sum(event["outcome"] == "rerun" for event in seen),
    )


def outcome_of(reports: list[Event]) -> TestOutcome:
    """Fold the phases of one test into its outcome: the worst counts, and without a teardown it has no end."""
    if any(r["outcome"] == "failed" and r["when"] == "call" for r in reports):
        return TestOutcome.FAILED
    if any(r["outcome"] == "failed" for r in reports):
        return TestOutcome.ERROR
    if not any(r["when"] == "teardown" for r in reports):
        return TestOutcome.NOT_RUN
    main = [r for r in reports if not r["subtest"]]
    if any(r["outcome"] == "skipped" for r in main):
        return TestOutcome.XFAILED if any(r["xfail"] for r in main) else TestOutcome.SKIPPED
    calls = [r for r in main if r["when"] == "call" and r["outcome"] == "passed"]
    return TestOutcome.NOT_RUN if not calls else TestOutcome.XPASSED if calls[-1]["xfail"] else TestOutcome.PASSED


def left_out(told: Told, context: Context) -> Iterator[LeftOut]:
    """Yield the tests that were collected and then left out, and the files and classes that were skipped."""
    for name, event in sorted({event["id"]: event for event in told["deselected"]}.items()):
        facts = {"criteria": event["criteria"], "doubted": not event["mark"]}
        yield LeftOut(id=name, location=_place(event, context), how=Out.DESELECTED, **facts)
    for name, event in {event["id"]: event for event in told["collect_skipped"]}.items():
        where = Location(path=name.split("::")[0], line=event["line"] or None)
        yield LeftOut(id=name, location=where, how=Out.SKIPPED, why=event["message"])


def warnings(told: Told, context: Context) -> Iterator[Warned]:
    """Yield each warning."""
    for event in told["warning"]:
        category, message = event["category"], event["message"]
        # of what pytest says of a test itself, that test is known; other warnings are told once
        about = event["id"] if category.startswith("Pytest") or UNAWAITED in message else ""
        yield Warned(category=category, message=message, location=_place(event, context), test=about)


def running(told: Told) -> tuple[str, ...]:
    """Return the tests that began and were never over."""
    began, over = (Counter(event["id"] for event in told[kind]) for kind in ("began", "over"))
    return tuple(began - over)


def _place(event: Event, context: Context) -> Location:
    return _at(context, event["path"], max(int(event["line"]), 1))


@lru_cache
def _at(context: Context, path: str, line: int) -> Location:
    """Return the one place of all parameter sets of a test: there may be tens of thousands."""
    return Location(path=context.shown(context.root / path), line=line)


UNBEGUN = "before pytest was configured, in a plugin or a conftest file"
STAGES = {
    "start": "between configuring pytest and collecting tests",
    "collecting": "while collecting {id}",
    "asked": "between collecting the tests and running them",
    "began": "in {id}",
    "over": "after {id} had ended",
    "end": "after the session had ended",
}


def stage_of(events: list[Event]) -> str:
    """Return, in words, what the run was at when its last event was told."""
    last = next((event for event in reversed(events) if event["event"] in STAGES), None)
    reads = [event for event in events if event["event"] in {"collecting", "collected"}]
    last = reads[-1] if reads and reads[-1]["event"] == "collecting" else last
    return STAGES[last["event"]].format(**last) if last else UNBEGUN


COMPARED = {"exitcode", "tests", "nodeid", "outcome"}  # the rest of a JSON report is let go while it is read
WHAT = {
    "passes": "asserts 1 + 1 == 2",
    "fails": "asserts 1 + 1 == 3",
    "compares": "asserts 1 + 1 == 3 by unittest",
    "expects": "expects an exception that does not come",
}


def disagreements(ended: ProcessRun, told: Told, tests: Tests, folder: Path, asked: tuple[str, ...]) -> Iterator[str]:
    """Name every contradiction between the witnesses of a run that came to its own end."""
    if ended.exit_code not in {0, 1}:
        return
    yield from _ended(ended, told)
    if missing := [test.id for test in tests if test.outcome is TestOutcome.NOT_RUN]:
        yield f"{len(missing)} of {len(tests)} planned tests have no end, first {missing[0]}"
    if unplanned := {event["id"] for event in told["report"]} - {test.id for test in tests}:
        yield f"{len(unplanned)} tests ended that were never planned, first {min(unplanned)}"
    taken = [event["args"] for event in told["asked"]]
    if any(set(args) != set(asked) for args in taken):
        yield f"pytest was asked for {', '.join(asked)}, but collected {', '.join(taken[0]) or 'nothing'}"
    if lost := next((event for event in told["lost"] if event["count"]), None):
        yield f"{lost['count']} tests were collected and then dropped without a word, first {lost['ids'][0]}"
    if {event["pid"] for event in told["ran"]} - {event["pid"] for event in told["canaries"]}:
        yield "tests were called, but not by the harness that our own tests of it were to try"
    yield from _uncalled(told, tests)
    yield from _rewritten(told)
    yield from _against_json(folder / "report.json", ended, tests)
    yield from _against_junit(folder / "junit.xml", told, tests)


def _ended(ended: ProcessRun, told: Told) -> Iterator[str]:
    """Name what contradicts the end of the process, of its workers and forks."""
    if not (ends := [event for event in told["end"] if not event["worker"]]):
        yield f"the process ended with exit code {ended.exit_code}, but pytest never came to the end of its session"
    elif ends[-1]["exit_code"] != ended.exit_code:
        yield f"pytest's session ended with {ends[-1]['exit_code']}, its process with {ended.exit_code}"
    if not all(event["asserts"] for event in told["start"]):
        yield "Python ran with -O, under which no assertion is executed"
    pids = Counter(event["pid"] for event in told["end"])
    for event in told["start"]:
        if event["worker"] and event["pid"] not in pids:
            yield f"worker {event['worker']} vanished: it never came to the end of its session"
    if unheard := {event["worker"] for event in told["worker_down"]} - {event["worker"] for event in told["start"]}:
        yield f"worker {', '.join(sorted(unheard))} was never heard of"
    if told["strayed"]:
        yield f"a fork of the process went on with the session after {told['strayed'][0]['id'] or 'a test'}"
    elif max(pids.values(), default=0) > 1:
        yield "the end of one session was told more than once: a fork of the process went on with it"


def _uncalled(told: Told, tests: Tests) -> Iterator[str]:
    """Name tests that passed though nobody called their function."""
    planned, ran = ({event["id"]: event for event in told[kind]} for kind in ("planned", "ran"))
    passed = (test.id for test in tests if test.outcome is TestOutcome.PASSED and planned[test.id]["plain"])
    if uncalled := next((name for name in passed if not ran.get(name, {}).get("called")), None):
        yield f"{uncalled} passed, but its function was never called"


def _rewritten(told: Told) -> Iterator[str]:
    """Name tests whose exceptions outnumber the reports that admit them; a rerun, an xfail and a subtest do."""
    raised: dict[tuple[str, str], list[str]] = defaultdict(list)
    expected, admitted, excused = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for event in told["raw"]:
        raised[event["id"], event["when"]].append(event["error"])
        expected[event["id"], event["when"]] += event["expected"]
    inner = {k: e["error"] for e in told["ran"] if e.get("error") and (k := (e["id"], "call")) not in raised}
    for event in told["report"]:
        if event["outcome"] in {"failed", "rerun"} or event["xfail"]:
            admitted[event["id"], event["when"]] += 1
            excused[event["id"], event["when"]] += event["xfail"]
    for key, errors in {**raised, **{key: [error] for key, error in inner.items()}}.items():
        if len(errors) > admitted[key]:
            yield f"{key[0]} raised {errors[0]} in its {key[1]}, but its report does not say so"
        elif excused[key] > expected[key] and key not in inner:
            yield f"{key[0]} raised {errors[0]}, which only its report calls an expected failure"


def _against_json(path: Path, ended: ProcessRun, tests: Tests) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        report = json.loads(text, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if k in COMPARED})
        theirs = {printable(str(test["nodeid"])): _broken(str(test["outcome"])) for test in report["tests"]}
        code = int(report["exitcode"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"the JSON report is missing or unreadable: {type(error).__name__}: {error}"
        return
    if code != ended.exit_code:
        yield f"the JSON report says exit code {code}, the process {ended.exit_code}"
    ours = {test.id: _broken(test.outcome.value) for test in tests}
    rerun = {test.id for test in tests if test.reruns and theirs.get(test.id) == "rerun"}
    for name in sorted(n for n in (ours.keys() | theirs.keys()) - rerun if ours.get(n) != theirs.get(n))[:1]:
        yield f"{name}: the plugin saw {ours.get(name)}, the JSON report {theirs.get(name)}"


def _broken(outcome: str) -> str:
    """Fold `error` into `failed`: a test that fails and then errors is called either."""
    return "failed" if outcome == "error" else outcome


def _against_junit(path: Path, told: Told, tests: Tests) -> Iterator[str]:
    """Compare counts: JUnit mangles names, and lists subtests and teardown errors as cases of their own."""
    cases = bad = 0
    try:
        for _, case in ET.iterparse(path):  # noqa: S314  # written by the run just made
            if case.tag == "testcase":
                cases += 1
                bad += case.find("failure") is not None or case.find("error") is not None
                case.clear()  # of tens of thousands
    except (OSError, ET.ParseError) as error:
        yield f"the JUnit file is missing or unreadable: {type(error).__name__}: {error}"
        return
    ours = sum(test.outcome in {TestOutcome.FAILED, TestOutcome.ERROR} for test in tests)
    if (bad > 0) != (ours > 0) or bad < ours:
        yield f"the JUnit file has {bad} failed cases, the plugin saw {ours}"
    planned = len(tests) + len({event["id"] for event in told["collect_skipped"]})
    plain = not any(event["subtest"] or event["outcome"] == "rerun" for event in told["report"])
    if cases < planned or (plain and not bad and cases != planned):
        yield f"the JUnit file has {cases} cases, the plan {planned}"


def rigged(told: Told) -> tuple[str, ...]:
    """Say of each canary that was called what it is not who said what."""
    found: dict[str, str] = {}
    for event in told["canaries"]:
        for said in event["said"]:
            if text := _contradiction(said):
                found.setdefault(text, f"{text} ({event['when']} the tests)")
    return tuple(found.values())


def _contradiction(said: Event) -> str:
    name, called, raised = said["id"], said["outcome"], said["error"]
    right = "passed" if name == "passes" else "failed"
    ended = "failed" if raised else "passed" if said["called"] else ""
    if ended == "passed" == right or called == ended == right or (not ended and called != "passed"):
        return ""  # a hook of the project may want more of a test than ours has; what nobody called did not pass
    how = {"passed": "ended well", "failed": f"raised {raised}", "": "was never run"}[ended]
    return f"a test of ours that {WHAT[name]} {how}, and the harness called it {called}"
