"""Several criteria in one task: failures share the error, passes do not."""

from collections.abc import Callable

from gates.measuring.answers import correct
from gates.model import Outcome

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN


def failing_at(p: float) -> Callable[[float], Outcome]:
    """A criterion whose interval lies on the bad side down to an error of `p`."""
    return lambda alpha: F if p <= alpha else U


def passing(_alpha: float) -> Outcome:
    return P


def test_one_failure_alone_has_all_of_the_error() -> None:
    assert correct([failing_at(0.049)], 0.05) == [F]


def test_two_must_share_it_and_the_second_has_it_all_when_the_first_fell() -> None:
    assert correct([failing_at(0.04), failing_at(0.049)], 0.05) == [U, U]
    assert correct([failing_at(0.049), failing_at(0.02)], 0.05) == [F, F]
    assert correct([failing_at(0.2), failing_at(0.02), failing_at(0.03)], 0.05) == [U, U, U]


def test_criteria_that_passed_do_not_dilute_a_failure() -> None:
    assert correct([passing, failing_at(0.04), passing, passing], 0.05) == [P, F, P, P]


def test_what_picking_the_passes_costs_is_taken_off() -> None:
    assert correct([passing, failing_at(0.0495)], 0.05) == [P, U]
    assert correct([failing_at(0.0495)], 0.05) == [F]


def test_order_does_not_matter() -> None:
    criteria = [failing_at(p) for p in (0.001, 0.012, 0.02, 0.3)] + [passing]
    forwards, backwards = correct(criteria, 0.05), correct(criteria[::-1], 0.05)
    assert forwards == backwards[::-1] == [F, F, F, U, P]


def test_nothing_asked_is_nothing_answered() -> None:
    assert correct([], 0.05) == []
