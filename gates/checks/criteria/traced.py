"""The code that a criterion is bound to: each symbol, pattern and rule must lead to live code."""

from collections.abc import Iterator, Sequence

from gates.check import About, EvidenceSet, about_criterion
from gates.code.symbols import SymbolTrace
from gates.evidence.recorded_step import Seen, seen_of
from gates.evidence.source_tree import PatternTrace, RuleTrace, SourceTree
from gates.model import Finding, Outcome, Severity
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.report import Section
from gates.scan.rule import Site
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task

NAMED = 50
NONE = "The criterion has no implementation."


def judge_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Iterator[Finding]:
    """Trace a criterion to code: the symbol must exist, do something, and use what it is bound to use."""
    about = about_criterion(criterion, "BL001", f"code:{criterion.id}", location=task.place(criterion))
    tree, emptied = evidence.get(SourceTree), evidence.get(EmptiedCode)
    tried = emptied.symbols if emptied else ()
    promised = {(one.criterion, one.symbol): one for one in tried if one.promise}
    if not criterion.code:
        message = f"{criterion.id} names no code, so nothing shows where it is implemented."
        yield about.unknown(
            message, f"Name the symbols that implement {criterion.id} under 'code'.", actual="no binding"
        )
    for binding in criterion.code:
        own = about.but(location=task.place(binding), subject=binding.name)
        if tree is None:
            message = f"{binding.name} was not traced: {evidence.why_missing(SourceTree)}"
            fix = "Fix 'implementation' of the task, or what keeps its files from being read."
            yield own.unknown(message, fix, actual="not looked at")
            continue
        if binding.rule:
            yield from _by_rule(own, binding.name, tree, tree.rule(binding.rule), seen_of(binding.rule, evidence))
        elif binding.pattern:
            yield from _by_pattern(own, binding, tree.pattern(binding))
        else:
            yield from _by_symbol(own, binding, tree.symbol(binding), promised.get((criterion.id, binding.name)))
        yield from _watchful(own, task, criterion, binding, tree)


def _absent(about: About, message: str, fix: str, **own: object) -> Finding:
    """Say that code is not there; what rests on not finding something is high at most."""
    found = about.failed(message, fix, impact=NONE, **own)
    critical = found.severity is Severity.CRITICAL
    return found.model_copy(update={"severity": Severity.HIGH}) if critical else found


def _by_symbol(
    about: About, binding: CodeBinding, trace: SymbolTrace | None, kept: EmptiedSymbol | None
) -> Iterator[Finding]:
    name = binding.name
    about = about.but(expected=f"{name} exists" + (f" and uses {', '.join(binding.uses)}" if binding.uses else ""))
    kept = None if binding.uses else kept
    if trace is None or not trace.checked:
        message = f"{name}: {trace.problem if trace else 'was not traced'}"
        yield about.unknown(message, "Fix the file first.", actual="not checked")
    elif trace.location is not None:
        yield from _uses(about.but(location=trace.location), name, trace)
    elif kept is not None and kept.noticed:
        message = f"{name} does nothing, and {kept.by or 'a test'} asserts that it does so."
        yield about.passed(message, location=trace.promise, actual="found")
    elif kept is not None and (kept.unnoticed or kept.exchanged):
        message = f"{name} does nothing, and no test of {kept.criterion} notices what it is: {trace.problem}."
        fix = f"Assert on what {name} is there for, or bind the criterion to the code that does it."
        yield about.unknown(message, fix, location=trace.promise, actual="nothing noticed")
    else:
        fix = f"Implement {name}, or bind the criterion to the code that does."
        message = f"{name} is not implemented: {trace.problem}"
        yield about.failed(message, fix, actual="not implemented", impact=NONE)


def _uses(about: About, name: str, trace: SymbolTrace) -> Iterator[Finding]:
    """Judge what a symbol must use: a name that is not written may still be looked up, where code does such."""
    unused = [use for use in trace.uses if not use.lines]
    for missing in unused:
        own, fix = about.but(subject=f"{name} uses {missing.name}"), f"Use {missing.name} in {name}."
        if missing.looked_up:
            message = f"{name} does not name {missing.name}, and looks names up: whether it uses it is unknown."
            yield own.unknown(message, fix, actual="names are looked up")
        else:
            message = f"{name} does not use {missing.name}."
            yield _absent(own, message, fix, actual=f"no live use of {missing.name}")
    if not unused:
        used = "; ".join(f"{use.name} in line {', '.join(map(str, use.lines))}" for use in trace.uses)
        yield about.passed(f"{name} is live code{f' and uses {used}' if used else ''}.", actual="found")


def _by_rule(
    about: About, name: str, tree: SourceTree, trace: RuleTrace | None, steps: Sequence[Seen]
) -> Iterator[Finding]:
    yield from _recorded_as_broken(about, name, steps)
    if trace is None or trace.problem or tree.unparsed:
        why = trace.problem if trace and trace.problem else "; ".join(tree.unparsed) or "it was not applied"
        yield about.unknown(f"{name} could not be checked: {why}", "Fix what is named.", actual="not checked")
        return
    for site in trace.sites:
        own = about.but(location=site.location, subject=f"{name} {site.message}", expected=name)
        yield _at_site(own, name, trace, site, steps)
    if not trace.sites:
        message = f"{name} finds no code that it speaks of: nothing shows that the criterion is implemented."
        fix = "Implement what the rule describes, or bind the criterion to the code that does."
        yield about.unknown(message, fix, actual="found nothing", expected=name)


def _at_site(about: About, name: str, trace: RuleTrace, site: Site, steps: Sequence[Seen]) -> Finding:
    """Judge a place that a rule speaks of: a recording of its lines knows better than reading."""
    kept = next((step.name for step in steps if step.events >= {*site.trace}), "") if site.trace else ""
    message, path = f"{name}: {site.message}", " -> ".join(site.trace)
    if kept and not site.ok and not any(step.broken for step in steps):
        seen = f"Read as broken ({site.message}). {kept} ran these lines, and its recording keeps {name}."
        return about.passed(seen, actual="recorded in the right order")
    if site.ok:
        return about.passed(message, actual="kept")
    if site.undecided:
        return about.unknown(
            message, "Split the function, so that its paths can be followed.", actual=path or "not decided"
        )
    command = f"gates explain {trace.rule}"
    fix = trace.fix or f"See `{command}`."
    return about.failed(message, fix, actual=path or "broken", impact=trace.impact, command=command)


def _recorded_as_broken(about: About, name: str, steps: Sequence[Seen]) -> Iterator[Finding]:
    """Tell of what a recorded step did against a rule, whatever reading says of its lines."""
    for place, (step, breach) in {str(b.place.location): (s, b) for s in steps for b in s.broken}.items():
        order, path = breach.rule, " -> ".join(f"{event.word} {event.location}" for event in breach.trace[:NAMED])
        own = about.but(location=breach.place.location, subject=f"{name} recorded {place}", expected=name)
        message = f"{name}, recorded in {step.name}: {order.problem}"
        yield own.failed(message, order.fix, actual=path, impact=order.impact)


def _by_pattern(about: About, binding: CodeBinding, trace: PatternTrace | None) -> Iterator[Finding]:
    name, count = binding.name, binding.at_least
    about = about.but(expected=f"{count} place{'s' if count > 1 else ''} of live code")
    if trace is None or not trace.checked:
        message = f"{name}: {trace.problem if trace else 'was not applied'}"
        yield about.unknown(message, "Fix the file first.", actual="not checked")
        return
    if trace.problem:
        at = about.but(location=trace.places[0]) if trace.places else about
        fix = "Write the code that the pattern describes where it runs, or bind the criterion to the code that does it."
        actual = f"{len(trace.places)} of {count}"
        yield _absent(at, f"{name} is not implemented: {trace.problem}.", fix, actual=actual)
        return
    for number, found in enumerate(trace.places[:NAMED], 1):
        own = about.but(location=found, subject=name if number == 1 else f"{name} #{number}")
        yield own.passed(f"{name} fits live code in {found}.", actual="found")
    if rest := trace.places[NAMED:]:
        message = f"{name} fits {len(rest)} more places of live code."
        yield about.passed(message, location=rest[0], subject=f"{name} more", actual="found")


def _watchful(
    about: About, task: Task, criterion: Criterion, binding: CodeBinding, tree: SourceTree
) -> Iterator[Finding]:
    """Say so of code that asks whether a test looks on, where nothing but tests shows what it does."""
    seen = next((one for one in tree.watchful if one.symbol == binding.symbol), None)
    if seen is None or criterion.measures or any(criterion.id in entry.criteria for entry in task.entry_points):
        return
    message = f"{binding.name} asks whether a test looks on ({seen.asks}): what it does without one was not seen."
    fix = "Let it do the same for everybody, or let an entry point show the criterion."
    yield about.unknown(message, fix, location=seen.location, subject=f"{binding.name} in use", actual=seen.asks)


KEPT = {Outcome.PASSED: "yes", Outcome.FAILED: "no"}


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was traced: the code of each criterion, what it must be and use, and what it is."""
    tree = evidence.get(SourceTree)
    if tree is None:
        yield Section(title="Files Read", text=f"None: {evidence.why_missing(SourceTree)}.")
        return
    found = [finding for criterion in task.criteria for finding in judge_code(task, criterion, evidence)]
    rows = [
        (KEPT.get(f.outcome, "not checked"), f.subject or f.criterion or "", f.expected, f"{f.location}: {f.message}")
        for f in found
    ]
    yield Section(
        title="Expected and Actual Architecture",
        text="What the code that criteria are bound to must be and use, and what it does.",
        columns=("Kept", "Code", "Expected", "Actual"),
        rows=tuple(dict.fromkeys(rows)),
    )
    yield Section(title="Metrics of this Verification", facts=tuple(_metrics(task, tree)))


def _metrics(task: Task, tree: SourceTree) -> Iterator[tuple[str, str]]:
    yield "Files analysed", str(tree.files)
    yield "Files not parsed", "; ".join(tree.unparsed) or "none"
    yield "Requirements traced", str(len(task.criteria))
    yield "Symbols resolved", f"{sum(t.location is not None for t in tree.symbols)} of {len(tree.symbols)}"
    yield "Code rules applied", str(len(tree.rules))
    if tree.patterns:
        yield "Patterns applied", str(len(tree.patterns))
