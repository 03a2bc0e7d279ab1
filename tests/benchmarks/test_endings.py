"""Every quick ending of the corpus, as a real run, judged: no bad one passes, no sound one is stopped."""

from collections import Counter
from pathlib import Path

import pytest
from building import QUICK as FEW_PLUGINS
from building import a_context, patient, written

from benchmarks.endings.corpus import CORPUS
from benchmarks.endings.ending import CORE, FILE, PLAIN, SOUND, TASK, Ending, Right, project
from gates.check import Evidence, EvidenceSet
from gates.checks.assertions import TestFiles
from gates.checks.test_run import judge as _suite
from gates.criteria import decide
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Decision, Finding
from gates.proving.emptied_code import EmptiedCode
from gates.stages import BUSINESS_LOGIC
from gates.task import loading as spec
from gates.task.task import Task

QUICK = [ending for ending in CORPUS if ending.quick and not ending.needs and not ending.outside]
INI = "pytest.ini"
ORDINARY = [ending for ending in QUICK if [*ending.files] == [FILE] and not ending.env]
CRITERION = '  - {{id: {}, text: Double, code: [{{symbol: "pkg.core:double"}}], tests: [{}]}}\n'
SHARED = {  # endings that leave each other alone, in one project: a file and a criterion each
    "sound": [ending for ending in QUICK if ending.right is Right.PASS],
    "hollow": [ending for ending in ORDINARY if ending.right is Right.NOT_PASS and ending.stands == (FILE,)],
    "failing": [ending for ending in ORDINARY if "subtests fail" in ending.name or "teardown raises" in ending.name],
}
ALONE = [ending for ending in QUICK if not any(ending in endings for endings in SHARED.values())]
RUN: tuple[type[Evidence], ...] = (PytestRun, SourceTree)
MORE: tuple[type[Evidence], ...] = (ExecutedLines, EmptiedCode, TestFiles)


def judged(task: Task, evidence: EvidenceSet) -> list[Finding]:
    return [*_suite.judge(task, evidence), *BUSINESS_LOGIC.judge(task, evidence)]


def quickly(root: Path) -> Path:
    """Let no plugin be loaded that these endings do not need."""
    for path in (*root.glob("*.toml"), *root.glob("*.ini")):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(PLAIN, f"{FEW_PLUGINS} -p no:randomly"), encoding="utf-8")
    return root


def found(ending: Ending, limit_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    for name, value in ending.env.items():
        monkeypatch.setenv(name, value)
    root = quickly(project(ending, tmp_path / "project"))
    task = spec.load(root / "tasks" / "T1.yaml", root)
    context = a_context(root, timeout_s=limit_s)
    evidence = EvidenceSet()
    for kind in RUN:
        evidence.collect(kind, task, context)
    if decide([f for f in judged(task, evidence) if f.rule != "BL016"]).decision is Decision.PASS:
        for kind in MORE:  # nothing failed: could the tests have failed at all?
            evidence.collect(kind, task, context)
    return judged(task, evidence)


@pytest.mark.parametrize("ending", ALONE, ids=lambda ending: ending.name)
def test_right_is_said_of_the_ending(ending: Ending, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def names_it(findings: list[Finding]) -> bool:
        return any(ending.running in f"{f.subject} {f.location} {f.message}" for f in findings)

    findings = patient(ending.timeout_s, lambda limit_s: found(ending, limit_s, tmp_path, monkeypatch), names_it)
    verdict = decide(findings)
    assert ending.right.allows(verdict.decision), verdict.reasons
    assert names_it(findings), verdict.reasons


@pytest.mark.parametrize("name", SHARED)
def test_right_is_said_of_each_ending_of_one_project(name: str, tmp_path: Path) -> None:
    own = {f"tests/test_it{i}.py": ending for i, ending in enumerate(SHARED[name])}
    stands = {"AC": CORE, **{f"AC{i}": path for i, path in enumerate(own) if own[path].stands == (FILE,)}}
    criteria = "".join(CRITERION.format(*each) for each in stands.items())
    files = {**SOUND, **{path: ending.files[FILE] for path, ending in own.items()}}
    more = [each for ending in own.values() for each in ending.files.items() if each[0] != FILE]
    words = " ".join(str(text).partition("addopts = ")[2].strip() for path, text in more if path == INI)
    files |= {**dict(more), INI: f"[pytest]\naddopts = {words or PLAIN}\n"}
    root = quickly(written(tmp_path / "project", {**files, "tasks/T1.yaml": TASK.partition("  - id")[0] + criteria}))
    task, context, evidence = spec.load(root / "tasks" / "T1.yaml", root), a_context(root), EvidenceSet()
    for kind in RUN if name == "failing" else (*RUN, *MORE):
        evidence.collect(kind, task, context)
    findings = judged(task, evidence)
    if name == "sound":
        assert decide(findings).decision is Decision.PASS, decide(findings).reasons
        return
    for i, (path, ending) in enumerate(own.items()):
        mine = [f for f in findings if f.criterion == f"AC{i}" or path in f"{f.subject} {f.location}"]
        assert [f for f in mine if f.blocks or (f.leaves_open and name == "hollow")], (ending.name, mine)


def test_each_ending_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(ending.name for ending in CORPUS).items() if count > 1] == []
