"""What a rule says of one place."""

from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Site:
    """A place that a rule speaks of, and whether it is as it should be; `trace` is the path of events to it.

    `undecided` says that reading could not decide: the place is neither kept nor broken.
    """

    path: str
    line: int
    last_line: int
    ok: bool
    message: str
    trace: tuple[str, ...] = field(default=())
    undecided: bool = False
