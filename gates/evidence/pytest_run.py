"""One pytest run, told by several witnesses that must agree: process, plugin, JSON report and JUnit file."""

import json
import secrets
import shutil
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from gates import process
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._kind import Evidence
from gates.model import CommandRecord, Location, Model
from gates.process import ProcessRun
from gates.task import Task

PLUGIN = "gates_pytest_witness"


class TestOutcome(StrEnum):
    """How one test ended; `not run` is a test that was planned and has no end."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    NOT_RUN = "not run"


class TestRecord(Model):
    """One planned test and how it ended; `crash` is the innermost line of a failure's traceback."""

    __test__ = False

    id: str
    location: Location
    criteria: tuple[str, ...]
    outcome: TestOutcome
    duration_s: float
    message: str = ""
    crash: Location | None = None


class Deselected(Model):
    """A test that was collected and then left out, by a mark expression (`-m`) or by something else."""

    id: str
    location: Location
    criteria: tuple[str, ...]
    by_mark: bool


class CollectError(Model):
    """A file or class that pytest could not collect."""

    id: str
    message: str


class Warned(Model):
    """A warning of the run, and where it was raised."""

    category: str
    message: str
    location: Location


class PytestRun(Evidence):
    """Everything that the witnesses of one pytest run said, and where they contradict each other."""

    process: ProcessRun
    tests: tuple[TestRecord, ...]
    deselected: tuple[Deselected, ...]
    collect_errors: tuple[CollectError, ...]
    warnings: tuple[Warned, ...]
    running: tuple[str, ...]
    disagreements: tuple[str, ...]
    versions: dict[str, str]

    def count(self, outcome: TestOutcome) -> int:
        """Return how many tests ended in one way."""
        return sum(test.outcome is outcome for test in self.tests)

    @property
    def complete(self) -> bool:
        """Return whether the run came to its own end and all witnesses tell the same of it."""
        return self.process.exit_code in {0, 1} and not self.disagreements and bool(self.tests)

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run the task's tests in their own process and read every witness."""
        if not task.tests:
            raise EvidenceUnavailable(f"{task.path} names no 'tests'")
        for path in task.tests:
            if not (context.root / path.split("::")[0]).exists():
                raise EvidenceUnavailable(f"{path!r} does not exist ('tests' in {task.path}:{task.line})")
        folder = context.folder("pytest").evidence
        plugin = folder / "plugin"
        plugin.mkdir()
        shutil.copyfile(Path(__file__).with_name("_pytest_witness.py"), plugin / f"{PLUGIN}.py")
        nonce = secrets.token_hex(8)
        argv = [context.python, "-m", "pytest", *task.tests, "-p", PLUGIN, "--color=no", "--json-report",
                f"--json-report-file={folder / 'report.json'}", "--json-report-omit=collectors,log,streams,keywords",
                f"--junit-xml={folder / 'junit.xml'}", "-o", f"cache_dir={folder / 'cache'}"]  # fmt: skip
        env = {
            "PYTHONPATH": process.joined_paths(str(plugin)),
            "GATES_WITNESS": str(folder / "witness.jsonl"),
            "GATES_WITNESS_NONCE": nonce,
        }
        try:
            ended = process.run(argv, cwd=context.root, timeout_s=context.timeout_s, log=folder / "run", env=env)
        except OSError as error:
            raise EvidenceUnavailable(f"{context.python!r} cannot be started: {error}") from error
        shutil.rmtree(plugin)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        return cls.read(ended, folder, nonce, context)

    @classmethod
    def read(cls, ended: ProcessRun, folder: Path, nonce: str, context: Context) -> Self:
        """Read the files that the witnesses left in a folder and compare them."""
        events = [*_events(folder / "witness.jsonl", nonce)]
        tests = tuple(_records(events, context))
        return cls(
            how="python -m pytest with a witness plugin, pytest-json-report and JUnit XML",
            commands=(CommandRecord(purpose="test suite", argv=_shown(ended, folder, context), ended=ended.ended,
                                    duration_s=ended.duration_s),),
            process=ended,
            tests=tests,
            deselected=tuple(_deselected(events, context)),
            collect_errors=tuple(
                CollectError(id=event["id"], message=event["message"])
                for event in _last(events, "collect_failed").values()
            ),
            warnings=tuple(_warnings(events, context)),
            running=_running(events),
            disagreements=tuple(_disagreements(ended, events, tests, folder)),
            versions={
                name: str(event[name]) for event in events if event["event"] == "start" for name in ("python", "pytest")
            },
        )  # fmt: skip


def _events(path: Path, nonce: str) -> Iterator[dict[str, Any]]:
    """Yield the events of the witness file; lines that are not its own are left out, and so count as missing."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("nonce") == nonce:
                yield event


def _last(events: Iterable[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {event["id"]: event for event in events if event["event"] == name}


def _records(events: list[dict[str, Any]], context: Context) -> Iterator[TestRecord]:
    reports: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["event"] == "report":
            reports[event["id"]].append(event)
    for test_id, plan in _last(events, "planned").items():
        seen = reports[test_id]
        outcome = _outcome(seen)
        telling = next((event for event in seen if event["outcome"] == "failed"), None)
        telling = telling or next((event for event in seen if event["outcome"] == "skipped"), {})
        crash = (
            Location(path=_relative(telling["path"], context), line=telling["line"]) if telling.get("path") else None
        )
        yield TestRecord(
            id=test_id,
            location=Location(path=_relative(plan["path"], context), line=plan["line"]),
            criteria=tuple(plan["criteria"]),
            outcome=outcome,
            duration_s=round(sum(event["duration"] for event in seen), 4),
            message=str(telling.get("message") or telling.get("reason") or ""),
            crash=crash,
        )


def _outcome(reports: list[dict[str, Any]]) -> TestOutcome:
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
    if not calls:
        return TestOutcome.NOT_RUN
    return TestOutcome.XPASSED if calls[-1]["xfail"] else TestOutcome.PASSED


def _deselected(events: list[dict[str, Any]], context: Context) -> Iterator[Deselected]:
    for test_id, event in sorted(_last(events, "deselected").items()):
        yield Deselected(
            id=test_id,
            location=Location(path=_relative(event["path"], context), line=event["line"]),
            criteria=tuple(event["criteria"]),
            by_mark=event["mark"],
        )


def _warnings(events: list[dict[str, Any]], context: Context) -> Iterator[Warned]:
    seen = set()
    for event in events:
        if event["event"] == "warning":
            where = Location(path=_relative(event["path"], context), line=max(int(event["line"]), 1))
            warned = Warned(category=event["category"], message=event["message"], location=where)
            if warned not in seen:
                seen.add(warned)
                yield warned


def _running(events: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the tests that began and never came to the end of their teardown."""
    began = _last(events, "began")
    ended = {e["id"] for e in events if e["event"] == "report" and e["when"] == "teardown"}
    return tuple(test_id for test_id in began if test_id not in ended)


def _disagreements(
    ended: ProcessRun, events: list[dict[str, Any]], tests: tuple[TestRecord, ...], folder: Path
) -> Iterator[str]:
    """Name every contradiction between the witnesses of a run that came to its own end."""
    if ended.exit_code not in {0, 1}:
        return
    ends = [event for event in events if event["event"] == "end" and not event["worker"]]
    if not ends:
        yield f"the process ended with exit code {ended.exit_code}, but pytest never came to the end of its session"
    elif ends[-1]["exit_code"] != ended.exit_code:
        yield f"pytest's session ended with {ends[-1]['exit_code']}, its process with {ended.exit_code}"
    missing = [test.id for test in tests if test.outcome is TestOutcome.NOT_RUN]
    if missing:
        yield f"{len(missing)} of {len(tests)} planned tests have no end, first {missing[0]}"
    unplanned = set(_last(events, "report")) - {test.id for test in tests}
    if unplanned:
        yield f"{len(unplanned)} tests ended that were never planned, first {min(unplanned)}"
    yield from _rewritten(events)
    yield from _against_json(folder / "report.json", ended, tests)
    yield from _against_junit(folder / "junit.xml", events, tests)


def _rewritten(events: list[dict[str, Any]]) -> Iterator[str]:
    """Name tests whose exception said `failed` and whose report says something better."""
    raw = {(e["id"], e["when"]): e for e in events if e["event"] == "raw"}
    final = {(e["id"], e["when"]): e for e in events if e["event"] == "report" and not e["subtest"]}
    for key, event in raw.items():
        report = final.get(key)
        if event["outcome"] == "failed" and report and report["outcome"] != "failed" and not report["xfail"]:
            yield f"{key[0]} raised {event['error']} in its {key[1]}, but its report says {report['outcome']}"


def _against_json(path: Path, ended: ProcessRun, tests: tuple[TestRecord, ...]) -> Iterator[str]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        theirs = {str(test["nodeid"]): str(test["outcome"]) for test in report["tests"]}
        code = int(report["exitcode"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"the JSON report is missing or unreadable: {type(error).__name__}: {error}"
        return
    if code != ended.exit_code:
        yield f"the JSON report says exit code {code}, the process {ended.exit_code}"
    ours = {test.id: test.outcome.value for test in tests}
    for test_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(test_id) != theirs.get(test_id):
            yield f"{test_id}: the plugin saw {ours.get(test_id)}, the JSON report {theirs.get(test_id)}"
            return


def _against_junit(path: Path, events: list[dict[str, Any]], tests: tuple[TestRecord, ...]) -> Iterator[str]:
    """Compare counts: JUnit mangles names, and lists subtests and teardown errors as cases of their own."""
    try:
        cases = list(ET.parse(path).getroot().iter("testcase"))  # noqa: S314  # written by the run just made
    except (OSError, ET.ParseError) as error:
        yield f"the JUnit file is missing or unreadable: {type(error).__name__}: {error}"
        return
    bad = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    ours = sum(test.outcome in {TestOutcome.FAILED, TestOutcome.ERROR} for test in tests)
    if (bad > 0) != (ours > 0) or bad < ours:
        yield f"the JUnit file has {bad} failed cases, the plugin saw {ours}"
    plain = not any(event["event"] == "report" and event["subtest"] for event in events)
    if len(cases) < len(tests) or (plain and not bad and len(cases) != len(tests)):
        yield f"the JUnit file has {len(cases)} cases, the plan {len(tests)} tests"


def _relative(path: str, context: Context) -> str:
    absolute = Path(path) if Path(path).is_absolute() else context.root / path
    return context.shown(absolute)


def _shown(ended: ProcessRun, folder: Path, context: Context) -> tuple[str, ...]:
    """Return the command with the run's own folder left out, so that two runs print the same."""
    short = [word.replace(str(folder), "{evidence}/pytest") for word in ended.argv]
    return tuple("python" if word == context.python else word for word in short)
