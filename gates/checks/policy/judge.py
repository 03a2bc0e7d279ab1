"""What the change made lower of what it is judged by: what was is listed, with both sides.

The bar of today beside that of the base: task file, settings, tests, rules, workflows and templates.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Self

from gates import rules
from gates.check import About, Check, Evidence, EvidenceSet
from gates.checks.policy import task_file, tests
from gates.checks.policy.tests import Move, Part, moved
from gates.config import Context
from gates.errors import UsageError
from gates.evidence.tests.test_records import found_again, written_tests
from gates.model import Basis, Finding, Level, Location, Planned, RuleText, Severity
from gates.project.files import is_code, is_under
from gates.project.history import History, TwoStates, base_of
from gates.project.policy import TEMPLATES, TaskAtBase, task_at_base
from gates.report import Section
from gates.task import loading as spec
from gates.task.task import Task
from gates.words import printable

RULE_ID = re.compile(r"^id:\s*[\"']?([\w.-]+)", re.MULTILINE)
WORKFLOWS = ".github/workflows"
RUNS_GATES = re.compile(r"^.*\bgates\s+run\b.*$", re.MULTILINE)


class Mode(StrEnum):
    """What a lowered goalpost does: the bar's own stop the change, or all of them do, or they are only listed."""

    BAR = "bar"
    ALL = "all"
    LIST = "list"


class Goalposts(Evidence):
    """What was made lower since the base: its name, the merge base's commit, the moves, and what was not compared."""

    base: str
    commit: str
    mode: Mode
    policy: str = ""
    is_new: bool = False
    moves: tuple[Move, ...]
    unread: tuple[str, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Compare the work tree with the merge base."""
        history = History(context.root)
        found = base_of(history, context.base)
        was = task_at_base(task.id, task.path, context.root, found.commit)
        states = TwoStates(history, found.commit, context.root)
        moves, unread, is_new = _compared(task, context, was, states)
        return cls(
            how=f"git, the files of {found.commit[:12]} beside those of the work tree",
            base=printable(found.name),
            commit=found.commit,
            mode=Mode(context.goalposts or was.settings.goalposts),
            policy=context.policy,
            is_new=is_new,
            moves=tuple(moves),
            unread=tuple(dict.fromkeys(map(printable, unread))),
        )


def _compared(task: Task, context: Context, was: TaskAtBase, states: TwoStates) -> tuple[list[Move], list[str], bool]:
    """Return what is lower now, what could not be compared, and whether the task is new."""
    before, unread = was.task, [was.unread] if was.unread else []
    now = _task_now(task, context, unread)
    moves: list[Move] = []
    had_unread = bool(unread)
    asked = [one for one in (before, now) if one]
    test_paths = tuple(path for one in asked for path in (*one.tests, *(t for c in one.criteria for t in c.tests)))
    code = [path for one in asked for path in one.implementation]
    beside = states.changed((*test_paths, "conftest.py"), "")
    old, new = ({path: text for path, text in side.items() if not is_code(path, code)} for side in beside)
    sides = {"at the base": old, "now": new}
    broken = [(path, when) for when, side in sides.items() for path in side if not _can_be_read(path, side[path])]
    unread += [f"{path} {when}: it is no Python" for path, when in broken]
    for path in [path for path in old if path not in states.gone]:
        if path not in new:
            unread.append(f"{path} (no plain file now)")
        if path not in new or (path, "now") in broken:
            del old[path]  # it cannot be read now: nothing of it counts as gone
    fate = tests.Fate(states.gone, found_again(written_tests(old), written_tests(new)))
    if before and now:
        moves += task_file.compare(before, now, fate)
    elif before and not had_unread:
        moves.append(moved(Part.BAR, f"task {before.id}", "asked for", "removed", None))
    moves += tests.compare(old, new, fate)
    moves += tests.compare_settings(*states.named(tests.WATCHED))
    for when, side in zip(("at the base", "now"), states.named(tests.WATCHED), strict=True):
        unread += [f"{path}: {why} {when}" for path, why in tests.unreadable(side).items()]
    known = {task.path, before.path if before else ""}
    lost = [p for p in sorted(states.gone - known) if is_under(p, was.settings.tasks) and p.endswith(spec.SUFFIXES)]
    moves += [moved(Part.CHANGED, f"task file {path}", "asked for", "deleted", None) for path in lost]
    moves += _workflows(states)
    moves += _overridden(was.settings.rules, states)
    return moves, [*unread, *states.skipped], before is None and not unread


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
    old, new = states.changed((WORKFLOWS,), ("yml", "yaml"))
    kept = {line for content in new.values() for line in _gate_lines(content)}
    for path, content in old.items():
        for line in _gate_lines(content):
            if line not in kept:
                after = next(
                    (now for now in _gate_lines(new.get(path, b"")) if now not in _gate_lines(content)), "removed"
                )
                yield moved(Part.SETTINGS, f"workflow {path}", line, after, Location(path=path))


def _replaces(rule: bytes) -> bool:
    """Return whether an own code rule takes the place of a shipped one, by its id."""
    found = RULE_ID.search(rule.decode("utf-8", "replace"))
    return found is not None and (Path(rules.__file__).parent / f"{found[1]}.yaml").is_file()


def _gate_lines(content: bytes) -> list[str]:
    return [line.strip() for line in RUNS_GATES.findall(content.decode("utf-8", "replace"))]


def _overridden(rules_folder: str, states: TwoStates) -> Iterator[Move]:
    """Name the project's own rules and templates that are new in place of others, changed, or gone."""
    folders = (rules_folder, TEMPLATES)
    old, new = states.changed(folders, "")
    for path in sorted(old.keys() | new.keys()):
        before, after = ("there" if path in files else "none" for files in (old, new))
        if path not in old and path.endswith((".yaml", ".yml")) and not _replaces(new[path]):
            continue  # one more rule asks for more
        changed = "changed" if path in old and path in new else after
        place = Location(path=path) if path in new else None
        yield moved(
            Part.SETTINGS, f"{'template' if path.endswith('.j2') else 'code rule'} {path}", before, changed, place
        )


NAMED = 50
OF_THE_CODE = {Part.TESTS, Part.SETTINGS}

RULES = (
    RuleText(
        id="BL011",
        title="The change does not weaken the gate",
        meaning="A limit, level or binding lower than at the merge base stops the change, unless --policy-from judges "
        "it. Tests and settings are listed; --goalposts all stops weaker ones.",
    ),
)
ABOUT = About(rule="BL011", check="goalposts", level=Level.ADVISORY, expected="nothing lower than before")


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one comparison of everything; it speaks of the bar and not of the work, so it has no share of the score."""
    yield Planned(id="goalposts", title="The change does not weaken the gate", level=Level.ADVISORY, scored=False)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name each goalpost that was moved, and what could not be compared."""
    seen = evidence.get(Goalposts)
    if seen is None:
        message = f"Whether the change lowers what judges it was not seen: {evidence.why_missing(Goalposts)}"
        yield ABOUT.unknown(message, "Run where the history is, or name what to compare with by --base.")
        return
    times: Counter[str] = Counter()
    moves = sorted(seen.moves, key=lambda move: (not stops(move, seen), list(Part).index(move.part)))
    for move in moves[:NAMED]:
        subject = f"{move.part.value} {move.what}"
        times[subject] += 1
        yield _move(move, seen, f"{subject} #{times[subject]}" if times[subject] > 1 else subject)
    if rest := moves[NAMED:]:
        message = f"{len(rest)} more policy changes; all are in evidence/Goalposts.json."
        yield _weighed(rest[0], seen).failed(message, "Put back those that are named first.", subject="more")
    for what in seen.unread[:NAMED]:
        fix = "Fix the file, or look at its changes yourself."
        yield ABOUT.unknown(f"Not compared with {seen.base}: {what}", fix, subject=what)
    if not moves and not seen.unread:
        compared = "None of the limits, bindings, tests and settings that are compared"
        yield ABOUT.passed(f"{compared} asks for less than at {_base(seen)}.", actual="nothing lower")


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was compared with what; the findings name what was moved."""
    seen = evidence.get(Goalposts)
    if seen is None:
        return
    yield Section(
        title="Policy Changes",
        text="The task is new since the base." if seen.is_new else "",
        facts=(("Compared with", _base(seen)), ("A lower limit", _effect(seen)), ("Changes", str(len(seen.moves)))),
    )


def stops(move: Move, seen: Goalposts) -> bool:
    """Return whether a move stops the change: not where the base judges in its place."""
    if seen.mode is Mode.LIST:
        return False
    if seen.policy:  # tests and their settings are those of the work tree all the same
        return seen.mode is Mode.ALL and move.part in OF_THE_CODE
    return move.part is Part.BAR or (seen.mode is Mode.ALL and move.part is not Part.CHANGED)


def _weighed(move: Move, seen: Goalposts) -> About:
    if stops(move, seen):
        return ABOUT.but(severity=Severity.HIGH, level=Level.MUST)
    return ABOUT.but(severity=Severity.LOW if move.part is Part.CHANGED else Severity.MEDIUM)


def _move(move: Move, seen: Goalposts, subject: str) -> Finding:
    fix = "Put it back, or have a reviewer agree to it."
    if stops(move, seen):
        allow = "have the base judge (--policy-from) or a person allow it (--goalposts list)"
        fix = f"Put it back; where it is meant, {allow}."
    about = _weighed(move, seen).but(subject=subject, location=move.location)
    return about.failed(str(move), fix, expected=move.before, actual=move.after)


def _base(seen: Goalposts) -> str:
    return f"{seen.base} ({seen.commit[:12]})"


def _effect(seen: Goalposts) -> str:
    if seen.policy:
        rest = "; weaker tests and settings stop the change" if seen.mode is Mode.ALL else ""
        return f"is listed: the task file of {seen.policy} judges{rest}"
    return {
        Mode.BAR: "stops the change; weaker tests and settings, and waivers, are listed",
        Mode.ALL: "stops the change, and so do weaker tests and settings, and waivers",
        Mode.LIST: "is listed",
    }[seen.mode]


CHECK = Check("policy", "business-logic", 120, RULES, (Goalposts,), plan, judge, describe, basis=Basis.DECLARED)
