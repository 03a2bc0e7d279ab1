"""The whole flow of a proof: run the tests without a fault, make faults, try them."""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from gates import __version__
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.project.files import cache_folder, files_of
from gates.project.revision import environment, git
from gates.proving.bench import Bench
from gates.proving.cases import Baseline, Case, Trial, observe
from gates.proving.mutants import Fault
from gates.proving.proof import PROOF_SCHEMA, CriterionProof, End, Proof, TriedFault
from gates.task.selection import narrowed
from gates.task.task import Task
from gates.words import printable

FORM = 1
SETTINGS = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py")
Pair = tuple[Case, Fault]


class _File(BaseModel):
    head: str
    faults: dict[str, TriedFault]


class Known:
    """The faults of a task that were tried, by criterion and fault; it lies outside of the project."""

    def __init__(self, name: str, digest: str, *, fresh: bool) -> None:
        self._path: Path = cache_folder() / "prove" / f"{name}.json"
        self._head = f"{FORM} {__version__} {digest}"
        self._faults = {} if fresh else self._read()
        self.taken_up = len(self._faults)

    def get(self, criterion: str, fault: str) -> TriedFault | None:
        """Return how a fault ended, where it was tried to its end."""
        return self._faults.get(f"{criterion} {fault}")

    def put(self, criterion: str, fault: TriedFault) -> None:
        """Keep how a fault ended; one that was not tried will be."""
        if fault.end is not End.NOT_TRIED:
            self._faults[f"{criterion} {fault.id}"] = fault

    def save(self) -> None:
        """Write all of it, whole or not at all; a folder that cannot be written to is no error."""
        file = _File(head=self._head, faults=self._faults)
        with suppress(OSError, PydanticSerializationError):  # a name that is not UTF-8 is not kept
            text = file.model_dump_json()
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, name = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(number, "w", encoding="utf-8") as written:
                written.write(text)
            Path(name).replace(self._path)

    def _read(self) -> dict[str, TriedFault]:
        try:
            found = _File.model_validate_json(self._path.read_bytes())
        except (OSError, ValueError, ValidationError):
            return {}
        return found.faults if found.head == self._head else {}


@dataclass(frozen=True)
class Asked:
    """What is asked for: one criterion or all, which share of faults, how long, in how many copies, whether anew."""

    only: str | None
    at_least: float
    budget_s: float
    jobs: int
    fresh: bool
    reports: Path
    state: str


def prove(task: Task, context: Context, asked: Asked, say: Callable[[str], None]) -> Proof:
    """Try the faults of each criterion and tell what noticed them."""
    begun, clock = datetime.now(UTC), time.time()
    chosen = [task.criterion(asked.only)] if asked.only else list(task.criteria)
    before = digest(task, context.root)
    known = Known(asked.state, before, fresh=asked.fresh)
    bench = Bench(task, context, asked.reports, asked.jobs)
    say("looking at the evidence without a fault")
    run, baseline = observe(narrowed(task, asked.only), bench)
    try:
        trial = Trial(task, bench, run, baseline)
    except EvidenceUnavailable as error:
        raise EvidenceUnavailable(f"nothing can be proved: {error}") from error
    cases = [trial.case(criterion) for criterion in chosen]
    start = time.time()
    _Tries(bench, baseline, known, say).by_tests(cases, start + asked.budget_s)
    notes = _notes(baseline, known, changed=digest(task, context.root) != before)
    return Proof(
        schema=PROOF_SCHEMA,
        task=task.id,
        title=task.title,
        digest=before,
        commit=git(context.root, "rev-parse", "HEAD"),
        started_at=begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_s=round(time.time() - clock, 1),
        budget_s=asked.budget_s,
        environment=environment(context),
        notes=tuple(notes),
        criteria=tuple(_told(task, case, known, asked.at_least, passed_by=trial.passed_by(case)) for case in cases),
    )


def _notes(baseline: Baseline, known: Known, *, changed: bool) -> Iterator[str]:
    if baseline.note:
        yield baseline.note
    if known.taken_up:
        yield f"{known.taken_up} faults were tried before, on the same files (--fresh tries them again)"
    if changed:
        yield "files of the task changed during the proof: it speaks of what was there at its beginning"


class _Tries:
    """Puts the faults of all cases in, and keeps how each ended."""

    def __init__(self, bench: Bench, baseline: Baseline, known: Known, say: Callable[[str], None]) -> None:
        self._bench = bench
        self._baseline = baseline
        self._known = known
        self._say = say

    def by_tests(self, cases: list[Case], deadline: float) -> None:
        """Let the tests look at every fault that is not known, each criterion in turn."""
        left = [pair for pair in _in_turn(cases) if not self._known.get(pair[0].criterion.id, pair[1].id)]
        if not left:
            return
        self._say(f"{len(left)} faults to try by tests")
        pairs = {f"{case.criterion.id} {fault.id}": (case, fault) for case, fault in left}

        def took(results: list[dict[str, Any]]) -> None:
            for result in results:
                case, fault = pairs[result["id"]]
                self._known.put(case.criterion.id, _by_test(case, fault, result))
            self._known.save()  # what is killed has done so much

        self._bench.try_all(
            [
                self._baseline.asked(f"{case.criterion.id} {fault.id}", fault, case.tests[fault.id], case.own)
                for case, fault in left
            ],
            peak_bytes=self._baseline.peak_bytes,
            deadline=deadline,
            say=self._say,
            took=took,
        )


def _in_turn(cases: Iterable[Case]) -> Iterator[Pair]:
    """Yield the faults of all cases that can be tried, one of each criterion in turn."""
    rows = [[(case, fault) for fault in case.faults] for case in cases if case.can_be_tried]
    for turn in zip_longest(*rows):
        yield from (pair for pair in turn if pair)


def _tried(case: Case, fault: Fault, end: End) -> TriedFault:
    return TriedFault(
        id=fault.id, title=fault.title, location=fault.location, diff=fault.diff, end=end,
        tests=tuple(map(printable, case.tests.get(fault.id, ()))),
    )  # fmt: skip


def _by_test(case: Case, fault: Fault, result: dict[str, Any]) -> TriedFault:
    told = {"by": printable(result["by"]), "message": printable(result["message"]), "seconds": result["seconds"]}
    return _tried(case, fault, End(result["end"])).model_copy(update=told)


def _told(task: Task, case: Case, known: Known, least: float, *, passed_by: bool) -> CriterionProof:
    criterion = case.criterion
    return CriterionProof(
        id=criterion.id,
        text=criterion.text,
        level=criterion.level,
        location=task.place(criterion),
        killed_at_least=least,
        tests=len(case.own),
        shown_otherwise=bool(criterion.measures or task.shown_by(criterion)),
        problem=case.problem,
        notes=tuple(dict.fromkeys(case.notes)),
        sampled=case.sampled,
        passed_by=passed_by,
        faults=tuple(_end(case, fault, known.get(criterion.id, fault.id)) for fault in case.faults),
    )


def _end(case: Case, fault: Fault, known: TriedFault | None) -> TriedFault:
    """Return how a fault ended, as far as it was tried."""
    return known or _tried(case, fault, End.NOT_TRIED)


def digest(task: Task, root: Path) -> str:
    """Return the SHA-256 over the task and every file of its implementation, its tests and their settings."""
    whole = hashlib.sha256(task.digest.encode())
    for path in sorted(set(_files(task, root))):
        whole.update(f"{path.relative_to(root).as_posix()}\0".encode("utf-8", "backslashreplace"))
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _files(task: Task, root: Path) -> Iterator[Path]:
    tests = tuple(dict.fromkeys([*task.tests, *(path for c in task.criteria for path in c.tests)]))
    yield from files_of((*task.implementation, *tests), root)
    yield from (root / name for name in SETTINGS if (root / name).is_file())
    for path in tests:
        folder = (root / path.split("::")[0]).parent
        while folder.is_relative_to(root):
            if (folder / "conftest.py").is_file():
                yield folder / "conftest.py"
            if folder == root:
                break
            folder = folder.parent
