"""The base's tests against a change, in real repositories: what a weakened test hides is found, honest work is not."""

from dataclasses import replace
from pathlib import Path

import pytest
from bar import committed, git
from building import LIGHT, a_context, a_run, a_task, evidence, pytest_options, written

from gates.check import EvidenceSet
from gates.checks.base_tests import BaseTests, judge
from gates.commands.run import follow_moved
from gates.model import Finding, Level, Outcome, PolicyRevision
from gates.task import loading as spec
from gates.task.task import Task

CORE = "def double(x):\n    return x * 2\n"
BROKEN = "def double(x):\n    return x * 2 + (x > 5)\n"
TEST = """\
import pytest
from pkg.core import double


@pytest.mark.parametrize(("x", "y"), [(1, 2), (7, 14)])
def test_double(x, y):
    assert double(x) == pytest.approx(y, rel=1e-6)
"""
FAILING = "\n\ndef test_old():\n    assert double(1) == 3\n"
TWICE = "from pkg.gone import twice\n\n\ndef test_it():\n    assert twice(1) == 2\n"
TASK = LIGHT.replace("criteria:", "tests: [tests]\ncriteria:") % "double" + "    tests: [tests]\n"
BASE = {
    "pyproject.toml": pytest_options(), "pkg/__init__.py": "", "pkg/core.py": CORE, "tests/test_core.py": TEST,
    "tests/data.txt": "1", "tasks/T1.yaml": TASK,
}  # fmt: skip
WEAKENED: dict[str, str] = {
    "expected_values_are_copied": TEST.replace("(7, 14)", "(7, 15)"),
    "rows_are_deleted": TEST.replace(", (7, 14)", ""),
    "a_tolerance_is_wider": TEST.replace("rel=1e-6", "rel=0.5"),
    "the_import_is_swapped": TEST.replace("from pkg.core import double", "double = lambda x: x * 2"),
    "a_test_is_skipped": TEST.replace("@pytest", "@pytest.mark.skip\n@pytest", 1),
    "the_file_is_emptied": "def test_nothing():\n    assert True\n",
}
HONEST = {  # the code, a test written anew, data beside it, and one more test
    "pkg/core.py": "def double(x):\n    return x + x\n",
    "tests/test_more.py": "from pkg.core import double\n\n\ndef test_two():\n    assert double(2) == 4\n",
    "tests/test_core.py": TEST.replace("test_double", "test_doubling"),
    "tests/data.txt": "2",
}


def judged(folder: Path, change: dict[str, str], base: dict[str, str] = BASE) -> tuple[list[Finding], BaseTests, Task]:
    root = written(folder / "project", base)
    committed(root)
    git(root, "checkout", "-q", "-b", "change")
    written(root, change)
    committed(root, "change")
    asked = follow_moved(spec.load(root / "tasks/T1.yaml", root), root, "main")
    context = replace(a_context(root), policy=PolicyRevision(revision="main", commit="c" * 40))
    seen = evidence(a_run())
    seen.collect(BaseTests, asked, context)
    tests = seen.get(BaseTests)
    assert tests is not None, seen.why_missing(BaseTests)
    return list(judge(asked, seen)), tests, asked


def test_a_weakened_test_does_not_hide_what_the_base_notices(tmp_path: Path) -> None:
    """Each file of tests is weakened in another way, and each is named with what it promised."""
    base = {**BASE, **{f"tests/test_{name}.py": TEST for name in WEAKENED}, "tests/test_failing.py": f"{TEST}{FAILING}"}
    base |= {"pkg/gone.py": CORE, "tests/test_gone.py": TEST.replace("pkg.core", "pkg.gone")}
    del base["tests/test_core.py"]
    change = {"pkg/core.py": BROKEN, **{f"tests/test_{name}.py": text for name, text in WEAKENED.items()}}
    change |= {"pkg/gone.py": "def twice(x):\n    return x + x\n", "tests/test_gone.py": TWICE}
    change["tests/test_failing.py"] = ""
    found, tests, task = judged(tmp_path, change, base)
    assert {(f.rule, f.outcome, f.criterion, f.blocks) for f in found} == {("BL022", Outcome.FAILED, "AC1", True)}
    gone = {(f"tests/test_gone.py::test_double[{case}]", "not found") for case in ("1-2", "7-14")}
    fails = {(f"tests/test_{name}.py::test_double[7-14]", "failed") for name in (*WEAKENED, "failing")}
    assert {(each.subject, each.actual) for each in found} == gone | fails  # what failed at the base proves nothing
    meant = tuple(sorted({each.subject.partition("[")[0] for each in found}))
    assert all(f'changes: ["{each.subject.partition("[")[0]}"]' in each.remediation for each in found)
    naming = task.model_copy(update={"criteria": (task.criteria[0].model_copy(update={"changes": meant}),)})
    (passed,) = judge(naming, evidence(tests, a_run()))
    assert (passed.outcome, "9 that fail are named" in passed.message) == (Outcome.PASSED, True)
    for stood, outcome in (((), Outcome.UNKNOWN), (("AC1",), Outcome.FAILED)):  # what is new may promise another thing
        found = list(judge(task, evidence(tests.model_copy(update={"by_base": False, "stood": stood}), a_run())))
        assert {(each.outcome, each.criterion, each.level) for each in found} == {(outcome, "AC1", Level.MUST)}


PATCHED = """
import pytest, pkg.core, tests.test_core

@pytest.fixture(autouse=True)
def _good(monkeypatch):
    monkeypatch.setattr("tests.test_core.double", lambda x: x * 2)
"""


def test_what_the_change_adds_around_the_tests_does_not_help_it(tmp_path: Path) -> None:
    """One file alone would make each test pass, the other one none of them be found."""
    added = {"tests/conftest.py": PATCHED, "pytest.ini": "[pytest]\npython_functions = check_*\n"}
    (found,), _, _ = judged(tmp_path, {"pkg/core.py": BROKEN, **added}, {**BASE, "tests/__init__.py": ""})
    assert (found.outcome, found.actual, found.criterion, found.blocks) == (Outcome.FAILED, "failed", "AC1", True)


def test_honest_changes_pass(tmp_path: Path) -> None:
    (found,), _, _ = judged(tmp_path, HONEST)
    assert found.outcome is Outcome.PASSED


BESIDE = {
    **{path: text for path, text in BASE.items() if not path.startswith("tests/")},
    "pkg/inner/__init__.py": "", "pkg/inner/core_test.py": TEST, "pkg/core.py": f"FAST = True\n{CORE}",
    "tasks/T1.yaml": TASK.replace("[tests]", "[pkg]"),
}  # fmt: skip
INNER = {"tasks/T1.yaml": TASK.replace("[tests]", "[pkg/inner]")}
FEW = TEST.replace(", (7, 14)", "")
FAST = "import pkg.core\n" + TEST.replace("@pytest", "@pytest.mark.skipif(not pkg.core.FAST, reason='')\n@pytest", 1)


@pytest.mark.parametrize(
    ("base", "change"),
    [
        (INNER, {"pkg/core.py": BROKEN, "pkg/conftest.py": PATCHED.replace("tests.test_core", "pkg.inner.core_test")}),
        ({"pkg/inner/fast_test.py": FAST}, {"pkg/core.py": f"FAST = False\n{BROKEN}", "pkg/inner/fast_test.py": FEW}),
    ],
    ids=["a conftest between", "tests beside the code, of which the change skips one"],
)
def test_what_the_base_promised_is_asked_of_the_code_of_the_change(
    base: dict[str, str], change: dict[str, str], tmp_path: Path
) -> None:
    found, _, _ = judged(tmp_path, {**change, "pkg/inner/core_test.py": FEW}, {**BESIDE, **base})
    assert {(each.outcome, each.criterion, each.blocks) for each in found} == {(Outcome.FAILED, "AC1", True)}
    tests = {each.subject.partition("::")[0] for each in found}
    assert tests == {"pkg/inner/core_test.py", *(path for path in base if path.endswith("_test.py"))}


def test_a_test_without_its_marker_or_by_another_name_stands_for_all_its_criteria_of_the_base(tmp_path: Path) -> None:
    marked = TEST.replace("@pytest", "@pytest.mark.criterion('T1/AC1')\n@pytest", 1)
    named = "  - {id: AC0, text: It is fast, level: advisory, tests: [tests]}\n  - id: AC1"
    base = {**BASE, "tasks/T1.yaml": TASK.replace("    tests: [tests]\n", "").replace("  - id: AC1", named)}
    base |= {"tests/test_core.py": marked, "tests/test_name.py": marked}
    change = {"tests/test_core.py": FEW, "tests/test_name.py": FEW.replace("test_double", "test_twice")}
    found, _, _ = judged(tmp_path, {"pkg/core.py": BROKEN, **change}, base)
    stands = [("failed", "AC0", False)] * 2 + [("failed", "AC1", True)] * 2
    assert [(each.actual, each.criterion, each.blocks) for each in found] == stands


@pytest.mark.parametrize(
    ("now", "stood"), [(TASK, ("AC1",)), (TASK.replace("Double a", "Treble a"), ()), (TASK.replace("AC1", "AC2"), ())]
)
def test_a_criterion_in_the_words_of_the_base_stood_there(now: str, stood: tuple[str, ...], tmp_path: Path) -> None:
    _, tests, _ = judged(tmp_path, {"tasks/T1.yaml": now})  # no test is another: none is run
    assert tests.stood == stood


HALF = "\n\ndef _half(x):\n    return x / 2\n"
HALVES = (
    "import helper\n"
    + TEST.replace("import double", "import _half, double")
    + "\n\ndef test_half():\n    assert _half(4) == 2\n"
)


def test_the_bases_tests_use_the_names_that_the_change_gave(tmp_path: Path) -> None:
    """So all but the one that the change breaks pass."""
    base = {"pkg/core.py": CORE + HALF, "tests/test_core.py": HALVES, "tests/helper.py": "from pkg.core import _half\n"}
    change = {path: text.replace("_half", "halve") for path, text in base.items()}
    base, change["pkg/core.py"] = {**BASE, **base}, BROKEN + HALF.replace("_half", "halve")
    (found,), _, _ = judged(tmp_path, change, base)
    assert (found.outcome, found.subject) == (Outcome.FAILED, "tests/test_core.py::test_double[7-14]")


def test_a_named_test_that_was_moved_and_weakened_or_its_helper_stands_for_its_criterion(tmp_path: Path) -> None:
    helped = {"tests/helper.py": f"{TEST}\n\ndef good():\n    test_double(7, 14)\n"}
    helped |= {"tests/test_helped.py": "from helper import good\n\n\ndef test_double():\n    good()\n"}
    named = "['tests/test_core.py::test_double', 'tests/test_helped.py::test_double']"
    base = {**BASE, "tasks/T1.yaml": TASK.replace("[tests]", named), **helped}
    moved = {"tests/unit/test_it.py": FEW, "tests/test_core.py": ""}
    found, _, _ = judged(tmp_path, {"pkg/core.py": BROKEN, "tests/helper.py": "good = print\n", **moved}, base)
    assert [(each.outcome, each.criterion, each.blocks) for each in found] == [(Outcome.FAILED, "AC1", True)] * 2
    assert {each.subject.partition("[")[0] for each in found} == set(named[2:-2].split("', '"))


def test_without_a_history_it_is_unknown_and_asks_nothing() -> None:
    (unseen,) = judge(a_task(), EvidenceSet(why="no history"))
    assert (unseen.outcome, unseen.leaves_open) == (Outcome.UNKNOWN, False)


GENERATED = {"pkg/__init__.py": "from pkg._version import version\n", ".gitignore": "_version.py\n*.bin\n"}


@pytest.mark.parametrize(("ignored", "outcome"), [("pkg/_version.py", Outcome.FAILED), ("/", Outcome.UNKNOWN)])
def test_what_a_build_generated_is_there_at_the_base_too(ignored: str, outcome: Outcome, tmp_path: Path) -> None:
    """Without the generated file no test runs at the base: what fails against the change is then undecided."""
    base = {**BASE, **GENERATED, "pkg/_version.py": "version = '1'\n"}
    if ignored == "/":  # the base lacks a file that this change adds, and the base's tests cannot be imported there
        base = {**BASE, **GENERATED, ".gitignore": ""}
    shorter = {"pkg/core.py": BROKEN, "tests/test_core.py": WEAKENED["rows_are_deleted"]}
    (found,), _, _ = judged(tmp_path, {**shorter, "pkg/_version.py": "version = '1'\n"}, base)
    assert (found.outcome, found.criterion, found.rule) == (outcome, "AC1", "BL022")
    assert found.leaves_open or found.blocks
