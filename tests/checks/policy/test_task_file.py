"""A criterion's code and words beside an earlier state: a pattern, entry or sentence that asks for less is named."""

from typing import Any

import pytest
from building import a_criterion, a_task

from gates.checks.policy.moves import compare_tasks

PATTERN = {"pattern": "torch.amp.GradScaler(...)", "in": "pkg/scaler.py", "at_least": 2}
NAME = "AC1 pattern torch.amp.GradScaler(...) in pkg/scaler.py"


def moves(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    old, new = (a_task(criteria=[a_criterion(code=code)]) for code in (before, after))
    return [f"{move.part.value}: {move}" for move in compare_tasks(old, new, frozenset())]


LOWER: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]] = {
    "the same": ([PATTERN], [PATTERN], []),
    "fewer places": ([PATTERN], [{**PATTERN, "at_least": 1}], [f"bar: {NAME} at_least: 2 -> 1"]),
    "more places": ([PATTERN], [{**PATTERN, "at_least": 3}], []),
    "anywhere": ([PATTERN], [{k: v for k, v in PATTERN.items() if k != "in"}],
                 [f"bar: {NAME} in: pkg/scaler.py -> anywhere"]),
    "a wider folder": ([PATTERN], [{**PATTERN, "in": "pkg"}], [f"bar: {NAME} in: pkg/scaler.py -> pkg"]),
    "another file": ([PATTERN], [{**PATTERN, "in": "pkg/new.py"}],
                     [f"changed: {NAME} in: pkg/scaler.py -> pkg/new.py"]),
}  # fmt: skip


@pytest.mark.parametrize("case", LOWER)
def test_code_that_is_asked_for_less_is_named(case: str) -> None:
    before, after, expected = LOWER[case]
    assert moves(before, after) == expected


def test_sentence_of_a_criterion_that_changed_is_named() -> None:
    old, new = (a_task(criteria=[a_criterion(text=text)]) for text in ("At least twice as fast", "Not slower"))
    (move,) = compare_tasks(old, new, frozenset())
    assert f"{move.part.value}: {move}" == "changed: AC1 text: At least twice as fast -> Not slower"
