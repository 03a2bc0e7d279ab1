"""The three plain facts of a criterion's tests, in one real project whose honest tests say nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from building import a_context, a_task, all_evidence, collected, written

from gates.check import EvidenceSet
from gates.checks.assertions import TestFiles, judge
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Outcome
from gates.task import loading as spec

TESTS = {
    "honest": "import sys\nfrom pkg.core import double\n\n\ndef same(a, b):\n    assert a == b\n\n\ndef test_it():\n"
    "    same(double(2), 4)\n    if sys.platform == 'none':\n        assert double(1) == 3\n"
    "    for x in []:\n        assert False, x\n",
    "raises": "import pytest\nfrom pkg.core import double\n\n\ndef test_it():\n    assert double(1) == 2\n"
    "    with pytest.raises(TypeError):\n        double(None)\n        'a' < 1\n",
    "lazy": "from pkg.core import double\n\n\ndef check(x):\n    assert double(x) == 2 * x\n\n\ndef test_it():\n"
    "    assert double(1) == 2\n    map(check, [1, 2])\n",
    "empty_loop": "from pkg.core import double\n\n\ndef test_it():\n    assert double(1) == 2\n    for x in []:\n"
    "        assert double(x) == 2 * x\n",
    "behind_raise": "import pytest\nfrom pkg.core import double\n\n\ndef test_it():\n    assert double(1) == 2\n"
    "    with pytest.raises(TypeError):\n        double(None)\n        assert double(2) == 5\n",
    "returned": "from pkg.core import double\n\n\ndef test_it():\n    return double(2) == 5\n",
    "never_awaited": "from pkg.core import double\n\n\nasync def check():\n    pass\n\n\ndef test_it():\n"
    "    assert double(1) == 2\n    check()\n",
    "or_true": "from pkg.core import double\n\n\ndef test_it():\n    assert double(2) == 5 or True\n",
    "tuple": "from pkg.core import double\n\n\ndef test_it():\n    assert (double(2) == 5, 'must be five')\n",
    "nothing_of_it": "import pytest\nfrom pkg.core import double, triple\n\n\n"
    "def test_it():\n    assert double(1) == 2\n\n\n"
    "def test_other():\n    with pytest.raises(TypeError):\n        triple(None)\n        assert triple(1) == 3\n",
    "not_a_number": "from pkg.core import double\n\n\ndef test_it():\n    found = double(float('nan'))\n"
    "    assert found != found\n",
    "useless": "from pkg.core import double\n\n\ndef test_it():\n    assert double(1) == 2\n    double(2) == 5\n",
}
RULES = {
    "honest": set[str](), "raises": set[str](), "lazy": {"BL021"}, "empty_loop": {"BL021"}, "behind_raise": {"BL021"},
    "returned": {"BL019"}, "never_awaited": {"BL019"}, "or_true": {"BL020"}, "tuple": {"BL020"},
    "useless": {"BL020"}, "nothing_of_it": set[str](), "not_a_number": set[str](),
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Finding]]]:
    """Run one project with a criterion for each form, and judge it."""
    criteria = "".join(
        f"  - id: {name}\n    text: It doubles\n    code: [{{symbol: 'pkg.core:double'}}]\n"
        f"    tests: [tests/test_{name}.py]\n"
        for name in TESTS
    )
    task = f"id: T1\ntitle: Doubling\nimplementation: [pkg]\ntests: [tests]\ncriteria:\n{criteria}"
    files = {f"tests/test_{name}.py": text for name, text in TESTS.items()}
    files |= {
        "pkg/__init__.py": "",
        "pkg/core.py": "def double(x):\n    return x * 2\n\n\ndef triple(x):\n    return x / 1 * 3\n",
        "tasks/T1.yaml": task,
    }
    root = written(tmp_path_factory.mktemp("assertions") / "project", files)
    asked = spec.load(root / "tasks/T1.yaml", root)
    seen = collected(asked, a_context(root), PytestRun, ExecutedLines, SourceTree, TestFiles)
    yield {name: [finding for finding in judge(asked, seen) if finding.criterion == name] for name in TESTS}


@pytest.mark.parametrize("name", TESTS)
def test_a_check_that_did_not_happen_leaves_its_criterion_open(found: dict[str, list[Finding]], name: str) -> None:
    assert {f.rule for f in found[name] if f.leaves_open} == RULES[name]
    if not RULES[name]:
        assert [f.outcome for f in found[name]] == [Outcome.PASSED]


def test_nothing_is_said_of_tests_that_nobody_ran(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"tasks/T1.yaml": "id: T1\ntitle: x\nimplementation: [pkg]\ncriteria:\n"
                                          "  - {id: A, text: y}\n"})  # fmt: skip
    (only,) = judge(spec.load(root / "tasks/T1.yaml", root), EvidenceSet(why="they did not run"))
    assert (only.outcome, only.leaves_open, "they did not run" in only.message) == (Outcome.UNKNOWN, False, True)


def test_what_ruff_did_not_look_at_is_unknown() -> None:
    files = TestFiles(how="read", asserted=(), linted=(), names={}, unlinted="ruff did not run")
    told = [finding.outcome for finding in judge(a_task(), all_evidence(a_task(), files)) if finding.criterion == "AC1"]
    assert told == [Outcome.UNKNOWN]
