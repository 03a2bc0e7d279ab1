"""Reads the journal that the recorder wrote."""

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from gates.evidence.recorded_step import Absent, Attempt, Compared, Happened, Logged, Overflowed, Recorded, Spoiled
from gates.model import Location, Model
from gates.terminal import printable

MOST_BYTES = 64 * 1024 * 1024
HEAD = len("=") + 2 * hashlib.sha256().digest_size + len(" ")


Entry = dict[str, object]
NOTES = {"start", "trouble", "truncated", "problem", "end", "attempt", "reference", "overflow",
         "after_overflow", "log", "injected", "scale", "test", "tested", "hidden", "spoiled"}  # fmt: skip


def read_journal(path: Path, secret: str) -> Recorded:
    """Return what a journal tells; a line that is not the recorder's makes it incomplete."""
    try:
        entries, foreign = read_entries(path, secret)
    except OSError:
        return Recorded(problem="the recorder wrote no journal")
    return as_recorded(entries, foreign)


def read_entries(path: Path, secret: str) -> tuple[list[Entry], int]:
    """Return the entries that were told with a secret, and how many lines are somebody else's."""
    lines, foreign = unsealed(path, secret)
    entries = [entry for line in lines if (entry := _entry(line)) is not None]
    return entries, foreign + len(lines) - len(entries)


def as_recorded(entries: list[Entry], foreign: int = 0) -> Recorded:
    """Return what entries tell, or that they cannot be read."""
    try:
        return _recorded(entries, foreign)
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        return Recorded(problem=f"the journal cannot be read: {type(error).__name__}")


def _entry(line: str) -> Entry | None:
    try:
        entry = json.loads(line, parse_constant=lambda _: None)
    except ValueError:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("word"), str):
        return None
    return {str(name): _clean(value) for name, value in entry.items()}


def _recorded(entries: list[Entry], foreign: int) -> Recorded:
    by_word: dict[str, list[Entry]] = {}
    for entry in entries:
        by_word.setdefault(str(entry["word"]), []).append(entry)
    after = by_word.get("after_overflow", [{}])[-1]
    alien = (f"{foreign} lines of the journal are not its own",) if foreign else ()
    return Recorded.model_validate(
        {
            "problem": next((entry["what"] for entry in by_word.get("problem", [])), ""),
            "complete": "end" in by_word and not foreign,
            "truncated": "truncated" in by_word,
            "troubles": (*alien, *(str(entry["what"]) for entry in by_word.get("trouble", []))),
            "events": [_fit(Happened, entry) for entry in entries if entry["word"] not in NOTES],
            "attempts": list(_attempts(entries)),
            "compared": [_fit(Compared, entry) for entry in by_word.get("reference", [])],
            "overflows": [_fit(Overflowed, entry) for entry in by_word.get("overflow", [])],
            "injected": "injected" in by_word,
            "steps_after_overflow": after.get("steps"),
            "absent": [_fit(Absent, entry) for entry in by_word.get("hidden", [])],
            "spoiled": [_fit(Spoiled, entry) for entry in by_word.get("spoiled", [])],
            "logged": [_fit(Logged, entry) for entry in by_word.get("log", [])],
        }
    )


def _attempts(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the attempts, each with how many events came before it."""
    events = 0
    for entry in entries:
        events += entry["word"] not in NOTES
        if entry["word"] == "attempt":
            yield {**_fit(Attempt, entry), "after": events}


def _fit(kind: type[Model], entry: Entry) -> Entry:
    """Return the facts of an entry that a model has, its place as a location."""
    facts = {name: value for name, value in entry.items() if name in kind.model_fields and value is not None}
    place, optimizers = entry.get("place") or entry.get("step_place"), entry.get("optimizers")
    if isinstance(entry.get("step_place"), list):
        place = entry["step_place"]
    if isinstance(place, list) and len(place) == 2:
        facts["location"] = Location(path=str(place[0]), line=max(int(place[1]), 1))
    if "optimizer" in kind.model_fields and isinstance(optimizers, list) and optimizers:
        facts["optimizer"] = optimizers[0]
    return facts


def _clean(value: object) -> object:
    """Return a value of the journal without what a terminal must not get, and without numbers that are none."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {printable(str(name)): _clean(item) for name, item in value.items()}
    return value


def unsealed(path: Path, secret: str) -> tuple[list[str], int]:
    """Return the lines that were told with a secret, and how many are somebody else's; raise `OSError` without a file.

    A line that was taken out or changed leaves no seal behind it that fits: all after it are somebody else's.
    """
    with path.open("rb") as file:
        told = file.read(MOST_BYTES).split(b"\n")
    told.pop()  # nothing, or a line that its writer did not live to end
    lines: list[str] = []
    last, foreign = b"", 0
    for line in told:
        seal, text = line[:HEAD], line[HEAD:]
        fits = hmac.digest(secret.encode(), last + text, hashlib.sha256)
        if hmac.compare_digest(seal, b"=" + fits.hex().encode() + b" "):
            last = fits
            lines.append(text.decode("utf-8", "backslashreplace"))
        else:
            foreign += 1
    return lines, foreign
