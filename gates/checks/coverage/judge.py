"""The part of the execution gate on what the tests run: all public code, and the code of their own criterion?"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from gates.check import Check, EvidenceSet
from gates.evidence.lines.executed_lines import ExecutedLines, FunctionLines, named_tests
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import NAMED, stand_for, tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Basis, Finding, Level, Outcome, Planned, Row, RuleText, Severity
from gates.report import Section
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task, measured_by
from gates.words import first_of

RAW = "ExecutedLines.json"
SHOWN = 3
WRAPPED = "a decorator may answer in its place"

RULES = (
    RuleText(
        id="EX005",
        title="Public code is executed by a test",
        meaning="A public function of the implementation that no test executed is listed. Where tests "
        "started other processes, it is unknown. It costs score and never blocks.",
    ),
    RuleText(
        id="EX006",
        title="The tests of a criterion execute its code",
        meaning="A line of each symbol that the criterion names must run in its own tests. Where "
        "something else may have run it, this is not judged. What nobody could see is unknown.",
    ),
)


class TracedLines(NamedTuple):
    """A function that a criterion is traced to, and the contexts that its traced lines ran in."""

    function: FunctionLines
    contexts: frozenset[str]


def plan(task: Task) -> Iterator[Planned]:
    """Plan the public code as a whole, and each criterion that is traced to symbols."""
    yield Planned(id="executed", title="Every public function was executed by a test", level=Level.ADVISORY)
    for criterion in _traced(task):
        title = f"The tests of {criterion.id} execute its code"
        yield Planned(id=f"code:reached:{criterion.id}", title=title, level=Level.ADVISORY, criterion=criterion.id)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge what was measured; what was not is unknown, and asks nothing of anybody."""
    seen = evidence.get(ExecutedLines)
    if seen is None:
        why = evidence.why_missing(ExecutedLines)
        for check in plan(task):
            yield Finding(
                rule="EX005" if check.id == "executed" else "EX006", check=check.id, outcome=Outcome.UNKNOWN,
                level=Level.ADVISORY, message=f"Not known which lines the tests executed: {why}",
                actual="not measured", remediation="Install `coverage` for the project, and trace nothing yourself.",
            )  # fmt: skip
        return
    yield from [_not_asked(task)] if task.only else _unexecuted(seen, evidence.get(PytestRun))
    for criterion in _traced(task):
        yield _reached(task, criterion, seen, evidence)


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the share of public functions that ran, by file."""
    seen = evidence.get(ExecutedLines)
    if seen is None:
        yield Section(title="Executed Code", text=f"Not measured: {evidence.why_missing(ExecutedLines)}.")
        return
    doubt = seen.doubt()
    files: dict[str, list[FunctionLines]] = defaultdict(list)
    for function in seen.functions:
        if function.counts:
            files[function.location.path].append(function)
    yield Section(
        title="Executed Code",
        text=f"Public functions of which a line ran in the test run. Not all was seen: {doubt}."
        if doubt
        else "Public functions of which a line ran in the test run.",
        columns=("File", "Functions", "Executed", "Share", "Not executed"),
        rows=tuple(_file_row(path, functions) for path, functions in sorted(files.items())),
    )


def _traced(task: Task) -> list[Criterion]:
    return [c for c in task.criteria if any(map(_has_lines, c.code))]


def _not_asked(task: Task) -> Finding:
    """Say that the tests of one criterion need not execute all public code."""
    return Finding(
        rule="EX005", check="executed", outcome=Outcome.NOT_APPLICABLE, level=Level.ADVISORY,
        message=f"Only what verifies {task.only} was run (--only): it need not execute all public functions.",
        actual="not asked for",
    )  # fmt: skip


def _unexecuted(seen: ExecutedLines, run: PytestRun | None) -> Iterator[Finding]:
    counting = [function for function in seen.functions if function.counts]
    absent = [function for function in counting if not function.lines]
    actual = f"{len(counting) - len(absent)} of {len(counting)} executed"
    facts = {"rule": "EX005", "check": "executed", "level": Level.ADVISORY, "evidence": RAW}
    unbelieved = "" if run and run.complete else "the run cannot be believed (EX001)"
    unseen = unbelieved or seen.doubt()
    named = 0 if unbelieved and len(absent) > SHOWN else NAMED  # one cause is told once
    for function in absent[:named]:
        doubt = unseen or (WRAPPED if function.wrapped else "")
        outcome = Outcome.UNKNOWN if doubt else Outcome.FAILED
        caveat = f" (not all was seen: {doubt})" if doubt else ""
        yield Finding.model_validate({
            **facts, "outcome": outcome, "severity": Severity.MEDIUM, "location": function.location,
            "subject": _label(function), "expected": "executed by a test", "actual": "not executed",
            "message": f"No test was seen to execute `{function.name}`{caveat}.",
            "impact": "No test would notice that it crashes.", "remediation": "Add a test that calls it.",
        })  # fmt: skip
    if len(absent) > named:
        yield Finding.model_validate({
            **facts, "outcome": Outcome.UNKNOWN if unseen else Outcome.FAILED,
            "severity": Severity.MEDIUM, "subject": "more", "actual": actual,
            "message": f"{len(absent) - named}{' more' * bool(named)} public functions were not seen executed; "
            f"all are in {RAW}.",
            "remediation": "Mend the run first." if unbelieved else "Add tests that call them.",
        })  # fmt: skip
    if absent:
        return
    message = f"All {len(counting)} public functions were executed by the test run."
    unread = f"; not read: {', '.join(seen.unparsed[:SHOWN])}" if seen.unparsed else ""
    good = Outcome.UNKNOWN if unread else Outcome.PASSED if counting else Outcome.NOT_APPLICABLE
    yield Finding.model_validate({
        **facts, "outcome": good, "severity": Severity.INFO, "actual": actual,
        "message": (message if counting else "The implementation has no public function") + unread,
    })  # fmt: skip


def _reached(task: Task, criterion: Criterion, seen: ExecutedLines, evidence: EvidenceSet) -> Finding:
    """Say whether tests of a criterion ran its code; only what is certain leaves the criterion open."""
    facts = {"rule": "EX006", "check": f"code:reached:{criterion.id}", "evidence": RAW}
    aside = {**facts, "level": Level.ADVISORY}
    own = {test.id for test in tests_of(task, criterion, evidence.get(PytestRun)) if test.passed}
    code, problem = _code_of(criterion, seen, evidence)
    ran = {binding: own & set(_tests_in(lines)) for binding, lines in code.items()}
    touching = set().union(*ran.values())
    missed = [binding for binding in code if not ran[binding] and (binding.symbol or not touching)]
    others = task.shown_by(criterion) or measured_by(task, criterion)  # these may run what tests do not
    if touching and (others or not missed):
        return Finding.model_validate({
            **aside, "outcome": Outcome.PASSED, "actual": f"{len(touching)} of {len(own)} tests",
            "message": f"{len(touching)} of the {len(own)} passed tests of {criterion.id} executed its code.",
        })  # fmt: skip
    why_not = {binding: _otherwise(task, criterion, code[binding], seen, own) for binding in missed}
    surely = next((binding for binding in missed if not why_not[binding]), None)
    if surely is not None and own:
        return Finding.model_validate({**facts, **_unexecuted_code(criterion, surely, code[surely], seen, own)})
    why = problem or ("" if own else "no test that verifies it passed") or next(iter(why_not.values()))
    return Finding.model_validate({
        **aside, "outcome": Outcome.NOT_APPLICABLE, "actual": "not judged" if own else "no test passed",
        "message": f"Whether the tests of {criterion.id} execute its code was not judged: {why}.",
    })  # fmt: skip


def _unexecuted_code(
    criterion: Criterion, binding: CodeBinding, code: list[TracedLines], seen: ExecutedLines, own: set[str]
) -> dict[str, object]:
    """Say of code that no test of its criterion was seen to run that this leaves the criterion open."""
    unseen = f"was seen to execute {binding.name}: they import {seen.foreign[0]}" if seen.foreign else ""
    said = unseen or f"executed a line of {binding.name}"
    return {
        "outcome": Outcome.UNKNOWN, "level": criterion.level, "criterion": criterion.id, "subject": binding.name,
        "location": code[0].function.location, "expected": "executed by its tests",
        "actual": "not seen" if unseen else "not executed",
        "message": f"{stand_for(len(own), criterion)} and passed, but none {said}.",
        "impact": "These tests would pass whatever that code does.",
        "remediation": "Bind tests that run it, or trace the criterion to the code that its tests run.",
    }  # fmt: skip


def _otherwise(task: Task, criterion: Criterion, code: list[TracedLines], seen: ExecutedLines, own: set[str]) -> str:
    """Return how tests may have run code unseen, or nothing; whether they notice its effect is asked without it."""
    contexts = {name for lines in code for name in lines.contexts}
    if any(criterion.id in entry.criteria for entry in task.entry_points):
        return "an entry point runs it"
    if any(lines.function.wrapped for lines in code):
        return f"{WRAPPED} (BL016 asks without it)"
    if any(name.startswith("fixture:") for name in contexts):
        return "its code ran in a fixture that tests share"
    if "" in contexts:
        return "its code ran at import, or between tests (BL016 asks without it)"
    return "" if seen.foreign else seen.doubt(own)


def _has_lines(binding: CodeBinding) -> bool:
    return bool(binding.symbol or binding.pattern)


def _tests_in(code: list[TracedLines]) -> list[str]:
    return named_tests({name for lines in code for name in lines.contexts})


def _code_of(
    criterion: Criterion, seen: ExecutedLines, evidence: EvidenceSet
) -> tuple[dict[CodeBinding, list[TracedLines]], str]:
    """Return the lines that each binding of a criterion comes to, or why there are none to look for."""
    tree = evidence.get(SourceTree)
    if tree is None:
        return {}, f"its code was not resolved ({evidence.why_missing(SourceTree)})"
    bindings = [binding for binding in criterion.code if _has_lines(binding)]
    found = {binding: lines for binding in bindings if (lines := _lines_of(binding, tree, seen))}
    missing = [binding.name for binding in bindings if not tree.places(binding)]
    if found:
        return found, ""
    return {}, f"{missing[0]} was not found" if missing else f"{bindings[0].name} has no code of its own"


def _lines_of(binding: CodeBinding, tree: SourceTree, seen: ExecutedLines) -> list[TracedLines]:
    """Return the lines of a symbol's functions, or of what fits a pattern; none where there is no function."""
    if binding.symbol:
        functions = [function for place in tree.ways(binding) for function in seen.within(place)]
        return [TracedLines(each, seen.contexts_of(each)) for each in functions]
    around = [(place, seen.function_at(place)) for place in tree.places(binding)]
    return [TracedLines(function, seen.contexts_in(function, place)) for place, function in around if function]


def _label(function: FunctionLines) -> str:
    return f"{function.location.path}:{function.name}"


def _file_row(path: str, functions: list[FunctionLines]) -> tuple[str, ...]:
    absent = [function for function in functions if not function.lines]
    names = [f"{function.name} (line {function.location.line})" for function in absent]
    ran = len(functions) - len(absent)
    return path, str(len(functions)), str(ran), f"{ran / len(functions):.0%}", first_of(names, SHOWN) or "-"


CHECK = Check(
    name="coverage",
    gate="execution",
    order=30,
    rules=RULES,
    uses=(SourceTree, ExecutedLines),
    plan=plan,
    judge=judge,
    page=describe,
    basis=Basis.READ,
    row=Row.CODE,
)
