"""What every gate, kind of evidence, code rule, format and module must obey; a new one is covered on arrival."""

import ast
import importlib
import re
import subprocess
import sys
from datetime import date
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from bar import a_move, a_waiver, on, unmoved
from building import (
    ROOT,
    a_context,
    a_criterion,
    a_measure,
    a_record,
    a_run,
    a_task,
    a_tree,
    all_evidence,
    clean,
    entries,
    evidence,
    folded,
    measured,
)
from bundling import a_cuda_task, handed
from calculating import calculated, calculating
from hot_steps import a_hot_run, a_hot_task, a_read, a_step, hot
from leaking import ALLOCATED, a_leaking_task, a_watch, growing, leaked
from recording import a_recorded, a_trained_task, recorded
from regressing import a_regressing_task, compared, sides

from gates import pipeline, registry
from gates.check import Evidence, EvidenceSet
from gates.checks.policy.judge import Mode
from gates.checks.policy.moves import Part
from gates.errors import EvidenceUnavailable
from gates.evidence.bundles import Bundles, HandedIn
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Decision, Finding, Model, Outcome
from gates.render import Format
from gates.report import Report
from gates.scan.checking import Scanner, failures
from gates.scan.loading import load_rules
from gates.scan.program.project import project_of
from gates.scan.rule import Rule
from gates.stages import Gate
from gates.task.task import Task

GATES = pipeline.discover()
ROOMS = [
    f"gates.{path.relative_to(ROOT / 'gates').with_suffix('').as_posix().replace('/', '.')}"
    for path in sorted((ROOT / "gates/evidence").rglob("*.py"))
    if not path.name.startswith("_")
]
KINDS = sorted(
    {kind for module in ROOMS for kind in registry.kinds_in(module, Evidence) if "[" not in kind.__name__}
    | {kind for gate in GATES for kind in gate.uses},
    key=lambda kind: kind.__name__,
)
RULES = load_rules()
FORMATS = registry.values("gates.render", Format)
FOREIGN = {"recorder"}  # programs for the tested project's interpreter, with its torch
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "gates").rglob("*.py")
    if not FOREIGN & set(path.parts)
)

TASKS = {
    "of everything": a_task(),
    "of nothing but a criterion": a_task(tests=[], entry_points=[], criteria=[a_criterion(code=[], tests=[])]),
    "of a rule": a_task(criteria=[a_criterion(code=[{"rule": "amp-step-order"}], measures=[a_measure(when=["amx"])])]),
    "of no coverage": a_task(coverage_at_least=0),
    "of waivers": a_task(waivers=[a_waiver(), a_waiver(line=21), a_waiver(criterion="AC1", rule="BL002")]),
    "of calculations": calculating(),
    "of bundles": a_cuda_task(bundles=("a.json", "b.json")),
    "of leaks": a_leaking_task(),
    "of hot paths": a_hot_task(),
    "of the base": a_regressing_task({}, {"of": "items_per_s"}),
    "of training steps": a_trained_task(),
}
gate = pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


REFUSED = HandedIn(path="b.json", why="it was altered")


def sets(task: Task) -> list[EvidenceSet]:
    """Sets of evidence from none to all, good and bad."""
    bad = a_run(a_record(TestOutcome.FAILED), a_record(TestOutcome.SKIPPED, id="t.py::test_s"))
    return [
        EvidenceSet(),
        EvidenceSet(why="not asked for"),
        evidence(a_run()),
        evidence(measured()),
        evidence(a_tree(task), entries(task)),
        all_evidence(task),
        all_evidence(task, bad, measured("no samples"), a_tree(task, unparsed=("x.py:1: bad",))),
        all_evidence(task, a_run(disagreements=("they differ",))),
        all_evidence(task, bad, on(), unmoved(a_move(), a_move(), *(a_move(p) for p in Part), unread=("a.py",))),
        all_evidence(task, on(date(2027, 1, 1)), unmoved(*(a_move(what=str(i)) for i in range(99)), mode=Mode.ALL)),
        all_evidence(task, calculated()),
        all_evidence(task, Bundles(how="bundles", handed_in=(handed(), REFUSED))),
        all_evidence(task, recorded()),
        all_evidence(task, leaked()),
        all_evidence(task, leaked(a_watch(), a_watch(90, graph=growing(epochs=90)), allocated=[ALLOCATED])),
        all_evidence(task, leaked(a_watch(problem="no such module", epochs=0, rungs=()))),
        all_evidence(task, hot()),
        all_evidence(task, hot(a_hot_run([a_step(a_read(), waited=0.03)] * 12))),
        all_evidence(task, hot(a_hot_run([], problem="no such module"))),
        all_evidence(task, compared(sides(3.0))),
        all_evidence(task, compared(problem="baseline: no module named 'pkg'")),
        all_evidence(task, compared(changed=(), runs=())),
        all_evidence(task, recorded(a_recorded(complete=False, problem="no such module"))),
    ]


def test_there_is_something_to_test() -> None:
    assert [g.name for g in GATES] == ["execution", "business-logic", "performance"]
    assert {kind.__name__ for kind in KINDS} >= {"PytestRun", "SourceTree", "EntryPointRuns", "Measurements"}
    assert RULES.keys() >= {"amp-step-order", "no-cuda-amp"}
    assert {form.name for form in FORMATS} >= {"json", "markdown", "text"}
    assert len(MODULES) > 30


@gate
@task
def test_no_evidence_never_passes(gate: Gate, task: Task) -> None:
    findings = list(gate.judge(task, EvidenceSet()))
    assert findings
    assert {f.outcome for f in findings} <= {Outcome.UNKNOWN, Outcome.NOT_APPLICABLE}
    assert pipeline.judge(gate, task, EvidenceSet()).decision in {Decision.INCONCLUSIVE, Decision.NOT_APPLICABLE}


def test_check_that_a_task_does_not_ask_for_says_nothing() -> None:
    silent = {check.name: check for gate in GATES for check in gate.checks if not list(check.plan(a_task()))}
    asked = {"calculations", "concurrency", "hot_path", "leaks", "scaling"}
    assert asked | {"training_steps"} <= silent.keys()
    nothing = TASKS["of nothing but a criterion"]
    assert [name for name, check in silent.items() if list(check.judge(a_task(), EvidenceSet()))] == []
    assert [name for name in asked if list(silent[name].page(nothing, EvidenceSet()))] == []


@gate
@task
def test_what_is_planned_is_decided_once_by_documented_rules_and_the_same_again(gate: Gate, task: Task) -> None:
    own = {rule for rule in pipeline.rule_texts() if rule.startswith(gate.code)}
    for seen in sets(task):
        report, found = pipeline.judge(gate, task, seen), list(gate.judge(task, seen))
        assert report.planned == report.decided > 0
        assert "GT001" not in {f.rule for f in report.findings}
        assert len({check.id for check in report.checks}) == len(report.checks)
        assert {f.rule for f in found} <= own
        assert all(f.message and "\n" not in f.message for f in found)
        assert all(f.remediation for f in found if f.blocks or f.leaves_open)
        assert len({f.fingerprint for f in found}) == len(found)
        assert list(gate.judge(task, seen)) == found
        assert list(gate.describe(task, seen)) == list(gate.describe(task, seen))


@gate
@task
def test_fingerprint_does_not_hang_on_lines_numbers_or_words(gate: Gate, task: Task) -> None:
    for finding in gate.judge(task, all_evidence(task)):
        facts = finding.model_dump(exclude={"fingerprint"})
        where = facts["location"] and {**facts["location"], "line": 999, "last_line": None}
        moved = Finding.model_validate({**facts, "location": where, "message": "x", "actual": "7"})
        assert moved.fingerprint == finding.fingerprint


@gate
def test_rule_ids_are_two_letters_of_the_gate_and_three_digits(gate: Gate) -> None:
    assert re.fullmatch(r"[A-Z]{2}", gate.code)
    assert {rule[:2] for rule in pipeline.rule_texts()} == {"GT", *(each.code for each in GATES)}


def test_rule_ids_are_distinct_over_all_gates() -> None:
    files = (ROOT / "gates").glob("**/*.yaml")
    ids = [rule for file in files for rule in re.findall(r"^[A-Z]{2}\d{3}(?=:)", file.read_text("utf-8"), re.MULTILINE)]
    assert len(set(ids)) == len(ids) == len(pipeline.rule_texts())
    assert len({g.code for g in GATES}) == len({g.name for g in GATES}) == len(GATES)


def test_every_rule_id_in_the_source_is_documented() -> None:
    written = {
        rule
        for path in (ROOT / "gates").rglob("*.py")
        for rule in re.findall(r'rule"?\s*[=:]\s*"([A-Z]{2}\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert written and written <= pipeline.rule_texts().keys()
    steps = ROOT / "gates/checks/training_steps"
    faults = re.findall(r'fault\("([\w ]+)"', "".join(path.read_text("utf-8") for path in steps.glob("*.py")))
    assert {*faults} == {*re.findall(r"^([\w ]+):$", (steps / "faults.yaml").read_text("utf-8"), re.MULTILINE)}


NAMED = {"Calculations": "calculations", "Concurrency": "concurrency", "HotPaths": "hot_paths",
         "Leaks": "leaks", "Recording": "training_steps",
         "Scaling": "scaling"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_evidence_of_an_empty_project_is_unavailable_with_a_reason(kind: type[Evidence], tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    seen, nothing, context = EvidenceSet(), TASKS["of nothing but a criterion"], a_context(tmp_path / "project")
    seen.collect(kind, nothing, context)
    why = seen.why_missing(kind)
    assert (seen.get(kind), bool(why), "\n" in why) == (None, True, False)
    assert kind.__name__ not in NAMED or f"names no '{NAMED[kind.__name__]}'" in why
    with pytest.raises(EvidenceUnavailable, match=re.escape(why)):
        kind.derive(nothing, context, seen)


TOLD = {"direction", "purpose", "schema_"}  # context for who reads the samples and the commands of a run


def models(kind: object) -> set[type[Model]]:
    """Return the models that a type is made of, and those of their fields."""
    if not (isinstance(kind, type) and issubclass(kind, Model)):
        return {model for part in get_args(kind) for model in models(part)}
    return {kind}.union(*(models(f.annotation) for f in kind.model_fields.values() if f.annotation != kind | None))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_that_is_recorded_is_read_by_who_judges_or_shows_it(kind: type[Evidence]) -> None:
    assert {field for model in models(kind) for field in model.model_fields} - attributes() - TOLD == set()


@cache
def attributes() -> set[str]:
    """Return the names of all attributes that the code of the gates reads."""
    files = [path for path in (ROOT / "gates").rglob("*.py") if "child" not in path.parts]
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_code_rule_keeps_its_own_examples(rule: Rule) -> None:
    assert rule.form.bad
    assert list(failures(rule)) == []
    assert Scanner(project_of({"empty.py": b"x = 1\n"})).sites(rule) == []
    assert rule.form.tags
    assert rule.source == f"gates/rules/{rule.id}.yaml"


@cache
def reports(name: str) -> list[Report]:
    """The reports of a task that differ from each other: a page sees nothing but its report."""
    made = (folded(TASKS[name], seen, GATES) for seen in sets(TASKS[name]))
    return [*{report.model_dump_json(): report for report in made}.values()]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("name", TASKS)
def test_format_renders_every_report_to_files_that_say_the_verdict(form: Format, name: str, tmp_path: Path) -> None:
    for report in reports(name):
        files = form.render(report, tmp_path)
        assert files
        assert all(Path(name).name == name and text.endswith("\n") for name, text in files.items())
        assert any(report.verdict.decision.value in text or "BLOCK (" in text for text in files.values())
    assert files == form.render(report, None)


def test_formats_write_files_of_their_own() -> None:
    report = folded(a_task(), all_evidence(a_task()), GATES)
    names = [name for form in FORMATS for name in form.render(report, None)]
    assert len(set(names)) == len(names)


def loads(module: str) -> set[str]:
    """Which of the modules importing one loads at once: what stands in its functions is imported later."""
    path = ROOT / module.replace(".", "/")
    parts = module.split(".") if path.is_dir() else module.split(".")[:-1]
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    todo: list[ast.AST] = [ast.parse(text)]
    found = {module.rpartition(".")[0]}
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)} - {module}
        elif not (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ):
            todo += ast.iter_child_nodes(node)
    return found & set(MODULES)


def test_every_module_imports_alone() -> None:
    graph = {module: loads(module) for module in MODULES}
    assert {"gates.model", "gates.stages"} <= graph["gates.pipeline"]
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(MODULES)  # no module needs one that needs it


def test_benchmarks_import_what_there_is() -> None:
    """What nobody imports while tests run is found out here: a name that moved."""
    missing = [
        f"{path.relative_to(ROOT)}: {node.module}.{alias.name}"
        for path in (ROOT / "benchmarks").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "gates"
        for alias in node.names
        if not is_there(node.module or "", alias.name)
    ]
    assert missing == []


def is_there(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(find_spec(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


def test_no_module_loads_torch() -> None:
    code = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *MODULES], cwd=ROOT, env=clean(), capture_output=True,
                          text=True, check=False, timeout=300)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert set(MODULES) <= set(done.stdout.split())
    assert {"torch", "amp_core"} & set(done.stdout.split()) == set()


def test_help_loads_nothing_that_is_slow() -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "gates", "--help"], cwd=ROOT, env=clean(),
                          capture_output=True, text=True, check=True, timeout=300)  # fmt: skip
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "click" in loaded
    assert loaded & {"torch", "pydantic", "rich", "jinja2", "yaml", "psutil", "pytest", "amp_core"} == set()


def test_import_contracts_hold() -> None:
    done = subprocess.run([str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], cwd=ROOT, env=clean(),
                          capture_output=True, text=True, check=False, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"Contracts: [4-9]\d* kept, 0 broken", done.stdout)


@pytest.mark.parametrize(("folder", "more"), [("witness", "_pytest"), ("recorder", "torch")])
def test_what_runs_with_the_tests_of_a_project_needs_nothing_but_them(folder: str, more: str) -> None:
    sources = [*(ROOT / "gates/child" / folder).glob("*.py")]
    assert len(sources) > 4
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names | {"pytest", more}
