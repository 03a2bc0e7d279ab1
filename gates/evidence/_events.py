"""The events that the witness told, as they came over the pipe."""

import json
from collections import defaultdict
from pathlib import Path

from gates.evidence.test_records import Event
from gates.terminal import printable

READ = {"visited", "collect_failed", "collect_skipped"}


def events_in(path: Path, nonce: str) -> tuple[list[Event], int]:
    """Return the events with our nonce, each with the process that told it, and how many lines were somebody else's."""
    begun: dict[bytes, list[bytes]] = defaultdict(list)
    events: list[Event] = []
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
                events.append({**event, "pid": int(head)})
    return events, foreign


def _event(text: bytes, nonce: str) -> Event | None:
    try:
        event = json.loads(text)
    except ValueError:
        return None
    if not isinstance(event, dict) or event.pop("nonce", "") != nonce or not isinstance(event.get("event"), str):
        return None
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


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
