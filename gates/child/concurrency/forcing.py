"""Forces switches between threads: between two steps of the interpreter in the project's lines, a thread pauses.

What the interpreter promises to do in one step stays whole (`list.append`, `d[k] = v`); `x.n += 1` is several steps.
"""

import sys
from random import Random
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..places import Places

PAUSE_S = 1e-5
PAUSES = 400  # that a round is given, about
OFTEN = 0.25


class Forcing:
    """Pauses at random steps of the project's lines."""

    def __init__(self, places: "Places", seed: int, chance: float) -> None:
        self._places = places
        self._draw = Random(seed).random  # noqa: S311  # one of our own: the project's must not notice
        self._chance = chance
        self.steps = 0
        self.pauses = 0
        self.until = float("inf")

    def begin(self, _worker: int) -> None:
        """Look at each step of this thread from now on."""
        sys.settrace(self._entered)

    def end(self, _worker: int) -> None:
        """Look away."""
        sys.settrace(None)

    def next_chance(self) -> float:
        """Return how often the next round should pause, so that it is given about as many pauses as it can bear."""
        return min(OFTEN, max(1e-5, PAUSES / max(1, self.steps)))

    def _entered(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401  # as `sys.settrace` has it
        if self._places.shown(frame.f_code.co_filename) is None or monotonic() > self.until:
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, _frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        if event != "opcode":
            return self._stepped
        self.steps += 1
        if self._draw() < self._chance:
            self.pauses += 1
            sleep(PAUSE_S)
        return self._stepped
