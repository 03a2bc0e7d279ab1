"""The code that a criterion is bound to: each symbol, pattern and rule must lead to live code."""

from collections.abc import Iterator, Sequence
from functools import partial

from gates.check import About, EvidenceSet, about_criterion
from gates.code.symbols import SymbolTrace
from gates.evidence.recorded_step import Seen, seen_of
from gates.evidence.source_tree import PatternTrace, RuleTrace, SourceTree
from gates.model import Finding, Location, Outcome, Severity
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task

NAMED = 50
NONE = "The criterion has no implementation."


def judge_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Iterator[Finding]:
    """Trace a criterion to code: the symbol must exist, do something, and use what it is bound to use."""
    about = about_criterion(criterion, "BL001", f"code:{criterion.id}")
    tree, emptied = evidence.get(SourceTree), evidence.get(EmptiedCode)
    if not criterion.code:
        message = f"{criterion.id} names no code, so nothing shows where it is implemented."
        advice = f"Name the symbols that implement {criterion.id} under 'code'."
        yield _open(about, task.place(criterion), "", "no binding", message, advice)
    for binding in criterion.code:
        place = task.place(binding)
        if tree is None:
            message = f"{binding.name} was not traced: {evidence.why_missing(SourceTree)}"
            advice = "Mend 'implementation' of the task, or what keeps its files from being read."
            yield _open(about, place, binding.name, "not looked at", message, advice)
            continue
        if binding.rule:
            trace = tree.rule(binding.rule)
            yield from _by_rule(about, place, binding, tree, trace, seen_of(binding.rule, evidence))
        elif binding.pattern:
            yield from _by_pattern(about, place, binding, tree.pattern(binding))
        else:
            kept = emptied.promised(criterion.id, binding.symbol or "") if emptied else None
            yield from _by_symbol(about, place, binding, tree.symbol(binding), kept)
        yield from _watchful(about, task, criterion, binding, tree)


def _open(about: About, place: Location | None, subject: str, actual: str, message: str, advice: str) -> Finding:
    """Say what is not known of a criterion's code."""
    facts = {"outcome": Outcome.UNKNOWN, "location": place, "subject": subject, "actual": actual}
    return about(message=message, remediation=advice, **facts)


def _absent(about: About, place: Location | None, subject: str, actual: str, message: str, advice: str) -> Finding:
    """Say that code is not there; what rests on not finding something is high at most."""
    facts = {"outcome": Outcome.FAILED, "location": place, "subject": subject, "actual": actual}
    found = about(message=message, remediation=advice, impact=NONE, **facts)
    critical = found.severity is Severity.CRITICAL
    return found.model_copy(update={"severity": Severity.HIGH}) if critical else found


def _by_symbol(
    about: About, place: Location, binding: CodeBinding, trace: SymbolTrace | None, kept: EmptiedSymbol | None
) -> Iterator[Finding]:
    name = binding.name
    about = partial(about, expected=f"{name} exists" + (f" and uses {', '.join(binding.uses)}" if binding.uses else ""))
    if trace is None or not trace.checked:
        message = f"{name}: {trace.problem if trace else 'was not traced'}"
        yield _open(about, place, name, "not checked", message, "Mend the file first.")
    elif trace.location is not None:
        yield from _uses(about, name, trace, trace.location)
    elif kept is not None and not binding.uses and kept.noticed:
        message = f"{name} does nothing, and {kept.by or 'a test'} asserts that it does so."
        yield about(outcome=Outcome.PASSED, location=trace.promise, subject=name, actual="found", message=message)
    elif kept is not None and not binding.uses and (kept.unnoticed or kept.exchanged):
        message = f"{name} does nothing, and no test of {kept.criterion} notices what it is: {trace.problem}."
        advice = f"Assert on what {name} is there for, or bind the criterion to the code that does it."
        yield _open(about, trace.promise, name, "nothing noticed", message, advice)
    else:
        message = f"{name} is not implemented: {trace.problem}"
        advice = f"Implement {name}, or bind the criterion to the code that does."
        facts = {"location": place, "subject": name, "actual": "not implemented", "impact": NONE}
        yield about(outcome=Outcome.FAILED, message=message, remediation=advice, **facts)


def _uses(about: About, name: str, trace: SymbolTrace, place: Location) -> Iterator[Finding]:
    """Judge what a symbol must use: a name that is not written may still be looked up, where code does such."""
    unused = [use for use in trace.uses if not use.lines]
    for missing in unused:
        subject, use_it = f"{name} uses {missing.name}", f"Use {missing.name} in {name}."
        if missing.looked_up:
            message = f"{name} does not name {missing.name}, and looks names up: whether it uses it is unknown."
            yield _open(about, place, subject, "names are looked up", message, use_it)
        else:
            message = f"{name} does not use {missing.name}."
            yield _absent(about, place, subject, f"no live use of {missing.name}", message, use_it)
    if not unused:
        used = "; ".join(f"{use.name} in line {', '.join(map(str, use.lines))}" for use in trace.uses)
        message = f"{name} is live code{f' and uses {used}' if used else ''}."
        yield about(outcome=Outcome.PASSED, location=place, subject=name, actual="found", message=message)


def _by_rule(
    about: About,
    place: Location,
    binding: CodeBinding,
    tree: SourceTree,
    trace: RuleTrace | None,
    steps: Sequence[Seen],
) -> Iterator[Finding]:
    name = binding.name
    yield from _recorded_as_broken(about, name, steps)
    if trace is None or trace.problem or tree.unparsed:
        why = trace.problem if trace and trace.problem else "; ".join(tree.unparsed) or "it was not applied"
        yield _open(about, place, name, "not checked", f"{name} could not be checked: {why}", "Mend what is named.")
        return
    about = partial(about, expected=name)
    broken = any(step.broken for step in steps)
    for site in trace.sites:
        kept = next((step.name for step in steps if step.events >= {*site.trace}), "") if site.trace else ""
        at = partial(about, location=site.location, subject=f"{name} {site.message}")
        message, command = f"{name}: {site.message}", f"gates explain {trace.rule}"
        if kept and not site.ok and not broken:
            seen = f"Read as broken ({site.message}). {kept} ran these lines, and its recording keeps {name}."
            yield at(outcome=Outcome.PASSED, actual="recorded in the right order", message=seen)
        elif site.ok:
            yield at(outcome=Outcome.PASSED, actual="kept", message=message)
        elif site.undecided:
            advice, actual = "Split the function, so that its paths can be followed.", " -> ".join(site.trace)
            yield at(outcome=Outcome.UNKNOWN, actual=actual or "not decided", message=message, remediation=advice)
        else:
            said = {"remediation": trace.fix or f"See `{command}`.", "impact": trace.impact, "command": command}
            yield at(outcome=Outcome.FAILED, actual=" -> ".join(site.trace) or "broken", message=message, **said)
    if not trace.sites:
        message = f"{name} finds no code that it speaks of: nothing shows that the criterion is implemented."
        advice = "Implement what the rule describes, or bind the criterion to the code that does."
        yield _open(about, place, name, "found nothing", message, advice)


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


def _by_pattern(about: About, place: Location, binding: CodeBinding, trace: PatternTrace | None) -> Iterator[Finding]:
    name, count = binding.name, binding.at_least
    about = partial(about, expected=f"{count} place{'s' if count > 1 else ''} of live code")
    if trace is None or not trace.checked:
        message = f"{name}: {trace.problem if trace else 'was not applied'}"
        yield _open(about, place, name, "not checked", message, "Mend the file first.")
    elif trace.problem:
        actual, message = f"{len(trace.places)} of {count}", f"{name} is not implemented: {trace.problem}."
        advice = (
            "Write the code that the pattern describes where it runs, or bind the criterion to the code that does it."
        )
        yield _absent(about, trace.places[0] if trace.places else place, name, actual, message, advice)
    else:
        about = partial(about, outcome=Outcome.PASSED, actual="found")
        for number, found in enumerate(trace.places[:NAMED], 1):
            subject, message = name if number == 1 else f"{name} #{number}", f"{name} fits live code in {found}."
            yield about(location=found, subject=subject, message=message)
        if rest := trace.places[NAMED:]:
            message = f"{name} fits {len(rest)} more places of live code."
            yield about(location=rest[0], subject=f"{name} more", message=message)


def _watchful(
    about: About, task: Task, criterion: Criterion, binding: CodeBinding, tree: SourceTree
) -> Iterator[Finding]:
    """Say so of code that asks whether a test looks on, where nothing but tests shows what it does."""
    seen = next((one for one in tree.watchful if one.symbol == binding.symbol), None)
    if seen is None or criterion.measures or any(criterion.id in entry.criteria for entry in task.entry_points):
        return
    message = f"{binding.name} asks whether a test looks on ({seen.asks}): what it does without one was not seen."
    advice = "Let it do the same for everybody, or let an entry point show the criterion."
    yield _open(about, seen.location, f"{binding.name} in use", seen.asks, message, advice)
