"""Mutants of the lines that a change alters, each tried by the tests that run it, within a small budget."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Self

from gates.check import Derived, EvidenceSet
from gates.child.guardian import guarded_folder
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Location, Model
from gates.project.history import History
from gates.project.two_states import TwoStates, base_of
from gates.proving.bench import Bench
from gates.proving.cases import Baseline, statements
from gates.proving.proof import End
from gates.proving.source import Fault, Text, distinct, mutants, spread
from gates.task.task import Task
from gates.words import printable

SHARE, LEAST_S = 2.0, 10.0  # of the time that the tests took, and at least
MOST = 40


class MissedMutant(Model):
    """A mutant of a changed line, and the tests that ran it and passed."""

    location: Location
    title: str
    tests: tuple[str, ...]


class ChangedLines(Derived):
    """What the tests made of the mutants of changed lines; `untried` are those that there was no time for."""

    base: str
    tried: int = 0
    untried: int = 0
    missed: tuple[MissedMutant, ...] = ()

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Put mutants of the lines that differ from the merge base into a copy, and run the tests of these lines."""
        history = History(context.root)
        found = base_of(history, context.base)
        old, new = TwoStates(history, found.commit, context.root).changed(task.implementation, ".py")
        facts = {"how": f"mutants of the lines changed since {found.commit[:12]}", "base": printable(found.name)}
        run, lines = seen.get(PytestRun), seen.get(ExecutedLines)
        if new and (run is None or not run.complete or lines is None):
            raise EvidenceUnavailable("which tests run the changed lines was not seen")
        if not new or run is None:
            return cls.model_validate(facts)
        baseline = Baseline.of(run, lines)
        unstable = {test.id for test, _ in run.unstable}
        passed = [test.id for test in run.tests if test.passed and test.id not in unstable]
        changes = (each for path in new for each in _changes(path, old.get(path, b""), context, baseline, {*passed}))
        made, left = distinct(spread(task.id, changes), MOST)
        with guarded_folder() as folder:
            try:
                ends = _tried(made, passed, task, replace(context, evidence=folder), baseline) if made else {}
            except UsageError as error:
                raise EvidenceUnavailable(str(error)) from error
        survived = sorted((each for each in made if ends.get(each.id) is End.SURVIVED), key=_bounds_first)
        missed = tuple(
            MissedMutant(
                location=mutant.location,
                title=printable(mutant.title),
                tests=tuple(sorted(map(printable, baseline.noticing(mutant.location, passed)))),
            )
            for mutant in survived
        )
        return cls.model_validate(
            {**facts, "tried": len(ends), "untried": len(made) - len(ends) + left, "missed": missed}
        )


def _changes(path: str, old: bytes, context: Context, baseline: Baseline, passed: set[str]) -> Iterator[Fault]:
    """Yield mutants of the changed statements of a file that tests are seen to run."""
    try:
        file = Text.read(context.root, path)
        before = old.decode("utf-8", "replace").splitlines()
        blocks = SequenceMatcher(None, before, file.text.splitlines(), autojunk=False).get_opcodes()
        changed = {line + 1 for kind, _, _, first, last in blocks if kind != "equal" for line in range(first, last)}
        touched = [each for each in statements(file) if not changed.isdisjoint(each.lines)]
    except (OSError, SyntaxError, ValueError):
        return
    ran = [each for each in touched if passed & {*named_tests(baseline.contexts(each) or ())}]
    worth = frozenset(line for each in ran for line in each.lines) & changed
    yield from mutants(file, worth)


def _bounds_first(mutant: Fault) -> tuple[str, bool]:
    return str(mutant.location), {"<", ">"}.isdisjoint(mutant.title.replace("->", ""))


def _tried(
    faults: Iterable[Fault], passed: list[str], task: Task, context: Context, baseline: Baseline
) -> dict[str, End]:
    """Return how each mutant ended that there was time for."""
    asked = [baseline.asked(mutant.id, mutant, baseline.noticing(mutant.location, passed)) for mutant in faults]
    jobs = baseline.workers([each["tests"] for each in asked])
    bench = Bench(task, context, jobs)
    deadline = time.time() + max(LEAST_S, SHARE * sum(baseline.seconds.values()))
    lines = bench.try_all(asked, deadline=deadline, peak_bytes=baseline.peak_bytes)
    ends = {line["id"]: line["tries"][0] for line in lines if line["tries"]}
    return {name: End(end["end"]) for name, end in ends.items() if not end["idle"]}
