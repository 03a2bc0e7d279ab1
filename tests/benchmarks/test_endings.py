"""Every quick ending of the corpus, as a real run, judged: no bad one passes, no sound one is stopped."""

from collections import Counter
from pathlib import Path

import pytest
from building import a_context

from benchmarks.endings.corpus import CORPUS
from benchmarks.endings.ending import Ending, Right, project
from gates.check import Evidence, EvidenceSet
from gates.checks.assertions.collect import TestFiles
from gates.checks.test_run import judge as _suite
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Decision, Finding
from gates.proving.emptied_code import EmptiedCode
from gates.stages import business_logic
from gates.task import loading as spec
from gates.verdict import decide

QUICK = [ending for ending in CORPUS if ending.quick and not ending.needs and not ending.outside]


def found(ending: Ending, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    for name, value in ending.env.items():
        monkeypatch.setenv(name, value)
    root = project(ending, tmp_path / "project")
    task = spec.load(root / "tasks" / "T1.yaml", root)
    context = a_context(root, timeout_s=ending.timeout_s)
    evidence = EvidenceSet()
    asked: tuple[type[Evidence], ...] = (PytestRun, SourceTree)
    for kind in asked:
        evidence.collect(kind, task, context)
    findings = [*_suite.judge(task, evidence), *business_logic.GATE.judge(task, evidence)]
    if decide(findings).decision is not Decision.PASS:
        return findings
    asked = (ExecutedLines, EmptiedCode, TestFiles)
    for kind in asked:  # nothing failed: could the tests have failed at all?
        evidence.collect(kind, task, context)
    return [*_suite.judge(task, evidence), *business_logic.GATE.judge(task, evidence)]


@pytest.mark.parametrize("ending", QUICK, ids=lambda ending: ending.name)
def test_right_is_said_of_the_ending(ending: Ending, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = found(ending, tmp_path, monkeypatch)
    verdict = decide(findings)
    assert ending.right.allows(verdict.decision), verdict.reasons
    assert any(ending.running in f"{f.subject} {f.location} {f.message}" for f in findings), verdict.reasons


def test_corpus_has_at_least_100_endings_and_25_sound_ones_each_of_its_own_name() -> None:
    assert len(CORPUS) >= 100
    assert sum(ending.right is Right.PASS for ending in CORPUS) >= 25
    assert [name for name, count in Counter(ending.name for ending in CORPUS).items() if count > 1] == []


def test_no_two_endings_are_the_same_project() -> None:
    projects = Counter(str((sorted(e.files.items()), e.stands, sorted(e.env.items()), e.needs)) for e in CORPUS)
    assert max(projects.values()) == 1


@pytest.mark.parametrize(
    ("right", "allowed"),
    [(Right.PASS, {Decision.PASS}), (Right.BLOCK, {Decision.BLOCK}), (Right.INCONCLUSIVE, {Decision.INCONCLUSIVE}),
     (Right.NOT_PASS, {Decision.BLOCK, Decision.INCONCLUSIVE, None})],
)  # fmt: skip
def test_what_is_right_allows_nothing_else(right: Right, allowed: set[Decision | None]) -> None:
    said = {Decision.PASS, Decision.BLOCK, Decision.INCONCLUSIVE, None}
    assert {one for one in said if right.allows(one)} == allowed
