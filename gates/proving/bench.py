"""The copies that faults are put into, and the processes that run in them."""

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from gates import progress
from gates.child import process
from gates.child.asking import HERE, command
from gates.child.forks import Warm, warm
from gates.child.guardian import guarded_folder
from gates.child.noting import unnoted
from gates.child.trying.keeping import PLAN, RESULTS, Copy, lines_in
from gates.config import Context
from gates.evidence.lines.executed_lines import modules_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.project.copies import copy_project, relocated
from gates.project.files import import_roots
from gates.task.task import Task

COPIES = min(2, os.cpu_count() or 1)
EXTRA_S = 60.0
Told = dict[str, Any]


class Faults:
    """Faults to be tried within `budget_s`, and the lines that tell what came of them."""

    def __init__(self, each: list[Told], budget_s: float) -> None:
        self.each, self.budget_s, self.tried = each, budget_s, False
        self.lines: list[Told] = []

    @property
    def ends(self) -> dict[str, Told]:
        """Return what came of the first text of each fault that was tried, by its name."""
        return {line["id"]: line["tries"][0] for line in self.lines if line.get("tries")}

    @property
    def took_s(self) -> float:
        """Return how long they took, in seconds, of the worker that was the last."""
        return round(max((line["took_s"] for line in self.lines), default=0), 1)


@contextmanager
def benched(task: Task, context: Context, most: int = COPIES) -> Iterator["Bench"]:
    """Yield a bench whose folder and processes are gone afterwards."""
    with guarded_folder() as folder, ExitStack() as stack:
        yield Bench(task, replace(context, evidence=folder), stack, most)


class Bench:
    """A pristine copy of the project, copies that faults are put into, and the process that forks a worker for each.

    All is made when it is needed first, in the context's folder for raw files; what is open is closed by `stack`.
    """

    def __init__(self, task: Task, context: Context, stack: ExitStack, most: int) -> None:
        self._task, self._context, self._folder = task, context, context.evidence
        self._copies, self._free, self._lock = list[Path](), list[Copy](), RLock()
        self._turns = 0
        self._stack, self._most = stack, most
        self._warm: Warm | None = None
        self._plugin = self._fresh("plugin")
        (self._plugin / "gates_probe").symlink_to(HERE)

    def copies(self, number: int) -> list[Path]:
        """Return so many copies of the project as it was at first; raise `EvidenceUnavailable` without room."""
        first = self._folder / "pristine"
        with self._lock:
            if not self._copies:
                self.pristine = copy_project(self._context.root, first, self._most)
            while len(self._copies) < number:
                copy = self._folder / f"copy-{len(self._copies)}"
                shutil.copytree(first, copy, symlinks=True)
                self._copies.append(copy / self.pristine.relative_to(first))
            return self._copies[:number]

    @property
    def look(self) -> Context:
        """Return the world as it is in the first copy."""
        return replace(self._context, root=self.copies(1)[0], evidence=self._fresh("seen"))

    def start(self, packages: Iterable[str] = ()) -> Warm:
        """Return the process that forks workers, which imports what tests need meanwhile."""
        if self._warm is None:
            env = {"PYTHONPATH": process.joined_paths(str(self._plugin))}
            log = self._fresh("forking") / "run"
            self._warm = self._stack.enter_context(warm(self._context.python, self._context.root, log, env))
        roots, modules = import_roots(self._task, self._context), modules_of(self._task, self._context)
        self._warm.load([self._context.root, *roots], "trying.session:warm_up", [*packages], [*modules])
        return self._warm

    def try_all(self, run: PytestRun | None, *groups: Faults) -> None:
        """Try one group after the other, in all copies at once; `run`, without a fault, says what the tests need."""
        if not (faults := [fault for group in groups for fault in group.each]):
            return
        scratch, roots = self._fresh(f"tries-{secrets.token_hex(4)}"), self.copies(min(self._most, len(faults)))
        peak_bytes = (run and run.process.peak_memory_bytes) or 0
        common = {"peak_bytes": peak_bytes, "turns": self._turns, "pristine": str(self.pristine)}
        common["rewritten"] = str(self._context.rewritten or "")
        self._turns += 1
        slack_s = 30 * max(fault["tests_s"] for fault in faults) + self._context.timeout_s + EXTRA_S
        limit_s = sum(group.budget_s + slack_s for group in groups)
        shares = [{"budget_s": group.budget_s, "faults": group.each} for group in groups]
        plans = dict[Path, Told]()
        for number, root in enumerate(roots):
            own = scratch / str(number)
            (own / "tmp").mkdir(parents=True)
            places = {"root": str(root), "scratch": str(own), "env": {**self.env(root), "TMPDIR": str(own / "tmp")}}
            plans[own / PLAN] = {**common, **places, "groups": shares}

        def told() -> list[Told]:
            return [line for plan in plans for line in lines_in(plan.with_name(RESULTS))]

        def work(path: Path) -> None:
            plan, argv = plans[path], command(self._context.python, "trying.work", str(path))
            path.write_text(json.dumps(plan), encoding="utf-8")
            place = {"cwd": Path(plan["root"]), "log": path.with_name("run"), "env": plan["env"]}
            process.run(argv, timeout_s=limit_s, start=forks.start, **place)

        progress.so_far = lambda: f"{sum('tries' in line for line in told())} of {len(faults)} tried"
        forks = self.start(run.packages if run else ())
        forks.ready()
        with unnoted():
            process.side_by_side(work, [*plans])
        for number, group in enumerate(groups):
            group.tried, group.lines = True, [line for line in told() if line["group"] == number]

    @contextmanager
    def faulty(self, files: Mapping[str, str]) -> Iterator[Context]:
        """Put files with faults, if any, into a copy that nothing runs in; nothing that is done there stays."""
        with self._lock:
            copy = (self._free or [Copy(self.copies(len(self._copies) + 1)[-1], self.pristine)]).pop()
        try:
            for name, text in files.items():
                copy.put(name, text)
            yield replace(self.look, root=copy.root, evidence=self._fresh(f"other-{secrets.token_hex(4)}"))
        finally:
            copy.restore()
            self._free.append(copy)

    def env(self, root: Path) -> dict[str, str]:
        """Return what the environment of a copy has: its own places, from which modules are imported first."""
        roots = [str(path) for path in import_roots(self._task, replace(self._context, root=root))]
        paths = process.joined_paths(os.pathsep.join([str(self._plugin), *roots]))
        return relocated({**process.environment(), "PYTHONPATH": paths}, self._context.root, root)

    def _fresh(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path
