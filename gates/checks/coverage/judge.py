"""The part of the execution gate on what the tests run: all public code, and the code of their own criterion?"""

from collections import defaultdict
from collections.abc import Iterator

from gates.check import Check, EvidenceSet
from gates.checks.coverage.traced_lines import TracedLines, code_of, has_lines, lines_of, may_be_called
from gates.evidence.lines.executed_lines import TEST, ExecutedLines, FunctionLines, named_tests
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.judging.named_tests import NAMED, stand_for
from gates.model import Basis, Finding, Level, Outcome, Planned, Row, RuleText, Severity
from gates.report import Section
from gates.task.calls import measured_by
from gates.task.task import Criterion, Task

RAW = "ExecutedLines.json"
SHOWN = 3
AT_IMPORT = "it ran at import, or between tests"
EARLY = "its module had been imported before lines were noted"

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
                severity=Severity.LOW, level=Level.ADVISORY, message=f"Not known which lines the tests executed: {why}",
                actual="not measured", remediation="Install `coverage` for the project, and trace nothing yourself.",
            )  # fmt: skip
        return
    yield from [_not_asked(task)] if task.only else _unexecuted(seen, evidence.get(PytestRun))
    for criterion in _traced(task):
        yield _reached(task, criterion, seen, evidence)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the share of public functions that ran, by file, and which tests ran the code of each criterion."""
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
        text=f"Public functions of which a line ran in the test run. Not all was seen: {doubt}." if doubt
        else "Public functions of which a line ran in the test run.",
        columns=("File", "Functions", "Executed", "Share", "Not executed"),
        rows=tuple(_file_row(path, functions) for path, functions in sorted(files.items())),
    )  # fmt: skip
    yield Section(
        title="Tests That Executed the Code of Each Criterion",
        columns=("Criterion", "Code", "Executed by", "Of its own tests"),
        rows=tuple(row for criterion in _traced(task) for row in _criterion_rows(task, criterion, seen, evidence)),
    )


def _traced(task: Task) -> list[Criterion]:
    return [c for c in task.criteria if any(map(has_lines, c.code))]


def _not_asked(task: Task) -> Finding:
    """Say that the tests of one criterion need not execute all public code."""
    return Finding(
        rule="EX005", check="executed", outcome=Outcome.NOT_APPLICABLE, severity=Severity.INFO, level=Level.ADVISORY,
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
        doubt = unseen or (EARLY if function.location.path in seen.early else "")
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
            **facts, "outcome": Outcome.UNKNOWN if unseen or seen.early else Outcome.FAILED,
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
    aside = {**facts, "level": Level.ADVISORY, "severity": Severity.INFO}
    code, problem = code_of(criterion, seen, evidence)
    functions = [lines.function for lines in code]
    bound = [test for test in tests_of(task, criterion, evidence.get(PytestRun)) if test.passed]
    own = {test.id for test in bound}
    contexts = {name for lines in code for name in lines.contexts}
    touching = own & set(named_tests(contexts))
    idle = _idle(task, criterion, seen, evidence, touching) if touching else None
    if idle is not None:
        return idle
    if touching:
        return Finding.model_validate({
            **aside, "outcome": Outcome.PASSED, "actual": f"{len(touching)} of {len(own)} tests",
            "message": f"{len(touching)} of the {len(own)} passed tests of {criterion.id} executed its code.",
        })  # fmt: skip
    why_not = problem or _excuse(task, criterion, functions, contexts, seen, own)
    if why_not:
        return Finding.model_validate({
            **aside, "outcome": Outcome.NOT_APPLICABLE, "actual": "not judged" if own else "no test passed",
            "message": f"Whether the tests of {criterion.id} execute its code was not judged: {why_not}.",
        })  # fmt: skip
    unseen = _unseen(functions, contexts, seen, own)
    if unseen == AT_IMPORT:
        return _asked_elsewhere(criterion, [binding.name for binding in criterion.code if has_lines(binding)])
    told = _not_told(criterion, code, own, unseen) if unseen else {
        "impact": "These tests would pass whatever that code does.",
        **_unproven(criterion, own, code),
    }  # fmt: skip
    return Finding.model_validate({**facts, **_open(criterion), **told})


def _open(criterion: Criterion) -> dict[str, object]:
    """Return what leaves a criterion open."""
    return {
        "outcome": Outcome.UNKNOWN, "level": criterion.level, "criterion": criterion.id,
        "severity": Severity.HIGH if criterion.level is Level.MUST else Severity.MEDIUM,
    }  # fmt: skip


def _idle(
    task: Task, criterion: Criterion, seen: ExecutedLines, evidence: EvidenceSet, standing: set[str]
) -> Finding | None:
    """Return what leaves a criterion open of which the tests ran one symbol and never another."""
    tree = evidence.get(SourceTree)
    imported: list[str] = []
    if task.shown_by(criterion) or measured_by(task, criterion):
        return None  # these may run the others
    for binding in criterion.code if tree is not None else ():
        code = lines_of(binding, tree, seen) if binding.symbol and tree is not None else []
        contexts = {name for lines in code for name in lines.contexts}
        functions = [lines.function for lines in code]
        if not code or standing & set(named_tests(contexts)) or may_be_called(code, standing):
            continue
        if _excuse(task, criterion, functions, contexts, seen, standing):
            continue
        unseen = _unseen(functions, contexts, seen, standing)
        if unseen == AT_IMPORT:
            imported.append(binding.name)
            continue
        told = _not_told(criterion, code, standing, unseen) if unseen else {
            "location": code[0].function.location, "expected": "each symbol executed by its tests",
            "actual": "not executed", "impact": f"They would pass whatever {binding.name} does.",
            "message": f"{stand_for(len(standing), criterion)} and passed, but none executed a line of {binding.name}.",
            "remediation": "Bind tests that run it, or leave it out of the criterion.",
        }  # fmt: skip
        check = f"code:reached:{criterion.id}"
        return Finding.model_validate(
            {"rule": "EX006", "check": check, "evidence": RAW, "subject": binding.name, **_open(criterion), **told}
        )
    return _asked_elsewhere(criterion, imported) if imported else None


def _asked_elsewhere(criterion: Criterion, names: list[str]) -> Finding:
    """Say of code that ran at import that its effects are asked for without it."""
    return Finding(
        rule="EX006", check=f"code:reached:{criterion.id}", evidence=RAW, level=Level.ADVISORY, severity=Severity.INFO,
        outcome=Outcome.NOT_APPLICABLE, actual=AT_IMPORT, subject=", ".join(names),
        message=f"{', '.join(names)} {AT_IMPORT.removeprefix('it ')}: whether the tests of {criterion.id} notice what "
        "it does there is asked without it (BL016).",
    )  # fmt: skip


def _not_told(criterion: Criterion, code: list[TracedLines], own: set[str], why: str) -> dict[str, object]:
    """Say that nobody saw whether the tests of a criterion ran its code."""
    names = ", ".join(sorted({lines.function.name for lines in code}))
    return {
        "location": code[0].function.location, "expected": "executed by its tests", "actual": "not seen",
        "message": f"{stand_for(len(own), criterion)} and passed, but none was seen to execute {names}: {why}.",
        "remediation": "Let the tests call it themselves, with lines noted from the start.",
    }  # fmt: skip


def _unproven(criterion: Criterion, own: set[str], code: list[TracedLines]) -> dict[str, object]:
    """Say that the tests of a criterion did not run its code, or that this cannot be told."""
    names = ", ".join(sorted({binding.name for binding in criterion.code if has_lines(binding)}))
    said = f"{stand_for(len(own), criterion)} and passed, but"
    if may_be_called(code, own):
        return {
            "location": code[0].function.location, "expected": "executed by its tests", "actual": "not known",
            "message": f"{said} whether they executed {names} cannot be told: it stands on the line of its definition, "
            "and its module was imported in the same test.",
            "remediation": "Write the body on lines of its own, or import the module at the head of the test file.",
        }  # fmt: skip
    return {
        "location": code[0].function.location, "expected": "executed by its tests", "actual": "not executed",
        "message": f"{said} none executed a line of {names}.",
        "remediation": "Bind tests that run the code, or trace the criterion to the code that its tests run.",
    }  # fmt: skip


def _excuse(
    task: Task, criterion: Criterion, functions: list[FunctionLines], contexts: set[str], seen: ExecutedLines,
    own: set[str],
) -> str:  # fmt: skip
    """Return what else could have run the code of a criterion for its tests, or nothing."""
    if not own:
        return "no test that verifies it passed"
    if any(criterion.id in entry.criteria for entry in task.entry_points):
        return "an entry point runs it"
    if any(function.compiled for function in functions):
        return "its code is compiled, and no line of it is seen"
    if any(contexts) and any(function.cached for function in functions):  # not at import alone
        return "its code may be answered from a cache"
    if any(name.startswith("fixture:") for name in contexts):
        return "its code ran in a fixture that tests share"
    return seen.child(own)


def _unseen(functions: list[FunctionLines], contexts: set[str], seen: ExecutedLines, own: set[str]) -> str:
    """Return why nobody saw whether tests ran some code, or nothing where it was seen that they did not."""
    if any(function.location.path in seen.early for function in functions):
        return EARLY
    if any(function.cached for function in functions):
        return "it may be answered from a cache, and never ran"
    if contexts - {f"{TEST}{name}" for name in named_tests(contexts)}:
        return AT_IMPORT
    return seen.doubt(own)


def _label(function: FunctionLines) -> str:
    return f"{function.location.path}:{function.name}"


def _file_row(path: str, functions: list[FunctionLines]) -> tuple[str, ...]:
    absent = [function for function in functions if not function.lines]
    names = [f"{function.name} (line {function.location.line})" for function in absent]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    ran = len(functions) - len(absent)
    return path, str(len(functions)), str(ran), f"{ran / len(functions):.0%}", ", ".join(names[:SHOWN]) + more or "-"


def _criterion_rows(
    task: Task, criterion: Criterion, seen: ExecutedLines, evidence: EvidenceSet
) -> Iterator[tuple[str, ...]]:
    tree = evidence.get(SourceTree)
    own = {test.id for test in tests_of(task, criterion, evidence.get(PytestRun))}
    for binding in filter(has_lines, criterion.code):
        places = tree.ways(binding) if tree else ()
        if tree is None or not places:
            continue
        code = lines_of(binding, tree, seen)
        tests = named_tests({name for lines in code for name in lines.contexts})
        where = f"{places[0]} and {len(places) - 1} more" if len(places) > 1 else str(places[0])
        ran = f"{len(own & set(tests))} of {len(own)}" if code else "-"
        yield criterion.id, f"{binding.name} ({where})", _runners(code, tests, own), ran


def _runners(code: list[TracedLines], tests: list[str], own: set[str]) -> str:
    """Say which tests ran some code, or why none is named."""
    if not code:
        return "no code of its own"
    if tests:
        more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
        return ", ".join(tests[:SHOWN]) + more
    if may_be_called(code, own):
        return "cannot be told"
    return "import or shared fixtures" if any(lines.contexts for lines in code) else "no test"


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
