"""The last proof in the report: what was missed is named, and what is not named is counted."""

from building import a_criterion, a_task, evidence

from gates.check import EvidenceSet
from gates.checks.proof import judge
from gates.checks.proof.judge import LastProof
from gates.model import Finding, Level, Location, Outcome
from gates.proving.proof import CriterionProof, End, Proof, Source, TriedFault

TASK = a_task(criteria=[a_criterion()], proof={"killed_at_least": 0.8})


def a_fault(line: int, end: End = End.SURVIVED) -> TriedFault:
    place = Location(path="pkg/core.py", line=line)
    return TriedFault(id=f"f{line}", source=Source.GENERAL, title=f"{line} -> 0", location=place, diff="d", end=end)


def proved(*faults: TriedFault) -> EvidenceSet:
    criterion = CriterionProof(
        id="AC1", text="Double", level=Level.MUST, location=Location(path="t.yaml"), killed_at_least=0.8, tests=1,
        faults=faults,
    )  # fmt: skip
    facts = {"schema": "gates.proof/2", "task": "T1", "title": "T", "digest": "0", "commit": None, "duration_s": 1,
             "started_at": "2026-01-01T00:00:00Z", "budget_s": 1, "criteria": (criterion,)}  # fmt: skip
    return evidence(LastProof(how="proof.json", proof=Proof.model_validate(facts), fits=True))


def finding(*faults: TriedFault) -> Finding:
    (found,) = judge.judge(TASK, proved(*faults))
    return found


SEVEN = tuple(a_fault(line) for line in range(1, 8))
FIVE = ", ".join(f"pkg/core.py:{line} ({line} -> 0)" for line in range(1, 6))


def test_survivors_are_told_with_their_change_and_what_is_left_out_is_counted() -> None:
    (section,) = judge.page(TASK, proved(*SEVEN))
    assert section.rows[0][-1] == f"{FIVE}, ... and 2 more in proof.md"


def test_weak_evidence_is_told_with_the_first_of_what_it_missed() -> None:
    found = finding(a_fault(9, End.KILLED), *SEVEN)
    assert found.outcome is Outcome.FAILED
    assert found.message == f"The evidence of AC1 missed 7 faults: {FIVE}, ... and 2 more in proof.md."


def test_vacuous_evidence_is_told_in_the_same_numbers_everywhere() -> None:
    faults = (a_fault(1), a_fault(2), a_fault(3))
    found = finding(*faults)
    (section,) = judge.page(TASK, proved(*faults))
    assert found.actual == "0 of 3, 0%"
    assert "no test noticed any of the 3 faults put into its code" in found.message
    assert section.rows[0][1:4] == ("vacuous", "0 of 3", "0%")
