"""One pytest run, told by several witnesses that must agree: process, plugin, JSON report and JUnit file."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from gates import progress
from gates.check import Earlier, Evidence, EvidenceSet
from gates.child import process
from gates.child.asking import HERE
from gates.child.probing import Entry, Question, read_entries
from gates.child.process import ProcessRun
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.evidence.lines.executed_lines import coverage_env
from gates.evidence.lines.traced import FOLDER, Taking, Traced, not_committed, strays_of, taking
from gates.evidence.tests import records
from gates.evidence.tests.marked import Written
from gates.evidence.tests.test_records import BAD, CollectError, LeftOut, Out, TestOutcome, TestRecord, Warned
from gates.model import Model
from gates.project.files import files_of, is_under
from gates.task.task import Criterion, Task
from gates.words import first_of, grouped, printable

PLUGIN = "gates_probe.witness"
RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")
FRAME = re.compile(r'\s+File "(.+)", line (\d+)')
JOURNAL, LOG = "witness.jsonl", "pytest/run.stdout.txt"  # the second as reports name it
MOST_DISTURBED = 20
PLANNED = ("location", "criteria")  # of a test, whenever it ended
Journal = tuple[list[Entry], int]
STACK = 6000  # characters of the last stack that are kept


class Repeat(Model):
    """Another run of the same tests, in an order made from `seed`: how it ended, and each test in it."""

    seed: str
    process: ProcessRun
    outcomes: dict[str, TestOutcome]
    disagreements: tuple[str, ...]
    running: tuple[str, ...] = ()


class PytestRun(Evidence):
    """What the witnesses of a pytest run said, and where they differ; `taken` are tests of an earlier run."""

    process: ProcessRun
    tests: tuple[TestRecord, ...]
    left_out: tuple[LeftOut, ...] = ()
    collect_errors: tuple[CollectError, ...]
    warnings: tuple[Warned, ...]
    running: tuple[str, ...]
    disagreements: tuple[str, ...]
    versions: dict[str, str]
    canaries: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    online: bool = False  # whether a network was asked
    foreign: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    worker_errors: tuple[str, ...] = ()
    stage: str = ""
    stack: str = ""
    repeats: tuple[Repeat, ...] = ()
    taken: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # imported from where libraries are installed, in this order

    def out(self, how: Out) -> list[LeftOut]:
        """Return what was left out in one way."""
        return [each for each in self.left_out if each.how is how]

    @property
    def complete(self) -> bool:
        """Return whether the run came to its own end and all witnesses tell the same of it."""
        return self.process.exit_code in {0, 1} and not (self.disagreements or self.canaries) and bool(self.tests)

    @property
    def unstable(self) -> tuple[tuple[TestRecord, str], ...]:
        """Return the tests that ended in two ways, with what was seen of them in words."""
        found = []
        for test in self.tests:
            ends = {test.outcome.value: "in the first run"}
            if test.reruns and test.outcome is TestOutcome.PASSED:
                ends = {"failed": "at first", "passed": "when it was run again by a plugin"}
            for number, repeat in enumerate(self.repeats, 2):
                if (end := repeat.outcomes.get(test.id, TestOutcome.NOT_RUN)) is not TestOutcome.NOT_RUN:
                    ends.setdefault(end.value, f"in run {number} (seed {repeat.seed})")
            if len(ends) > 1 and test.outcome is not TestOutcome.NOT_RUN:
                found.append((test, " and ".join(f"{end} {when}" for end, when in ends.items())))
        return tuple(found)

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Run the task's tests in their own process and read every witness; take what an earlier run answers for."""
        if not task.tests:
            raise Absent(f"{task.path} names no 'tests'")
        folder = context.folder("pytest").evidence
        first = cls._but_taken(task, context, folder, seen.earlier)
        first = first or cls._undisturbed(cls.once(task, context, folder), task, context, folder)
        repeats = []
        for seed in map(str, range(2, context.repeat + 1)):
            run = cls.once(task, context, folder / f"run-{seed}", seed=seed)
            said, ends = (*run.canaries, *run.disagreements), {test.id: test.outcome for test in run.tests}
            repeats += [Repeat(seed=seed, process=run.process, outcomes=ends, disagreements=said, running=run.running)]
        return first.model_copy(update={"repeats": tuple(repeats), **imported(folder / FOLDER, task, context)})

    @classmethod
    def _but_taken(cls, task: Task, context: Context, folder: Path, earlier: Earlier | None) -> Self | None:
        """Run the tests that no earlier run answers for; `None` where all must run, as where one of them fails."""
        before = earlier.seen.get(cls) if earlier and context.repeat == 1 else None
        if earlier is None or before is None or before.untracked or before.online:
            return None
        if (took := taking(earlier, before.tests, before.taken, earlier.raw / "pytest" / FOLDER, context)) is None:
            return None
        run = cls.once(task, context, folder, took=took)
        if run.complete and not run.process.exit_code and not run.unstable:
            took.lay(folder / FOLDER)
            return run
        return None

    @classmethod
    def _undisturbed(cls, first: Self, task: Task, context: Context, folder: Path) -> Self:
        """Return the first run, or one without a tracer where tests fail by that alone, as of recursion limits."""
        failed = tuple(test.id for test in first.tests if test.outcome in BAD)
        if not first.complete or not 0 < len(failed) <= MOST_DISTURBED:
            return first
        commands, few = first.commands, task.model_copy(update={"tests": failed})
        for lines, expected in ((False, {TestOutcome.PASSED}), (True, BAD)):
            aside = folder.with_name(f"{folder.name}-{'traced' if lines else 'untraced'}")
            run = cls.once(few, context, aside, lines=lines)
            ends = {test.id: test.outcome for test in run.tests}
            commands += run.commands
            if not run.complete or ends.keys() != {*failed} or not expected.issuperset(ends.values()):
                return first.model_copy(update={"commands": commands})
        whole = cls.once(task, context, folder, lines=False)
        how = f"{whole.how}; run again without a tracer, by which alone {first_of(failed, 3)} failed"
        return whole.model_copy(update={"how": how, "commands": (*whole.commands, *commands)})

    @classmethod
    def once(
        cls,
        task: Task,
        context: Context,
        folder: Path,
        *,
        seed: str = "",
        env: Mapping[str, str] | None = None,
        took: Taking | None = None,
        options: Sequence[str] = (),
        lines: bool = True,
    ) -> Self:
        """Run the task's tests once, shuffled by a seed if any, and read each witness; collect taken ones only."""
        plugin = _begun(folder)
        argv = [*_command(task, context, folder), *options]
        paths = (str(plugin), (env or {}).get("PYTHONPATH", os.environ.get("PYTHONPATH", "")))
        env = {**(env or {}), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        if lines and not seed:  # another run of the same tests executes the same lines
            argv += ["-p", f"{PLUGIN}.lines"]
            env |= coverage_env(folder / FOLDER, task, context)
        told = {"seed": seed, "taken": [*took.tests] if took else [], "stacks": str(folder / "stacks.txt")}
        told["rewritten"] = str(context.rewritten or "")
        try:
            for canaries in (True, False):  # without, where a hook of the project raised around one of them
                question = Question(folder / JOURNAL, {**told, "canaries": canaries})
                env["GATES_WITNESS"], limit_s = str(question.path), context.timeout_s
                progress.so_far = progress.counting(question.journal, len(told["taken"]))
                with question:
                    ended = process.run(argv, cwd=context.root, timeout_s=limit_s, log=folder / "run", env=env)
                journal: Any = read_entries(question.journal, question.secret)
                if not any(said["unable"] for each in journal[0] for said in each.get("said", ())):
                    break
                for left in (question.journal, *(folder / FOLDER).glob("*")):  # each run adds to these
                    left.unlink()
            for made in (plugin, folder / "cache"):
                shutil.rmtree(made, ignore_errors=True)
            return cls.read(ended, folder, journal, context, task, took)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise EvidenceUnavailable(f"the records of the run cannot be read: {error!r:.200}") from error

    @classmethod
    def read(
        cls, ended: ProcessRun, folder: Path, journal: Journal, context: Context, task: Task, took: Taking | None = None
    ) -> Self:
        """Read what the witnesses left in a folder and compare it; tests that are taken left nothing there."""
        events, foreign = journal
        told: records.Told = grouped(events, lambda event: str(event["event"]))
        unplanned = Written(told, context, task).unplanned() if ended.exit_code in {0, 1, 5} else ()
        taken = took.tests if took else {}
        tests = tuple(records.tests(told, context))
        old = [(test, taken[test.id]) for test in tests if test.id in taken]
        held = {one.id: was.model_copy(update={name: getattr(one, name) for name in PLANNED}) for one, was in old}
        ran = tuple(test for test in tests if test.id not in held)
        failed = {e["id"]: CollectError(id=e["id"], message=e["message"]) for e in told["collect_failed"]}
        forged = (f"{foreign} lines of the witness's journal are not its own",) if foreign else ()
        return cls(
            how="python -m pytest with a witness plugin, pytest-json-report and JUnit XML",
            commands=(ended.as_command("test suite", _shown(ended, folder, context)),),
            process=ended,
            tests=tuple(held.get(test.id, test) for test in tests),
            taken=tuple(held),
            left_out=(*records.left_out(told, context), *unplanned),
            collect_errors=tuple(failed.values()),
            warnings=tuple(dict.fromkeys(records.warnings(told, context))),
            running=records.running(told),
            disagreements=(*forged, *records.disagreements(ended, told, ran, folder, task.tests)),
            versions={name: str(event[name]) for event in told["start"] for name in ("python", "pytest")},
            canaries=records.rigged(told),
            worker_errors=tuple(dict.fromkeys(_worker_errors(told))),
            untracked=untracked_data(told, task, context),
            online=any(event["online"] for event in told["read"]),
            stage=records.stage_of(events),
            stack=_stack(folder / "stacks.txt"),
            packages=tuple(dict.fromkeys(name for event in told["imported"] for name in event["names"])),
        )


def tests_of(task: Task, criterion: Criterion, run: PytestRun | None) -> list[TestRecord]:
    """Return the tests bound to a criterion, by path or node id in the task or by marker in the test."""
    tests, wanted = run.tests if run else (), f"{task.id}/{criterion.id}"
    return [t for t in tests if wanted in t.criteria or any(is_under(t.id, path) for path in criterion.tests)]


def _begun(folder: Path) -> Path:
    """Make a folder with our plugin in it; what lies there is of an earlier run, and would be added to."""
    shutil.rmtree(folder, ignore_errors=True)
    (plugin := folder / "plugin").mkdir(parents=True)
    (plugin / "gates_probe").symlink_to(HERE)
    return plugin


def _command(task: Task, context: Context, folder: Path) -> list[str]:
    argv = [context.python, "-m", "pytest", *task.tests, "-p", f"{PLUGIN}.hooks", f"--rootdir={context.root}"]
    argv += ["--color=no", "--json-report", "--json-report-omit", "collectors", "log", "streams", "keywords"]
    argv += [f"--json-report-file={folder / 'report.json'}", f"--junit-xml={folder / 'junit.xml'}"]
    return [*argv, "-o", f"cache_dir={folder / 'cache'}"]


def _worker_errors(told: records.Told) -> Iterator[str]:
    """Yield what ended each worker of pytest-xdist, with its place: the first exception of its traceback."""
    for event in told["worker_down"]:
        lines = str(event.get("error", "")).splitlines()
        if (raised := next((at for at, line in enumerate(lines) if RAISED.match(line)), None)) is not None:
            frames = [found for line in lines[:raised] if (found := FRAME.match(line))]
            where = f" ({Path(frames[-1][1]).name}:{frames[-1][2]})" if frames else ""
            yield printable(f"{lines[raised]}{where}")[:300]


def _stack(path: Path) -> str:
    """Return the stacks that the last process to die wrote down, innermost frame first; cut where they are long."""
    text = path.read_bytes() if path.is_file() else b""
    return printable(text[max(text.rfind(b"Fatal Python error"), 0) :][:STACK].decode("utf-8", "backslashreplace"))


def _shown(ended: ProcessRun, folder: Path, context: Context) -> tuple[str, ...]:
    """Return the command with the run's own folder left out, so that two runs print the same."""
    short = [word.replace(str(folder), "{evidence}/pytest").replace(str(context.root), ".") for word in ended.argv]
    return tuple("python" if word == context.python else word for word in short)


HIDDEN = (".", "__")  # caches, as of pytest and Python


def untracked_data(told: records.Told, task: Task, context: Context) -> tuple[str, ...]:
    """Return the files beside the task's tests that were read, are there after the run, and are not committed."""
    read = {path for event in told["read"] for path in event["paths"]}
    tests = [context.root / path.split("::")[0] for path in task.tests]
    folders = [path if path.is_dir() else path.parent for path in tests]
    inside = [path for path in map(Path, sorted(read)) if any(path.is_relative_to(folder) for folder in folders)]
    shown = {path: context.shown(path) for path in inside if path.is_file()}
    own = [path for path, name in shown.items() if not any(part.startswith(HIDDEN) for part in name.split("/"))]
    return tuple(shown[path] for path in not_committed(own, context.root))


def imported(folder: Path, task: Task, context: Context) -> dict[str, tuple[str, ...]]:
    """Return the files of modules of the implementation that are equal to none of it, and those of no commit."""
    with suppress(EvidenceUnavailable, OSError):
        traced = Traced.read(folder)
        found = [path for path in map(Path, sorted({*traced.foreign})) if path.is_file()]
        own = {path.read_bytes() for path in files_of(task.implementation, context.root)} if found else set()
        foreign = tuple(printable(str(path)) for path in found if path.read_bytes() not in own)
        return {"foreign": foreign, "strays": strays_of(traced, context.root)}
    return {}
