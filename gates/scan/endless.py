"""What a rule that comes to no end is told by: an error, and the work that it may do before that."""

BASE = 300_000
FOR_EACH = 200  # steps for each node of a file: rules that end need some ten


class Endless(Exception):
    """A part of a rule, as it is written, that comes to no end in the code of a file."""

    def __init__(self, written: str, path: str, spent: str) -> None:
        super().__init__(f"{written!r:.80} came to no end in {path}: stopped after {spent}")
        self.written = written


class Work:
    """The steps that a search may still take."""

    def __init__(self, written: str, where: object, nodes: int = 0) -> None:
        self._written = written
        self._where = where
        self._steps = BASE + FOR_EACH * nodes
        self._left = self._steps

    def step(self) -> None:
        """Take a step; raise `Endless` where none is left."""
        self._left -= 1
        if self._left < 0:
            raise Endless(self._written, path_of(self._where), f"{self._steps:,} steps")


def path_of(where: object) -> str:
    """Return the file of a place, of a scope, or of a module."""
    scope = getattr(where, "scope", where)
    return str(getattr(getattr(scope, "module", scope), "path", "a file"))
