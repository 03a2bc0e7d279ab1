"""The hot path: what trains is run in a process of its own, and each step is taken apart."""

from typing import Self

from pydantic import ValidationError

from gates.check import Evidence
from gates.checks.hot_path.journal import read_steps
from gates.checks.hot_path.steps import HotRun, HotSeen
from gates.child.probing import Probe, Probed, programs
from gates.context import Context
from gates.errors import EvidenceUnavailable
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
            probe = Probe(context, plugin, import_roots(task, context))
            seen = tuple(
                _seen(probe, i, path, path.timeout_s or context.timeout_s) for i, path in enumerate(task.hot_paths)
            )
        return cls(
            how="what trains, in processes of its own, with the time and the reads of each step",
            commands=tuple(probe.commands), seen=seen,
        )  # fmt: skip

    def of(self, index: int) -> HotSeen | None:
        """Return what was seen of a task's hot path."""
        return next((each for each in self.seen if each.index == index), None)


def _seen(probe: Probe, index: int, path: HotPath, limit_s: float) -> HotSeen:
    """Run a callable, and again while one more run may settle whether it waits too long for batches."""
    asked = {"call": path.call, "args": path.args, "steps": path.steps, "seconds": SHARE * limit_s}
    runs: list[HotRun] = []
    while len(runs) < RUNS:
        told = probe.record("recorder.hot_path", f"{index}-{len(runs) + 1}", asked, limit_s)
        runs.append(_read(told))
        if ended := told.process:
            probe.commands.append(CommandRecord(
                purpose="hot path", argv=ended.argv, ended=ended.ended, duration_s=ended.duration_s,
            ))  # fmt: skip
        seen = HotSeen(index=index, name=path.name, runs=tuple(runs))
        if not seen.enough or not _unclear(seen, path):
            break
    return seen


def _read(told: Probed) -> HotRun:
    try:
        run = read_steps(told.entries)
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        return HotRun(process=told.process, problem=f"the journal cannot be read: {type(error).__name__}")
    ended = run.complete and not told.foreign and told.process is not None and told.process.exit_code == 0
    facts: dict[str, object] = {"process": told.process, "complete": ended, "problem": told.problem}
    if told.foreign:
        facts["problem"] = "the journal holds lines that are not its own"
    elif not told.problem:
        facts |= {"crash": told.place, "error": told.error}
    return run.model_copy(update=facts)


def _unclear(seen: HotSeen, path: HotPath) -> bool:
    """Return whether the share of the waiting lies neither below nor above its limit with its whole interval."""
    limit, share = path.limits.stall_share, seen.stall()
    return limit is not None and share.low <= limit < share.high
