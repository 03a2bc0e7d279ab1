"""Splits the time of each thread into the phases of training: of what was entered, the last is what time passes in."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

DATA, FORWARD, BACKWARD, OPTIMIZER, EVALUATION, OTHER = (
    "data", "forward", "backward", "optimizer", "evaluation", "other",
)  # fmt: skip


class Clock:
    """The phases of one thread, one inside of the other, and the time that passed in each by itself.

    A forward pass lingers: the loss that is computed from what it returned belongs to it, up to the backward pass.
    """

    def __init__(self) -> None:
        self._inside: list[str] = [OTHER]
        self._since = perf_counter()
        self._spent: dict[str, float] = {}

    @property
    def phase(self) -> str:
        """Return what time passes in now."""
        return self._inside[-1]

    def enter(self, phase: str) -> int:
        """Enter a phase; return what `leave` must be told."""
        self._pass()
        self._inside.append(phase)
        return len(self._inside) - 1

    def leave(self, entered: int) -> None:
        """Leave a phase, and all that was entered since and lingers."""
        self._pass()
        del self._inside[max(1, entered) :]

    def stop(self, phase: str) -> None:
        """Leave the phase that was entered last, where it is this one."""
        if self.phase == phase:
            self.leave(len(self._inside) - 1)

    def settle(self) -> None:
        """Let a forward pass linger no longer."""
        self.stop(FORWARD)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Be in a phase while the block runs."""
        entered = self.enter(phase)
        try:
            yield
        finally:
            self.leave(entered)

    def taken(self) -> dict[str, float]:
        """Return the seconds in each phase since the last time that it was asked."""
        self._pass()
        spent, self._spent = self._spent, {}
        return spent

    def _pass(self) -> None:
        now = perf_counter()
        self._spent[self.phase] = self._spent.get(self.phase, 0.0) + now - self._since
        self._since = now


class Clocks(threading.local):
    """The clock of each thread."""

    def __init__(self) -> None:
        self.own = Clock()
        self.modules = 0  # how deep in modules the thread is
        self.steps: list[int] = []  # of optimizers under way, what their phases began with
