"""What a user can act on; anything else is a bug and keeps its traceback."""


class GatesError(Exception):
    """An error with one clear line and the exit code that goes with it."""

    exit_code = 4


class UsageError(GatesError):
    """Wrong usage, task file or configuration."""

    exit_code = 2


class EvidenceUnavailable(GatesError):
    """Evidence that could not be collected, and why; it becomes an `unknown`, never a pass."""


class Absent(EvidenceUnavailable):
    """Evidence that there is none of in this state of the project, whatever happens: it is not looked for again."""
