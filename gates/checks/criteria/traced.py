"""The code that a criterion is bound to: each symbol, pattern and rule must lead to live code."""

from collections.abc import Iterator, Sequence

from gates.check import About, EvidenceSet, about_criterion
from gates.code.symbols import SymbolTrace
from gates.evidence.code_rules import RuleSite, RuleTrace
from gates.evidence.patterns import PatternTrace
from gates.evidence.recorded_step import Seen, seen_of
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Location, Outcome, Severity
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task

NAMED = 50


def judge_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Iterator[Finding]:
    """Trace a criterion to code: the symbol must exist, do something, and use what it is bound to use."""
    about = about_criterion(criterion, "BL001", f"code:{criterion.id}")
    tree, emptied = evidence.get(SourceTree), evidence.get(EmptiedCode)
    if not criterion.code:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(criterion), actual="no binding",
            message=f"{criterion.id} names no code, so nothing shows where it is implemented.",
            remediation=f"Name the symbols that implement {criterion.id} under 'code'.",
        )  # fmt: skip
    for binding in criterion.code:
        if tree is None:
            yield about(
                outcome=Outcome.UNKNOWN, location=task.place(binding), subject=binding.name, actual="not looked at",
                message=f"{binding.name} was not traced: {evidence.why_missing(SourceTree)}",
                remediation="Mend 'implementation' of the task, or what keeps its files from being read.",
            )  # fmt: skip
            continue
        if binding.rule:
            trace = tree.rule(binding.rule)
            yield from _by_rule(about, task, binding, tree, trace, seen_of(binding.rule, evidence))
        elif binding.pattern:
            yield from _by_pattern(about, task, binding, tree.pattern(binding))
        else:
            kept = emptied.promised(criterion.id, binding.symbol or "") if emptied else None
            yield from _by_symbol(about, task, binding, tree.symbol(binding), kept)
        yield from _watchful(about, task, criterion, binding, tree)


def _by_symbol(
    about: About, task: Task, binding: CodeBinding, trace: SymbolTrace | None, kept: EmptiedSymbol | None
) -> Iterator[Finding]:
    name = binding.name
    expected = f"{name} exists" + (f" and uses {', '.join(binding.uses)}" if binding.uses else "")
    facts = {"subject": name, "expected": expected}
    alone = not binding.uses
    if trace is None or not trace.checked:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), actual="not checked", **facts,
            message=f"{name}: {trace.problem if trace else 'was not traced'}", remediation="Mend the file first.",
        )  # fmt: skip
    elif trace.location is None and kept is not None and alone and kept.noticed:
        yield about(
            outcome=Outcome.PASSED, location=trace.promise, actual="found", **facts,
            message=f"{name} does nothing, and {kept.by or 'a test'} asserts that it does so.",
        )  # fmt: skip
    elif trace.location is None and kept is not None and alone and (kept.unnoticed or kept.exchanged):
        yield about(
            outcome=Outcome.UNKNOWN, location=trace.promise, actual="nothing noticed", **facts,
            message=f"{name} does nothing, and no test of {kept.criterion} notices what it is: {trace.problem}.",
            remediation=f"Assert on what {name} is there for, or bind the criterion to the code that does it.",
        )  # fmt: skip
    elif trace.location is None:
        yield about(
            outcome=Outcome.FAILED, location=task.place(binding), actual="not implemented", **facts,
            message=f"{name} is not implemented: {trace.problem}", impact="The criterion has no implementation.",
            remediation=f"Implement {name}, or bind the criterion to the code that does.",
        )  # fmt: skip
    else:
        yield from _uses(about, name, expected, trace, trace.location)


def _uses(about: About, name: str, expected: str, trace: SymbolTrace, place: Location) -> Iterator[Finding]:
    """Judge what a symbol must use: a name that is not written may still be looked up, where code does such."""
    unused = [use for use in trace.uses if not use.lines]
    for missing in unused:
        facts = {"subject": f"{name} uses {missing.name}", "expected": expected}
        if missing.looked_up:
            yield about(
                outcome=Outcome.UNKNOWN, location=place, actual="names are looked up", **facts,
                message=f"{name} does not name {missing.name}, and looks names up: whether it uses it is unknown.",
                remediation=f"Name {missing.name} in {name}, or bind the criterion to the code that does.",
            )  # fmt: skip
            continue
        yield _unseen(about(
            outcome=Outcome.FAILED, location=place, actual=f"no live use of {missing.name}", **facts,
            message=f"{name} does not use {missing.name}.",
            impact=f"What the criterion asks for ({missing.name}) does not happen here.",
            remediation=f"Use {missing.name} in {name}.",
        ))  # fmt: skip
    if not unused:
        used = "; ".join(f"{use.name} in line {', '.join(map(str, use.lines))}" for use in trace.uses)
        yield about(
            outcome=Outcome.PASSED, location=place, subject=name, expected=expected, actual="found",
            message=f"{name} is live code{f' and uses {used}' if used else ''}.",
        )  # fmt: skip


def _unseen(finding: Finding) -> Finding:
    """Return a failure that rests on not finding something: high at most."""
    critical = finding.severity is Severity.CRITICAL
    return finding.model_copy(update={"severity": Severity.HIGH}) if critical else finding


def _by_rule(
    about: About, task: Task, binding: CodeBinding, tree: SourceTree, trace: RuleTrace | None, steps: Sequence[Seen]
) -> Iterator[Finding]:
    name = binding.name
    yield from _recorded_as_broken(about, name, steps)
    if trace is None or trace.problem or tree.unparsed:
        why = trace.problem if trace and trace.problem else "; ".join(tree.unparsed) or "it was not applied"
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, actual="not checked",
            message=f"{name} could not be checked: {why}", remediation="Mend what is named.",
        )  # fmt: skip
        return
    broken = any(step.broken for step in steps)
    for site in trace.sites:
        kept = next((step.name for step in steps if step.events >= {*site.trace}), "") if site.trace else ""
        facts = {"expected": name, "subject": f"{name} {site.message}"}
        if kept and not site.ok and not broken:
            seen = f"Read as broken ({site.message}). {kept} ran these lines, and its recording keeps {name}."
            order = "recorded in the right order"
            yield about(outcome=Outcome.PASSED, location=site.location, actual=order, message=seen, **facts)
            continue
        bad = Outcome.UNKNOWN if site.undecided else Outcome.FAILED
        yield about(
            outcome=Outcome.PASSED if site.ok else bad, location=site.location, message=f"{name}: {site.message}",
            actual="kept" if site.ok else " -> ".join(site.trace) or ("not decided" if site.undecided else "broken"),
            **facts, **({} if site.ok else _to_keep(trace, site)),
        )  # fmt: skip
    if not trace.sites:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, expected=name, actual="found nothing",
            message=f"{name} finds no code that it speaks of: nothing shows that the criterion is implemented.",
            command=f"gates explain {trace.rule}",
            remediation="Implement what the rule describes, or bind the criterion to the code that does.",
        )  # fmt: skip


def _recorded_as_broken(about: About, name: str, steps: Sequence[Seen]) -> Iterator[Finding]:
    """Tell of what a recorded step did against a rule, whatever reading says of its lines."""
    for place, (step, breach) in {str(b.place.location): (s, b) for s in steps for b in s.broken}.items():
        order = breach.rule
        yield about(
            outcome=Outcome.FAILED,
            location=breach.place.location,
            subject=f"{name} recorded {place}",
            expected=name,
            actual=" -> ".join(f"{event.word} {event.location}" for event in breach.trace[:NAMED]),
            message=f"{name}, recorded in {step.name}: {order.problem}",
            impact=order.impact,
            remediation=order.fix,
        )


def _to_keep(trace: RuleTrace, site: RuleSite) -> dict[str, str]:
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
        yield _unseen(about(
            outcome=Outcome.FAILED, location=trace.places[0] if trace.places else task.place(binding), subject=name,
            expected=expected, actual=f"{len(trace.places)} of {count}",
            message=f"{name} is not implemented: {trace.problem}.", impact="The criterion has no implementation.",
            remediation="Write the code that the pattern describes where it runs, or bind the criterion to the code "
            "that does it.",
        ))  # fmt: skip
    else:
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
