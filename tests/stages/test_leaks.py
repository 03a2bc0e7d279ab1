"""Leaks, judged on built evidence: what goes on growing, what fills, what was not seen."""

from typing import Any

import pytest
from building import evidence
from leaking import ALLOCATED, MB, a_leaking_task, a_watch, growing, leaked, level

from gates.check import EvidenceSet
from gates.checks.leaks import CHECK, Filling, LeakRun, Leaks
from gates.model import Finding, Level, Location, Outcome, Severity
from gates.words import shown

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
LEAKS = {"tensors": growing(epochs=90), "private": growing(epochs=90)}


def found(seen: Leaks, **changes: Any) -> Finding:
    both = list(CHECK.judge(a_leaking_task(**changes), evidence(seen)))
    assert [finding.check for finding in both] == ["leaks:0", "leaks:0:for:AC1"]
    assert len({finding.outcome for finding in both}) == 1
    return both[0]


def test_memory_that_stays_passes_with_its_slopes() -> None:
    finding = found(leaked())
    assert (finding.outcome, finding.severity, finding.level) == (P, Severity.INFO, Level.MUST)
    assert "live tensors by 0 B [0 B, 0 B] an epoch" in finding.actual
    assert finding.location == Location(path="tasks/T1.yaml", line=7)


def test_leak_is_laid_to_the_line_that_makes_what_stays() -> None:
    finding = found(leaked(a_watch(), a_watch(90, **LEAKS), allocated=[ALLOCATED]))
    assert (finding.outcome, finding.severity, str(finding.location)) == (F, Severity.CRITICAL, "pkg/model.py:3")
    assert finding.actual == "live tensors by 1 MB [1 MB, 1 MB] an epoch"
    assert "what stays is allocated at pkg/model.py:3" in finding.message
    assert finding.evidence == "leaks/0-longer.jsonl"


def test_leak_without_a_line_still_fails() -> None:
    finding = found(leaked(a_watch(), a_watch(90, **LEAKS)))
    assert (finding.outcome, str(finding.location)) == (F, "tasks/T1.yaml:7")
    assert "no line of the project was found" in finding.message


def test_one_node_of_a_graph_an_epoch_is_a_leak() -> None:
    assert found(leaked(a_watch(), a_watch(90, graph=growing(1, 90)))).outcome is F


def test_growth_of_the_vague_rungs_alone_is_unknown() -> None:
    finding = found(leaked(a_watch(), a_watch(90, private=growing(epochs=90))))
    assert (finding.outcome, finding.severity) == (U, Severity.HIGH)
    assert "a library knows of" in finding.message


def test_what_a_filling_cache_explains_is_unknown() -> None:
    cache = Filling(name="the cache of pkg.encode", size=3000, most=9000)
    finding = found(leaked(a_watch(), a_watch(90, filling=(cache,), **LEAKS)))
    assert finding.outcome is U
    assert "the cache of pkg.encode is filling (3000 of 9000)" in finding.message


def test_tolerance_of_the_task_counts() -> None:
    longer = a_watch(90, python=growing(30_000, 90), private=level(400.0 * MB, 90))
    assert found(leaked(a_watch(), longer)).outcome is P  # 0.01 % of a footprint of 400 MB is more
    assert found(leaked(a_watch(), longer), tolerance_bytes=20_000).outcome is F
    big = a_watch(90, python=growing(50_000, 90), private=level(100.0 * MB, 90))
    assert found(leaked(a_watch(), big)).outcome is F
    assert found(leaked(a_watch(), big), tolerance_bytes=60_000).outcome is P


@pytest.mark.parametrize(
    ("watched", "said"),
    [
        (a_watch(problem="there is no module 'pkg'", epochs=0, rungs=()), "there is no module 'pkg'"),
        (a_watch(problem="ValueError: no", epochs=4, asked=30), "ValueError: no (after 4 of 30 epochs)"),
        (a_watch(troubles=("the project stopped tracemalloc",)), "the project stopped tracemalloc"),
        (a_watch(private=None), "cannot be read here"),
        (a_watch(python=None), "cannot be read here"),
        (a_watch(python=[100.0 * min(i, 20) for i in range(30)], private=level(1.0)), "30 epochs do not tell"),
        (a_watch(12), "12 epochs do not tell"),
    ],
)
def test_what_was_not_seen_is_unknown_with_its_reason(watched: LeakRun, said: str) -> None:
    finding = found(leaked(watched), tolerance_bytes=10)
    assert (finding.outcome, said in finding.message) == (U, True), finding.message
    assert finding.remediation


def test_longer_run_that_fails_leaves_it_open() -> None:
    finding = found(leaked(a_watch(tensors=growing()), a_watch(problem="MemoryError")))
    assert finding.outcome is U
    assert "run again for longer; then MemoryError" in finding.message


def test_without_torch_the_other_rungs_decide() -> None:
    assert found(leaked(a_watch(tensors=None, graph=None))).outcome is P


def test_report_tells_each_rung_with_its_course() -> None:
    (section,) = CHECK.page(a_leaking_task(), evidence(leaked(a_watch(), a_watch(90, **LEAKS), allocated=[ALLOCATED])))
    assert section.title == "Memory"
    rows = {row[1]: row for row in section.rows}
    assert list(rows) == ["tensors", "graph", "python", "private (not exact)"]
    assert rows["tensors"][2:5] == ("1 MB [1 MB, 1 MB]", "16 KB", "90")
    assert (rows["tensors"][0], rows["tensors"][5]) == ("failed", "pkg/model.py:3")
    assert (rows["graph"][0], rows["graph"][5]) == ("passed", "-")


def test_report_tells_of_a_run_without_any_epoch() -> None:
    broken = leaked(a_watch(problem="it is not there", epochs=0, rungs=()))
    for seen in (evidence(broken), EvidenceSet(why="not asked for")):
        assert len(list(CHECK.page(a_leaking_task(), seen))) == 1


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (-2 * MB, "-2 MB"), (5e12, "4.55 TB")]
)
def test_bytes_are_shown_in_their_unit(value: float, words: str) -> None:
    assert shown(value, "bytes") == words
