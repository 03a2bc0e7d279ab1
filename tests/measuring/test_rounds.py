"""Who comes when in a measurement: the turns of the arms, and those of the copy."""

from collections import Counter
from itertools import pairwise

import pytest

from gates.measuring.rounds import apart, copies_until, turn

AB, ABC = ("a", "b"), ("a", "b", "c")


def test_two_arms_go_forwards_and_backwards() -> None:
    assert [turn(AB, number) for number in range(4)] == [AB, AB[::-1]] * 2


def test_of_three_arms_none_has_a_place_of_its_own() -> None:
    turns = [turn(ABC, number) for number in range(6)]
    assert len(set(turns)) == 6
    for place in range(3):
        assert Counter(order[place] for order in turns) == Counter(dict.fromkeys(ABC, 2))
    following = Counter(before[-1] == after[0] for before, after in pairwise([*turns, turns[0]]))
    assert following[True] == 3


@pytest.mark.parametrize(
    ("arms", "split", "pairs"), [(2, 1, (6, 14, 22)), (3, 1, (6, 14, 22)), (2, 6, (6, 22)), (1, 1, (6, 22))]
)
def test_copies_take_their_turns_after_the_sixth_pair_and_then_now_and_then(
    arms: int, split: int, pairs: tuple[int, ...]
) -> None:
    between = apart(arms, split)
    due = [n for n in range(1, 25) if copies_until(n, between) > copies_until(n - 1, between)]
    assert tuple(due) == pairs
    assert copies_until(5, between) == 0
    assert copies_until(6, between) == 2
