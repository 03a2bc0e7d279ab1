"""The events that the witness of a test run told, as they lie in its file."""

import json
from collections import defaultdict
from pathlib import Path
from sys import intern

from gates.evidence.tests.test_records import Event
from gates.words import printable

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
