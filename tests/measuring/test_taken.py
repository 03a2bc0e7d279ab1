"""What the record of a measurement may say of itself."""

import pytest
from pydantic import ValidationError
from taking import a_taken


@pytest.mark.parametrize(("most", "split"), [(64, 1), (384, 6), (96, 3)])
def test_pairs_may_be_split_as_the_gate_splits_them(most: int, split: int) -> None:
    assert a_taken(most=most, split=split).split == split


@pytest.mark.parametrize(("most", "split"), [(64, 0), (64, -1), (64, 64), (64, 5), (448, 7)])
def test_other_ways_are_refused(most: int, split: int) -> None:
    with pytest.raises(ValidationError, match="split"):
        a_taken(most=most, split=split)
