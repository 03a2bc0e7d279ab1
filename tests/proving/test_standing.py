import pytest

from gates.model import Level, Location
from gates.proving.proof import CriterionProof, End, Proof, Standing, TriedFault, markdown, text


def a_fault(end: End) -> TriedFault:
    return TriedFault(id="f", title="t", location=Location(path="pkg/core.py", line=1), diff="d", end=end)


def a_criterion(*faults: TriedFault, **changes: object) -> CriterionProof:
    facts = {
        "id": "AC1", "text": "Do", "level": Level.MUST, "location": Location(path="t.yaml", line=1),
        "killed_at_least": 0.8, "tests": 1, "faults": faults,
    }  # fmt: skip
    return CriterionProof.model_validate({**facts, **changes})


def a_proof(*criteria: CriterionProof) -> Proof:
    facts = {"schema": "gates.proof/2", "task": "T1", "title": "T", "digest": "0", "commit": None, "criteria": criteria}
    return Proof.model_validate({**facts, "started_at": "2026-01-01T00:00:00Z", "duration_s": 1, "budget_s": 1})


KILLED, SURVIVED, LEFT = (a_fault(end) for end in (End.KILLED, End.SURVIVED, End.NOT_TRIED))


ENDS = [
    (a_criterion(*[KILLED] * 4, SURVIVED), Standing.PROVED),
    (a_criterion(*[KILLED] * 3, SURVIVED), Standing.WEAK),
    (a_criterion(SURVIVED), Standing.VACUOUS),
    (a_criterion(SURVIVED, LEFT), Standing.UNPROVED),
    (a_criterion(LEFT), Standing.UNPROVED),
    (a_criterion(*[a_fault(End.BROKEN)] * 3), Standing.UNPROVED),
    (a_criterion(KILLED, *[LEFT] * 39), Standing.UNPROVED),
    (a_criterion(*[KILLED] * 4, sampled=300), Standing.PROVED),
    (a_criterion(*[KILLED] * 3, SURVIVED, LEFT), Standing.UNPROVED),
    (a_criterion(KILLED, problem="its own evidence fails"), Standing.UNPROVED),
    (a_criterion(tests=0), Standing.NOTHING),
    (a_criterion(tests=0, shown_otherwise=True), Standing.MEASURED),
]


@pytest.mark.parametrize(("criterion", "standing"), ENDS)
def test_a_criterion_stands_where_its_faults_ended(criterion: CriterionProof, standing: Standing) -> None:
    assert criterion.standing is standing


PROVED, WEAK = a_criterion(KILLED), a_criterion(SURVIVED, KILLED)


@pytest.mark.parametrize(
    ("criteria", "code"),
    [
        ([PROVED], 0),
        ([PROVED, a_criterion(tests=0, shown_otherwise=True)], 0),
        ([PROVED, a_criterion(SURVIVED, level=Level.SHOULD)], 0),
        ([PROVED, WEAK], 1),
        ([PROVED, a_criterion(SURVIVED), a_criterion(LEFT)], 1),
        ([PROVED, a_criterion(LEFT)], 3),
        ([PROVED, a_criterion(tests=0)], 3),
        ([a_criterion(tests=0, shown_otherwise=True)], 3),
    ],
)
def test_the_exit_code_follows_the_must_criteria(criteria: list[CriterionProof], code: int) -> None:
    assert a_proof(*criteria).exit_code == code


def test_what_the_time_was_up_for_is_told_with_what_to_do() -> None:
    proof = a_proof(a_criterion(KILLED, *[LEFT] * 3), a_criterion(KILLED))
    untried = "not decided: 3 of 4 mutants were not tried when the time was up"
    how = f"AC1 {untried}; try with a larger --budget, or with `gates prove T1 --only AC1`\n"
    assert (proof.exit_code, text(proof).count("not decided"), how in text(proof)) == (3, 1, True)
    assert untried in markdown(proof, None)
