"""The part of the business logic gate on code rules: is each that the task asks for kept by the implementation?"""

from collections import Counter
from collections.abc import Iterator

from gates.check import Check, EvidenceSet
from gates.evidence.source_tree import AppliedRule, CodeRules, RuleSite, RuleTrace, SourceTree
from gates.model import Basis, Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Task
from gates.words import counted

BLOCKING = {Severity.CRITICAL, Severity.HIGH}
SHOWN = 8
COLUMNS = ("Broken", "Not decided", "Kept", "Rule", "Severity", "Asked for by", "Problem it finds")

RULES = (
    RuleText(
        id="BL005",
        title="Code rules are kept",
        meaning="Each code rule that the task names is applied to the implementation. What it finds is a "
        "hint: it costs score. A rule bound to a criterion under `code` blocks.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan each entry of the task's rules."""
    for name in task.rules:
        yield Planned(id=f"rule:{name}", title=f"The code rules {name!r} are kept", level=Level.ADVISORY)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each entry by the places that its rules found."""
    seen = evidence.get(CodeRules)
    for name in task.rules:
        if seen is None:
            yield _unknown(task, name, f"The code rules were not applied: {evidence.why_missing(CodeRules)}")
            continue
        yield from _entry(task, name, seen)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each rule with what it found and who asks for it: the task as a whole, or criteria that are bound to it."""
    asking = _asking(task)
    if not task.rules and not asking:
        return
    seen, tree = evidence.get(CodeRules), evidence.get(SourceTree)
    why = [evidence.why_missing(CodeRules)] if task.rules and seen is None else []
    why += [evidence.why_missing(SourceTree)] if asking and tree is None else []
    traces: dict[str, RuleTrace] = {trace.rule: trace for trace in tree.rules} if tree else {}
    traces |= {rule.rule: rule for rule in seen.applied} if seen else {}
    named = {rule.rule for rule in seen.applied} if seen else set()
    files = seen.files if seen else tree.files if tree else 0
    said = [*([f"Applied to {counted(files, 'file')}."] if traces else []), *(f"Not applied: {each}." for each in why)]
    rows = tuple(
        _row(traces[name], [*(["the task"] if name in named else []), *asking.get(name, ())]) for name in sorted(traces)
    )
    yield Section(title="Code Rules", text=" ".join(said), columns=COLUMNS if traces else (), rows=rows)


def _row(trace: RuleTrace, asking: list[str]) -> tuple[str, ...]:
    severity, says = trace.severity.value if trace.severity else "-", trace.problem_text or trace.problem or "-"
    return (*map(str, _counts(trace)), trace.rule, severity, ", ".join(asking), says)


def _asking(task: Task) -> dict[str, list[str]]:
    """Return the criteria that are bound to each rule."""
    found: dict[str, list[str]] = {}
    for criterion in task.criteria:
        for name in dict.fromkeys(binding.rule for binding in criterion.code if binding.rule):
            found.setdefault(name, []).append(criterion.id)
    return found


def _counts(rule: RuleTrace) -> tuple[int, int, int]:
    found = Counter("kept" if site.ok else "open" if site.undecided else "broken" for site in rule.sites)
    return found["broken"], found["open"], found["kept"]


def _entry(task: Task, name: str, seen: CodeRules) -> Iterator[Finding]:
    problem = dict(seen.unknown).get(name)
    if problem is not None:
        yield _unknown(task, name, problem)
        return
    applied = [rule for rule in seen.applied if name in rule.asked]
    for rule in applied:
        if rule.problem:
            yield _unknown(task, name, f"{rule.rule} was not applied: {rule.problem}", rule=rule)
        for site in rule.sites:
            if not site.ok:
                yield _open(task, name, rule, site) if site.undecided else _broken(name, rule, site)
    for text in seen.unparsed:
        yield _unknown(task, name, f"Not checked: {text}", subject=text)
    if not any(rule.problem or any(not s.ok for s in rule.sites) for rule in applied) and not seen.unparsed:
        kept = sum(len(rule.sites) for rule in applied)
        message = f"{len(applied)} code rules of {name!r} were applied to {seen.files} files and none is broken; "
        message += f"{kept} places were seen to keep one."
        said = {"subject": name, "location": _place(task), "expected": "kept", "actual": "kept"}
        yield Finding(rule="BL005", check=f"rule:{name}", outcome=Outcome.PASSED, message=message, **said)


def _broken(name: str, rule: AppliedRule, site: RuleSite) -> Finding:
    trace = _trace(site)
    own = "" if site.message.rstrip(".") == rule.problem_text.rstrip(".") else f" {site.message.rstrip('.')}."
    worth = rule.severity if rule.severity not in BLOCKING else Severity.MEDIUM  # reading alone never blocks
    return Finding(
        rule="BL005",
        check=f"rule:{name}",
        outcome=Outcome.FAILED,
        severity=worth,
        level=Level.ADVISORY,
        location=site.location,
        subject=f"{rule.rule} {site.message}",
        expected=f"{rule.rule} is kept",
        actual=trace or "broken",
        message=f"{rule.rule}: {rule.problem_text}{own}",
        impact=rule.impact,
        remediation=rule.fix,
        command=f"gates explain {rule.rule}",
    )


def _trace(site: RuleSite) -> str:
    more = len(site.trace) - SHOWN
    shown = site.trace if more <= 0 else (*site.trace[: SHOWN // 2], f"... {more} more ...", *site.trace[-SHOWN // 2 :])
    return " -> ".join(shown)


def _open(task: Task, name: str, rule: AppliedRule, site: RuleSite) -> Finding:
    found = _unknown(task, name, f"{rule.rule} is not decided: {site.message}", rule=rule)
    fix = "Split the function, so that its paths can be followed."
    own = {"location": site.location, "subject": f"{rule.rule} {site.message}", "remediation": fix}
    return found.model_copy(update=own)


def _unknown(task: Task, name: str, message: str, *, rule: AppliedRule | None = None, subject: str = "") -> Finding:
    """Say that something was not checked; a rule that the task names and nobody has leaves the verdict inconclusive."""
    return Finding(
        rule="BL005",
        check=f"rule:{name}",
        outcome=Outcome.UNKNOWN,
        level=Level.ADVISORY if rule else Level.MUST,
        location=_place(task),
        subject=subject or (rule.rule if rule else name),
        actual="not checked",
        message=message,
        remediation="Mend what is named.",
    )


def _place(task: Task) -> Location:
    return Location(path=task.path, line=task.line)


CHECK = Check(
    name="code_rules",
    gate="business-logic",
    order=50,
    rules=RULES,
    uses=(),
    plan=plan,
    judge=judge,
    page=describe,
    basis=Basis.READ,
)
