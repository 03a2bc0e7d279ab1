"""Exceptions that a test expects by a wider kind, and that came of a name that is not there: a slip in the code."""

import dis
import traceback
from collections.abc import Callable, Iterable
from types import TracebackType

SLIPS = (NameError, ImportError)
READING = ("LOAD_", "DELETE_", "IMPORT_")  # what the interpreter does to a name; the code itself raises otherwise


class Misnamed:
    """What of that kind came in the test that runs, in words."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def expected(self, kinds: Iterable[object], raised: object, trace: object, is_own: Callable[[str], bool]) -> None:
        """Take an exception that a test expected, and that came, by its kind and its place."""
        slip = next((kind for kind in SLIPS if isinstance(raised, type) and issubclass(raised, kind)), None)
        meant = any(isinstance(kind, type) and issubclass(kind, slip) for kind in kinds) if slip else True
        if meant or not isinstance(trace, TracebackType):
            return
        while trace.tb_next is not None:
            trace = trace.tb_next
        code = trace.tb_frame.f_code
        done = next((one.opname for one in dis.get_instructions(code) if one.offset == trace.tb_lasti), "")
        if done.startswith(READING) and is_own(code.co_filename):
            name = getattr(raised, "__name__", "")
            line = next((line for _, line in traceback.walk_tb(trace)), 0)
            self.found.append(f"{name} in {code.co_filename}:{line}")
