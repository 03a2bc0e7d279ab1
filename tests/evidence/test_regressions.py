"""Regressions, measured for real: two revisions of a repository, each in files of its own."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bar import committed, git
from building import a_context, evidence, written
from regressing import BENCH, CORE, a_regressing_task, slower, two_commits

from gates.checks.measures.collect import Regressions
from gates.checks.measures.judge import MACHINE, judge
from gates.checks.policy.moves import compare_tasks
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.measuring import session
from gates.model import Outcome

# limits near a number are tried without measuring
F, P, U, N = Outcome.FAILED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(session.SEGMENT_S, "cpu", 0.010)  # what is measured here differs by far
    monkeypatch.delenv("GITHUB_BASE_REF", raising=False)


def seen_in(root: Path, context: Context | None = None, **task: Any) -> tuple[Regressions, tuple[Outcome, ...]]:
    asked = a_regressing_task(*task.pop("limits", ()), **task)
    seen = Regressions.collect(asked, context or a_context(root))
    return seen, tuple(finding.outcome for finding in judge(asked, evidence(seen)))


def problem(root: Path, **task: Any) -> str:
    seen, outcomes = seen_in(root, **task)
    assert set(outcomes) == {U}
    assert not (root.parent / f"{root.name}-evidence/regressions/tree").exists()
    return seen.problem or seen.runs[0].problem


def test_a_change_that_costs_nothing_passes_and_leaves_the_repository_as_it_was(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", after={"pkg/core.py": CORE + "\n# the same\n"})
    hook = root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    before = {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*") if path.is_file()}
    _, outcomes = seen_in(root, limits=[{"at_most": 30}])
    assert outcomes == (P,)
    assert {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*") if path.is_file()} == before
    assert not (tmp_path / "hooked").exists()
    assert git(root, "status", "--porcelain") == ""


def test_both_sides_run_the_benchmark_of_here(tmp_path: Path) -> None:
    """A benchmark that does less now is no speed-up, and one that is new can be run on the files of before."""
    heavy = BENCH.replace("return work", "return lambda: [work() for _ in range(60)]")
    root = two_commits(tmp_path / "p", before={"bench.py": heavy}, after={**slower(), "bench.py": BENCH})
    seen, outcomes = seen_in(root)
    assert outcomes == (F,)
    assert seen.lent == ("bench.py",)
    root = two_commits(tmp_path / "q", before={"bench.py": None}, after={**slower(), "bench.py": BENCH})
    assert seen_in(root)[1] == (F,)


def test_nothing_is_measured_where_only_prose_and_tests_changed(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", after={"README.md": "More.\n", "tests/test_core.py": "", "tasks/T1.yaml": ""})
    seen, outcomes = seen_in(root)
    assert (seen.changed, seen.runs, outcomes) == ((), (), (N,))


def test_on_the_base_branch_the_commit_before_is_the_baseline_unless_there_is_work_under_way(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", after={"pkg/core.py": CORE + "\n# other\n"})
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--ff-only", "change")
    broken = {"call": "bench:no_such"}
    seen, _ = seen_in(root, arm=broken)
    assert (seen.base, seen.commit) == ("main~1", git(root, "rev-parse", "HEAD~1"))
    (root / "pkg/new.py").write_text("")
    seen, _ = seen_in(root.rename(tmp_path / "q"), arm=broken)
    assert (seen.base, seen.changed) == ("main", ("pkg/new.py",))


def test_a_baseline_that_was_asked_for_is_taken(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", after=slower(1.1))
    assert seen_in(root, replace(a_context(root), base="HEAD"))[1] == (N,)


def test_an_implementation_that_is_new_has_no_baseline(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"README.md": "Nothing yet.\n"})
    committed(root)
    git(root, "checkout", "-q", "-b", "change")
    written(root, {"pkg/core.py": CORE, "bench.py": BENCH})
    assert seen_in(root)[1] == (N,)


def test_a_baseline_that_does_not_import_or_run_is_unknown(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", before={"pkg/core.py": "def work(:\n"}, after={"pkg/core.py": CORE})
    assert problem(root).startswith("base: SyntaxError: ")
    root = two_commits(tmp_path / "q", before={"pkg/core.py": "other = 1\n"}, after={"pkg/core.py": CORE})
    assert problem(root).startswith("base: ImportError: cannot import name 'work'")


def test_a_baseline_is_built_where_the_task_says_how(tmp_path: Path) -> None:
    """What is built lies in no commit: the candidate has it, the baseline makes its own."""
    core = "from pkg._made import LOOPS\n\n\ndef work():\n    return sum(i * i for i in range(LOOPS))\n"
    files = {"pkg/core.py": core, ".gitignore": "_made.py\n"}
    root = two_commits(tmp_path / "p", before=files, after={"make.py": "open('pkg/_made.py', 'w').write('LOOPS = 9')"})
    (root / "pkg/_made.py").write_text("LOOPS = 12000\n")
    made = "import sys; open('pkg/_made.py', 'w').write('LOOPS = 400')"
    assert problem(root).startswith("base: ModuleNotFoundError: No module named 'pkg._made'")
    root = root.rename(tmp_path / "q")
    assert seen_in(root, bench={"build": ["python", "-c", made]})[1] == (F,)
    root, fails = root.rename(tmp_path / "r"), {"build": ["python", "-c", "raise SystemExit('no compiler')"]}
    assert problem(root, bench=fails) == "the baseline does not build: exit code 1: no compiler"
    why = problem(root.rename(tmp_path / "s"), bench={"build": ["no-such-builder"]})
    assert why.startswith("the baseline cannot be built: 'no-such-builder' cannot be started: No such")


NOT_SEEN = "the baseline runs without the implementation of its folder: it uses other code, or none"


def test_an_arm_that_finds_the_code_of_the_other_side_proves_nothing(tmp_path: Path) -> None:
    """As an interpreter does in which the project is installed and found first."""
    root = two_commits(tmp_path / "p", after=slower())
    (root / "bench.py").write_text(f"import sys\nsys.path.insert(0, {str(root)!r})\n{BENCH}")
    assert problem(root) == NOT_SEEN


def test_an_arm_must_be_seen_to_use_the_files_of_its_folder(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", before={"tool.sh": "true\n"}, after=slower())
    assert problem(root, arm={"time": ["python", "-c", "pass"]}) == NOT_SEEN
    root = root.rename(tmp_path / "q")
    assert problem(root, arm={"time": ["true"]}) == NOT_SEEN
    asked: dict[str, Any] = {"arm": {"time": ["sh", "tool.sh"]}, "limits": [{"of": "run_time_s", "at_most": 30}]}
    assert seen_in(root.rename(tmp_path / "r"), **asked)[1] == (P,)


def test_commands_are_compared_from_start_to_end_by_the_code_of_their_folder(tmp_path: Path) -> None:
    run = {"pkg/__main__.py": "from pkg.core import work\nfor _ in range(6):\n    work()\n"}
    root = two_commits(tmp_path / "p", before=run, after=slower(60))
    assert seen_in(root, arm={"time": ["python", "-m", "pkg"]}, limits=[{"of": "run_cpu_time_s"}])[1] == (F,)


def test_without_a_repository_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="not in a git repository"):
        Regressions.collect(a_regressing_task(), a_context(written(tmp_path / "p", {"pkg/core.py": CORE})))


def test_the_work_tree_of_a_project_in_a_folder_of_its_repository_is_the_candidate(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", before={"sub/pkg/core.py": CORE, "sub/bench.py": BENCH})
    written(root / "sub", slower())
    assert seen_in(root / "sub")[1] == (F,)


@pytest.mark.parametrize(("before", "after"), [({}, {"at_most": 3.0}), ({"at_most": 1.1}, {}), ({}, None)])
def test_a_raised_limit_is_a_moved_goalpost(before: dict[str, float], after: dict[str, float] | None) -> None:
    was = a_regressing_task(before)
    now = was.model_copy(update={"criteria": (was.criteria[0].model_copy(update={"measures": ()}),)})
    now = now if after is None else a_regressing_task(after)
    (move,) = compare_tasks(was, now, frozenset())
    assert "ratio now/base of step_time_s" in move.what
    assert list(compare_tasks(now, was, frozenset())) == []


DIES = """
import os, time

CALLS = []

def work():
    CALLS.append(time.sleep(0.003))  # so long that the warm-up, of 50 times 2 ms at most, ends before it does
    if len(CALLS) > 60:
        os._exit(3)
    return sum(i * i for i in range(12000))
"""


def test_a_failed_attempt_is_known_whatever_budget_the_next_one_has(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", after={"pkg/core.py": DIES})
    context = a_context(root)
    asked: dict[str, Any] = {"id": "bench", "restarts": 1, "pairs": 31, "clock": "cpu", "line": 16,
                             "arms": {"work": {"call": "bench:make_step"}}}  # fmt: skip
    for budget, known in ((60, 0), (90, 1)):
        seen, outcomes = seen_in(root, context, measurements=[{**asked, "budget_s": budget}])
        assert (outcomes, "exit code 3" in seen.runs[0].problem) == ((U,), True)
        ledger = (root / ".gates/attempts.jsonl").read_text(encoding="utf-8")
        attempts = [json.loads(line) for line in ledger.splitlines()]
        assert len({attempt["key"] for attempt in attempts}) == 1
        assert [attempt["ended"] for attempt in attempts] == ["begun", "failed"] * (known + 1)
        assert attempts[-1]["pairs"] > 0


def test_a_slowed_commit_blocks_and_another_limit_or_base_is_another_attempt(tmp_path: Path) -> None:
    root = two_commits(tmp_path / "p", after=slower())
    context = a_context(root)
    first, outcomes = seen_in(root, context)
    assert (first.base, first.commit) == ("main", git(root, "rev-parse", "main"))
    assert first.changed == ("pkg/core.py",)
    assert (outcomes, first.runs[0].earlier) == ((F,), ())
    assert [finding.outcome for finding in judge(a_regressing_task({"at_most": 900}), evidence(first))] == [P]
    assert not (tmp_path / "p-evidence/regressions/tree").exists()
    git(root, "checkout", "-q", "main")
    committed(written(root, {"README.md": "More.\n"}))
    git(root, "checkout", "-q", "change")
    git(root, "merge", "-q", "--no-edit", "main")
    again, _ = seen_in(root, context, limits=[{"at_most": 50}])
    assert again.commit != first.commit
    assert len(again.runs[0].earlier) == 1


@pytest.mark.parametrize(
    ("times", "expected", "said"),
    [(1 / 30, P, "meets the target"), (30, F, "misses the target"), (None, U, "nothing has changed since main")],
    ids=["faster", "slower", "unchanged"],
)
def test_a_criterion_may_promise_a_speedup_over_the_base(
    tmp_path: Path, times: float | None, expected: Outcome, said: str
) -> None:
    root = two_commits(tmp_path / "p", after=slower(times) if times else {"README.md": "More squares.\n"})
    measure = {"from": "bench", "ratio": ["base", "now"], "of": "step_time_s", "at_least": 4}
    task = a_regressing_task({"at_most": None, **measure})
    seen = evidence(Regressions.collect(task, a_context(root)))
    (finding,) = judge(task, seen)
    assert (finding.outcome, finding.criterion) == (expected, "AC1")
    assert said in finding.message
    assert "ratio base/now of step_time_s >= 4" in finding.message
    assert len(list(MACHINE.judge(task, seen))) == 0
