"""The copies that faults are put into, and the processes that run in them."""

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from gates.child import process
from gates.child.asking import HERE
from gates.child.guardian import every
from gates.child.trying.keeping import Copy, lines_in
from gates.config import Context
from gates.evidence.lines.executed_lines import modules_of
from gates.project.copies import copy_project, relocated
from gates.project.files import files_of, import_roots, packages_of
from gates.task.task import Task

EXTRA_S = 60.0
TELL_S = 10.0
Told = dict[str, Any]


class Bench:
    """A pristine copy of the project, one to look at it without a fault, and one for each worker."""

    def __init__(self, task: Task, context: Context, jobs: int) -> None:
        self._task = task
        self._root = context.root
        self._folder = context.evidence
        first, names = self._folder / "pristine", [f"copy-{i}" for i in range(jobs)]
        self.pristine = copy_project(context.root, first, jobs + 1)
        inside = self.pristine.relative_to(first)
        for name in ("look", *names):
            shutil.copytree(first, self._folder / name, symlinks=True)
        self.look = replace(context, root=self._folder / "look" / inside, evidence=self._fresh("seen"))
        self._copies = tuple(self._folder / name / inside for name in names)
        self._looked = Copy(self.look.root, self.pristine)
        self._plugin = self._folder / "plugin"
        self._plugin.mkdir()
        (self._plugin / "gates_probe").symlink_to(HERE)

    @property
    def packages(self) -> list[str]:
        """Return what the implementation and the tests import that no file or folder of theirs may be meant by."""
        root, tests = self.look.root, (path.split("::")[0] for path in self._task.tests)
        files = [path for path in files_of((*self._task.implementation, *tests), root) if path.suffix == ".py"]
        beside = (path.stem for folder in import_roots(self._task, self.look) for path in folder.iterdir())
        own = {*beside, *(part.removesuffix(".py") for path in files for part in path.relative_to(root).parts)}
        return sorted({name for path in files for name in packages_of(path)} - own - sys.stdlib_module_names)

    def try_all(
        self, faults: list[Told], *, peak_bytes: int, deadline: float, say: Callable[[str], None] = lambda _: None
    ) -> list[Told]:
        """Try faults in all copies at once until the time is up; return what came of those that were tried."""
        scratch = self._fresh(f"tries-{secrets.token_hex(4)}")
        (scratch / "claims").mkdir()
        (scratch / "faults.json").write_text(json.dumps(faults), encoding="utf-8")
        copies = [self._copy(number, root, scratch) for number, root in enumerate(self._copies)]
        paths = {"faults": scratch / "faults.json", "claims": scratch / "claims", "pristine": self.pristine}
        limits = {"deadline": deadline, "collect_s": self.look.timeout_s, "peak_bytes": peak_bytes}
        imported = {"modules": list(modules_of(self._task, self.look)), "packages": self.packages}
        plan = {**{name: str(path) for name, path in paths.items()}, **limits, **imported}
        longest = max((fault["limit_s"] for fault in faults), default=0)
        limit_s = max(deadline - time.time(), 0) + 6 * longest + EXTRA_S
        results = [Path(copy["results"]) for copy in copies]
        with every(
            TELL_S, lambda: say(f"{sum(len(lines_in(path)) for path in results)} of {len(faults)} mutants tried")
        ):
            process.side_by_side(lambda copy: self._work({**plan, **copy}, limit_s), copies)
        return [line for path in results for line in lines_in(path)]

    def _work(self, plan: Told, limit_s: float) -> None:
        """Let a worker try faults in its copy until none is left."""
        asked = Path(plan["scratch"], "plan.json")
        asked.write_text(json.dumps(plan), encoding="utf-8")
        argv = [self.look.python, "-m", "gates_probe.trying.work", str(asked)]
        env = {**plan["env"], "TMPDIR": plan["temporary"]}
        process.run(argv, cwd=Path(plan["root"]), timeout_s=limit_s, log=asked.with_name("run"), env=env)

    @contextmanager
    def faulty(self, files: Mapping[str, str]) -> Iterator[Context]:
        """Put files with faults, if any, into the copy that is looked at; nothing that is done there stays."""
        for name, text in files.items():
            self._looked.put(name, text)
        try:
            yield replace(self.look, evidence=self._fresh(f"other-{secrets.token_hex(4)}"))
        finally:
            self._looked.restore()

    def _copy(self, number: int, root: Path, scratch: Path) -> Told:
        own = scratch / str(number)
        (own / "tmp").mkdir(parents=True)
        paths = {"root": root, "scratch": own, "temporary": own / "tmp", "results": own / "results.jsonl"}
        told = {name: str(path) for name, path in paths.items()}
        return {**told, "env": self.env(root), "arguments": ["--maxfail=1", f"--rootdir={root}"]}

    def env(self, root: Path) -> dict[str, str]:
        """Return what the environment of a copy has: variables that name places of the project name its places.

        Modules are imported from it before all that is installed.
        """
        roots = [str(path) for path in import_roots(self._task, replace(self.look, root=root))]
        paths = process.joined_paths(os.pathsep.join([str(self._plugin), *roots]))
        return relocated({**process.environment(), "PYTHONPATH": paths}, self._root, root)

    def _fresh(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path
