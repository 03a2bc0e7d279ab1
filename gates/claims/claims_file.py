"""The claims file: claims written down for the gate, as sentences or in parts that leave nothing to guess."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from gates.claims import reading
from gates.claims.claim import (
    Claim,
    Coverage,
    CriterionStatus,
    ExitCode,
    Number,
    Place,
    Presence,
    Said,
    TestCounts,
    TestEnd,
    Unread,
    Verdict,
)
from gates.model import Decision, Level, Location, Model
from gates.task import yaml_source
from gates.task.types import InsidePath, Metric, Name, Text
from gates.task.yaml_source import Document, Problem, SourceError, did_you_mean

Count = Annotated[int, Field(ge=0)]
TOLERANCE = 0.005  # of a value that says no tolerance: half a unit of the third digit


class ClaimedTests(Model):
    """Counts of a test run; `in` is the file or folder of tests that is meant, all of them where it is left out."""

    passed: Count | None = None
    failed: Count | None = None
    skipped: Count | None = None
    error: Count | None = None
    xfailed: Count | None = None
    xpassed: Count | None = None
    deselected: Count | None = None
    total: Count | None = None
    in_: InsidePath | None = Field(default=None, alias="in")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.counts():
            raise ValueError("expected a count, such as 'passed: 16'")
        return self

    def counts(self) -> dict[str, int]:
        """Return the counts that are claimed."""
        return {name: count for name, count in self.model_dump(exclude={"in_"}).items() if count is not None}


class ClaimedMeasure(Model):
    """A measured number: how it is made from which arms of which metric, and the value that is claimed.

    `tolerance` is how far the value may be off; without one it is half a percent of the value.
    """

    from_: Name | None = Field(default=None, alias="from")
    of: Metric
    ratio: tuple[Name, Name] | None = None
    reduction: tuple[Name, Name] | None = None
    difference: tuple[Name, Name] | None = None
    arm: Name | None = None
    value: float
    tolerance: Annotated[float, Field(ge=0)] | None = None
    on: Literal["any", "cpu", "cuda", "rocm", "xpu", "mps"] = "any"

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(kind is not None for kind in (self.ratio, self.reduction, self.difference, self.arm)) != 1:
            raise ValueError("expected exactly one of 'ratio', 'reduction', 'difference' and 'arm'")
        if self.tolerance and self.tolerance >= math.fabs(self.value) > 0:
            raise ValueError(
                f"'tolerance': {self.tolerance:g} is as large as the value {self.value:g}: it claims nothing"
            )
        return self


class ClaimedLine(Model):
    """Lines of a file, and the code that they hold (`contains`) or the symbol that they define (`defines`)."""

    path: InsidePath
    line: Annotated[int, Field(ge=1)]
    last_line: Annotated[int, Field(ge=1)] | None = None
    contains: Text | None = None
    defines: Annotated[str, Field(pattern=r"^[^\W\d]\w*$")] | None = None

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.last_line is not None and self.last_line < self.line:
            raise ValueError(f"'last_line' is before 'line' ({self.last_line} < {self.line})")
        if (self.contains is None) == (self.defines is None):
            raise ValueError("expected either 'contains' or 'defines'")
        return self


class ClaimedEnd(Model):
    """How one test ended; `id` may be the end of the test's id."""

    id: Text
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]


class ClaimedVerdict(Model):
    """What a gate (or without one, the task) came to, and its score."""

    gate: Name | None = None
    decision: Decision | None = None
    score: Annotated[int, Field(ge=0, le=100)] | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.decision is None and self.score is None:
            raise ValueError("expected 'decision' or 'score'")
        if self.score is not None and self.gate is None:
            raise ValueError("'score' goes with 'gate'")
        return self


FORMS: tuple[type[Model], ...] = (ClaimedTests, ClaimedEnd, ClaimedMeasure, ClaimedLine, ClaimedVerdict)


class Entry(Model):
    """One claim: a sentence, or one of the other keys (then the sentence is for people)."""

    claim: Text | None = None
    tests: ClaimedTests | None = None
    test: ClaimedEnd | None = None
    exit_code: int | None = None
    measure: ClaimedMeasure | None = None
    line: ClaimedLine | None = None
    file: InsidePath | None = None
    symbol: Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")] | None = None
    functions_executed: Annotated[float, Field(ge=0, le=1)] | None = None
    verdict: ClaimedVerdict | None = None
    criterion: Name | None = None
    level: Level = Level.ADVISORY

    @model_validator(mode="after")
    def _one(self) -> Self:
        keys = [key for key in type(self).model_fields if key not in {"claim", "level"}]
        given = [key for key in keys if getattr(self, key) is not None]
        if len(given) > 1 or (not given and self.claim is None):
            raise ValueError(f"expected a 'claim' or one of {', '.join(keys)}")
        return self


def _or_sentence(schema: JsonDict) -> None:
    """Say in the schema that an entry may be a bare sentence."""
    schema["items"] = {"anyOf": [schema["items"], {"type": "string", "minLength": 1}]}


class ClaimsFile(Model):
    """A file of claims; each is confirmed, contradicted or unsupported by the evidence of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="gates claims")

    claims: Annotated[tuple[Entry, ...], Field(min_length=1, max_length=2000, json_schema_extra=_or_sentence)]


def load(path: Path, shown_as: str) -> tuple[Claim, ...]:
    """Return the claims of a YAML file; raise `UsageError` that names everything wrong in it, with its place."""
    document = yaml_source.read(path, shown_as)
    value = document.value
    entries = value.get("claims") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(entries, list):
        raise SourceError(shown_as, document.text, [Problem(1, 1, "expected a key 'claims' with a list")])
    value = {**value, "claims": [{"claim": one} if isinstance(one, str) else one for one in entries]}
    try:
        loaded = ClaimsFile.model_validate(value)
    except ValidationError as error:
        problems = [_problem(item, document) for item in error.errors() if not _follows(item)]
        raise SourceError(shown_as, document.text, problems) from error
    return tuple(claim for i, entry in enumerate(loaded.claims) for claim in _claims(entry, i, document))


def _follows(item: ErrorDetails) -> bool:
    """Return whether a complaint only follows from others: a list is not empty because its entries are wrong."""
    return item["type"] == "too_short" and bool(item["input"])


def _problem(item: ErrorDetails, document: Document) -> Problem:
    """Turn one complaint of pydantic into a place and a line for people."""
    key = tuple(item["loc"])
    name = ".".join(map(str, key))
    if item["type"] == "extra_forbidden":
        field = next((Entry.model_fields[part] for part in key[:-1] if part in Entry.model_fields), None)
        inside = next((form for form in FORMS if field and form in get_args(field.annotation)), None)
        known = (inside or (Entry if len(key) > 2 else ClaimsFile)).model_fields  # claims, index, key
        names = [field.alias or name for name, field in known.items()]
        return Problem(*document.key_place(key), f"unknown key {key[-1]!r}{did_you_mean(str(key[-1]), names)}")
    reason = str(item.get("ctx", {}).get("error", item["msg"]))
    return Problem(*document.place(key), f"{name}: {reason[0].lower()}{reason[1:]}")


def _claims(entry: Entry, index: int, document: Document) -> Iterator[Claim]:
    line = document.place(("claims", index))[0]
    at = Location(path=document.path, line=line)
    said = _said(entry)
    if said is None:
        found = reading.read(entry.claim or "", document.path, level=entry.level)
        for claim in found:
            yield claim.model_copy(update={"at": at})
        if not found:
            yield Claim(at=at, text=(entry.claim or "")[: reading.MAX_TEXT], said=Unread(), level=entry.level)
        return
    lines = document.text.splitlines()
    text = entry.claim or " ".join(lines[line - 1].split()).removeprefix("- ")
    yield Claim(at=at, text=text[: reading.MAX_TEXT], said=said, level=entry.level)


def _said(entry: Entry) -> Said | None:
    """Return what an entry says in its own keys."""
    if entry.tests:
        return TestCounts(counts=entry.tests.counts(), scope=entry.tests.in_ or "")
    if entry.test:
        return TestEnd(test=entry.test.id, outcome=entry.test.outcome)
    if entry.exit_code is not None:
        return ExitCode(value=entry.exit_code)
    if entry.measure:
        return _number(entry.measure)
    if entry.line:
        quote = tuple((entry.line.contains or "").splitlines())
        return Place(path=entry.line.path, first=entry.line.line, last=entry.line.last_line or entry.line.line,
                     quote=quote, symbol=entry.line.defines or "", defines=True)  # fmt: skip
    if entry.file or entry.symbol:
        return Presence(path=entry.file or "", symbol=entry.symbol or "")
    return _verdict(entry)


def _verdict(entry: Entry) -> Said | None:
    if entry.functions_executed is not None:
        return Coverage(percent=100 * entry.functions_executed, at_least=True)
    if entry.verdict:
        return Verdict(gate=entry.verdict.gate or "", decision=entry.verdict.decision, score=entry.verdict.score)
    if entry.criterion:
        return CriterionStatus(criterion=entry.criterion, met=True)
    return None


def _number(said: ClaimedMeasure) -> Number:
    slack = said.tolerance if said.tolerance is not None else math.fabs(said.value) * TOLERANCE
    arms = said.ratio or said.reduction or said.difference or (said.arm or "",)
    what = "ratio" if said.ratio else "reduction" if said.reduction else "difference" if said.difference else "value"
    return Number.model_validate({
        "what": what, "low": said.value - slack, "high": said.value + slack, "of": said.of, "arms": arms,
        "source": said.from_ or "", "on": said.on,
    })  # fmt: skip
