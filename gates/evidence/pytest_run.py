"""One pytest run, told by several witnesses that must agree: process, plugin, JSON report and JUnit file."""

import json
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from gates import process
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._reconcile import disagreements
from gates.evidence.kind import Evidence
from gates.evidence.test_records import (
    CollectError,
    Deselected,
    Event,
    TestOutcome,
    TestRecord,
    Warned,
    last_of,
    outcome_of,
)
from gates.files import files_of
from gates.model import CommandRecord, Location
from gates.process import ProcessRun
from gates.task import Task
from gates.terminal import printable

PLUGIN = "gates_pytest_witness"


class PytestRun(Evidence):
    """Everything that the witnesses of one pytest run said, and where they contradict each other."""

    process: ProcessRun
    tests: tuple[TestRecord, ...]
    deselected: tuple[Deselected, ...]
    collect_errors: tuple[CollectError, ...]
    collect_skips: tuple[CollectError, ...] = ()
    uncollected: tuple[str, ...] = ()
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
        argv = [context.python, "-m", "pytest", *task.tests, "-p", PLUGIN, f"--rootdir={context.root}",
                "--color=no", "--json-report",
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
        shutil.rmtree(plugin, ignore_errors=True)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        try:
            return cls.read(ended, folder, nonce, context, task)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvidenceUnavailable(f"the records of the run cannot be read: {error!r:.200}") from error

    @classmethod
    def read(cls, ended: ProcessRun, folder: Path, nonce: str, context: Context, task: Task) -> Self:
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
            collect_errors=tuple(_uncollected(events, "collect_failed")),
            collect_skips=tuple(_uncollected(events, "collect_skipped")),
            uncollected=tuple(_never_collected(events, task, context)),
            warnings=tuple(_warnings(events, context)),
            running=_running(events),
            disagreements=tuple(disagreements(ended, events, tests, folder, asked=task.tests)),
            versions={
                name: str(event[name]) for event in events if event["event"] == "start" for name in ("python", "pytest")
            },
        )  # fmt: skip


def _events(path: Path, nonce: str) -> Iterator[Event]:
    """Yield the events of the witness file; lines that are not its own are left out, and so count as missing."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("nonce") == nonce and isinstance(event.get("event"), str):
                yield {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def _records(events: list[Event], context: Context) -> Iterator[TestRecord]:
    reports: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event["event"] == "report":
            reports[event["id"]].append(event)
    for test_id, plan in last_of(events, "planned").items():
        seen = reports[test_id]
        outcome = outcome_of(seen)
        telling = next((event for event in seen if event["outcome"] == "failed"), None)
        telling = telling or next((event for event in seen if event["outcome"] == "skipped"), {})
        inside = telling.get("path") and telling["line"] > 0 and _is_inside(telling["path"], context)
        crash = Location(path=_relative(telling["path"], context), line=telling["line"]) if inside else None
        yield TestRecord(
            id=test_id,
            location=Location(path=_relative(plan["path"], context), line=max(plan["line"], 1)),
            criteria=tuple(plan["criteria"]),
            outcome=outcome,
            duration_s=round(sum(event["duration"] for event in seen), 4),
            message=str(telling.get("message") or telling.get("reason") or ""),
            crash=crash,
            subtests_left_out=sum(event["subtest"] and event["outcome"] == "skipped" for event in seen),
        )


def _uncollected(events: list[Event], name: str) -> Iterator[CollectError]:
    for event in last_of(events, name).values():
        yield CollectError(id=event["id"], message=event["message"], line=event.get("line"))


def _never_collected(events: list[Event], task: Task, context: Context) -> Iterator[str]:
    """Yield the files that look like tests of the task and of which pytest never collected anything."""
    heard = {event["id"].split("::")[0] for event in events if event.get("id")}
    for path in files_of(tuple(path for path in task.tests if "::" not in path), context.root):
        shown = context.shown(path)
        if (
            path.suffix == ".py"
            and (path.stem.startswith("test_") or path.stem.endswith("_test"))
            and shown not in heard
        ):
            yield shown


def _deselected(events: list[Event], context: Context) -> Iterator[Deselected]:
    for test_id, event in sorted(last_of(events, "deselected").items()):
        yield Deselected(
            id=test_id,
            location=Location(path=_relative(event["path"], context), line=max(event["line"], 1)),
            criteria=tuple(event["criteria"]),
            by_mark=event["mark"],
        )


def _warnings(events: list[Event], context: Context) -> Iterator[Warned]:
    seen = set()
    for event in events:
        if event["event"] == "warning":
            where = Location(path=_relative(event["path"], context), line=max(int(event["line"]), 1))
            warned = Warned(category=event["category"], message=event["message"], location=where)
            if warned not in seen:
                seen.add(warned)
                yield warned


def _running(events: list[Event]) -> tuple[str, ...]:
    """Return the tests that began and never came to the end of their teardown."""
    began = last_of(events, "began")
    ended = {e["id"] for e in events if e["event"] == "report" and e["when"] == "teardown"}
    return tuple(test_id for test_id in began if test_id not in ended)


def _is_inside(path: str, context: Context) -> bool:
    return (Path(path) if Path(path).is_absolute() else context.root / path).is_relative_to(context.root)


def _relative(path: str, context: Context) -> str:
    absolute = Path(path) if Path(path).is_absolute() else context.root / path
    return context.shown(absolute)


def _shown(ended: ProcessRun, folder: Path, context: Context) -> tuple[str, ...]:
    """Return the command with the run's own folder left out, so that two runs print the same."""
    short = [word.replace(str(folder), "{evidence}/pytest").replace(str(context.root), ".") for word in ended.argv]
    return tuple("python" if word == context.python else word for word in short)
