"""What an open number would need, in the words of a task."""

import pytest
from building import a_measure

from gates.measuring.interval import Estimate, pairs_needed
from gates.task.task import Measure

SLOWER = Measure.model_validate(a_measure(ratio=["new", "old"], at_least=None, at_most=1.05))


@pytest.mark.parametrize(("n", "split"), [(64, 1), (384, 6)])
def test_pairs_are_counted_as_a_task_asks_for_them(n: int, split: int) -> None:
    open_still = Estimate(1.08, 1.02, 1.14, n, 0.95)
    assert pairs_needed(open_still, SLOWER, split) == 317


def test_what_is_settled_needs_none() -> None:
    assert pairs_needed(Estimate(1.2, 1.19, 1.21, 384, 0.95), SLOWER, 6) is None
