"""Whether commands that stand for a criterion call its code: run in a copy in which that code only says so."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

from gates import process
from gates.config import reports_of
from gates.context import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.kind import Derived, EvidenceSet
from gates.evidence.measurements import asked_of
from gates.evidence.source_tree import SourceTree
from gates.guardian import guarded_folder
from gates.model import CommandRecord, Model
from gates.process import ProcessRun
from gates.proving.bench import Bench
from gates.proving.emptying import bodies, makes_unseen, places_of, raising
from gates.proving.giving import Function
from gates.proving.source import Text
from gates.tasks.measurement import Measurement
from gates.tasks.task import Criterion, Task
from gates.tasks.types import Command


class CommandCall(Model):
    """A command that stands for a criterion, and whether it called the criterion's code before it ended.

    `part` names what of the task it is, such as `measurement speed`. Only of one that `ended_well` is it known that it
    calls none, unless `why` says why nobody can tell.
    """

    criterion: str
    part: str
    command: Command
    called: bool
    ended_well: bool
    why: str = ""

    @property
    def misses(self) -> bool:
        """Return whether the command was seen to do without the code."""
        return self.ended_well and not self.called and not self.why


class CalledCode(Derived):
    """The commands of measurements and entry points that stand for criteria which are traced to symbols."""

    calls: tuple[CommandCall, ...]

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Run each command in a copy in which the criterion's code leaves a mark, and raises."""
        tree = seen.get(SourceTree)
        if tree is None:
            raise EvidenceUnavailable(f"the code was not seen: {seen.why_missing(SourceTree)}")
        asked = [(c, each) for c in task.criteria for each in commands_of(task, c)]
        files = {c.id: _functions(c, tree, context) for c, _ in asked}
        asked = [(c, each) for c, each in asked if files[c.id]]
        if not asked:
            raise EvidenceUnavailable("no command stands for a criterion that is traced to functions alone")
        found, records, places = [], [], places_of(task.implementation, context.root)
        unseen = {c.id: _unseen(c, tree, context) for c, _ in asked}
        with guarded_folder() as folder:
            try:
                bench = Bench(task, replace(context, evidence=folder), reports_of(context.root), 0)
            except UsageError as error:
                raise EvidenceUnavailable(str(error)) from error
            for number, (criterion, (part, command, timeout_s)) in enumerate(asked):
                mark = folder / f"called-{number}"
                texts = {
                    file.path: raising(file, functions, mark, places) for file, functions in files[criterion.id].items()
                }
                with bench.faulty(texts) as copy:
                    ended, why = _ended(command, replace(copy, timeout_s=timeout_s or context.timeout_s), bench)
                well, called = ended is not None and ended.exit_code == 0 and not ended.timed_out, mark.exists()
                why = "" if called or not well else why or unseen[criterion.id]
                found.append(CommandCall(criterion=criterion.id, part=part, command=command, called=called,
                                         ended_well=well, why=why))  # fmt: skip
                records.append(CommandRecord(
                    purpose=f"{part} without the code of {criterion.id}", argv=command,
                    ended=ended.ended if ended else "cannot be started", duration_s=ended.duration_s if ended else 0,
                ))  # fmt: skip
        how = "each command, run in a copy in which the code of its criterion raises"
        return cls(how=how, commands=tuple(records), calls=tuple(found))


def commands_of(task: Task, criterion: Criterion) -> Iterator[tuple[str, Command, float | None]]:
    """Yield the commands that stand for a criterion by themselves, each with what of the task it is and its limit."""
    wanted = {measure.from_ for measure in criterion.measures}
    for measurement in task.measurements:
        if measurement.id in wanted:
            part = f"measurement {measurement.id}"
            yield from ((part, command, measurement.timeout_s) for command in _commands(task, measurement))
    for entry in task.entry_points:
        if criterion.id in entry.criteria and entry.run:
            yield "entry point", entry.run, entry.timeout_s


def _commands(task: Task, measurement: Measurement) -> Iterator[Command]:
    """Yield what a measurement runs: its own command, or the arms that are timed from their start to their end."""
    devices = asked_of(task, measurement)
    commands = [measurement.run, *(arm.time for arm in measurement.arms.values())]
    for command in filter(None, commands):
        yield tuple(word.replace("{device}", devices[0] if devices else "cpu") for word in command)


def _functions(criterion: Criterion, tree: SourceTree, context: Context) -> dict[Text, list[Function]]:
    """Return the functions of a criterion by file; none where something else than functions is bound to it, too."""
    files: dict[str, Text] = {}
    found: dict[Text, list[Function]] = {}
    for binding in criterion.code:
        own: list[Function] = []
        for place in tree.ways(binding) if binding.symbol else ():
            try:
                file = files.setdefault(place.path, Text.read(context.root, place.path))
                functions = bodies(file, [place], binding.name)
            except (OSError, SyntaxError, ValueError):
                return {}
            own += functions
            known = found.setdefault(file, [])
            known += [each for each in functions if each not in known]
        if not own:
            return {}
    return found


def _unseen(criterion: Criterion, tree: SourceTree, context: Context) -> str:
    """Return why calls of a criterion's code may not be seen: objects of a class are made without a line of it."""
    for binding in criterion.code:
        for place in tree.ways(binding) if binding.symbol else ():
            if makes_unseen(Text.read(context.root, place.path), place, binding.name):
                return f"objects of {binding.name} are made without a line of its own"
    return ""


def _ended(command: Command, context: Context, bench: Bench) -> tuple[ProcessRun | None, str]:
    """Return how a command ends in a copy, and why that says nothing, where it wrote no samples."""
    with tempfile.TemporaryDirectory(dir=context.evidence) as fresh:
        out = Path(fresh) / "out"
        argv = context.argv(command, out=str(out))
        env = bench.env(context.root)
        try:
            ended = process.run(argv, cwd=context.root, timeout_s=context.timeout_s, log=Path(fresh) / "run", env=env)
        except OSError:
            return None, ""
        asked = any("{out}" in word for word in command)
        return ended, "it writes no samples in a copy" if asked and not out.exists() else ""
