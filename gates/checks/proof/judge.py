"""What the last proof came to: could the evidence of each criterion say no?"""

from collections.abc import Iterator
from typing import ClassVar, Self

from pydantic import ValidationError

from gates import config
from gates.check import Check, Evidence, EvidenceSet
from gates.context import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.model import Finding, Level, Outcome, Planned, RuleText, Severity
from gates.proving.proof import PROOF, CriterionProof, Proof, Standing, TriedFault
from gates.proving.proving import digest
from gates.report import Section
from gates.task.task import Criterion, Task


class LastProof(Evidence):
    """What the last `gates prove` came to, and whether it speaks of the files as they are now."""

    lasting: ClassVar[bool] = False
    proof: Proof
    fits: bool

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read the proof from the folder of the task's reports."""
        try:
            path = config.reports_of(context.root) / task.id / PROOF
        except UsageError as error:
            raise EvidenceUnavailable(str(error)) from error
        if not path.is_file():
            raise EvidenceUnavailable(f"there is no proof yet (run `gates prove {task.id}`)")
        try:
            proof = Proof.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise EvidenceUnavailable(f"{context.shown(path)} is no proof of this version: {reason}") from error
        if proof.task != task.id:
            raise EvidenceUnavailable(f"{context.shown(path)} is a proof of {proof.task!r}")
        return cls(how=f"{context.shown(path)}", proof=proof, fits=proof.digest == digest(task, context.root))


SHOWN = 5
NONE = (
    "No fault was tried: that tests passed does not say whether they could fail. gates prove {} breaks the code on "
    "purpose and looks which of them notice."
)
RULES = (
    RuleText(
        id="BL013",
        title="The tests of a criterion kill its mutants",
        meaning="`gates prove` puts mutants into a copy and runs the criterion's tests. Where none is "
        "killed, the tests would pass whatever the code does. A proof of other files is stale.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion of a task that asks for proof."""
    for criterion in _asked(task):
        yield Planned(
            id=f"proof:{criterion.id}", title=f"The tests of {criterion.id} kill its mutants", level=Level.ADVISORY,
            criterion=criterion.id, scored=False,
        )  # fmt: skip


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Say of each criterion what the last proof came to; a vacuous one stops the change, all else is only told."""
    last = evidence.get(LastProof)
    for criterion in _asked(task):
        common = {
            "rule": "BL013", "check": f"proof:{criterion.id}", "criterion": criterion.id, "level": Level.ADVISORY,
            "location": task.place(criterion), "command": f"gates prove {task.id} --only {criterion.id}",
            "expected": f"{task.proof.killed_at_least if task.proof else 0.8:.0%} of the faults noticed",
        }  # fmt: skip
        if last is None:
            told = _unknown("no proof", f"Whether the evidence of {criterion.id} could say no: "
                            f"{evidence.why_missing(LastProof)}")  # fmt: skip
        elif not last.fits:
            told = _unknown("stale", f"The last proof of {criterion.id} ({last.proof.started_at}) is stale: task, "
                            "implementation, its tests or their settings have changed since.")  # fmt: skip
        else:
            told = _told(task.id, criterion, next((c for c in last.proof.criteria if c.id == criterion.id), None))
        yield Finding.model_validate({**common, **told})


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Show the last proof, and whether it speaks of the files as they are; where there is none, say so."""
    last = evidence.get(LastProof)
    if last is None:
        if any(criterion.tests for criterion in task.criteria):
            yield Section(title="Proof", text=NONE.format(task.id))
        return
    stale = "" if last.fits else " It is stale: files that it rests on have changed since."
    yield Section(
        title="Proof",
        text=f"The last proof began {last.proof.started_at}.{stale}",
        columns=("Criterion", "Standing", "Faults noticed", "Rate", "Survivors"),
        rows=tuple(
            (c.id, "stale" if not last.fits else c.standing.value, f"{len(c.noticed)} of {len(c.counted)}",
             "-" if c.rate is None else f"{c.rate:.0%}", _listed(c.survivors) or "-")
            for c in last.proof.criteria
        ),
    )  # fmt: skip


def _listed(faults: tuple[TriedFault, ...]) -> str:
    """Name the first of some faults by place and change, and say how many there are beside."""
    named = [f"{fault.location} ({fault.title})" for fault in faults[:SHOWN]]
    more = len(faults) - len(named)
    return ", ".join(named) + (f", ... and {more} more in proof.md" if more else "")


def _vacuous(proof: CriterionProof) -> str:
    if proof.passed_by:
        return "its tests run none of its code"
    return f"no test noticed any of the {len(proof.counted)} faults put into its code"


def _asked(task: Task) -> tuple[Criterion, ...]:
    return task.criteria if task.proof or any(criterion.faults for criterion in task.criteria) else ()


def _unknown(actual: str, message: str) -> dict[str, object]:
    return {
        "outcome": Outcome.UNKNOWN, "actual": actual, "message": message,
        "remediation": "Run `gates prove`.",
    }  # fmt: skip


def _told(task: str, criterion: Criterion, proof: CriterionProof | None) -> dict[str, object]:
    if proof is None:
        return _unknown("not proved", f"The last proof did not look at {criterion.id}.")
    actual = "-" if proof.rate is None else f"{len(proof.noticed)} of {len(proof.counted)}, {proof.rate:.0%}"
    match proof.standing:
        case Standing.PROVED:
            return {"outcome": Outcome.PASSED, "actual": actual,
                    "message": f"The evidence of {criterion.id} noticed {actual} of the faults put in."}  # fmt: skip
        case Standing.VACUOUS:
            must = criterion.level is Level.MUST
            return {
                "outcome": Outcome.FAILED, "severity": Severity.HIGH if must else Severity.MEDIUM, "actual": actual,
                "message": f"The evidence of {criterion.id} is vacuous: {_vacuous(proof)}.",
                "impact": "It would pass whatever the code does.",
                "remediation": "Bind tests that assert what the criterion asks for.",
            }  # fmt: skip
        case Standing.WEAK:
            return {"outcome": Outcome.FAILED, "severity": Severity.MEDIUM, "actual": actual,
                    "message": f"The evidence of {criterion.id} missed {len(proof.survivors)} faults: "
                    f"{_listed(proof.survivors)}.",
                    "remediation": "Write tests that notice them; proof.md has each."}  # fmt: skip
        case Standing.MEASURED:
            return _unknown("no tests", f"{criterion.id} has no tests: mutants are tried by tests alone.") | {
                "remediation": "Bind tests to it; its commands are asked in each run (BL017)."
            }
        case _:
            return _unknown(
                proof.standing.value, f"{criterion.id}: {proof.problem or proof.going_on(task) or proof.standing.value}"
            )


CHECK = Check(
    name="proof", gate="business-logic", order=130, rules=RULES, uses=(LastProof,), plan=plan, judge=judge, page=page
)
