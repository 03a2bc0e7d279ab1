"""The records of a test run, folded from the events that its witness told; and where its witnesses disagree."""

import json
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from gates.child.process import ProcessRun
from gates.config import Context
from gates.evidence.tests.marked import Written
from gates.evidence.tests.test_records import (
    UNAWAITED,
    CollectError,
    Deselected,
    Event,
    TestOutcome,
    TestRecord,
    Warned,
    last_of,
    outcome_of,
)
from gates.model import Location
from gates.task.task import Task
from gates.words import printable


class Records:
    """Reads the events of one run; each source file is parsed once."""

    def __init__(self, events: list[Event], context: Context, task: Task) -> None:
        self._events = events
        self._context = context
        self.written = Written(events, context, task)

    def tests(self) -> Iterator[TestRecord]:
        """Yield a record of each planned test."""
        reports: dict[str, list[Event]] = defaultdict(list)
        for event in self._events:
            if event["event"] == "report":
                reports[event["id"]].append(event)
        for test_id, plan in last_of(self._events, "planned").items():
            yield self._record(test_id, plan, reports[test_id])

    def _record(self, test_id: str, plan: Event, seen: list[Event]) -> TestRecord:
        telling = next((event for event in seen if event["outcome"] == "failed"), None)
        telling = telling or next((event for event in seen if event["outcome"] in {"skipped", "rerun"}), {})
        inside = telling.get("path") and telling["line"] > 0 and self._is_inside(telling["path"])
        crash = Location(path=self._shown(telling["path"]), line=telling["line"]) if inside else None
        return TestRecord(
            id=test_id,
            location=Location(path=self._shown(plan["path"]), line=max(plan["line"], 1)),
            criteria=tuple(plan["criteria"]),
            near=tuple(map(tuple, plan["near"])),
            outcome=outcome_of(seen),
            duration_s=round(sum(event["duration"] for event in seen), 4),
            message=str(telling.get("message") or telling.get("reason") or ""),
            crash=crash,
            subtests_left_out=sum(event["subtest"] and event["outcome"] == "skipped" for event in seen),
            reruns=sum(event["outcome"] == "rerun" for event in seen),
        )

    def collect_events(self, name: str) -> Iterator[CollectError]:
        """Yield the files and classes that could not be collected, or were skipped as a whole."""
        for event in last_of(self._events, name).values():
            yield CollectError(id=event["id"], message=event["message"], line=event.get("line"))

    def deselected(self) -> Iterator[Deselected]:
        """Yield the tests that were collected and then left out."""
        for test_id, event in sorted(last_of(self._events, "deselected").items()):
            yield Deselected(
                id=test_id,
                location=Location(path=self._shown(event["path"]), line=max(event["line"], 1)),
                criteria=tuple(event["criteria"]),
                by_mark=event["mark"],
            )

    def warnings(self) -> Iterator[Warned]:
        """Yield each distinct warning once."""
        seen = set()
        for event in self._events:
            if event["event"] == "warning":
                where = Location(path=self._shown(event["path"]), line=max(int(event["line"]), 1))
                category, message = event["category"], event["message"]
                # of what pytest says of a test itself, that test is known; other warnings are told once
                about = event["id"] if category.startswith("Pytest") or UNAWAITED in message else ""
                warned = Warned(category=category, message=message, location=where, test=about)
                if warned not in seen:
                    seen.add(warned)
                    yield warned

    def running(self) -> tuple[str, ...]:
        """Return the tests that began and were never over."""
        began: dict[str, int] = defaultdict(int)
        for event in self._events:
            if event["event"] in {"began", "over"}:
                began[event["id"]] += 1 if event["event"] == "began" else -1
        return tuple(test_id for test_id, count in began.items() if count > 0)

    def _is_inside(self, path: str) -> bool:
        return (self._context.root / path).is_relative_to(self._context.root)

    def _shown(self, path: str) -> str:
        return self._context.shown(self._context.root / path)


READ = {"visited", "collect_failed", "collect_skipped"}


def stage_of(events: list[Event]) -> str:
    """Return, in words, what the run was at when its last event was told."""
    told = {"start", "collecting", "asked", "began", "phase", "over", "end"}
    last = next((event for event in reversed(events) if event["event"] in told), None)
    reads = next((event for event in reversed(events) if event["event"] == "collecting"), None)
    begun = any(event["event"] == "began" for event in events)
    if reads and not begun and not any(e["event"] in READ and e["id"] == reads["id"] for e in events):
        last = reads
    if last is None:
        return "before pytest was configured, in a plugin or a conftest file"
    if last["event"] in {"began", "phase"}:
        return f"in the {last.get('when', 'setup')} of {last['id']}"
    return {
        "start": "between configuring pytest and collecting tests",
        "collecting": f"while collecting {last.get('id')}",
        "asked": "between collecting the tests and running them",
        "over": f"after {last.get('id')} had ended",
        "end": "after the session had ended",
    }[last["event"]]


MUST = {"passes": "passed", "fails": "failed", "compares": "failed", "expects": "failed"}
COMPARED = {"exitcode", "tests", "nodeid", "outcome"}  # the rest of a JSON report is let go while it is read
WHAT = {
    "passes": "asserts 1 + 1 == 2",
    "fails": "asserts 1 + 1 == 3",
    "compares": "asserts 1 + 1 == 3 by unittest",
    "expects": "expects an exception that does not come",
}


def disagreements(
    ended: ProcessRun, events: list[Event], tests: tuple[TestRecord, ...], folder: Path, *, asked: tuple[str, ...]
) -> Iterator[str]:
    """Name every contradiction between the witnesses of a run that came to its own end."""
    if ended.exit_code not in {0, 1}:
        return
    told: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        told[event["event"]].append(event)
    yield from _ended(ended, told)
    missing = [test.id for test in tests if test.outcome is TestOutcome.NOT_RUN]
    if missing:
        yield f"{len(missing)} of {len(tests)} planned tests have no end, first {missing[0]}"
    unplanned = {event["id"] for event in told["report"]} - {test.id for test in tests}
    if unplanned:
        yield f"{len(unplanned)} tests ended that were never planned, first {min(unplanned)}"
    taken = [event["args"] for event in told["asked"]]
    if any(set(args) != set(asked) for args in taken):
        yield f"pytest was asked for {', '.join(asked)}, but collected {', '.join(taken[0]) or 'nothing'}"
    if lost := next((event for event in told["lost"] if event["count"]), None):
        yield f"{lost['count']} tests were collected and then dropped without a word, first {lost['ids'][0]}"
    if {event["pid"] for event in told["ran"]} - {event["pid"] for event in told["canaries"]}:
        yield "tests were called, but not by the harness that our own tests of it were to try"
    yield from _uncalled(events, tests)
    yield from _rewritten(events)
    yield from _against_json(folder / "report.json", ended, tests)
    yield from _against_junit(folder / "junit.xml", told, tests)


def _ended(ended: ProcessRun, told: dict[str, list[Event]]) -> Iterator[str]:
    """Name what contradicts the end of the process, of its workers and forks."""
    ends = [event for event in told["end"] if not event["worker"]]
    if not ends:
        yield f"the process ended with exit code {ended.exit_code}, but pytest never came to the end of its session"
    elif ends[-1]["exit_code"] != ended.exit_code:
        yield f"pytest's session ended with {ends[-1]['exit_code']}, its process with {ended.exit_code}"
    if not all(event["asserts"] for event in told["start"]):
        yield "Python ran with -O, under which no assertion is executed"
    pids = Counter(event["pid"] for event in told["end"])
    for event in told["start"]:
        if event["worker"] and event["pid"] not in pids:
            yield f"worker {event['worker']} vanished: it never came to the end of its session"
    unheard = {event["worker"] for event in told["worker_down"]} - {event["worker"] for event in told["start"]}
    if unheard:
        yield f"worker {', '.join(sorted(unheard))} was never heard of"
    if told["strayed"]:
        yield f"a fork of the process went on with the session after {told['strayed'][0]['id'] or 'a test'}"
    elif max(pids.values(), default=0) > 1:
        yield "the end of one session was told more than once: a fork of the process went on with it"


def _uncalled(events: list[Event], tests: tuple[TestRecord, ...]) -> Iterator[str]:
    """Name tests that passed though nobody called their function."""
    planned, ran = last_of(events, "planned"), last_of(events, "ran")
    for test in tests:
        passed = test.outcome is TestOutcome.PASSED
        if passed and planned[test.id]["plain"] and not ran.get(test.id, {}).get("called"):
            yield f"{test.id} passed, but its function was never called"
            return


def _rewritten(events: list[Event]) -> Iterator[str]:
    """Name tests whose exceptions outnumber the reports that admit them; a rerun, an xfail and a subtest do."""
    raised: dict[tuple[str, str], list[str]] = defaultdict(list)
    inner: dict[tuple[str, str], str] = {}
    admitted: Counter[tuple[str, str]] = Counter()
    expected: Counter[tuple[str, str]] = Counter()
    excused: Counter[tuple[str, str]] = Counter()
    for event in events:
        key = (event.get("id", ""), event.get("when", ""))
        if event["event"] == "raw":
            raised[key].append(event["error"])
            expected[key] += event["expected"]
        elif event["event"] == "ran" and event.get("error"):
            inner[event["id"], "call"] = event["error"]
        elif event["event"] == "report" and (event["outcome"] in {"failed", "rerun"} or event["xfail"]):
            admitted[key] += 1
            excused[key] += event["xfail"]
    inner_only = inner.keys() - raised.keys()
    for key, error in inner.items():
        raised[key] = raised[key] or [error]
    for key, errors in raised.items():
        if len(errors) > admitted[key]:
            yield f"{key[0]} raised {errors[0]} in its {key[1]}, but its report does not say so"
        elif excused[key] > expected[key] and key not in inner_only:
            yield f"{key[0]} raised {errors[0]}, which only its report calls an expected failure"


def _against_json(path: Path, ended: ProcessRun, tests: tuple[TestRecord, ...]) -> Iterator[str]:
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
    rerun = {test.id for test in tests if test.reruns}
    for test_id in sorted(ours.keys() | theirs.keys()):
        if theirs.get(test_id) == "rerun" and test_id in rerun:
            continue
        if ours.get(test_id) != theirs.get(test_id):
            yield f"{test_id}: the plugin saw {ours.get(test_id)}, the JSON report {theirs.get(test_id)}"
            return


def _broken(outcome: str) -> str:
    """Fold `error` into `failed`: a test that fails and then errors is called either."""
    return "failed" if outcome == "error" else outcome


def _against_junit(path: Path, told: dict[str, list[Event]], tests: tuple[TestRecord, ...]) -> Iterator[str]:
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


def rigged(events: list[Event]) -> Iterator[str]:
    """Say of each canary that was called what it is not who said what; one that could not be run says nothing."""
    seen = set()
    for event in events:
        for said in event["said"] if event["event"] == "canaries" else ():
            text = _contradiction(said)
            if text and not said["unable"] and text not in seen:
                seen.add(text)
                yield f"{text} ({event['when']} the tests)"


def _contradiction(said: Event) -> str:
    name, called, raised, ended = said["id"], said["called"], said["raised"], said["ended"]
    test = f"a test of ours that {WHAT[name]}"
    if not ended and not raised:  # nobody called it
        return f"{test} was never run, and the harness called it {called}" if called == "passed" else ""
    if ended is (MUST[name] == "passed") and called == MUST[name]:
        return ""
    if name == "passes" and ended and said["seen"]:
        return ""  # a hook of the project wants more of a test than ours has
    how = "ended well" if ended else f"raised {raised}"
    return f"{test} {how}, and the harness called it {called}"
