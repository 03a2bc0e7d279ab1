"""The copies that faults are put into, and the processes that run in them."""

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import LifoQueue
from typing import Any

from gates import progress
from gates.child import process
from gates.child.asking import HERE
from gates.child.guardian import guarded_folder
from gates.child.trying.keeping import RESULTS, Copy, lines_in
from gates.config import Context
from gates.evidence.lines.executed_lines import modules_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.project.copies import copy_project, relocated
from gates.project.files import import_roots
from gates.task.task import Task

COPIES = 2
EXTRA_S = 60.0
Told = dict[str, Any]


@contextmanager
def benched(task: Task, context: Context, faults: int, most: int = COPIES) -> Iterator["Bench"]:
    """Yield copies for so many faults in a folder that is gone afterwards; raise `EvidenceUnavailable` without room."""
    with guarded_folder() as folder:
        yield Bench(task, replace(context, evidence=folder), min(most, faults, os.cpu_count() or 1))


class Bench:
    """A pristine copy of the project, and one for each worker; the first is also there to be looked at."""

    def __init__(self, task: Task, context: Context, jobs: int) -> None:
        self._task = task
        self._root = context.root
        self._folder = context.evidence
        first, copies = self._folder / "pristine", [self._folder / f"copy-{i}" for i in range(jobs)]
        self.pristine = copy_project(context.root, first, jobs)
        for copy in copies:
            shutil.copytree(first, copy, symlinks=True)
        self._copies = tuple(copy / self.pristine.relative_to(first) for copy in copies)
        self.look = replace(context, root=self._copies[0], evidence=self._fresh("seen"))
        self._free = LifoQueue[Copy]()  # the first copy on top
        for root in reversed(self._copies):
            self._free.put(Copy(root, self.pristine))
        self._plugin = self._folder / "plugin"
        self._plugin.mkdir()
        (self._plugin / "gates_probe").symlink_to(HERE)

    def try_all(self, faults: list[Told], run: PytestRun | None, deadline: float) -> list[Told]:
        """Try faults in all copies at once until the time is up; `run`, without a fault, says what the tests need."""
        scratch = self._fresh(f"tries-{secrets.token_hex(4)}")
        peak_bytes = (run and run.process.peak_memory_bytes) or 0
        limits = {"deadline": deadline, "collect_s": self.look.timeout_s, "peak_bytes": peak_bytes}
        imported = {"modules": [*modules_of(self._task, self.look)], "packages": run.packages if run else ()}
        common = {**limits, **imported, "pristine": str(self.pristine)}
        longest = max((fault["tests_s"] for fault in faults), default=0)
        limit_s = max(deadline - time.time(), 0) + 30 * longest + self.look.timeout_s + EXTRA_S
        plans, jobs = list[Told](), len(self._copies)
        for number, root in enumerate(self._copies):
            own = scratch / str(number)
            (own / "tmp").mkdir(parents=True)
            plans.append({**common, "root": str(root), "scratch": str(own), "faults": faults[number::jobs]})
        results = [scratch / str(number) / RESULTS for number in range(jobs)]
        progress.so_far = lambda: f"{sum(len(lines_in(path)) for path in results)} of {len(faults)} mutants tried"
        process.side_by_side(lambda plan: self._work(plan, limit_s), plans)
        return [line for path in results for line in lines_in(path)]

    def _work(self, plan: Told, limit_s: float) -> None:
        """Let a worker try the faults of a plan in its copy."""
        root, own = Path(plan["root"]), Path(plan["scratch"])
        (own / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        argv = [self.look.python, "-m", "gates_probe.trying.work", str(own / "plan.json")]
        env = {**self.env(root), "TMPDIR": str(own / "tmp")}
        process.run(argv, cwd=root, timeout_s=limit_s, log=own / "run", env=env)

    @contextmanager
    def faulty(self, files: Mapping[str, str]) -> Iterator[Context]:
        """Put files with faults, if any, into a copy that nothing runs in; nothing that is done there stays."""
        copy = self._free.get()
        try:
            for name, text in files.items():
                copy.put(name, text)
            yield replace(self.look, root=copy.root, evidence=self._fresh(f"other-{secrets.token_hex(4)}"))
        finally:
            copy.restore()
            self._free.put(copy)

    def env(self, root: Path) -> dict[str, str]:
        """Return what the environment of a copy has: its own places, from which modules are imported first."""
        roots = [str(path) for path in import_roots(self._task, replace(self.look, root=root))]
        paths = process.joined_paths(os.pathsep.join([str(self._plugin), *roots]))
        return relocated({**process.environment(), "PYTHONPATH": paths}, self._root, root)

    def _fresh(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path
