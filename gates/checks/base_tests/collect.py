"""The tests as the merge base has them, run against the change's code in a copy."""

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Self

from gates.check import Derived, EvidenceSet
from gates.child import process
from gates.child.guardian import guarded_folder
from gates.code.sources import Sources
from gates.code.syntax import Unparsed
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.tests.bound_tests import moved_symbols, moved_tests
from gates.evidence.tests.marked import written_in
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome, function_of
from gates.model import CommandRecord, Model
from gates.project.copies import copy_project, lay_out, lend_generated, relocated
from gates.project.files import import_roots, is_among, is_test_file
from gates.project.history import History
from gates.project.two_states import TwoStates, base_of
from gates.task import loading
from gates.task.task import Task
from gates.words import printable

MESSAGE = 300
SUPPORT = ("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg")  # what bends every test


Changes = tuple[Mapping[str, bytes], Sequence[str]]  # files as the base has them, and what it has not


class BaseTest(Model):
    """A test of the base that fails or is not found against the change; `at_base` is how it ended there.

    `criteria` are those that its markers name at the base, and `now` is where it is today, by another name perhaps.
    `seen_at_base` is false where no test of its file could run there, so that nothing says whether the change broke it.
    """

    id: str
    ended: str
    message: str = ""
    at_base: str = ""
    seen_at_base: bool = True
    criteria: tuple[str, ...] = ()
    now: str = ""


class BaseTests(Derived):
    """How the base's tests ended against the change: only where the change touches tests, else there is nothing to run.

    `changed` are the test files that the change altered or removed, `ran` counts the tests that ran, `stood` are the
    criteria that the base has in the same words, and `policy` is the revision that the task file was taken from, if
    not from here.
    """

    base: str
    commit: str
    changed: tuple[str, ...]
    ran: int = 0
    broken: tuple[BaseTest, ...] = ()
    problem: str = ""
    stood: tuple[str, ...] = ()
    policy: str = ""

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Lay the base's test files over a copy of the change, and run them."""
        history = History(context.root)
        found = base_of(history, context.base)
        states = TwoStates(history, found.commit, context.root)
        tests = [path.split("::")[0] for path in (*task.tests, *(path for c in task.criteria for path in c.tests))]
        above = {str(folder / name) for path in tests for folder in PurePosixPath(path).parents for name in SUPPORT}
        old, new = states.changed((*tests, *sorted(above)), "")
        old = {path: content for path, content in old.items() if not _is_code(path, task)}
        added = tuple(path for path in new if Path(path).name in SUPPORT and not states.has(path))
        facts = {
            "how": f"pytest, with the test files of {found.commit[:12]} in a copy",
            "base": printable(found.name),
            "commit": found.commit,
            "policy": context.policy,
            "changed": tuple(map(printable, sorted((*old, *added)))),
            "stood": _stood(task, states),
        }
        if not old and not added:
            return cls.model_validate(facts)
        run = seen.get(PytestRun)
        if run is None:
            raise EvidenceUnavailable(seen.why_missing(PytestRun))
        # what is left out or fails in the run of the change, too, is judged there
        skips = frozenset(test.id for test in run.tests if test.outcome is not TestOutcome.PASSED)
        with guarded_folder() as folder:
            try:
                return cls.model_validate(
                    {**facts, **_judged(task, context, history, found.commit, (old, added), folder, skips)}
                )
            except (UsageError, OSError) as error:
                raise EvidenceUnavailable(printable(str(error))[:MESSAGE]) from error


def _stood(task: Task, states: TwoStates) -> tuple[str, ...]:
    """Return the criteria that the task file of the base has in the same words."""
    with guarded_folder() as folder, suppress(UsageError, KeyError):
        file = folder / Path(task.path).name
        file.write_bytes(states.before([task.path])[task.path])
        then = {(each.id, each.text) for each in loading.load(file, folder).criteria}
        return tuple(each.id for each in task.criteria if (each.id, each.text) in then)
    return ()


def _is_code(path: str, task: Task) -> bool:
    """Return whether a file that lies among the tests is what they test: the change's own has to run."""
    file = PurePosixPath(path)
    is_test = is_test_file(Path(path)) or file.name in SUPPORT or {"tests", "test"}.intersection(file.parts)
    return is_among(path, task.implementation) and not is_test


def _judged(
    task: Task, context: Context, history: History, commit: str, changes: Changes, folder: Path, skips: frozenset[str]
) -> dict[str, object]:
    """Run the base's tests against the change, and those that do not pass against the base, too."""
    (old, added), states = changes, TwoStates(history, commit, context.root)
    change = _with_the_bases_tests(context, changes, folder / "change")
    files = [path for path in old if is_test_file(Path(path))]
    asked = [path for path in task.tests if (change / path.split("::")[0]).exists()]
    asked = files if len(files) == len(old) and not added else asked
    ends, command, problem = _ran(asked, task, context, change, folder / "against-change")
    if any(ended == "failed" for ended, _ in ends.values()):
        names = _renamed(moved_symbols(task, states))
        written = [_write_in(names, change / path) for path in files] if names else []
        ends |= _passed(_ran(asked, task, context, change, folder / "against-change-in-its-names")) if written else {}
    suspects = sorted(n for n, (end, _) in ends.items() if end == "failed" or (end == "skipped" and n not in skips))
    facts: dict[str, object] = {"ran": len(ends), "commands": (command,), "problem": problem}
    if not suspects and not problem:
        return facts
    root = folder / "base" / history.prefix
    lay_out(history.top, commit, folder / "base")
    before, again, trouble = _ran(asked, task, context, root, folder / "against-base")
    able = {name.partition("::")[0] for name in before if "::" in name}
    if any(name not in before and name.partition("::")[0] not in able for name in suspects):
        lend_generated(context.root, root)  # it may be of today: only what passes counts
        before = _passed(_ran(asked, task, context, root, folder / "against-base-with-what-was-built")) | before
    lost = sorted(name for name, (ended, _) in before.items() if ended == "passed" and name not in ends)
    (moved, _), marked = moved_tests(task, states), _marked(root, {n.partition("::")[0] for n in (*suspects, *lost)})
    broken = tuple(
        BaseTest(
            id=name,
            ended=ends.get(name, ("not found", ""))[0],
            message=ends.get(name, ("", ""))[1],
            at_base=before.get(name, ("not run", ""))[0],
            seen_at_base=name in before or name.partition("::")[0] in able,
            criteria=marked.get(function_of(name), ()),
            now=moved.get(function_of(name)) or "",
        )
        for name in (*suspects, *lost)
    )
    return {**facts, "commands": (command, again), "broken": broken, "problem": problem if trouble else ""}


def _renamed(symbols: Mapping[str, str | None]) -> dict[str, str]:
    """Return the functions, classes and modules to which the change gave other names, as tests write them."""
    led = [(one.split(":"), other.split(":")) for one, other in symbols.items() if other]
    modules = {was: now for (was, _), (now, _) in led}
    names = {was.rpartition(".")[2]: now.rpartition(".")[2] for (_, was), (_, now) in led}
    return {old: new for old, new in (modules | names).items() if old != new}


def _write_in(names: Mapping[str, str], file: Path) -> int:
    """Write a test with other names in the place of its own."""
    pattern = rb"\b(%b)\b" % b"|".join(re.escape(name.encode()) for name in names)
    return file.write_bytes(re.sub(pattern, lambda found: names[found[0].decode()].encode(), file.read_bytes()))


def _marked(root: Path, files: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what the markers of the tests in some files name, by node id without parameters."""
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        with suppress(Unparsed, OSError):
            found |= {
                test.id: tuple(marker.names or "" for marker in test.markers)
                for test in written_in(Sources(root).module(root / file, ""))
            }
    return found


def _with_the_bases_tests(context: Context, changes: Changes, copy: Path) -> Path:
    """Copy the change with its tests as the base has them."""
    old, added = changes
    copy_project(context.root, copy, copies=2)
    for path in added:
        (copy / path).unlink()
    for path, content in old.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(content)
    return copy


Ends = dict[str, tuple[str, str]]  # how each test ended, and what it said


def _passed(run: tuple[Ends, CommandRecord, str]) -> Ends:
    return {name: end for name, end in run[0].items() if end[0] == "passed"}


def _ran(asked: Iterable[str], task: Task, context: Context, root: Path, log: Path) -> tuple[Ends, CommandRecord, str]:
    """Run tests in a copy; return how each ended, by node id, the command, and why pytest did not run them all."""
    report = log.with_suffix(".xml")
    roots = import_roots(task, replace(context, root=root))
    env = {"PYTHONPATH": process.joined_paths(os.pathsep.join(map(str, roots)))}
    env = relocated({**process.environment(), **env}, context.root, root)
    plain = "-q --color=no -p no:cacheprovider -p no:randomly --continue-on-collection-errors -o junit_family=xunit1"
    words = ["-m", "pytest", *asked, *plain.split(), f"--rootdir={root}", f"--junit-xml={report}"]
    ended = process.run([context.python, *words], cwd=root, timeout_s=context.timeout_s, log=log, env=env)
    command = ended.as_command("the base's tests", ("python", "-m", "pytest", *asked))
    if ended.exit_code not in {0, 1} or not report.is_file():
        return {}, command, f"pytest did not run them ({ended.ended}): {ended.last_words}"
    return dict(map(_end, ET.parse(report).iter("testcase"))), command, ""  # noqa: S314  # pytest itself wrote it


def _end(case: ET.Element) -> tuple[str, tuple[str, str]]:
    """Return a test's node id (its path, for a file that was not collected), how it ended, and what it said first."""
    path = case.get("file", "")
    module = path.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).strip(".").replace(".", "::")
    own = case.get("name", "")
    name = path if own == module else "::".join(part for part in (path, classes, own) if part)
    for kind, ended in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(kind)
        if found is not None:
            lines = (found.get("message") or found.text or "").strip().splitlines()
            return name, (ended, printable(lines[0])[:MESSAGE] if lines else "")
    return name, ("passed", "")
