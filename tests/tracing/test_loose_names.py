"""Paths and code rules that a task names and that are not there."""

from collections.abc import Callable

import pytest
from click.testing import Result
from to_trace import TASK

BOUND = TASK.replace('{symbol: "pkg.core:double"}', "{rule: amp-step-odrer}")


def _naming(path: str) -> str:
    return TASK.replace("[pkg]", f"[pkg/core.py, {path}]")


def _asking(rules: str) -> str:
    return TASK.replace("[tests]", f"[tests]\nrules: [{rules}]", 1)


@pytest.mark.parametrize(("task", "said"), [
    (_naming("pkg/croe.py"), "tasks/T1.yaml:3: T1: 'implementation' names 'pkg/croe.py' (tasks/T1.yaml:3:31), and "),
    (_naming("pkg/croe.py"), "and there is no 'pkg/croe.py' in the project; did you mean 'pkg/core.py'?"),
    (_naming("'pkg/*.py'"), "'pkg/*.py' (tasks/T1.yaml:3:31), and there is no 'pkg/*.py' in the project; patterns"),
    (_naming("pkg/empty"), "'pkg/empty' (tasks/T1.yaml:3:31), and that folder has no file"),
    (TASK.replace("[tests]", "[tests, else]", 1), "tasks/T1.yaml:4: T1: 'tests' names 'else' (tasks/T1.yaml:4:16)"),
    (_asking("nope"), "tasks/T1.yaml:5: T1: there is no code rule or tag 'nope'"),
    (_asking("amp-step-odrer"), "there is no code rule or tag 'amp-step-odrer'; did you mean 'amp-step-order'?"),
    (BOUND, "tasks/T1.yaml:8: T1/AC1: there is no code rule or tag 'amp-step-odrer'; did you mean 'amp-step-order'?"),
])  # fmt: skip
def test_paths_and_rules_that_lead_nowhere_are_dead(traced: Callable[..., Result], task: str, said: str) -> None:
    result = traced({"tasks/T1.yaml": task, "pkg/empty/.keep": ""}, "T1")
    assert (result.exit_code, said in result.stdout) == (1, True), result.stdout
    assert "1 gap  Doubling" in traced({"tasks/T1.yaml": task}).stdout


def test_rules_that_there_are_and_folders_of_other_files_are_no_gap(traced: Callable[..., Result]) -> None:
    words = ("problem: p", "impact: i", "fix: f", "pattern: print(...)", "good: []", "bad: []")
    rule = "\n".join(["id: mine", "tags: [house]", "severity: low", *words])
    task = _asking("amp, amp-step-order, mine, house").replace("[pkg]", "[pkg, csrc, pkg/core.py]")
    result = traced({"tasks/T1.yaml": task, "gates-rules/mine.yaml": rule, "csrc/fast.cu": "// fast\n"}, "T1")
    assert (result.exit_code, "; 0 gaps" in result.stdout) == (0, True), result.stdout
