"""The hot path: what trains is run in a process of its own, and each step is taken apart."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from gates.check import Evidence
from gates.checks.hot_path.journal import read_steps
from gates.checks.hot_path.steps import HotRun, HotSeen
from gates.child import process
from gates.child.channel import Channel
from gates.child.probing import RECORDER, programs
from gates.child.process import ProcessRun
from gates.child.tracebacks import crash_of, written
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._journal import Entry, read_entries
from gates.model import CommandRecord
from gates.project.import_paths import import_roots
from gates.task.hot_path import HotPath
from gates.task.task import Task

RUNS = 3
SHARE = 0.8  # of the time limit, after which a run stops by itself


class HotPaths(Evidence):
    """The hot paths of a task, taken apart."""

    seen: tuple[HotSeen, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each callable in a process of its own."""
        if not task.hot_paths:
            raise EvidenceUnavailable(f"{task.path} names no 'hot_paths'")
        with programs(context.folder("hot_paths").evidence) as plugin:
            runner = _Runner(task, context, plugin)
            seen = tuple(runner.seen(i, path) for i, path in enumerate(task.hot_paths))
        return cls(
            how="what trains, in processes of its own, with the time and the reads of each step",
            commands=tuple(runner.commands), seen=seen,
        )  # fmt: skip

    def of(self, index: int) -> HotSeen | None:
        """Return what was seen of a task's hot path."""
        return next((each for each in self.seen if each.index == index), None)


class _Runner:
    """Runs callables and reads their journals."""

    def __init__(self, task: Task, context: Context, plugin: Path) -> None:
        self._context = context
        self._plugin = plugin
        self._paths = [str(path) for path in import_roots(task, context)]
        self.commands: list[CommandRecord] = []

    def seen(self, index: int, path: HotPath) -> HotSeen:
        """Run a callable, and again while one more run may settle whether it waits too long for batches."""
        runs: list[HotRun] = []
        while len(runs) < RUNS:
            runs.append(self._run(path, f"{index}-{len(runs) + 1}"))
            seen = HotSeen(index=index, name=path.name, runs=tuple(runs))
            if not seen.enough or not _unclear(seen, path):
                break
        return seen

    def _run(self, path: HotPath, name: str) -> HotRun:
        log = self._plugin.parent / name
        limit = path.timeout_s or self._context.timeout_s
        asked = {"call": path.call, "args": path.args, "paths": self._paths, "root": str(self._context.root),
                 "steps": path.steps, "seconds": SHARE * limit}  # fmt: skip
        env = {"PYTHONPATH": process.joined_paths(str(self._plugin)), "WANDB_MODE": "offline",
               "WANDB_SILENT": "true", "WANDB_DIR": str(self._plugin)}  # fmt: skip
        log.mkdir(exist_ok=True)
        channel = Channel(log)
        argv = [self._context.python, "-m", f"{RECORDER}.hot_path", json.dumps(asked)]
        try:
            ended = process.run(argv, cwd=self._context.root, timeout_s=limit, log=log, env=env, channel=channel)
        except OSError as error:
            return HotRun(problem=f"cannot be started: {error.strerror or error}")
        ended = ended.model_copy(
            update={"argv": ("python", "-m", "gates_recorder.hot_path", path.call, f"{name}.jsonl")}
        )
        self.commands.append(CommandRecord(
            purpose="hot path", argv=ended.argv, ended=ended.ended, duration_s=ended.duration_s,
        ))  # fmt: skip
        try:
            entries, foreign = read_entries(channel.told, channel.nonce)
        except OSError:
            return HotRun(process=ended, problem="the recorder wrote no journal")
        with suppress(FileNotFoundError):  # the process removed the folder
            channel.told.replace(log.with_suffix(".jsonl"))
        shutil.rmtree(log, ignore_errors=True)
        return self._read(ended, entries, foreign, log)

    def _read(self, ended: ProcessRun, entries: list[Entry], foreign: int, log: Path) -> HotRun:
        try:
            run = read_steps(entries)
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            return HotRun(process=ended, problem=f"the journal cannot be read: {type(error).__name__}")
        facts: dict[str, object] = {"process": ended, "complete": run.complete and not foreign and ended.exit_code == 0}
        text = written(log.with_suffix(".stderr.txt"))
        crash = crash_of(text, self._context) if ended.exit_code and not run.problem else None
        if foreign:
            facts["problem"] = "the journal holds lines that are not its own"
        elif ended.exit_code and not entries and "No module named 'torch'" in text:
            facts["problem"] = "the project's interpreter has no torch"
        elif crash:
            said = ": ".join(part for part in (crash.error, crash.message) if part)
            facts |= {"crash": crash.location, "error": said}
        return run.model_copy(update=facts)


def _unclear(seen: HotSeen, path: HotPath) -> bool:
    """Return whether the share of the waiting lies neither below nor above its limit with its whole interval."""
    limit, share = path.limits.stall_share, seen.stall()
    return limit is not None and share.low <= limit < share.high
