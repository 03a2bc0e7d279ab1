"""Tests that stand for a criterion by a marker or by their file, and that never ran, in real runs of pytest."""

from pathlib import Path

from building import a_context, a_criterion, a_task, all_evidence, pytest_options, written

from gates.check import EvidenceSet
from gates.checks import criteria as _criterion_tests
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Outcome

HEAD = "import pytest\nfrom pkg import same\n"
ZERO = "def test_zero(): assert same(0) == 0\n"
MARK = '@pytest.mark.criterion("T1/AC1")\n'
RAN = HEAD + MARK + "def test_ran(): assert same(1) == 1\n"
MORE = HEAD + MARK + "def test_more(): assert same(2) == 2\n"
IN_CLASS = (
    HEAD + "class Contract:\n    def test_zero(self): assert same(0) == 0\n    def test_more(self): assert same(1)\n"
)
BY_MARKER: dict[str, tuple[str, str, str]] = {
    "ignored": ("tests", MORE, "collected"),
    "skipped as a whole": (
        "tests", MORE.replace(HEAD, 'import pytest\npytest.importorskip("none_such")\n'), "as a whole"),
    "in a branch": ("tests", MORE.replace(MARK, "if same(0):\n  " + MARK + "  "), "never planned"),
    "in a class that nobody collects": (
        "tests", HEAD + "class More:\n  pytestmark = pytest.mark.criterion('T1/AC1')\n"
        "  def test_more(self): assert same(2) == 2\n", "never planned"),
}  # fmt: skip
BY_FILE = {
    "in a branch": HEAD + ZERO + "if same(0):\n    def test_more(): assert same(1)\n",
    "taken away below": HEAD + ZERO + "def test_more(): assert same(1)\ntest_more = None\n",
}
NOTHING_MISSED = {
    "the other branch": HEAD + "if same(0):\n    def test_it(): assert 1\nelse:\n    def test_it(): assert same(2)\n",
    "inherited": IN_CLASS + "class TestIt(Contract):\n    pass\n",
    "a class for others": HEAD + "class Base:\n    @pytest.mark.criterion('T1/AC1')\n"
    "    def test_it(self): raise NotImplementedError\n"
    "class TestIt(Base):\n    def test_it(self): assert same(1)\n",
    "no class of tests": HEAD + "class Client:\n    def test_connection(self): return 1\n"
    "def test_it(): assert same(Client().test_connection())\n",
}


def judged(folder: Path, files: dict[str, str], **criteria: list[str]) -> dict[str, list[Finding]]:
    """What is found of each criterion, in one run; of each, the tests that it names."""
    wanted = [a_criterion(id=name, tests=own) for name, own in criteria.items()]
    asked = a_task(entry_points=[], measurements=[], criteria=wanted)
    given = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "def same(x): return x\n", **files}
    seen = all_evidence(asked, PytestRun.derive(asked, a_context(written(folder / "project", given)), EvidenceSet()))
    return {one.id: [*_criterion_tests.judge_tests(asked, one, seen)] for one in asked.criteria}


def test_a_marked_test_that_never_ran_leaves_its_criterion_open_and_one_of_another_project_not(tmp_path: Path) -> None:
    numbers = {f"AC{i}": case for i, case in enumerate(BY_MARKER.values())}
    files = {f"{where}/test_more{i}.py": text.replace("AC1", i) for i, (where, text, _) in numbers.items()}
    files["tests/conftest.py"] = 'collect_ignore = ["test_moreAC0.py"]\n'
    files["tests/test_ran.py"] = RAN.replace('"T1/AC1"', ", ".join(f'"T1/{i}"' for i in (*numbers, "RAN")))
    files |= {f"{beside}/test_more.py": MORE.replace("AC1", "RAN") for beside in (".venv/lib", "env/lib", "other")}
    files |= {"tests/test_more.py": MORE.replace("AC1", "AC7"), "env/pyvenv.cfg": "", "other/tasks/T1.yaml": ""}
    found = judged(tmp_path, files, **{i: [] for i in (*numbers, "RAN")})
    assert [one.outcome for one in found["RAN"]] == [Outcome.PASSED]
    for i, (_, _, why) in numbers.items():
        (one,) = found[i]
        assert (one.outcome, one.level.value, why in one.message) == (Outcome.UNKNOWN, "must", True), one.message
        assert f"test_more{i}" in f"{one.message} {one.location}"


def test_a_test_of_a_bound_file_that_never_ran_leaves_its_criterion_open_and_one_elsewhere_not(
    tmp_path: Path,
) -> None:
    cases = {f"AC{i}": text for i, text in enumerate((*BY_FILE.values(), *NOTHING_MISSED.values()))}
    paths = {i: f"tests/test_it{i}.py" for i in cases}
    files = {path: cases[i].replace("AC1", i) for i, path in paths.items()}
    for number, (one, *more) in enumerate(judged(tmp_path, files, **{i: [path] for i, path in paths.items()}).values()):
        missed = number < len(BY_FILE)
        assert one.outcome is (Outcome.UNKNOWN if missed else Outcome.PASSED), one.message
        assert (more, "test_more" in one.message) == ([], missed), one.message
