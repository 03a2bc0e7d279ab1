"""Tests that fail in a copy of the project although nothing in it is changed: by the place, or for want of others."""

from pathlib import Path

import pytest
from bar import committed
from building import a_context, a_criterion, a_task, collected, pytest_options, written

from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.proving.emptied_code import EmptiedCode

CORE = "RULES = {}\ndef double(x):\n    return x * RULES.get('factor', 2)\n"
SETS_UP = "from pkg import core\ndef test_rules():\n    core.RULES['more'] = 3\n    assert core.RULES\n"
HEAD = "from pathlib import Path\nfrom pkg.core import RULES, double\n"
PLACE = (
    "def test_place():\n    assert Path(__file__).resolve().parents[1].name == 'project'\n    assert double(0) == 0\n"
)
ITSELF = "def test_it():\n    assert double(3) == double(3)\n"
NOTICES = "def test_it():\n    assert double(3) == 6\n"


def test_what_passes_only_after_others_is_not_judged_and_what_fails_in_copies_switches_nothing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # a second worker takes longer to start than these tests
    tests = (PLACE + ITSELF, PLACE + NOTICES, PLACE, "def test_it():\n    assert double(3) == 6 + len(RULES) - 1\n")
    own = {f"tests/test_core{i}.py": HEAD + text for i, text in enumerate(tests)}
    files = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "", "pkg/core.py": CORE, **own,
             "tests/test_aaa.py": SETS_UP}  # fmt: skip
    criteria = [a_criterion(id=f"AC{i}", tests=[path]) for i, path in enumerate(own)]
    task = a_task(entry_points=[], criteria=criteria, measurements=[])
    context = a_context(written(tmp_path / "project", files))
    found = collected(task, context, PytestRun, SourceTree, ExecutedLines, EmptiedCode).get(EmptiedCode)
    assert found is not None
    itself, notices, alone, after = found.symbols
    assert (itself.noticed, itself.unnoticed, notices.noticed, notices.unnoticed) == (False, True, True, False)
    without = "its tests do not pass in a copy, without the others"
    assert (alone.why, alone.aside) == (without, ("tests/test_core2.py::test_place",))
    assert (after.why, after.noticed) == (without, False)


IN_COPY = "import os\nfrom pathlib import Path\nif 'project' not in Path(__file__).resolve().parts:\n    "


@pytest.mark.parametrize(
    ("spoiler", "text"),
    [("test_it.py", "raise OSError"), ("test_it.py", "os._exit(3)"), ("conftest.py", "raise OSError")],
)
def test_files_of_others_that_cannot_be_collected_in_a_copy_spoil_nothing(
    tmp_path: Path, spoiler: str, text: str
) -> None:
    files = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "", "pkg/core.py": CORE}
    files |= {"tests/test_kind.py": f"{HEAD}def test_it():\n    assert isinstance(double(3), int)\n"}
    files |= {"tests/test_core.py": HEAD + NOTICES, "tests/more/test_it.py": HEAD + NOTICES}
    files[f"tests/more/{spoiler}"] = f"{IN_COPY}{text}\n{files.get(f'tests/more/{spoiler}', '')}"
    own = ["tests/test_kind.py", "tests/test_core.py", "tests/more", "tests/more"]  # one for each worker
    criteria = [a_criterion(id=f"AC{i}", tests=[path]) for i, path in enumerate(own)]
    context = a_context(written(tmp_path / "project", files))
    task = a_task(entry_points=[], criteria=criteria, measurements=[])
    found = collected(task, context, PytestRun, SourceTree, ExecutedLines, EmptiedCode).get(EmptiedCode)
    assert found is not None
    assert [(each.noticed, each.unnoticed) for each in found.symbols[:2]] == [(False, True), (True, False)]
    assert not any(each.noticed for each in found.symbols[2:])


def test_a_copy_of_a_project_in_a_folder_of_its_repository_has_what_lies_above_and_beside_it(tmp_path: Path) -> None:
    above = {
        "pytest.ini": "[pytest]\npythonpath = packages/own\n",
        "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef two():\n    return 2\n",
        "packages/shared/four.py": "FOUR = 4\n",
    }
    test = (
        "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parents[2] / 'shared'))\n"
        "from four import FOUR\nfrom pkg.core import double\ndef test_double(two):\n    assert double(two) == FOUR\n"
    )
    repository = written(tmp_path / "repository", above)
    files = {"tests/test_core.py": test, "pkg/__init__.py": "", "pkg/core.py": "def double(x):\n    return x + x\n"}
    project = written(repository / "packages/own", files)
    committed(repository)
    task = a_task(entry_points=[], criteria=[a_criterion()], measurements=[])
    found = collected(task, a_context(project), PytestRun, SourceTree, ExecutedLines, EmptiedCode).get(EmptiedCode)
    assert found and [(each.noticed, each.why) for each in found.symbols] == [(True, "")]
