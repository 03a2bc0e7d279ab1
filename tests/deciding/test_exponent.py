"""By which power of a size something grows."""

import random

import pytest

from gates.checks.scaling import affine, power, slope

SIZES = (8, 16, 32, 64, 128)


def starts(of: list[float], noise: float = 0.0, count: int = 5, rounds: int = 9) -> list[list[list[float]]]:
    """Rounds of some starts, with noise in each value and in each start."""
    draw = random.Random(7)
    return [
        [[value * shift * draw.lognormvariate(0, noise) for value in of] for _ in range(rounds)]
        for shift in (draw.lognormvariate(0, noise) for _ in range(count))
    ]


@pytest.mark.parametrize("k", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("constant", [0.0, 50.0])
def test_power_is_found_beside_a_constant_part(k: float, constant: float) -> None:
    values = [constant + 0.7 * size**k for size in SIZES]
    assert affine(SIZES, values) == pytest.approx(k, abs=0.02)
    assert slope(SIZES, values) <= k + 1e-9


def test_interval_holds_the_true_power_and_the_slope_that_hides_it() -> None:
    found = power(SIZES, starts([400.0 + size**2.0 for size in SIZES], 0.01))
    assert found.low < 2.0 < found.high
    assert found.low == pytest.approx(slope(SIZES, [400.0 + size**2.0 for size in SIZES]), abs=0.05)
    assert found.n == 45


def test_more_noise_from_start_to_start_widens_the_interval() -> None:
    values = [float(size) for size in SIZES]
    quiet, loud = power(SIZES, starts(values, 0.005)), power(SIZES, starts(values, 0.1))
    assert quiet.low < 1.0 < quiet.high
    assert loud.high - loud.low > 2 * (quiet.high - quiet.low)


def test_what_does_not_grow_has_an_exponent_of_nothing() -> None:
    found = power(SIZES, starts([5.0 for _ in SIZES], 0.005))
    assert -0.1 < found.low <= found.value <= found.high < 0.1


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_values_that_no_clock_gives_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        power((1, 2, 4), [[[1.0, bad, 3.0]], [[1.0, 2.0, 3.0]]])


def test_one_start_is_not_enough() -> None:
    with pytest.raises(ValueError, match="1 start"):
        power((1, 2, 4), [[[1.0, 2.0, 3.0]]])
