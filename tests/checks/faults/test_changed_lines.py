"""Mutants of changed lines, in real repositories: the bound that no test asks for is told, and blocks nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from bar import committed, git
from building import GOOD, a_context, a_criterion, a_task, collected, written

from gates import kept
from gates.check import Evidence, EvidenceSet
from gates.checks.faults import judge
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Outcome
from gates.proving.bench import Bench, Faults
from gates.proving.changed_lines import ChangedLines
from gates.proving.emptied_code import EmptiedCode

BEFORE = "def kept(x):\n    return x > 1\n\n\ndef price(count):\n    return count * 2\n"
AFTER = BEFORE.replace("    return count * 2\n", "    if count > 10:\n        return count\n    return count * 2\n")
TESTS = "from pkg.core import kept, price\n\n\ndef test_kept():\n    assert kept(3)\n\n\ndef test_price():\n"
PRICED = a_criterion(code=[{"symbol": "pkg.core:price"}])
TASK = a_task(entry_points=[], criteria=[PRICED], measurements=[], tests=["tests", "pkg"])


def judged(
    tmp_path: Path, tests: str, path: str = "pkg/core.py", after: str = AFTER, more: Sequence[type[Evidence]] = ()
) -> list[Finding]:
    root = written(tmp_path / "project", {**GOOD, "pkg/core.py": BEFORE, "tests/test_core.py": TESTS + tests})
    committed(root)
    git(root, "checkout", "-q", "-b", "change")
    written(root, {path: after})
    seen = collected(TASK, a_context(root), PytestRun, ExecutedLines, *more, ChangedLines)
    assert (root / path).read_text(encoding="utf-8") == after
    return [finding for finding in judge(TASK, seen) if finding.rule == "BL023"]


def test_a_bound_and_a_default_of_changed_lines_that_no_test_asks_for_are_told(tmp_path: Path) -> None:
    after = AFTER.replace("(count):", "(count, rate=2):").replace("count * 2", "count * rate")
    default, bound = judged(tmp_path, "    assert (price(0), price(3, 2), price(20)) == (0, 6, 20)\n", after=after)
    for each in (default, bound):
        assert (each.rule, each.outcome, each.blocks, each.leaves_open) == ("BL023", Outcome.FAILED, False, False)
        assert each.message.endswith("It was run by tests/test_core.py::test_price.")
    assert [str(each.location) for each in (default, bound)] == ["pkg/core.py:5", "pkg/core.py:6"]
    assert default.message.startswith("2 -> 3 is noticed by no test that passes. It was")
    assert ">= 10 is noticed by no test" in bound.message


def test_mutants_are_tried_along_with_stubs_and_end_as_they_do_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, try_all = list[int](), Bench.try_all

    def counted(bench: Bench, run: PytestRun | None, *groups: Faults) -> None:
        tries.append(len(groups))
        try_all(bench, run, *groups)

    monkeypatch.setattr(Bench, "try_all", counted)
    alone, along = (
        judged(tmp_path / str(len(more)), "    assert (price(0), price(20)) == (0, 20)\n", more=more)
        for more in ((), (SourceTree, EmptiedCode))
    )
    assert [each.message for each in alone] == [each.message for each in along] != []
    assert tries == [1, 2]


def test_changed_lines_whose_mutants_all_are_noticed_pass(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, "    assert [price(count) for count in (3, 10, 11, 20)] == [6, 20, 11, 20]\n")
    assert (found.outcome, "since main" in found.message) == (Outcome.PASSED, True)


def test_nothing_is_asked_of_what_no_test_runs_nor_of_tests_beside_the_code(tmp_path: Path) -> None:
    unrun = judged(tmp_path / "unrun", "    assert price\n")
    beside = judged(tmp_path / "beside", "    pass\n", "pkg/tests/test_less.py", "def test_less():\n    assert 1 < 2\n")
    assert {found.outcome for found in (*unrun, *beside)} == {Outcome.NOT_APPLICABLE}


def test_no_history_is_said(tmp_path: Path) -> None:
    seen = EvidenceSet()
    seen.collect(ChangedLines, TASK, a_context(written(tmp_path / "project", GOOD)))
    *_, found = judge(TASK, seen)
    assert (found.outcome, found.leaves_open) == (Outcome.UNKNOWN, False)
    assert "git" in found.message


@pytest.mark.parametrize("untried", [0, 1])
def test_mutants_that_there_was_no_time_for_are_tried_again(untried: int) -> None:
    assert kept._in_doubt(ChangedLines(how="", base="main", untried=untried)) is bool(untried)
