"""Small finite domains are tried whole: what fails for one input of a thousand is found, and what held is known."""

from typing import Any

import pytest
from building import a_context, a_task, evidence, written
from calculating import a_property

from gates.evidence._calculating import whole
from gates.evidence.calculations import Calculations
from gates.model import Finding, Outcome
from gates.stages import _calculations

CODE = """\
import time

CALLS = 0


def hole(x, y=0):
    return -1 if (x, y) == (637, 0) else x


def dip(x):
    return 2 if x == 57 else x


def whole(x, *rest):
    return x


def listed(values, flag):
    return -1 if values == [1, 0, 1] and flag else len(values)


def is_rare(x):
    return x == 411


def refuses(x):
    if x % 2:
        raise ValueError
    return x


def slow(x):
    global CALLS
    CALLS += 1
    time.sleep(0.02)
    return -1 if x == 999 and CALLS > 900 else x
"""
BITS = {"lists": {"integers": [0, 1]}, "size": [0, 4]}
FINITE: dict[str, tuple[dict[str, Any], Outcome, str]] = {
    "one hole": ({"call": "pkg.core:hole", "over": [{"integers": [0, 999]}]}, Outcome.FAILED, "hole(637) = -1"),
    "one dip": (
        {"call": "pkg.core:dip", "property": "increasing", "over": [{"integers": [0, 100]}]},
        Outcome.FAILED, "dip(57) = 2",
    ),
    "all of it": (
        {"call": "pkg.core:whole", "over": [{"integers": [0, 9]}, {"booleans": True}, {"values": ["a", "b", "b"]}]},
        Outcome.PASSED, "all 40 inputs of its domain were tried.",
    ),
    "all pairs": (
        {"call": "pkg.core:whole", "property": "increasing", "over": [{"integers": [0, 100]}]},
        Outcome.PASSED, "all 101 inputs of its domain were tried.",
    ),
    "lists": (
        {"call": "pkg.core:listed", "over": [BITS, {"booleans": True}]}, Outcome.FAILED, "listed([1, 0, 1], True)",
    ),
    "one that is given": (
        {"call": "pkg.core:hole", "given": "pkg.core:is_rare", "over": [{"integers": [0, 999]}]},
        Outcome.PASSED, "all 1000 inputs of its domain were tried, of which 999 say nothing of it (refused",
    ),
    "half refused": (
        {"call": "pkg.core:refuses", "rejects": ["ValueError"], "over": [{"integers": [0, 99]}]},
        Outcome.PASSED, "all 100 inputs of its domain were tried, of which 50 say nothing of it (refused",
    ),
    "too many": (
        {"call": "pkg.core:whole", "over": [{"integers": [0, 1000]}]}, Outcome.PASSED, "as far as 100 inputs show",
    ),
    "no end": ({"call": "pkg.core:whole", "over": [{"floats": [0, 1]}]}, Outcome.PASSED, "as far as"),
    "too slow": (
        {"call": "pkg.core:slow", "over": [{"integers": [0, 999]}], "timeout_s": 10},
        Outcome.PASSED, "as far as 100 inputs",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """All of FINITE, in one run."""
    pytest.importorskip("hypothesis")
    root = written(tmp_path_factory.mktemp("whole") / "project", {"pkg/__init__.py": "", "pkg/core.py": CODE})
    bounded = {"property": "bounded", "bounds": [0, None]}
    parts = [part if "property" in part else {**bounded, **part} for part, _, _ in FINITE.values()]
    task = a_task(properties=[a_property(**part) for part in parts])
    return list(_calculations.judge(task, evidence(Calculations.collect(task, a_context(root)))))


@pytest.mark.parametrize("case", FINITE)
def test_small_domains_are_tried_whole(tried: list[Finding], case: str) -> None:
    _, outcome, said = FINITE[case]
    (finding,) = [f for f in tried if f.check.split(":")[1] == str([*FINITE].index(case))]
    assert (finding.outcome, said in finding.message) == (outcome, True), finding.message


NONE: dict[str, Any] = {
    **dict.fromkeys(("floats", "integers", "lists", "values", "size")), **dict.fromkeys(("booleans", "text"), False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("domain", "count"),
    [
        ({"integers": [-3, 3]}, 7), ({"booleans": True}, 2), ({"values": [1, 2]}, 2), ({"floats": [0, 1]}, 0),
        ({"text": True}, 0), ({"lists": {**NONE, "booleans": True}, "size": [0, 3]}, 15),
        ({"lists": {**NONE, "values": [1]}, "size": [2, 900]}, 899), ({"lists": {**NONE, "text": True}}, 0),
        ({"lists": {**NONE, "booleans": True}, "size": [0, 10_000_000]}, 0), ({"integers": [0, 10**9]}, 0),
    ],
)  # fmt: skip
def test_inputs_are_counted_before_any_is_made(domain: dict[str, Any], count: int) -> None:
    over = [{**NONE, **domain}]
    assert whole.count(over) == count
    if count:
        assert len([*whole.every(over)]) == count


def test_the_simple_inputs_come_first() -> None:
    assert [*whole.every([{**NONE, "integers": [-2, 1]}])] == [[0], [1], [-1], [-2]]
