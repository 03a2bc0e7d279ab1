"""What the change made lower of what it is judged by: task file, settings, tests, rules, workflows and templates."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Self

from gates import rules
from gates.check import About, Check, Evidence, EvidenceSet
from gates.checks.policy import moves
from gates.checks.policy.moves import Move, Part, moved
from gates.config import Context
from gates.errors import UsageError
from gates.evidence.tests.test_records import followed
from gates.model import Basis, Finding, Level, Location, Planned, Severity
from gates.project.files import is_code, is_under
from gates.project.history import TwoStates
from gates.project.policy import TEMPLATES, TaskAtBase, task_at_base
from gates.task import loading as spec
from gates.task.task import Task
from gates.words import printable

RULE_ID = re.compile(r"^id:\s*[\"']?([\w.-]+)", re.MULTILINE)
RUNS_GATES = re.compile(r"^.*\bgates\s+run\b.*$", re.MULTILINE)


class Mode(StrEnum):
    """What a lowered goalpost does: the bar's own stop the change, or all of them do, or they are only listed."""

    BAR = "bar"
    ALL = "all"
    LIST = "list"


class Goalposts(Evidence):
    """What was made lower since the base, and what was not compared; `by_base` under `--policy-from`."""

    base: str
    commit: str
    mode: Mode
    by_base: bool = False
    is_new: bool = False
    moves: tuple[Move, ...]
    unread: tuple[str, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Compare the work tree with the merge base."""
        states = TwoStates.since_base(context.root, context.base)
        was = task_at_base(task.id, task.path, context.root, states.commit)
        unread = [was.unread] if was.unread else []
        made = tuple(_compared(task, context, was, states, unread))
        return cls(
            how=f"git, the files of {states.commit[:12]} beside those of the work tree",
            base=states.base,
            commit=states.commit,
            mode=Mode(context.goalposts or was.settings.goalposts),
            by_base=context.policy is not None,
            is_new=was.task is None and not unread,
            moves=made,
            unread=tuple(dict.fromkeys(map(printable, (*unread, *states.skipped)))),
        )


def _compared(task: Task, context: Context, was: TaskAtBase, states: TwoStates, unread: list[str]) -> Iterator[Move]:
    """Yield what is lower now, and add to `unread` what could not be compared."""
    before, now = was.task, _task_now(task, context, unread)
    asked, was_read = [one for one in (before, now) if one], not unread
    old, new = _beside(asked, states, unread)
    if before and now:
        yield from moves.compare_tasks(followed(before, states, now), now, states.gone)
    elif before and was_read:
        yield moved(Part.BAR, f"task {before.id}", "asked for", "removed", None)
    yield from moves.compare_tests(old, new)
    added = sorted(path for path in new.keys() - old.keys() if Path(path).name == "conftest.py")
    yield from (moved(Part.CHANGED, f"file {path}", "none", "there", Location(path=path)) for path in added)
    yield from moves.compare_settings(*states.named(moves.WATCHED), unread)
    for path in sorted(states.gone - {task.path, before.path if before else ""}):
        if is_under(path, was.settings.tasks) and path.endswith(spec.SUFFIXES):
            yield moved(Part.CHANGED, f"task file {path}", "asked for", "deleted", None)
    yield from _workflows(states)
    yield from _overridden(was.settings.rules, states)


def _beside(asked: Sequence[Task], states: TwoStates, unread: list[str]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return what differs of tests, files beside them and probes, then and now, without what cannot be read."""
    paths = [path for one in asked for path in one.every_test]
    code = [path for one in asked for path in one.implementation]
    named = {word for one in asked for _, word in one.named()}
    paths += [path for word in named for path in moves.may_run(word) if states.has(path)]
    above = {str(folder / "conftest.py") for path in paths for folder in PurePosixPath(path.split("::")[0]).parents}
    both = states.changed((*paths, *sorted(above)), "")
    old, new = ({path: text for path, text in side.items() if not is_code(path, code)} for side in both)
    unread += [f"{path} at the base: it is no Python" for path in old if not _can_be_read(path, old[path])]
    broken = [path for path in new if not _can_be_read(path, new[path])]
    unread += [f"{path} now: it is no Python" for path in broken]
    unread += [f"{path} (no plain file now)" for path in old if path not in new and path not in states.gone]
    left = {path for path in old if path in states.gone or (path in new and path not in broken)}
    return {path: text for path, text in old.items() if path in left}, new


def _can_be_read(path: str, content: bytes) -> bool:
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return not path.endswith(".py") or ast.parse(content) is not None
    return False


def _task_now(task: Task, context: Context, unread: list[str]) -> Task | None:
    """Return the whole task as the work tree has it: what is judged may be narrowed, or be that of the base."""
    path = context.root / task.path
    if not path.is_file():
        return None if context.policy else task
    try:
        return spec.load(path, context.root)
    except UsageError as error:
        unread.append(f"{str(error).splitlines()[0]} (now)")
        return None


def _workflows(states: TwoStates) -> Iterator[Move]:
    """Name the lines of workflows that ran the gates and do so no longer as they did."""
    old, new = (
        {path: [*map(str.strip, RUNS_GATES.findall(text.decode("utf-8", "replace")))] for path, text in side.items()}
        for side in states.changed((".github/workflows",), spec.SUFFIXES)
    )
    kept = {line for lines in new.values() for line in lines}
    for path, lines in old.items():
        after = next((line for line in new.get(path, ()) if line not in lines), "removed")
        for line in (each for each in lines if each not in kept):
            yield moved(Part.SETTINGS, f"workflow {path}", line, after, Location(path=path))


def _overridden(rules_folder: str, states: TwoStates) -> Iterator[Move]:
    """Name the project's own rules and templates that are new in place of others, changed, or gone."""
    old, new = states.changed((rules_folder, TEMPLATES), "")
    for path in sorted(old.keys() | new.keys()):
        named = RULE_ID.search(new.get(path, b"").decode("utf-8", "replace"))
        replaces = named is not None and (Path(rules.__file__).parent / f"{named[1]}.yaml").is_file()
        if path not in old and path.endswith(spec.SUFFIXES) and not replaces:
            continue  # one more rule asks for more
        before, after = "there" if path in old else "none", "none" if path not in new else "there"
        what = f"{'template' if path.endswith('.j2') else 'code rule'} {path}"
        place = Location(path=path) if path in new else None
        yield moved(Part.SETTINGS, what, before, "changed" if before == after else after, place)


ABOUT = About(rule="BL011", check="goalposts", level=Level.ADVISORY, expected="nothing lower than before")


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one comparison of everything; it speaks of the bar and not of the work, so it has no share of the score."""
    yield Planned(id="goalposts", title="The change does not weaken the gate", level=Level.ADVISORY, scored=False)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name each goalpost that was moved, and what could not be compared."""
    if (seen := evidence.get(Goalposts)) is None:
        message = f"Whether the change lowers what judges it was not seen: {evidence.why_missing(Goalposts)}"
        yield ABOUT.unknown(message, "Run where the history is, or name what to compare with by --base.")
        return
    base, times = f"{seen.base} ({seen.commit[:12]})", Counter[str]()
    for move in sorted(seen.moves, key=lambda move: (not stops(move, seen), list(Part).index(move.part))):
        subject = f"{move.part.value} {move.what}"
        times[subject] += 1
        subject = f"{subject} #{times[subject]}" if times[subject] > 1 else subject
        about = ABOUT.but(subject=subject, location=move.location, impact=f"Compared with {base}.")
        about = about.but(expected=move.before, actual=move.after)
        if stops(move, seen):
            allow = "have the base judge (--policy-from) or a person allow it (--goalposts list)"
            about = about.but(severity=Severity.HIGH, level=Level.MUST)
            yield about.failed(str(move), f"Put it back; where it is meant, {allow}.")
        else:
            severity = Severity.LOW if move.part is Part.CHANGED else Severity.MEDIUM
            yield about.failed(str(move), "Put it back, or have a reviewer agree to it.", severity=severity)
    for what in seen.unread:
        fix = "Fix the file, or look at its changes yourself."
        yield ABOUT.unknown(f"Not compared with {seen.base}: {what}", fix, subject=what)
    if not seen.moves and not seen.unread:
        message = f"None of the limits, bindings, tests and settings that are compared asks for less than at {base}."
        message = f"The task is new since {base}." if seen.is_new else message
        yield ABOUT.passed(message, actual="nothing lower")


def stops(move: Move, seen: Goalposts) -> bool:
    """Return whether a move stops the change: not where the base judges in its place."""
    if seen.mode is Mode.LIST:
        return False
    if seen.by_base:  # tests and their settings are those of the work tree all the same
        return seen.mode is Mode.ALL and move.part in {Part.TESTS, Part.SETTINGS}
    return move.part is Part.BAR or (seen.mode is Mode.ALL and move.part is not Part.CHANGED)


CHECK = Check("policy", "business-logic", 120, (Goalposts,), plan, judge, basis=Basis.DECLARED)
