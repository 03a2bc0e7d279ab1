"""Whether commands that stand for a criterion call its code: run in a copy in which that code only says so."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, Self

from gates.check import Evidence, EvidenceSet
from gates.child import process
from gates.child.asking import command as program
from gates.child.forks import Warm
from gates.child.trying.keeping import marked
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.evidence.measurements import asked_of
from gates.evidence.source_tree import SourceTree
from gates.measuring import bench
from gates.measuring.samples import BadSamples, read
from gates.model import CommandRecord, Model
from gates.project.files import import_roots
from gates.proving.bench import Bench, benched
from gates.proving.emptying import REFUSED, Function, bodies, guard, is_called_anew, makes_unseen, stubs
from gates.proving.source import Text
from gates.task.measurement import Arm
from gates.task.task import Criterion, Measure, Task
from gates.task.types import Command

Functions = Mapping[Text, Iterable[Function]]
Code = tuple[Functions, str]  # of a criterion, and why calls of it may be unseen
CALLED, BEFORE, STEPPING = "called", "before", "stepping"  # files: the code was called, before the steps; they began
REFUSED_LATER = f"__import__('os').path.exists({{!r}}) and (_ for _ in ()).throw({REFUSED.removeprefix('raise ')})"
STEPS = 8  # of an arm: what is called but now and then is called in one of so many
LONG_S = 60.0


class Standing(NamedTuple):
    """A command that stands for a criterion by itself, and what of the task it is, such as `measurement speed`.

    It `measures`, or is an entry point. An `arm` is asked for one step, as when it is measured. `answers` are the
    measures whose arms must be among the samples of the command. `smoke` are the words with which it does less.
    """

    part: str
    command: Command
    timeout_s: float | None
    device: str = "cpu"
    arm: Arm | None = None
    answers: tuple[Measure, ...] = ()
    smoke: Command = ()
    measures: bool = True


def standing_for(task: Task, criterion: Criterion) -> Iterator[Standing]:
    """Yield the commands and the arms that stand for a criterion by themselves."""
    wanted = {measure.from_ for measure in criterion.measures}
    for measurement in [measurement for measurement in task.measurements if measurement.id in wanted]:
        device = next(iter(asked_of(task, measurement)), "cpu").replace("any", "cpu")
        about = partial(Standing, f"measurement {measurement.id}", timeout_s=measurement.timeout_s, device=device)
        if measurement.run:
            answers = tuple(each for each in criterion.measures if each.from_ == measurement.id)
            answers = answers if measurement.read == "samples" else ()
            yield about(_filled(measurement.run, device), answers=answers, smoke=measurement.smoke)
        for arm in measurement.arms.values():
            command = arm.time or ((arm.call,) if arm.call else arm.run or ())
            yield about(_filled(command, device), arm=None if arm.time else arm)
    for entry in task.entry_points:
        if criterion.id in entry.criteria and entry.run:
            yield Standing("entry point", entry.run, entry.timeout_s, measures=False)


def _filled(command: Sequence[str], device: str) -> Command:
    return tuple(word.replace("{device}", device) for word in command)


def _run_once(
    one: Standing, command: Command, task: Task, copy: Context, env: process.Env, marks: Path, forks: Warm | None
) -> tuple[bool, str, float]:
    """Run a command, or some steps of an arm; return whether it ended well and answered, how it ended, and its time."""
    if one.arm is not None:
        return True, "steps taken", _took_steps(one, task, copy, env, marks, forks)
    with tempfile.TemporaryDirectory(dir=copy.evidence) as fresh:
        out, limit = Path(fresh) / "out", one.timeout_s or copy.timeout_s
        argv, log, start = copy.argv(command, out=str(out)), Path(fresh) / "run", None
        if forks:
            argv, start = program(copy.python, "warm:run", *argv[1:]), forks.start
        ended = process.run(argv, cwd=copy.root, timeout_s=limit, log=log, env=env, start=start)
        answered = not any("{out}" in word for word in command) or _is_answered(out, one.answers)
        return ended.exit_code == 0 and not ended.timed_out and answered, ended.ended, ended.duration_s


def _forks(one: Standing, context: Context) -> Warm | None:
    """Return what has imported torch and forks a command or an arm, where a run has one and that is safe."""
    first, *words = one.command
    is_python = first in {"python", "python3"} and bool(words) and (words[0] == "-m" or words[0].endswith(".py"))
    forks = context.warm() if context.warm and (one.arm.call if one.arm else is_python) else None
    return forks if forks and forks.ready() else None


def _is_answered(out: Path, answers: Sequence[Measure]) -> bool:
    if not out.is_file():
        return False
    try:
        metrics = read(out.read_text(encoding="utf-8")).metrics if answers else {}
    except (BadSamples, UnicodeDecodeError):
        return False
    return all(each.of in metrics and set(each.arms) <= metrics[each.of].arms.keys() for each in answers)


def _took_steps(one: Standing, task: Task, copy: Context, env: process.Env, marks: Path, forks: Warm | None) -> float:
    """Let an arm that called the code before its steps take some until one calls it, else one; return their time."""
    assert one.arm is not None
    limit_s, took_s = one.timeout_s or copy.timeout_s, 0.0
    start = bench.launch(one.arm, python=copy.python, paths=import_roots(task, copy), threads=1, device=one.device)
    with tempfile.TemporaryDirectory(dir=copy.evidence) as fresh, bench.Bench(Path(fresh)) as running:
        worker = running.start("arm", start._replace(env={**env, **start.env}), forks)
        worker.hello(timeout_s=limit_s)
        if hoisted := (marks / CALLED).exists():
            (marks / CALLED).rename(marks / BEFORE)
        (marks / STEPPING).touch()
        for _ in range(STEPS if hoisted else 1):
            took_s += worker.run(1, discard=0, timeout_s=limit_s).wall_s
            if (marks / CALLED).exists() or took_s > LONG_S:
                break
        worker.stop()
    return took_s


class CommandCall(Model):
    """A command that stands for a criterion, and whether it called the criterion's code before it ended.

    `part` names what of the task it is, such as `measurement speed`. Only of one that `ended_well`, and handed over
    what is asked of it, is it known that it calls none, unless `why` says why nobody can tell; of an arm that is
    `hoisted` no step calls any.
    """

    criterion: str
    part: str
    measures: bool
    command: Command
    called: bool
    ended_well: bool
    why: str = ""
    hoisted: bool = False

    @property
    def misses(self) -> bool:
        """Return whether the command, or the steps of an arm, were seen to do without the code."""
        return self.hoisted or (self.ended_well and not self.called and not self.why)

    @property
    def unheard(self) -> bool:
        """Return whether the command said what it always says although the code that it called raised."""
        return self.called and self.ended_well


Asked = tuple[Criterion, Standing]
Tried = tuple[CommandCall, CommandRecord]


class CalledCode(Evidence):
    """The commands of measurements and entry points that stand for criteria which are traced to code."""

    calls: tuple[CommandCall, ...]

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Run each command in a copy in which the criterion's code leaves a mark, and raises."""
        if (tree := seen.get(SourceTree)) is None:
            raise EvidenceUnavailable(f"the code was not seen: {seen.why_missing(SourceTree)}")
        text_of = cache(partial(Text.read, context.root))
        code = {c.id: _functions(c, tree, text_of) for c in task.criteria if any(standing_for(task, c))}
        asked = [(c, each) for c in task.criteria if c.id in code and code[c.id][0] for each in standing_for(task, c)]
        if not asked:
            raise Absent("no command verifies a criterion that is traced to functions alone")

        earlier, files = seen.earlier, [each for functions, _ in code.values() for each in functions.items()]
        own = ((file.path, function.body[0].lineno) for file, functions in files for function in functions)
        same = earlier and not any(earlier.rewrote(*each, context) for each in own)
        make = partial(cls._tried, asked, code, task, context)
        return seen.taken_or(cls.__name__, seen.before(cls) if same else None, make, context)

    @classmethod
    def _tried(cls, asked: Sequence[Asked], code: Mapping[str, Code], task: Task, context: Context) -> Self:
        parts = [(pair, code[pair[0].id], _forks(pair[1], context)) for pair in asked]
        with benched(task, context, most=min(len(asked), os.cpu_count() or 1)) as copies:
            told = process.side_by_side(lambda part: _tried(*part, task, copies), parts)
        how = "each command, run in a copy in which the code of its criterion raises"
        return cls(how=how, commands=tuple(record for _, record in told), calls=tuple(call for call, _ in told))


def _tried(asked: Asked, code: Code, forks: Warm | None, task: Task, copies: Bench) -> Tried:
    """Run a command that stands for a criterion without its code; return what came of it."""
    (criterion, one), (functions, unseen) = asked, code
    marks, root = Path(tempfile.mkdtemp(dir=copies.look.evidence)), copies.look.root
    refused = REFUSED if one.arm is None else REFUSED_LATER.format(str(marks / STEPPING))
    texts = dict[str, str]()
    for file, own in functions.items():
        parts = stubs(dict.fromkeys(own, refused), guard(file, task.implementation, root))
        texts[file.path] = marked(file.but(parts), marks / CALLED)
    commands = [*([(*one.command, *one.smoke)] if one.smoke else []), one.command]
    for command, how in [*((each, forks) for each in commands if forks), *((each, None) for each in commands)]:
        for mark in marks.iterdir():  # of a fork that did not fail
            mark.unlink()
        with copies.faulty(texts) as copy:
            try:
                well, ended, took_s = _run_once(one, command, task, copy, copies.env(copy.root), marks, how)
            except EvidenceUnavailable as error:
                well, ended, took_s = False, str(error), 0
        if (called := (marks / CALLED).exists()) and not (well and how):
            break
    anew = all(is_called_anew(each) for own in functions.values() for each in own)
    before = not called and (marks / BEFORE).exists()
    hoisted = before and well and anew and took_s <= LONG_S
    why = "" if called or before or not well else unseen
    facts = {"called": called or before, "ended_well": well and not before, "why": why, "hoisted": hoisted}
    about = {"criterion": criterion.id, "part": one.part, "measures": one.measures, "command": one.command}
    call = CommandCall.model_validate({**about, **facts})
    purpose = f"{one.part} without the code of {criterion.id}"
    return call, CommandRecord(purpose=purpose, argv=one.command, ended=ended, duration_s=took_s)


def _functions(criterion: Criterion, tree: SourceTree, text_of: Callable[[str], Text]) -> Code:
    """Return the functions of a criterion by file, none where other code is bound, and why calls may be unseen."""
    found, unseen = defaultdict[Text, dict[Function, None]](dict), ""
    for binding in criterion.code:
        own: list[Function] = []
        for place in () if binding.rule else tree.ways(binding):
            try:
                file = text_of(place.path)
                own += (functions := bodies(file, [place], binding.symbol))
            except (OSError, SyntaxError, ValueError):
                return {}, ""
            found[file].update(dict.fromkeys(functions))
            if binding.symbol and makes_unseen(file, place, binding.name):
                unseen = f"objects of {binding.name} are made without a line of its own"
        if not own:
            return {}, ""
    return found, unseen
