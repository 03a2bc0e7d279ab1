"""Student's t, against the printed tables."""

import pytest

from gates.measuring.interval import quantile

TABLE = [
    (1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.95, 3.182), (4, 0.95, 2.776), (5, 0.95, 2.571), (10, 0.95, 2.228),
    (30, 0.95, 2.042), (1, 0.99, 63.657), (5, 0.99, 4.032), (10, 0.99, 3.169), (120, 0.95, 1.980), (2, 0.9, 2.920),
]  # fmt: skip


@pytest.mark.parametrize(("freedom", "level", "t"), TABLE)
def test_quantiles_are_those_of_the_tables(freedom: int, level: float, t: float) -> None:
    assert quantile(level, freedom) == pytest.approx(t, abs=6e-4)
