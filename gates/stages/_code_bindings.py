"""The code that a criterion is bound to: each symbol, pattern and rule must lead to live code, reached as stated."""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.code_rules import RuleSite, RuleTrace
from gates.evidence.patterns import PatternTrace
from gates.evidence.reach import Reached
from gates.evidence.source_tree import SourceTree
from gates.evidence.symbols import SymbolTrace
from gates.model import Finding, Outcome
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.stages._about import About
from gates.stages.bound_tests import NAMED
from gates.task.code_binding import CodeBinding
from gates.task.task import Criterion, Task


def judge_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Iterator[Finding]:
    """Trace a criterion to code: the symbol must exist, live, and use what it is bound to use."""
    about = About(criterion, "BL001", f"code:{criterion.id}")
    if not criterion.code:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(criterion), actual="no binding",
            message=f"{criterion.id} names no code, so nothing shows where it is implemented.",
            remediation=f"Name the symbols that implement {criterion.id} under 'code'.",
        )  # fmt: skip
        return
    tree = evidence.get(SourceTree)
    for binding in criterion.code:
        if tree is None:
            yield about(
                outcome=Outcome.UNKNOWN, location=task.place(binding), subject=binding.name, actual="not looked at",
                message=f"{binding.name} was not traced: {evidence.why_missing(SourceTree)}",
                remediation="Mend 'implementation' of the task, or what keeps its files from being read.",
            )  # fmt: skip
        else:
            kept = evidence.get(EmptiedCode) if binding.symbol else None
            yield from _by_one(
                about, task, binding, tree, kept.promised(criterion.id, binding.symbol) if kept else None
            )
            yield from _reached(about, task, binding, tree)
            yield from _watchful(about, task, criterion, binding, tree)


def _by_one(
    about: About, task: Task, binding: CodeBinding, tree: SourceTree, kept: EmptiedSymbol | None
) -> Iterator[Finding]:  # fmt: skip
    if binding.rule:
        return _by_rule(about, task, binding, tree, tree.rule(binding.rule))
    if binding.pattern:
        return _by_pattern(about, task, binding, tree.pattern(binding))
    trace = tree.symbol(binding)
    alone = not binding.uses and binding.reached_from is None
    if trace is not None and kept is not None and alone and (kept.noticed or kept.unnoticed):
        return _by_promise(about, binding, trace, kept)
    return _by_symbol(about, task, binding, trace)


def _by_promise(about: About, binding: CodeBinding, trace: SymbolTrace, kept: EmptiedSymbol) -> Iterator[Finding]:
    """Judge a definition that does nothing by whether tests notice that it does something, or is something else."""
    name = binding.name
    if kept.noticed:
        yield about(
            outcome=Outcome.PASSED, location=trace.promise, subject=name, expected=f"{name} exists", actual="found",
            message=f"{name} does nothing, and {kept.by or 'a test'} asserts that it does so.",
        )  # fmt: skip
        return
    yield about(
        outcome=Outcome.UNKNOWN, location=trace.promise, subject=name, expected=f"{name} exists",
        actual="nothing noticed",
        message=f"{name} does nothing, and no test of {kept.criterion} notices what it is: {trace.problem}.",
        remediation=f"Assert on what {name} is there for, or bind the criterion to the code that does it.",
    )  # fmt: skip


def _by_symbol(about: About, task: Task, binding: CodeBinding, trace: SymbolTrace | None) -> Iterator[Finding]:
    name = binding.name
    expected = f"{name} exists" + (f" and uses {', '.join(binding.uses)}" if binding.uses else "")
    if trace is None or not trace.checked:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, expected=expected,
            actual="not checked",
            message=f"{name}: {trace.problem if trace else 'was not traced'}", remediation="Mend the file first.",
        )  # fmt: skip
        return
    if trace.location is None:
        yield about(
            outcome=Outcome.FAILED, location=task.place(binding), subject=name, expected=expected,
            actual="not implemented",
            message=f"{name} is not implemented: {trace.problem}", impact="The criterion has no implementation.",
            remediation=f"Implement {name}, or bind the criterion to the code that does.",
        )  # fmt: skip
        return
    unused = [use.name for use in trace.uses if not use.lines]
    for missing in unused:
        yield about(
            outcome=Outcome.FAILED, location=trace.location, subject=f"{name} uses {missing}", expected=expected,
            actual=f"no live use of {missing}", message=f"{name} does not use {missing}.",
            impact=f"What the criterion asks for ({missing}) does not happen here.",
            remediation=f"Use {missing} in {name}.",
        )  # fmt: skip
    if not unused:
        used = "; ".join(f"{use.name} in line {', '.join(map(str, use.lines))}" for use in trace.uses)
        yield about(
            outcome=Outcome.PASSED, location=trace.location, subject=name, expected=expected, actual="found",
            message=f"{name} is live code{f' and uses {used}' if used else ''}.",
        )  # fmt: skip


def _by_rule(
    about: About, task: Task, binding: CodeBinding, tree: SourceTree, trace: RuleTrace | None
) -> Iterator[Finding]:
    name = binding.name
    if trace is None or trace.problem or tree.unparsed:
        why = trace.problem if trace and trace.problem else "; ".join(tree.unparsed) or "it was not applied"
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, actual="not checked",
            message=f"{name} could not be checked: {why}", remediation="Mend what is named.",
        )  # fmt: skip
        return
    for site in trace.sites:
        bad = Outcome.UNKNOWN if site.undecided else Outcome.FAILED
        yield about(
            outcome=Outcome.PASSED if site.ok else bad, location=site.location, expected=name,
            subject=f"{name} {site.message}", message=f"{name}: {site.message}",
            actual="kept" if site.ok else " -> ".join(site.trace) or ("not decided" if site.undecided else "broken"),
            **({} if site.ok else _mend(trace, site)),
        )  # fmt: skip
    if not trace.sites:
        yield about(
            outcome=Outcome.FAILED, location=task.place(binding), subject=name, expected=name, actual="not implemented",
            message=f"{name} finds no code that it speaks of: the criterion is not implemented.",
            impact="The criterion has no implementation.", command=f"gates explain {trace.rule}",
            remediation="Implement what the rule describes, or bind the criterion to the code that does.",
        )  # fmt: skip


def _mend(trace: RuleTrace, site: RuleSite) -> dict[str, str]:
    """Return what a place that does not keep a rule comes to, and what mends it, in the rule's own words."""
    if site.undecided:
        return {"remediation": "Split the function, so that its paths can be followed."}
    fix = trace.fix or f"See `gates explain {trace.rule}`."
    return {"impact": trace.impact, "remediation": fix, "command": f"gates explain {trace.rule}"}


def _by_pattern(about: About, task: Task, binding: CodeBinding, trace: PatternTrace | None) -> Iterator[Finding]:
    name, count = binding.name, binding.at_least
    expected = f"{count} place{'s' if count > 1 else ''} of live code"
    if trace is None or not trace.checked:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, expected=expected,
            actual="not checked",
            message=f"{name}: {trace.problem if trace else 'was not applied'}", remediation="Mend the file first.",
        )  # fmt: skip
    elif trace.problem:
        yield about(
            outcome=Outcome.FAILED, location=trace.places[0] if trace.places else task.place(binding), subject=name,
            expected=expected, actual=f"{len(trace.places)} of {count}" if trace.places else "not implemented",
            message=f"{name} is not implemented: {trace.problem}.", impact="The criterion has no implementation.",
            remediation="Write the code that the pattern describes where it runs, or bind the criterion to the code "
            "that does it.",
        )  # fmt: skip
    else:
        yield from _places(about, name, expected, trace)


def _places(about: About, name: str, expected: str, trace: PatternTrace) -> Iterator[Finding]:
    for number, place in enumerate(trace.places[:NAMED], 1):
        yield about(
            outcome=Outcome.PASSED, location=place, subject=name if number == 1 else f"{name} #{number}",
            expected=expected, actual="found", message=f"{name} fits live code in {place}.",
        )  # fmt: skip
    if len(trace.places) > NAMED:
        yield about(
            outcome=Outcome.PASSED, location=trace.places[NAMED], subject=f"{name} more", expected=expected,
            actual="found", message=f"{name} fits {len(trace.places) - NAMED} more places of live code.",
        )  # fmt: skip


def _reached(about: About, task: Task, binding: CodeBinding, tree: SourceTree) -> Iterator[Finding]:
    """Say whether code is called from where the task says; code that was not found has a finding already."""
    if binding.reached_from is None or not (places := tree.places(binding)):
        return
    trace = tree.reach(binding)
    name, entry = binding.name, binding.reached_from
    facts = {"subject": f"{name} from {entry}", "expected": f"called from {entry}, directly or through others"}
    if trace is None or trace.reached is Reached.OPEN:
        why = trace.problem if trace else "it was not looked at"
        yield about(
            outcome=Outcome.UNKNOWN, location=places[0], actual="not decided", **facts,
            message=f"Whether {entry} calls {name} was not decided: {why}.",
            remediation="Call it by name, or write the type of what it is called on.",
        )  # fmt: skip
    elif trace.reached is Reached.NO:
        callers = "; ".join(trace.callers)
        yield about(
            outcome=Outcome.FAILED, location=places[0] if not trace.problem else task.place(binding), **facts,
            actual=callers or trace.problem or "nothing calls it",
            message=f"{trace.problem}." if trace.problem else f"{entry} does not call {name}, directly or through "
            f"others; {f'what calls it: {callers}' if callers else 'nothing calls it'}.",
            impact=f"What {name} does is no part of what {entry} does.",
            remediation=f"Call {name} on the way from {entry}, or name the entry that does.",
        )  # fmt: skip
    else:
        way = " -> ".join(trace.way)
        yield about(
            outcome=Outcome.PASSED, location=places[0], actual=way or "the entry itself", **facts,
            message=f"{name} is called from {entry}{f': {way}' if way else ''}.",
        )  # fmt: skip


def _watchful(
    about: About, task: Task, criterion: Criterion, binding: CodeBinding, tree: SourceTree
) -> Iterator[Finding]:
    """Say so of code that asks whether a test looks on, where nothing but tests shows what it does."""
    seen = next((one for one in tree.watchful if one.symbol == binding.symbol), None)
    if seen is None or criterion.measures or any(criterion.id in entry.criteria for entry in task.entry_points):
        return
    yield about(
        outcome=Outcome.UNKNOWN, location=seen.location, subject=f"{binding.name} in use", actual=seen.asks,
        expected="the same with and without a test",
        message=f"{binding.name} asks whether a test looks on ({seen.asks}): what it does without one was not seen.",
        impact="Users may get something else than what the tests see.",
        remediation="Let it do the same for everybody, or let an entry point show the criterion.",
    )  # fmt: skip
