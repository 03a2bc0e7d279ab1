"""Mutants of the lines that a change alters, and what the tests of these lines make of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import NamedTuple, Self

from gates.check import Evidence, EvidenceSet
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import CommandRecord, Location, Model
from gates.project.files import is_code
from gates.project.history import TwoStates
from gates.proving.bench import Faults, benched
from gates.proving.cases import Asked, Baseline, statements
from gates.proving.proof import End
from gates.proving.source import Fault, Text, distinct, mutants, spread
from gates.task.task import Task
from gates.words import counted, printable

SHARE, LEAST_S = 2.0, 10.0  # of the time that the tests took, and at least
MOST = 40


class Changes(NamedTuple):
    """The mutants of changed lines, `left` out of more, and what comes of them; `how` and `base` tell the change."""

    how: str
    base: str
    asked: dict[str, Asked]
    left: int
    faults: Faults


@contextmanager
def changes(task: Task, context: Context, seen: EvidenceSet) -> Iterator[Changes]:
    """Yield the mutants of the lines that differ from the merge base, which others may try along with theirs."""
    states = TwoStates.since_base(context.root, context.base)
    old, new = states.changed(task.implementation, ".py")
    run, lines = seen.get(PytestRun), seen.get(ExecutedLines)
    if new and (run is None or not run.complete or lines is None):
        raise EvidenceUnavailable("which tests run the changed lines was not seen")
    baseline, unstable = Baseline(run, lines), {test.id for test, _ in (run.unstable if run else ())}
    passed = [test.id for test in (run.tests if run else ()) if test.passed and test.id not in unstable]
    code = [path for path in new if is_code(path, task.implementation)]
    found = (each for path in code for each in _changes(path, old.get(path, b""), context, baseline, {*passed}))
    made, left = distinct(spread(task.id, found), MOST)
    asked = {mutant.id: (mutant, baseline.noticing(mutant.location, passed)) for mutant in made}
    ordered = {name: (mutant, baseline.quickest_first(tests)) for name, (mutant, tests) in asked.items()}
    faults = baseline.faults(ordered, max(LEAST_S, SHARE * sum(baseline.seconds.values())))
    yield Changes(f"mutants of lines changed since {states.commit[:12]}", states.base, asked, left, faults)


def _changes(path: str, old: bytes, context: Context, baseline: Baseline, passed: set[str]) -> Iterator[Fault]:
    """Yield mutants of the changed statements of a file that tests are seen to run."""
    try:
        file = Text.read(context.root, path)
        blocks = SequenceMatcher(None, old.splitlines(), file.raw.splitlines(), autojunk=False).get_opcodes()
        changed = {line + 1 for kind, _, _, first, last in blocks if kind != "equal" for line in range(first, last)}
        touched = [each for each in statements(file) if not changed.isdisjoint(each.lines)]
    except (OSError, SyntaxError, ValueError):
        return
    yield from mutants(file, [each for each in touched if passed & {*named_tests(baseline.contexts(each) or ())}])


class MissedMutant(Model):
    """A mutant of a changed line, and the tests that ran it and passed."""

    location: Location
    title: str
    tests: tuple[str, ...]


class ChangedLines(Evidence):
    """What the tests made of the mutants of changed lines; `untried` are those that there was no time for."""

    base: str
    tried: int = 0
    untried: int = 0
    missed: tuple[MissedMutant, ...] = ()

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Run the tests of the lines that differ from the merge base with mutants of these in a copy."""
        made = seen.shared(changes, task, context, seen)
        if made.asked and not made.faults.tried:
            seen.shared(benched, task, context).try_all(seen.get(PytestRun), made.faults)
        tried = [(name, End(end["end"])) for name, end in made.faults.ends.items() if not end["idle"]]
        missed = [
            MissedMutant(location=mutant.location, title=printable(mutant.title), tests=tuple(map(printable, tests)))
            for mutant, tests in (made.asked[name] for name, end in tried if end is End.SURVIVED)
        ]
        missed.sort(key=lambda one: (str(one.location), {"<", ">"}.isdisjoint(one.title.replace("->", ""))))
        about = {"argv": ("python", "-m", "pytest"), "ended": f"{counted(len(tried), 'mutant')} tried"}
        command = CommandRecord(purpose="mutants of changed lines", duration_s=made.faults.took_s, **about)
        return cls(
            how=made.how,
            base=made.base,
            tried=len(tried),
            untried=len(made.asked) - len(tried) + made.left,
            missed=tuple(missed),
            commands=(command,) if tried else (),
        )
