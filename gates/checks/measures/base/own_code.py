"""Whether an arm uses the code of the folder that it runs in: seen in a run that nobody times.

An interpreter that has the project installed may find the candidate's code from the baseline's folder, and two equal
numbers would prove nothing.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from gates.measuring.bench import RUNNER, Bench, Launch
from gates.measuring.wire import ArmFailed

NOTES = Path(__file__).with_name("loaded")
OURS = (RUNNER, NOTES / "sitecustomize.py")  # they lie in the project where that is this one


@dataclass(frozen=True)
class Noted:
    """The file that the processes of an arm note in what they had loaded."""

    path: Path

    def watching(self, launched: Launch) -> Launch:
        """Return how the same process is started when it is to note what it loads."""
        paths = os.pathsep.join(filter(None, (str(NOTES), launched.env.get("PYTHONPATH", ""))))
        return replace(launched, env={**launched.env, "PYTHONPATH": paths, "GATES_LOADED": str(self.path)})

    @property
    def files(self) -> frozenset[str] | None:
        """Return the files that were noted, `None` where no Python noted any."""
        if not self.path.is_file():
            return None
        told = self.path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        return frozenset(told) - {os.path.realpath(path) for path in OURS}


def loaded(name: str, launched: Launch, folder: Path, *, talks: bool, timeout_s: float) -> frozenset[str] | None:
    """Run an arm once; return the files that its processes had loaded, `None` where no Python noted any."""
    notes = Noted(folder / f"{name}.loaded.txt")
    with Bench(folder, timeout_s=timeout_s + 30) as bench:
        if talks:
            worker = bench.start(name, notes.watching(launched))
            worker.hello(timeout_s=timeout_s)
            worker.run(1, discard=0, timeout_s=timeout_s)
            worker.stop()
        else:
            bench.time(name, notes.watching(launched), timeout_s=timeout_s)
    return notes.files


def refuse_other_code(
    arm: str, files: Collection[str] | None, words: Collection[str], *, folder: Path, other: Path,
    is_ours: Callable[[str], bool],
) -> None:  # fmt: skip
    """Raise `ArmFailed` unless an arm used code of its own folder, and none of the other.

    `is_ours` says which paths are the code that is compared: not a virtual environment, not what both arms share.
    """
    own = os.path.realpath(folder)
    if files is None:
        if any((folder / word).is_file() for word in words if not word.startswith("/")):
            return
        raise ArmFailed(f"nothing shows that {arm} uses the files of the folder it runs in; name one in its command")
    for file in sorted(files):
        path = _inside(file, os.path.realpath(other))
        if path and is_ours(path) and _inside(file, own) is None:
            raise ArmFailed(f"{arm} uses {path} of another folder than its own, where its interpreter finds it first")
    if not any(path and is_ours(path) for path in (_inside(file, own) for file in files)):
        raise ArmFailed(f"{arm} loads no file of the implementation from the folder it runs in")


def _inside(file: str, folder: str) -> str | None:
    head = folder.rstrip(os.sep) + os.sep
    return file[len(head) :] if file.startswith(head) else None
