"""What became of the files and tests that a task was bound to."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fate:
    """The files that are gone, and what the tests of the changed files are called now: nothing, where they are gone."""

    gone: frozenset[str] = frozenset()
    tests: Mapping[str, str | None] = field(default_factory=dict)

    def is_found_again(self, path: str, bound: Callable[[str], bool]) -> bool:
        """Return whether all tests that a path named are still there, and bound by another path."""
        if "::" not in path and not path.endswith(".py"):
            return False
        named = path.split("[")[0]
        found = [now for was, now in self.tests.items() if was == named or was.startswith(f"{named}::")]
        return bool(found) and all(now is not None and bound(now) for now in found)

    def is_gone(self, command: Iterable[str]) -> bool:
        """Return whether a command ran a file or a module that does not exist any more."""
        return any(
            f"/{path}".endswith(f"/{end}")
            for word in command
            for stem in (word.replace(".", "/"),)
            for end in (word, f"{stem}.py", f"{stem}/__main__.py")
            for path in self.gone
        )


KEPT = Fate()
