"""Code rules in the business logic gate: broken ones block by their severity, what was not seen is unknown."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, evidence, written
from scanning import WORDS

from gates.check import EvidenceSet
from gates.checks import code_rules as _rules
from gates.checks.criteria import judge_code
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Outcome, Severity
from gates.scan.loading import load_rules
from gates.task.task import Task

OLD = "import torch\ntorch.cuda.amp.GradScaler()\n"
OWN = WORDS.replace("x = 2", "|\n  import torch\n  torch.cuda.amp.GradScaler()  # <- here")
OWN += "pattern: torch.cuda.amp.GradScaler(...)\n"
TWICE = "def f(scaler, optimizer):\n    scaler.unscale_(optimizer)\n    scaler.unscale_(optimizer)\n"


def a_ruled_task(*rules: str) -> Task:
    return a_task(implementation=["pkg"], rules=list(rules), criteria=[a_criterion(code=[])])


def judged(tmp_path: Path, files: dict[str, str | bytes], *rules: str) -> list[Finding]:
    task = a_ruled_task(*rules)
    found = SourceTree.collect(task, a_context(written(tmp_path / "project", {"pkg/__init__.py": "", **files})))
    assert SourceTree.model_validate_json(found.model_dump_json()) == found
    return list(_rules.judge(task, evidence(found)))


@pytest.mark.parametrize(
    ("files", "rule", "outcome", "blocks"),
    [
        ({"pkg/m.py": "x = 1\n"}, "no-cuda-amp", Outcome.PASSED, False),
        ({"pkg/m.py": OLD}, "no-cuda-amp", Outcome.FAILED, False),
        ({"pkg/m.py": TWICE}, "amp-unscale-twice", Outcome.FAILED, False),
        ({"pkg/m.py": b"import torch\ntorch.cuda.amp.GradScaler(:\n"}, "no-cuda-amp", Outcome.UNKNOWN, False),
        ({"pkg/m.py": "x = 1\n"}, "no-such-rule", Outcome.UNKNOWN, False),
    ],
)
def test_rule_is_judged(
    tmp_path: Path, files: dict[str, str | bytes], rule: str, outcome: Outcome, *, blocks: bool
) -> None:
    (finding,) = judged(tmp_path, files, rule)
    assert (finding.outcome, finding.blocks, finding.check) == (outcome, blocks, f"rule:{rule}")


def test_broken_rule_names_place_path_impact_and_fix(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, {"pkg/m.py": TWICE}, "amp-unscale-twice")
    assert str(finding.location) == "pkg/m.py:3"
    assert finding.actual == "unscale pkg/m.py:2 -> unscale pkg/m.py:3"
    assert (finding.severity, bool(finding.impact), bool(finding.remediation)) == (Severity.MEDIUM, True, True)


def test_tag_stands_for_its_rules_and_each_entry_is_a_check(tmp_path: Path) -> None:
    found = judged(tmp_path, {"pkg/m.py": OLD}, "amp", "no-cuda-amp")
    assert {(f.check, f.outcome) for f in found} == {("rule:amp", Outcome.FAILED), ("rule:no-cuda-amp", Outcome.FAILED)}


def test_rule_of_the_project_comes_instead_of_the_shipped_one(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pkg/m.py": OLD, "gates-rules/r.yaml": f"id: no-cuda-amp\n{OWN}"})
    task = a_ruled_task("no-cuda-amp")
    context = a_context(root)
    context = type(context)(**{**vars(context), "rules": root / "gates-rules"})
    (finding,) = _rules.judge(task, evidence(SourceTree.collect(task, context)))
    assert finding.severity is Severity.MEDIUM


def test_without_evidence_every_entry_is_unknown_and_without_rules_nothing_is_planned() -> None:
    task = a_ruled_task("amp")
    assert [f.outcome for f in _rules.judge(task, EvidenceSet())] == [Outcome.UNKNOWN]
    assert [check.id for check in _rules.plan(task)] == ["rule:amp"]
    plain = a_ruled_task()
    assert [*_rules.plan(plain), *_rules.judge(plain, EvidenceSet())] == []


def test_a_broken_rule_of_a_criterion_says_what_comes_of_it_and_what_mends_it(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pkg/__init__.py": "", "pkg/m.py": TWICE})
    task = a_task(criteria=[a_criterion(code=[{"rule": "amp-unscale-twice"}])])
    (finding,) = judge_code(task, task.criteria[0], evidence(SourceTree.collect(task, a_context(root))))
    form = load_rules(None, root)["amp-unscale-twice"].form
    assert (finding.impact, finding.remediation) == (form.impact, form.fix)
    assert finding.command == "gates explain amp-unscale-twice"
