"""What earlier runs found, kept outside of the tree: unchanged files are neither read nor judged again."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gates.project.files import cache_folder
from gates.scan.rule import Rule
from gates.scan.site import Site

OFF = "GATES_NO_CACHE"
MAX_BYTES = 64 * 1024 * 1024
Result = tuple[list[Site], list[str], str]


@dataclass(frozen=True)
class FileFacts:
    """What decides whether a file matters: the digest, the words in it, what it imports, and why it is unreadable.

    `lends` are the names that it sets to what may be one of the words, so that others may have it from there;
    `functions` is how many it defines.
    """

    digest: str
    words: tuple[str, ...]
    imports: tuple[str, ...]
    problem: str = ""
    is_text: bool = True
    lends: tuple[str, ...] = ()
    functions: int = 0


Reader = Callable[[Path, str, Sequence[str]], FileFacts]


class Memory:
    """The cache of one project, in one file; one that is missing, broken or of another version is empty."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._facts: dict[str, Any] = {}
        self._results: dict[str, Any] = {}
        self._now: dict[str, Result] = {}
        self.read: set[str] = set()
        if file is not None:
            self._load(file)

    @classmethod
    def of(cls, root: Path) -> "Memory":
        """Return the memory of a project, in the user's cache folder."""
        if os.environ.get(OFF):
            return cls(None)
        name = hashlib.sha256(str(root.resolve()).encode(errors="surrogatepass")).hexdigest()[:24]
        return cls(cache_folder() / f"scan-{name}.json")

    def _load(self, file: Path) -> None:
        try:
            if file.stat().st_size > MAX_BYTES:
                return
            data = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(data, dict) and data.get("version") == version():
                facts, results = data["facts"], data["results"]
                if isinstance(facts, dict) and isinstance(results, dict):
                    self._facts, self._results = facts, results
        except (OSError, ValueError, KeyError, RecursionError):
            return

    def facts(
        self, path: Path, shown: str, words: Sequence[str], read: "Callable[[Path, str, Sequence[str]], FileFacts]"
    ) -> FileFacts:
        """Return the facts of a file; it is read only where its size, time or inode changed, or other words count."""
        stamp, name = _stamp(path), f"{_digest(tuple(words))}:{shown}"
        kept = self._facts.get(name)
        try:
            if stamp is not None and kept is not None and kept["stamp"] == stamp:
                lists = (tuple(kept["words"]), tuple(kept["imports"]))
                lends, functions = tuple(kept["lends"]), int(kept["functions"])
                return FileFacts(kept["digest"], *lists, kept["problem"], kept["is_text"], lends, functions)
        except (KeyError, TypeError, ValueError):
            pass
        self.read.add(shown)
        found = read(path, shown, words)
        if stamp is not None:
            self._facts[name] = {"stamp": stamp, **vars(found)}
        return found

    def result(self, key: str, rule: Rule) -> Result | None:
        """Return what a rule found in files that were the same."""
        name = f"{key}:{digest_of(rule)}"
        if name in self._now:
            return self._now[name]
        kept = self._results.get(name)
        try:
            if kept is None:
                return None
            sites = [Site(**{**site, "trace": tuple(site["trace"])}) for site in kept["sites"]]
            self._now[name] = (sites, list(kept["unparsed"]), str(kept["problem"]))
        except (KeyError, TypeError):
            return None
        return self._now[name]

    def keep(self, key: str, rule: Rule, sites: list[Site], unparsed: list[str], problem: str) -> None:
        """Keep what a rule found."""
        self._now[f"{key}:{digest_of(rule)}"] = (sites, unparsed, problem)

    def save(self) -> None:
        """Write the memory whole or not at all; results that this run did not use are forgotten."""
        if self._file is None:
            return
        results = {
            name: {"sites": [asdict(site) for site in sites], "unparsed": unparsed, "problem": problem}
            for name, (sites, unparsed, problem) in self._now.items()
            if not problem  # a quicker machine, or a deeper stack, may have none
        }
        results = {**dict(list(self._results.items())[-500:]), **results}
        text = json.dumps({"version": version(), "facts": self._facts, "results": results})
        part = self._file.with_suffix(f".{os.getpid()}.part")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text, encoding="utf-8")
            part.replace(self._file)
        except OSError:
            part.unlink(missing_ok=True)


def _stamp(path: Path) -> str | None:
    try:
        seen = os.stat(path)  # noqa: PTH116  # called for every file
    except OSError:
        return None
    return f"{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ino}"


@cache
def _digest(words: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def digest_of(rule: Rule) -> str:
    """Return the digest of all that a rule says, its events included."""
    return hashlib.sha256(f"{rule.form.model_dump_json()}{rule.shared}".encode()).hexdigest()[:24]


@cache
def version() -> str:
    """Return the digest of the engine itself: another engine may find something else in the same files."""
    gates = Path(__file__).parents[1]
    found = hashlib.sha256()
    for file in sorted(file for engine in ("code", "scan") for file in (gates / engine).rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()
