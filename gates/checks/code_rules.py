"""Code rules that a task asks for: is each kept by the implementation?"""

from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet
from gates.evidence.source_tree import RuleTrace, SourceTree
from gates.model import GRAVE, Basis, Finding, Level, Planned, Severity
from gates.scan.rule import Site
from gates.task.task import Task


def plan(task: Task) -> Iterator[Planned]:
    """Plan each entry of the task's rules."""
    for name in task.rules:
        yield Planned(id=f"rule:{name}", title=f"The code rules {name!r} are kept", level=Level.ADVISORY)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each entry by the places that its rules found."""
    seen = evidence.get(SourceTree)
    for name in task.rules:
        about = About(rule="BL005", check=f"rule:{name}", location=task.place(task), subject=name)
        if seen is None:
            yield _unknown(about, f"The code rules were not applied: {evidence.why_missing(SourceTree)}")
        else:
            yield from _entry(about, name, seen)


def _entry(about: About, name: str, seen: SourceTree) -> Iterator[Finding]:
    applied, advised = [rule for rule in seen.rules if name in rule.asked], about.but(level=Level.ADVISORY)
    bad = [(rule, site) for rule in applied for site in rule.sites if not site.ok]
    untried = [rule for rule in applied if rule.problem]
    for rule in untried:
        own = advised if rule.severity else about  # of a rule that nobody has, the verdict must not be a pass
        yield _unknown(own, f"{rule.rule} was not applied: {rule.problem}", subject=rule.rule)
    for rule, site in bad:
        own = advised.but(location=site.location, subject=f"{rule.rule} {site.message}")
        if site.undecided:
            fix = "Split the function, so that its paths can be followed."
            yield own.unknown(f"{rule.rule} is not decided: {site.message}", fix, actual="not checked")
        else:
            yield _broken(own, rule, site)
    yield from (_unknown(about, f"Not checked: {text}", subject=text) for text in seen.unparsed)
    if not bad and not untried and not seen.unparsed:
        message = f"{len(applied)} code rules of {name!r} were applied to {seen.files} files and none is broken; "
        message += f"{sum(len(rule.sites) for rule in applied)} places were seen to keep one."
        yield about.passed(message, expected="kept", actual="kept")


def _broken(about: About, rule: RuleTrace, site: Site) -> Finding:
    own = "" if site.message.rstrip(".") == rule.problem_text.rstrip(".") else f" {site.message.rstrip('.')}."
    worth = rule.severity if rule.severity not in GRAVE else Severity.MEDIUM  # reading alone never blocks
    facts = {"severity": worth, "expected": f"{rule.rule} is kept", "actual": " -> ".join(site.trace) or "broken"}
    message, command = f"{rule.rule}: {rule.problem_text}{own}", f"gates explain {rule.rule}"
    return about.failed(message, rule.fix, impact=rule.impact, command=command, **facts)


def _unknown(about: About, message: str, **own: object) -> Finding:
    """Say that something was not checked; a rule that the task names and nobody has leaves the verdict inconclusive."""
    return about.unknown(message, "Fix what is named.", actual="not checked", **own)


CHECK = Check("code_rules", "business-logic", 50, (), plan, judge, basis=Basis.READ)
