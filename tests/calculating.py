"""Builders of calculations and edge cases, and of what came of them."""

from typing import Any

from building import a_task

from gates.checks.calculations.judge import Calculations, CallRun, Ended
from gates.model import Location
from gates.task.task import Task

PLACE = Location(path="pkg/core.py", line=3, last_line=4)


def a_calculation(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A table of one row that doubles 2, which stands for AC1."""
    table = list(rows) or [{"args": [2], "expected": 4, "line": 22}]
    return {"call": "pkg.core:double", "table": table, "criteria": ["AC1"], "line": 20, **changes}


def an_edge_case(**changes: Any) -> dict[str, Any]:
    """An edge case that raises, which stands for nothing but itself."""
    facts = {"name": "nothing", "call": "pkg.core:double", "args": [None], "raises": "TypeError", "line": 24}
    return {key: value for key, value in {**facts, **changes}.items() if value is not ...}


def calculating(**changes: Any) -> Task:
    """A task with one of each."""
    return a_task(**{"calculations": [a_calculation()], "edge_cases": [an_edge_case()], **changes})


def a_call(call_id: str = "calc:0:0", returned: Any = 4, **changes: Any) -> CallRun:
    """A call that returned 4."""
    facts = {"id": call_id, "ended": Ended.RETURNED, "returned": returned, "place": PLACE}
    return CallRun.model_validate({**facts, **changes})


def a_raise(call_id: str = "edge:0", *error: str, **changes: Any) -> CallRun:
    """A call that raised a TypeError in line 4."""
    crash = Location(path="pkg/core.py", line=4)
    kinds = error or ("TypeError", "Exception", "BaseException")
    facts = {"ended": Ended.RAISED, "error": kinds, "message": "no number", "crash": crash, "returned": None}
    return a_call(call_id, **{**facts, **changes})


def calculated(*calls: CallRun) -> Calculations:
    """What came of the calls of `calculating`, all as stated where nothing else is given."""
    return Calculations(how="calls", calls=calls or (a_call(), a_raise()))
