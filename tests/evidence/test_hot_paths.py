"""Hot paths, run for real: steps, phases and reads, and what there is to say where nothing could be seen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, a_context, evidence, written
from hot_steps import a_hot_task
from recording import WITHOUT_COMPILER

from gates.checks.hot_path import CHECK, HotPaths, HotSeen
from gates.model import Finding, Outcome

FILES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks/cases/hot").glob("*.py")}
FILES["planted.py"] = FILES["planted.py"].replace("import torch\n", f"import torch; {WITHOUT_COMPILER}\n", 1)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # on a busy machine, threads that wait for each other hide a wait


def seen(tmp_path: Path, call: str, **changes: Any) -> tuple[HotSeen, dict[str, Finding]]:
    task = a_hot_task(call=call, **{"args": [], **changes})
    paths = HotPaths.collect(task, a_context(written(tmp_path / "project", {**FILES, "pkg/__init__.py": ""})))
    findings = CHECK.judge(task, evidence(paths))
    return paths.seen[0], {f.check.removeprefix("hot_path:0:"): f for f in findings if f.criterion is None}


def marked(mark: str) -> str:
    lines = FILES["planted.py"].splitlines()
    return f"planted.py:{next(i for i, line in enumerate(lines, 1) if line.endswith(f'# <- {mark}'))}"


def test_all_that_is_planted_is_found_with_its_line_and_stopped(tmp_path: Path) -> None:
    paths, findings = seen(tmp_path, "planted:everything", steps=20)
    assert {name: str(found.location) for name, found in findings.items() if found.outcome is Outcome.FAILED} == {
        "host-reads": marked("reads"), "stall": marked("function"),
        "synchronisations": marked("waits"),
    }  # fmt: skip
    assert (len(paths.run), paths.device) == (20, "cpu")


def test_wait_for_workers_is_found_at_the_loop(tmp_path: Path) -> None:
    _, findings = seen(tmp_path, "planted:slow_dataset", args=[1])
    assert {name for name, found in findings.items() if found.outcome is not Outcome.PASSED} == {"stall"}
    assert str(findings["stall"].location) == marked("with workers")


def test_sound_training_has_no_finding(tmp_path: Path) -> None:
    _, findings = seen(tmp_path, "sound:framework")
    assert findings.pop("stall").outcome is not Outcome.FAILED  # open where a busy machine takes its share of the time
    assert {found.outcome for found in findings.values()} == {Outcome.PASSED}


def test_interpreter_that_is_not_there_or_has_no_torch_is_a_problem(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pkg/__init__.py": ""})
    (absent,) = HotPaths.collect(a_hot_task(), replace(a_context(root), python=str(tmp_path / "python"))).seen
    assert "cannot be started" in absent.problem
    python = written(tmp_path, {"python": "#!/bin/sh\necho \"E: No module named 'torch'\" >&2\nexit 1\n"}) / "python"
    python.chmod(0o755)
    (seen_of_it,) = HotPaths.collect(a_hot_task(), replace(a_context(root), python=str(python))).seen
    assert seen_of_it.problem == "the project's interpreter has no torch"
