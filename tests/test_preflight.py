"""What a task names and the project does not have is refused before anything runs, with its place."""

from pathlib import Path

import pytest
from bar import committed, git
from building import GOOD, a_project, gates, written

from gates.code.syntax import texts
from gates.commands.run import follow_moved
from gates.task.loading import load

TASK = str(GOOD["tasks/T1.yaml"])
WRONG = {
    ("implementation: [pkg]", "implementation: [pkgg]"): "there is no 'pkgg' in the project; did you mean 'pkg'?",
    ("tests: [tests]", "tests: [test]"): "there is no 'test' in the project; did you mean 'tests'?",
    ("tests/test_core.py", "tests/test_coer.py"): "did you mean 'tests/test_core.py'?",
    ("tests/test_core.py", "tests/test_core.py::test_duoble"): "has no test 'test_duoble'; did you mean 'test_double'?",
    (
        "implementation: [pkg]",
        "implementation: ['pkg/*.py']",
    ): "no 'pkg/*.py' in the project; patterns are not followed",
    ("bench.py", "bnech.py"): "there is no 'bnech.py' in the project; did you mean 'bench.py'?",
}


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change[1])
def test_a_wrong_path_is_2_with_its_place_and_a_suggestion(tmp_path: Path, change: tuple[str, str]) -> None:
    assert change[0] in TASK
    ended = gates(a_project(tmp_path, {"tasks/T1.yaml": TASK.replace(*change)}), "run", "T1")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: tasks/T1.yaml:")
    assert WRONG[change] in ended.err
    assert not (tmp_path / "reports").exists()


def test_what_the_change_took_away_is_judged(tmp_path: Path) -> None:
    task = TASK.replace("tests/test_core.py", "tests/test_core.py::test_double")
    project = a_project(tmp_path, {"tasks/T1.yaml": task})
    committed(project, "before")
    git(project, "checkout", "-q", "-b", "change")
    written(project, {"tests/test_core.py": "def test_duble():\n    assert 1 + 1 == 2\n"})
    committed(project, "after")
    assert gates(project, "run", "T1", "--gate", "execution").code in {1, 3}
    (project / "tests/test_core.py").rename(project / "tests/test_other.py")
    assert gates(project, "run", "T1", "--gate", "execution").code in {1, 3}


TOP = "from pkg.core import double\n"
ONE, TWO = (f"\n\ndef test_{name}():\n    assert double({name}) == 2\n" for name in ("one", "two"))
NEW = "tests/test_new.py::test_{}"
MOVED = {
    "renamed file": ({"test_new.py": TOP + ONE + TWO}, [NEW.format("one"), NEW.format("two")]),
    "split file": ({"test_core.py": TOP + ONE, "test_new.py": TOP + TWO}, [".", NEW.format("two")]),
    "renamed test": ({"test_core.py": TOP + ONE + TWO.replace("_two", "_2")}, [".", "tests/test_core.py::test_2"]),
    "weakened where it is": ({"test_core.py": TOP + ONE}, ["."]),
    "written anew": ({"test_new.py": TOP + ONE + TWO.replace("== 2", ">= 2")}, [NEW.format("one"), NEW.format("two")]),
}


@pytest.mark.parametrize("change", MOVED)
def test_tests_of_a_criterion_are_found_where_the_change_moved_them(change: str, tmp_path: Path) -> None:
    project = a_project(tmp_path, {"tests/test_core.py": TOP + ONE + TWO})
    committed(project, "before")
    (project / "tests/test_core.py").unlink()
    files, expected = MOVED[change]
    written(project, {f"tests/{name}": text for name, text in files.items()})
    criterion = follow_moved(load(project / "tasks/T1.yaml", project), project, "HEAD").criteria[0]
    assert criterion.tests == tuple("tests/test_core.py" if each == "." else each for each in expected)


@pytest.mark.parametrize("now", ["pkg.new:double", "pkg.core:twice", "pkg.new:twice"])
def test_code_of_a_criterion_is_found_where_the_change_moved_it(now: str, tmp_path: Path) -> None:
    project, (module, name) = a_project(tmp_path), now.split(":")
    committed(project, "before")
    core = (project / "pkg/core.py").rename(project / f"{module.replace('.', '/')}.py")
    core.write_text(core.read_text().replace("double", name))
    criterion = follow_moved(load(project / "tasks/T1.yaml", project), project, "HEAD").criteria[0]
    assert [binding.symbol for binding in criterion.code] == [now]


@pytest.mark.parametrize("nested", [b"-" * 3000 + b"1", b"1+" * 3000 + b"1", b"(" * 300])
def test_a_file_that_is_nested_too_deeply_says_nothing(nested: bytes) -> None:
    assert texts(b"def test_it():\n    assert " + nested) == {}
