"""The base's tests judge the change: as the merge base has them, they run against its code in a copy."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Self

from gates.check import About, Check, Evidence, EvidenceSet
from gates.child import process
from gates.child.guardian import guarded_folder
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import TestOutcome, function_of, moved_symbols, moved_tests
from gates.model import Basis, CommandRecord, Finding, Level, Location, Model, Planned, Severity
from gates.project.copies import copy_project, lay_out, lend_generated, placed, relocated
from gates.project.files import SUPPORT, import_roots, is_among, is_code, is_test_file, is_under
from gates.project.history import TwoStates
from gates.project.policy import task_at_base
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.words import counted, printable

MESSAGE = 300
UNSEEN = "not seen"
PLAIN = ("-q", "-p", "no:randomly", "--continue-on-collection-errors")
ENDED = {
    **dict.fromkeys((TestOutcome.PASSED, TestOutcome.XPASSED), "passed"),
    **dict.fromkeys((TestOutcome.FAILED, TestOutcome.ERROR), "failed"),
    **dict.fromkeys((TestOutcome.SKIPPED, TestOutcome.XFAILED), "skipped"),
}
Changes = tuple[Mapping[str, bytes], Sequence[str]]  # files as the base has them, and what it has not


class BaseTest(Model):
    """A test of the base that does not pass against the change: how it ended `at_base`, and where it is `now`."""

    id: str
    ended: str
    message: str = ""
    at_base: str = ""
    criteria: tuple[str, ...] = ()
    now: str = ""


class BaseTests(Evidence):
    """How the base's tests ended against the change; `stood` are criteria that the base has in the same words."""

    base: str
    commit: str
    changed: tuple[str, ...]
    ran: int = 0
    broken: tuple[BaseTest, ...] = ()
    problem: str = ""
    stood: tuple[str, ...] = ()
    by_base: bool = False

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Lay the base's test files over a copy of the change, and run them."""
        states = TwoStates.since_base(context.root, context.base)
        tests = [path.split("::")[0] for path in task.every_test]
        above = {folder for path in tests for folder in PurePosixPath(path).parents}
        tests += [str(folder / name) for folder in above for name in SUPPORT]
        folders = [str(folder) for folder in above if folder.name in {"test", "tests"}]
        old, new = states.changed((*tests, *folders), "")
        old = {path: content for path, content in old.items() if _is_of_tests(path, tests, task)}
        added = tuple(path for path in new if Path(path).name in SUPPORT and not states.has(path))
        earlier = task_at_base(task.id, task.path, context.root, states.commit).task
        then = {(each.id, each.text) for each in earlier.criteria} if earlier else set()
        facts = {
            "how": f"pytest, with the test files of {states.commit[:12]} in a copy",
            "base": states.base,
            "commit": states.commit,
            "by_base": context.policy is not None,
            "changed": tuple(map(printable, sorted((*old, *added)))),
            "stood": tuple(each.id for each in task.criteria if (each.id, each.text) in then),
        }
        if not old and not added:
            return cls.model_validate(facts)
        if (run := seen.get(PytestRun)) is None:
            raise EvidenceUnavailable(seen.why_missing(PytestRun))
        # what is left out or fails in the run of the change, too, is judged there
        skips = frozenset(test.id for test in run.tests if test.outcome is not TestOutcome.PASSED)
        with guarded_folder() as folder:
            try:
                return cls.model_validate({**facts, **_judged(task, context, states, (old, added), folder, skips)})
            except OSError as error:
                raise EvidenceUnavailable(printable(str(error))[:MESSAGE]) from error


def _is_of_tests(path: str, tests: Iterable[str], task: Task) -> bool:
    """Return whether a file is among the named tests, or is code that may help them, and none of the task's code."""
    helps = path.endswith(".py") and not is_test_file(Path(path))
    return (helps or is_among(path, tests)) and not is_code(path, task.implementation)


def _judged(
    task: Task, context: Context, states: TwoStates, changes: Changes, folder: Path, skips: frozenset[str]
) -> dict[str, object]:
    """Run the base's tests against the change, and those that do not pass against the base, too."""
    old, added = changes
    change = _with_the_bases_tests(context, changes, folder / "change")
    alone = not added and all(is_test_file(Path(path)) for path in old)
    asked = [path for path in (old if alone else task.tests) if (change / path.split("::")[0]).exists()]
    ends, command, problem = _ran(asked, task, context, change, folder / "against-change")
    if any(end.ended == "failed" for end in ends.values()):
        names = _renamed(moved_symbols(task, states))
        written = [_write_in(names, change / path) for path in old if path.endswith(".py")] if names else []
        ends |= _passed(_ran(asked, task, context, change, folder / "against-change-in-its-names")) if written else {}
    suspects = sorted(n for n, e in ends.items() if e.ended == "failed" or (e.ended == "skipped" and n not in skips))
    facts: dict[str, object] = {"ran": len(ends), "commands": (command,), "problem": problem}
    if not suspects and not problem:
        return facts
    root = folder / "base" / states.history.prefix
    lay_out(states.history.top, states.commit, folder / "base")
    before, again, trouble = _ran(asked, task, context, root, folder / "against-base")
    able = {name.partition("::")[0] for name in before if "::" in name}
    if any(name not in before and name.partition("::")[0] not in able for name in suspects):
        lend_generated(context.root, root)  # it may be of today: only what passes counts
        before = _passed(_ran(asked, task, context, root, folder / "against-base-with-what-was-built")) | before
    moved, _ = moved_tests(task.tests, states)
    broken = []
    for name in (*suspects, *sorted(_passed((before, again, "")).keys() - ends.keys())):
        end, was = ends.get(name, BaseTest(id=name, ended="not found")), before.get(name)
        at_base = was.ended if was else "not run" if name.partition("::")[0] in able else UNSEEN
        told = {"criteria": end.criteria or (was.criteria if was else ()), "now": moved.get(function_of(name)) or ""}
        broken.append(end.model_copy(update={"at_base": at_base, **told}))
    return {**facts, "commands": (command, again), "broken": broken, "problem": problem if trouble else ""}


def _renamed(symbols: Mapping[str, str | None]) -> dict[str, str]:
    """Return the functions, classes and modules to which the change gave other names, as tests write them."""
    led = [(one.split(":"), other.split(":")) for one, other in symbols.items() if other]
    modules = {was: now for (was, _), (now, _) in led}
    names = {was.rpartition(".")[2]: now.rpartition(".")[2] for (_, was), (_, now) in led}
    return {old: new for old, new in (modules | names).items() if old != new}


def _write_in(names: Mapping[str, str], file: Path) -> int:
    pattern = rb"\b(%b)\b" % b"|".join(re.escape(name.encode()) for name in names)
    return file.write_bytes(re.sub(pattern, lambda found: names[found[0].decode()].encode(), file.read_bytes()))


def _with_the_bases_tests(context: Context, changes: Changes, whole: Path) -> Path:
    old, added = changes
    copy = copy_project(context.root, whole, copies=2)
    for path in added:
        placed(copy, path).unlink(missing_ok=True)
    for path, content in old.items():
        placed(copy, path).write_bytes(content)
    return copy


Ends = dict[str, BaseTest]


def _passed(run: tuple[Ends, CommandRecord, str]) -> Ends:
    return {name: end for name, end in run[0].items() if end.ended == "passed"}


def _ran(asked: Iterable[str], task: Task, context: Context, root: Path, log: Path) -> tuple[Ends, CommandRecord, str]:
    """Run tests in a copy; return how each ended, by node id, the command, and why the run says nothing."""
    here, chosen = replace(context, root=root), task.model_copy(update={"tests": tuple(asked)})
    paths = process.joined_paths(os.pathsep.join(map(str, import_roots(task, here))))
    env = relocated({**process.environment(), "PYTHONPATH": paths}, context.root, root)
    run = PytestRun.once(chosen, here, log, env=env, options=PLAIN, lines=False)
    told = [(test.id, ENDED[test.outcome], test.reason, test.criteria) for test in run.tests if test.outcome in ENDED]
    told += [(error.id, "failed", error.message.strip().rpartition("\n")[2], ()) for error in run.collect_errors]
    ends = {n: BaseTest(id=n, ended=e, message=printable(said)[:MESSAGE], criteria=c) for n, e, said, c in told}
    argv = ("python", "-m", "pytest", *chosen.tests)
    command = run.commands[0].model_copy(update={"purpose": "the base's tests", "argv": argv})
    if run.process.exit_code not in {0, 1}:
        return {}, command, f"pytest did not run them ({run.process.ended}): {run.process.last_words}"
    return ends, command, ""


ABOUT = About(rule="BL022", check="base-tests", level=Level.ADVISORY, evidence="BaseTests.json")


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one run of the base's tests; it speaks of the bar and not of the work, so it has no share of the score."""
    yield Planned(id="base-tests", title="The base's tests pass against the change", level=Level.ADVISORY, scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each test of the base that does not pass any more, at the level of its criterion."""
    seen, run = evidence.get(BaseTests), evidence.get(PytestRun)
    if seen is None or seen.problem:
        why = seen.problem if seen else evidence.why_missing(BaseTests)
        message = f"Whether the base's tests pass against the change was not seen: {why}"
        yield ABOUT.unknown(message, severity=Severity.INFO, actual="not run")
        return
    meant = [path for criterion in task.criteria for path in criterion.changes]
    broken = [one for one in seen.broken if one.at_base in {"passed", UNSEEN}]
    open_ = [one for one in broken if not any(is_under(one.id, path) for path in meant)]
    functions = {each.id: {test.function for test in tests_of(task, each, run)} for each in task.criteria}
    criteria = {one.id: _criteria(task, one, functions) for one in open_}
    for criterion in (*task.criteria, None):
        own = [one for one in open_ if criterion in criteria[one.id]]
        yield from (_broken(one, criterion, criteria[one.id], seen) for one in own if one.at_base == "passed")
        if unseen := [one for one in own if one.at_base != "passed"]:
            yield _undecided(criterion, unseen, seen)
    if not open_:
        ran = f"{seen.ran} tests of {seen.base} ran against the change" if seen.changed else "The change alters no test"
        named = f"; {len(broken)} that fail are named under `changes`" if broken else ""
        yield ABOUT.passed(f"{ran}{named}.", actual=f"{seen.ran} ran" if seen.changed else "no test changed")


def _criteria(task: Task, one: BaseTest, functions: Mapping[str, set[str]]) -> list[Criterion | None]:
    """Return the criteria that a base's test stands for, by path or marker: of the base, or `functions` of today."""
    found: list[Criterion | None] = []
    for criterion in task.criteria:
        marked = function_of(one.id) in functions[criterion.id] or f"{task.id}/{criterion.id}" in one.criteria
        if marked or any(is_under(one.id, path) or is_under(one.now, path) for path in criterion.tests):
            found.append(criterion)
    return found or [None]


def _broken(one: BaseTest, criterion: Criterion | None, criteria: list[Criterion | None], seen: BaseTests) -> Finding:
    why, names = f": {one.message}" if one.message else "", " or ".join(each.id for each in criteria if each)
    message = f"{one.id}, as {seen.base} has it, passed there and {one.ended} against this change{why}"
    named = f'let {names or "a criterion"} name it: `changes: ["{function_of(one.id)}"]`'
    fix = f"Keep what it promised; where the change of behaviour is meant, {named}."
    about = _at_level(criterion, one, seen, Severity.HIGH)
    if criterion and not _decides(criterion, seen):  # what is new may promise something else, and must say so
        return about.but(level=criterion.level, criterion=criterion.id).unknown(message, fix, subject=one.id)
    return about.failed(message, fix, subject=one.id)


def _undecided(criterion: Criterion | None, some: list[BaseTest], seen: BaseTests) -> Finding:
    """Say of tests that fail against the change that nothing shows whether they passed before it."""
    first, fail = some[0], "fails" if len(some) == 1 else "fail"
    failing = f"{counted(len(some), 'test')} of {seen.base} {fail} against this change, and no test of that file"
    message = f"{failing} could run at {seen.base}, first {first.id}: {first.message or first.ended}"
    fix = "Make the tests of the base run in a plain checkout of it, or fix what they found."
    subject = criterion.id if criterion else "no criterion"
    return _at_level(criterion, first, seen, Severity.MEDIUM).unknown(message, fix, subject=subject)


def _decides(criterion: Criterion | None, seen: BaseTests) -> bool:
    return seen.by_base or (criterion is not None and criterion.id in seen.stood)  # the base's, or in its words


def _at_level(criterion: Criterion | None, one: BaseTest, seen: BaseTests, severity: Severity) -> About:
    decides = _decides(criterion, seen)
    level = (criterion.level if criterion else Level.SHOULD) if decides else Level.ADVISORY
    about = ABOUT.but(level=level, severity=severity if level is Level.MUST else Severity.MEDIUM)
    about = about.but(criterion=criterion.id if criterion and decides else None)
    return about.but(location=Location(path=one.id.split("::")[0]), expected="passed", actual=one.ended)


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was run; the findings name the tests that do not pass."""
    if (seen := evidence.get(BaseTests)) and seen.changed:
        base, changed = f"{seen.base} ({seen.commit[:12]})", ", ".join(seen.changed[:10])
        facts = (("Base", base), ("Test files changed", changed), ("Tests run against the change", str(seen.ran)))
        yield Section(title="The Base's Tests", facts=facts)


CHECK = Check("base_tests", "business-logic", 125, (BaseTests,), plan, judge, page, basis=Basis.DECLARED)
