"""What each line of the project takes in a step, with all that it calls outside of the project."""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from .measuring import called

if TYPE_CHECKING:
    from ..places import Places

ENOUGH_S = 0.05
MOST_STEPS = 200
MOST_LINES = 60
PAGE = os.sysconf("SC_PAGE_SIZE")
Line = tuple[str, int]


def lines_of(step: Callable[[], object], of: str, places: "Places") -> dict[str, object]:
    """Return what the lines take of a step: seconds, bytes or calls; those that take most."""
    if of != "peak_memory_bytes":
        called(step)  # what is made once is no part of a step
    looking = _Looking(places, of)
    began, steps = time.perf_counter(), 0
    while not steps or (of not in {"peak_memory_bytes", "python_calls"} and steps < MOST_STEPS
                        and time.perf_counter() - began < ENOUGH_S):  # fmt: skip
        looking.look(step)
        steps += 1
    most = sorted(looking.taken.items(), key=lambda item: -item[1])[:MOST_LINES]
    return {"lines": [[*line, looking.functions[line], value / steps, looking.counts[line] / steps]
                      for line, value in most]}  # fmt: skip


class _Looking:
    """Gives what passes between two lines to the first of them."""

    def __init__(self, places: "Places", of: str) -> None:
        self._places = places
        self._calls = 0
        self._counting = of == "python_calls"
        self._file = os.open("/proc/self/statm", os.O_RDONLY) if of == "peak_memory_bytes" else -1
        self._now: Callable[[], float] = {
            "python_calls": lambda: self._calls, "peak_memory_bytes": self._resident,
            "step_cpu_time_s": time.process_time,
        }.get(of, time.perf_counter)  # fmt: skip
        self._stack: list[Line | None] = [None]
        self._last = 0.0
        self.taken: dict[Line, float] = defaultdict(float)
        self.counts: dict[Line, int] = defaultdict(int)
        self.functions: dict[Line, str] = {}

    def look(self, step: Callable[[], object]) -> None:
        """Look at one step."""
        self._last = self._now()
        sys.settrace(self._entered)
        if self._counting:
            sys.setprofile(self._called)
        try:
            step()
        finally:
            sys.setprofile(None)
            sys.settrace(None)
            self._stack[1:] = []

    def _called(self, _frame: object, event: str, _arg: object) -> None:
        self._calls += event in ("call", "c_call")

    def _entered(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401  # as `sys.settrace` has it
        if self._places.shown(frame.f_code.co_filename) is None:
            return None
        self._pass()
        self._stack.append(None)
        self._last = self._now()
        return self._moved

    def _moved(self, frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        self._pass()
        if event == "line":
            line = (self._places.shown(frame.f_code.co_filename) or "", frame.f_lineno)
            self._stack[-1] = line
            self.counts[line] += 1
            if line not in self.functions:
                self.functions[line] = frame.f_code.co_qualname
        elif event == "return" and len(self._stack) > 1:
            self._stack.pop()
        self._last = self._now()
        return self._moved

    def _pass(self) -> None:
        line = self._stack[-1]
        if line is not None:
            self.taken[line] += max(0.0, self._now() - self._last)

    def _resident(self) -> float:
        return float(int(os.pread(self._file, 100, 0).split()[1]) * PAGE)
