"""Where a run takes place: paths, interpreter and limits come in as data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path


@dataclass(frozen=True)
class Context:
    """The world as the collectors see it.

    `root` is the project's folder, `evidence` a fresh folder outside of it for raw files, `python` the interpreter
    that runs the project's code, `timeout_s` the limit of a command that sets none of its own, `repeat` how often the
    tests are run, `rules` the folder of the project's own code rules, `today` the day by which waivers end, `base`
    what the bar is compared with (found where it is `None`), `goalposts` what a lowered bar does (as the base says
    where it is `None`), `policy` the revision that the task file was taken from, `signers`
    who must have signed evidence from elsewhere (nobody where there are none).
    """

    root: Path
    evidence: Path
    python: str
    timeout_s: float
    repeat: int = 1
    today: date | None = None
    rules: Path | None = None
    base: str | None = None
    goalposts: str | None = None
    policy: str = ""
    signers: tuple[str, ...] = ()

    def argv(self, words: Sequence[str], **filled: str) -> list[str]:
        """Return a command of a task file with its placeholders filled in and `python` made the interpreter."""
        result = []
        for word in words:
            for name, value in filled.items():
                word = word.replace("{" + name + "}", value)  # noqa: PLW2901
            result.append(word)
        return [self.python, *result[1:]] if result[0] in {"python", "python3"} else result

    def folder(self, name: str) -> "Context":
        """Return the same context with a folder of its own for raw files."""
        path = self.evidence / name
        path.mkdir(parents=True, exist_ok=True)
        return replace(self, evidence=path)

    def shown(self, path: Path) -> str:
        """Return a raw file's path as reports name it, or a project's path relative to its root."""
        for base in (self.root, self.evidence):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        return path.as_posix()
