"""The records of a test run, folded from the events that its witness told."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from sys import intern

from gates.config import Context
from gates.evidence.tests.marked import Written
from gates.evidence.tests.test_records import (
    UNAWAITED,
    CollectError,
    Deselected,
    Event,
    TestRecord,
    Warned,
    last_of,
    outcome_of,
)
from gates.model import Location
from gates.project.files import files_of, is_test_file
from gates.task.task import Task
from gates.words import printable


class Records:
    """Reads the events of one run; each source file is parsed once."""

    def __init__(self, events: list[Event], context: Context, task: Task) -> None:
        self._events = events
        self._context = context
        self._task = task
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
            lines=self.written.lines_of(plan),
        )

    def collect_events(self, name: str) -> Iterator[CollectError]:
        """Yield the files and classes that could not be collected, or were skipped as a whole."""
        for event in last_of(self._events, name).values():
            yield CollectError(id=event["id"], message=event["message"], line=event.get("line"))

    def never_collected(self) -> Iterator[str]:
        """Yield the files that look like tests of the task and of which pytest never collected anything."""
        heard = {event["id"].split("::")[0] for event in self._events if event.get("id")}
        for path in files_of(tuple(path for path in self._task.tests if "::" not in path), self._context.root):
            shown = self._context.shown(path)
            if is_test_file(path) and shown not in heard:
                yield shown

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


def events_in(path: Path, nonce: str) -> tuple[list[Event], int]:
    """Return the events with our nonce, each with the process that told it, and how many lines were somebody else's."""
    begun: dict[bytes, list[bytes]] = defaultdict(list)
    events: list[Event] = []
    pids: dict[bytes, int] = {}
    foreign = 0
    if not path.is_file():
        return events, foreign
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break  # the writer died in the middle
            head, dot, rest = line.rstrip(b"\n").partition(b".")
            more, plus, piece = line.rstrip(b"\n").partition(b"+")
            if more.isdigit() and plus:
                begun[more].append(piece)
                continue
            text = b"".join([*begun.pop(head, []), rest])
            event = _event(text, nonce) if dot and head.isdigit() else None
            if event is None:
                foreign += 1
            else:
                event["pid"] = pids.setdefault(head, int(head))
                events.append(event)
    return events, foreign


def _event(text: bytes, nonce: str) -> Event | None:
    try:
        event = json.loads(text)
    except ValueError:
        return None
    if not isinstance(event, dict) or event.pop("nonce", "") != nonce or not isinstance(event.get("event"), str):
        return None
    # interned: of each test, its id and some keys are told half a dozen times
    return {intern(name): intern(printable(v)) if isinstance(v, str) else v for name, v in event.items()}


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
