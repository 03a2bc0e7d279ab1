"""Where the witnesses of one test run contradict each other."""

import json
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from gates.evidence.test_records import Event, TestOutcome, TestRecord, last_of
from gates.process import ProcessRun
from gates.terminal import printable


def disagreements(
    ended: ProcessRun, events: list[Event], tests: tuple[TestRecord, ...], folder: Path, *, asked: tuple[str, ...]
) -> Iterator[str]:
    """Name every contradiction between the witnesses of a run that came to its own end."""
    if ended.exit_code not in {0, 1}:
        return
    ends = [event for event in events if event["event"] == "end" and not event["worker"]]
    if not ends:
        yield f"the process ended with exit code {ended.exit_code}, but pytest never came to the end of its session"
    elif ends[-1]["exit_code"] != ended.exit_code:
        yield f"pytest's session ended with {ends[-1]['exit_code']}, its process with {ended.exit_code}"
    if any(event["event"] == "start" and not event["asserts"] for event in events):
        yield "Python ran with -O, under which no assertion is executed"
    missing = [test.id for test in tests if test.outcome is TestOutcome.NOT_RUN]
    if missing:
        yield f"{len(missing)} of {len(tests)} planned tests have no end, first {missing[0]}"
    unplanned = set(last_of(events, "report")) - {test.id for test in tests}
    if unplanned:
        yield f"{len(unplanned)} tests ended that were never planned, first {min(unplanned)}"
    taken = [event["args"] for event in events if event["event"] == "asked"]
    if any(set(args) != set(asked) for args in taken):
        yield f"pytest was asked for {', '.join(asked)}, but collected {', '.join(taken[0]) or 'nothing'}"
    yield from _lost(events, tests)
    yield from _uncalled(events, tests)
    yield from _rewritten(events)
    yield from _against_json(folder / "report.json", ended, tests)
    yield from _against_junit(folder / "junit.xml", events, tests)


def _lost(events: list[Event], tests: tuple[TestRecord, ...]) -> Iterator[str]:
    """Name tests that were collected and then neither planned nor said to be deselected."""
    known = {test.id for test in tests} | set(last_of(events, "deselected"))
    lost = set(last_of(events, "collected")) - known
    if lost:
        yield f"{len(lost)} tests were collected and then dropped without a word, first {min(lost)}"


def _uncalled(events: list[Event], tests: tuple[TestRecord, ...]) -> Iterator[str]:
    """Name tests that passed though nobody called their function."""
    planned, called = last_of(events, "planned"), last_of(events, "called")
    for test in tests:
        if test.outcome is TestOutcome.PASSED and planned[test.id]["plain"] and test.id not in called:
            yield f"{test.id} passed, but its function was never called"
            return


def _rewritten(events: list[Event]) -> Iterator[str]:
    """Name tests whose exceptions outnumber the reports that admit them; a rerun, an xfail and a subtest do."""
    raised: dict[tuple[str, str], list[str]] = defaultdict(list)
    inner: dict[tuple[str, str], str] = {}
    admitted: Counter[tuple[str, str]] = Counter()
    for event in events:
        key = (event.get("id", ""), event.get("when", ""))
        if event["event"] == "raw" and event["failed"]:
            raised[key].append(event["error"])
        elif event["event"] == "raised":
            inner[key] = event["error"]
        elif event["event"] == "report" and (event["outcome"] in {"failed", "rerun"} or event["xfail"]):
            admitted[key] += 1
    for key, error in inner.items():
        raised[key] = raised[key] or [error]
    for key, errors in raised.items():
        if len(errors) > admitted[key]:
            yield f"{key[0]} raised {errors[0]} in its {key[1]}, but its report does not say so"


def _against_json(path: Path, ended: ProcessRun, tests: tuple[TestRecord, ...]) -> Iterator[str]:
    try:
        report = json.loads(path.read_text(encoding="utf-8") if path.is_file() else "")
        theirs = {printable(str(test["nodeid"])): _broken(str(test["outcome"])) for test in report["tests"]}
        code = int(report["exitcode"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"the JSON report is missing or unreadable: {type(error).__name__}: {error}"
        return
    if code != ended.exit_code:
        yield f"the JSON report says exit code {code}, the process {ended.exit_code}"
    ours = {test.id: _broken(test.outcome.value) for test in tests}
    for test_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(test_id) != theirs.get(test_id):
            yield f"{test_id}: the plugin saw {ours.get(test_id)}, the JSON report {theirs.get(test_id)}"
            return


def _broken(outcome: str) -> str:
    """Fold `error` into `failed`: a test that fails and then errors is called either."""
    return "failed" if outcome == "error" else outcome


def _against_junit(path: Path, events: list[Event], tests: tuple[TestRecord, ...]) -> Iterator[str]:
    """Compare counts: JUnit mangles names, and lists subtests and teardown errors as cases of their own."""
    try:
        cases = list(ET.fromstring(path.read_bytes() if path.is_file() else b"").iter("testcase"))  # noqa: S314  # written by the run just made
    except (OSError, ET.ParseError) as error:
        yield f"the JUnit file is missing or unreadable: {type(error).__name__}: {error}"
        return
    bad = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    ours = sum(test.outcome in {TestOutcome.FAILED, TestOutcome.ERROR} for test in tests)
    if (bad > 0) != (ours > 0) or bad < ours:
        yield f"the JUnit file has {bad} failed cases, the plugin saw {ours}"
    planned = len(tests) + len(last_of(events, "collect_skipped"))
    plain = not any(event["event"] == "report" and event["subtest"] for event in events)
    if len(cases) < planned or (plain and not bad and len(cases) != planned):
        yield f"the JUnit file has {len(cases)} cases, the plan {planned}"
