"""What every gate has: a name, a place among the others, and its checks; and the gates that there are."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gates.check import Check, Evidence, EvidenceSet, discover
from gates.model import Basis, Finding, Outcome, Planned
from gates.report import Section
from gates.task.task import Task
from gates.words import counted

NONE_ASKED = "no-target"
NAMED = 50  # so many findings of one kind stand for themselves; the rest share one


@dataclass(frozen=True)
class Gate:
    """A label with a stage: the checks that belong to it, and what is said where a task asks for none of them.

    `weight` is its share of the score, `code` the letters of its rules, `nothing_asked` what is said of no check here.
    """

    name: str
    title: str
    stage: int
    weight: int
    code: str
    checks: tuple[Check, ...]
    nothing_asked: tuple[str, str] | None = None

    @property
    def uses(self) -> tuple[type[Evidence], ...]:
        """Return the evidence that its checks judge, each kind once, in the order of collection."""
        return tuple(dict.fromkeys(kind for check in self.checks for kind in check.uses))

    def plan(self, task: Task) -> tuple[Planned, ...]:
        """Plan what each check plans."""
        planned = tuple(one for check in self.checks for one in check.planned(task))
        return planned if planned or self.nothing_asked is None else (Planned(id=NONE_ASKED, title=self.title),)

    def judge(self, task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
        """Judge check by check; say so where the task asks for nothing."""
        findings = [finding for check in self.checks for finding in _judged(check, task, evidence)]
        yield from findings
        if not findings and self.nothing_asked:
            rule, message = self.nothing_asked
            yield Finding(rule=rule, check=NONE_ASKED, outcome=Outcome.NOT_APPLICABLE, message=message)

    def describe(self, task: Task, evidence: EvidenceSet) -> Iterator[Section]:
        """Tell what each check tells, and what nobody asked for, so that nobody takes it for seen."""
        for check in self.checks:
            yield from check.page(task, evidence)
        asked = [check for check in self.checks if check.plan is not Check.plan]
        idle = [check.name.replace("_", " ") for check in asked if not any(check.plan(task))]
        if idle and self.nothing_asked:
            yield Section(title="Not Asked For", text=f"{', '.join(idle).capitalize()}: not looked at.")


def _judged(check: Check, task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge a check; each finding carries what it rests on, and of very many that are alike the last share one."""
    basis = {one.id: one.basis for one in check.planned(task)}
    count, rest = Counter[object](), dict[object, Finding]()
    for finding in check.judge(task, evidence):
        kind = finding.check, finding.criterion, finding.rule, finding.outcome, finding.level, finding.severity
        rests = basis.get(finding.check) or check.basis
        own = finding if rests is Basis.OBSERVED else finding.model_copy(update={"basis": rests})
        count[kind] += 1
        if count[kind] <= NAMED:
            yield own
        else:
            rest.setdefault(kind, own)
    for alike, first in rest.items():
        more = count[alike] - NAMED
        said = f"{counted(more, 'more finding is', 'more findings are')} like these; the raw evidence has all."
        facts = first.model_dump(exclude={"fingerprint", "location"})
        yield Finding.model_validate({**facts, "message": said, "subject": "more", "alike": more})


def checks_of(gate: str) -> tuple[Check, ...]:
    """Return the checks of a gate, by their places."""
    return tuple(check for check in discover() if check.gate == gate)


EXECUTION = Gate("execution", "Execution Verification", 2, 40, "EX", checks_of("execution"))
BUSINESS_LOGIC = Gate("business-logic", "Business Logic Verification", 2, 30, "BL", checks_of("business-logic"))
NO_TARGET = ("PF001", "The task sets no performance target.")
PERFORMANCE = Gate("performance", "Performance Verification", 4, 30, "PF", checks_of("performance"), NO_TARGET)
