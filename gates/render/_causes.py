"""Causes: the findings that one thing explains are told as one item; and what only some reports have at their head."""

from collections.abc import Iterable
from dataclasses import dataclass

from gates.model import SEVERITIES, Finding, Outcome
from gates.report import Report, ranked
from gates.words import counted, first_of, in_order

THE_RUN = "EX001"  # a test run that cannot be believed explains what its tests left open
PLACES = 5


@dataclass(frozen=True)
class Cause:
    """What keeps something from holding: the findings that it explains, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """Return the finding that speaks for all of them."""
        return self.findings[0]

    @property
    def criteria(self) -> tuple[str, ...]:
        """Return the criteria that it concerns, in order."""
        return tuple(in_order({f.criterion for f in self.findings if f.criterion}))

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rules that found it, in order."""
        return tuple(sorted({f.rule for f in self.findings}))

    @property
    def where(self) -> str:
        """Return the first places that it was found at, those of a file together, and how many more there are."""
        places = list(dict.fromkeys(str(f.location) for f in self.findings if f.location))
        files: dict[str, list[str]] = {}
        for path, _, lines in (place.partition(":") for place in places[:PLACES]):
            files.setdefault(path, []).extend(filter(None, [lines]))
        shown = (f"{path}:{','.join(lines)}" if lines else path for path, lines in files.items())
        return ", ".join(shown) + (f" and {len(places) - PLACES} more" if len(places) > PLACES else "")

    @property
    def others(self) -> tuple[str, ...]:
        """Return what the other findings say, where that is something else than what the first says."""
        said = list(dict.fromkeys(f.message for f in self.findings))
        return tuple(said[1:])

    @property
    def title(self) -> str:
        """Return it in one line, with the number of findings that say something else of the same."""
        more = f" (and {counted(len(self.others), 'more like it', 'more like it')})" if self.others else ""
        return f"{self.first.message}{more}"

    @property
    def command(self) -> str:
        """Return the command that settles or reproduces it, if a finding has one."""
        return next((f.command for f in self.findings if f.command), "")


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Group findings by what explains them: a place that failed, or one thing to do; the worst first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in ranked(findings):
        groups.setdefault(_key(finding), []).append(finding)
    found = [Cause(tuple(group)) for group in groups.values()]
    rank = {cause: index for index, cause in enumerate(found)}
    return sorted(found, key=lambda c: (not c.first.blocks, SEVERITIES.index(c.first.severity), rank[c]))


def deciding(report: Report) -> list[Cause]:
    """Return the causes that keep this from being a pass, what failed first; what only follows from them is left out.

    Where something stopped a gate that ran, what a gate left open that did not run is none of them.
    """
    stopping = [(gate.ran, f) for gate in report.gates for f in gate.findings if f.blocks or f.leaves_open]
    stopping += [(True, f) for f in report.findings if f.blocks or f.leaves_open]
    seen = [f for ran, f in stopping if ran] or [f for _, f in stopping]
    found = causes([f for f in seen if not f.follows] or seen)
    return sorted(found, key=lambda c: (not c.first.blocks, THE_RUN not in c.rules))


def weak(report: Report) -> list[Cause]:
    """Return the causes of what failed and stops nothing: the worst of each rule, then the others."""
    found = causes(
        f for f in report.every_finding if f.outcome is Outcome.FAILED and not (f.blocks or f.waived or f.follows)
    )
    return sorted(found, key=lambda cause: cause is not next(each for each in found if each.rules == cause.rules))


def _key(finding: Finding) -> tuple[object, ...]:
    """Return what findings of one cause have in common.

    What failed at a line of code is one cause, whoever noticed it, as are the parameter sets of one test. All else is
    one cause where it was seen in one file of evidence and one thing is to be done about it.
    """
    place = finding.location
    outcome, failed = finding.outcome, finding.outcome is Outcome.FAILED
    code = place is not None and place.line is not None and not place.path.endswith((".yaml", ".yml"))
    if failed and code:
        return outcome, str(place)
    if finding.cause:
        return outcome, finding.cause
    if finding.remediation:
        return outcome, finding.remediation, finding.evidence or finding.rule
    return outcome, finding.rule, str(place), finding.message


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what is said again of a criterion that it stands for, and of nothing else."""
    kept = list(findings)
    said = {(f.rule, f.outcome, str(f.location), f.message) for f in kept if f.criterion}
    return [f for f in kept if f.criterion or (f.rule, f.outcome, str(f.location), f.message) not in said]


def folded(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return what findings say, those of one rule in one line: the first of them, and how many more there are."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in ranked(findings):
        by_rule.setdefault(finding.rule, []).append(finding)
    rows = []
    for rule, found in by_rule.items():
        names = in_order({f.criterion for f in found if f.criterion})
        more = len({f.message for f in found}) - 1
        said = found[0].message + (f" (and {more} more like it)" if more else "")
        rows.append((" ".join([rule, ", ".join(names)]).strip(), said))
    return rows


STRAYS = 5
UNSEEN = "Whether the change lowers what judges it was not seen: "


def waivers(report: Report) -> list[str]:
    """Return how each waiver stands on the day of the run, what does not work any more or soon will not first."""
    return list(dict.fromkeys(f.message for f in ranked(report.every_finding) if f.rule == "BL012"))


def goalposts(report: Report) -> list[Finding]:
    """Return what was made lower of the bar that the change is judged by, what stops it first."""
    moved = [f for f in ranked(report.every_finding) if f.rule == "BL011" and f.outcome is Outcome.FAILED]
    return sorted(moved, key=lambda f: not f.blocks)


def uncompared(report: Report) -> list[str]:
    """Return why the bar was not compared with an earlier one, where the gate that does so ran."""
    found = [f for gate in report.gates if gate.ran for f in gate.findings if f.rule == "BL011" and not f.subject]
    return [f.message.removeprefix(UNSEEN) for f in found if f.outcome is Outcome.UNKNOWN]


def strays(report: Report) -> str:
    """Return the files that ran and that the commit does not have."""
    ran = report.revision.strays
    return f"{first_of(ran, STRAYS)} ran and {'is' if len(ran) == 1 else 'are'} not in it" if ran else ""


OFFERED = (causes, deciding, weak, waivers, goalposts, uncompared, strays)  # to templates
