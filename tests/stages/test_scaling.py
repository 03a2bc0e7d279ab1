"""The judgement of how a step grows: pure, from the values of its sizes."""

from typing import Any

import pytest
from building import a_task, evidence

from gates.checks.scaling import CHECK, Scaled, Scaling
from gates.model import Finding, Outcome

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
SIZES = (8, 16, 32, 64)
ASKED: dict[str, Any] = {"call": "pkg.a:make", "over": {"batch": SIZES}, "exponent": {"at_most": 1.15},
                         "criteria": ["AC1"], "restarts": 3}  # fmt: skip


def seen(k: float = 1.0, spread: float = 0.0, **changes: Any) -> Scaled:
    """Three starts of a step that grows with a power, and of which one is a little slower."""
    starts = tuple(((tuple(size ** (k + spread * i) for size in SIZES)),) for i in range(3))
    return Scaled.model_validate({"sizes": SIZES, "starts": starts, **changes})


def judged(one: Scaled, **changes: Any) -> Finding:
    """Return the finding of the only step of a task."""
    task = a_task(scaling=[{**ASKED, **changes}])
    return next(iter(CHECK.judge(task, evidence(Scaling(how="each size", seen=(one,))))))


def test_exponent_decides_with_its_whole_interval() -> None:
    assert [judged(seen(k)).outcome for k in (0.0, 1.0, 1.14, 1.3, 2.0)] == [P, P, P, F, F]
    assert judged(seen(1.0, spread=0.1)).outcome is U


def test_constant_part_that_hides_a_square_does_not_pass() -> None:
    hidden = tuple((tuple(500.0 + size**2 for size in SIZES),) for _ in range(3))
    assert judged(seen(starts=hidden)).outcome is F  # the slope of the upper half is above 1.15 all the same
    deeper = tuple((tuple(20_000.0 + size**2 for size in SIZES),) for _ in range(3))
    assert judged(seen(starts=deeper)).outcome is U


def test_failure_says_what_a_larger_size_costs() -> None:
    assert judged(seen(2.0)).impact == "batch times 8 makes it 64 times as much."


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (seen(problem="no module"), "no module"),
        (seen(starts=()), "0 of 3 starts"),
        (seen(device="cuda"), "measured on cuda, asked is cpu"),
        (seen(starts=(((1.0, 0.0, 1.0, 1.0),),) * 3), "not above 0"),
    ],
)
def test_what_shows_too_little_is_unknown(one: Scaled, expected: str) -> None:
    finding = judged(one, on="cpu")
    assert (finding.outcome, expected in finding.message) == (U, True), finding.message


def test_section_tells_of_each_size() -> None:
    (section,) = CHECK.page(a_task(scaling=[ASKED]), evidence(Scaling(how="", seen=(seen(),))))
    assert section.title == "Complexity"
    assert section.rows[0][1:5] == ("1.00 [1.00, 1.00]", "<= 1.15", "batch 8, 16, 32, 64", "8 s, 16 s, 32 s, 64 s")
