"""What `gates init` proposes for a project that has no task file yet."""

from pathlib import Path

import pytest
from bar import committed, git
from building import gates, pytest_options, written

from gates.task.loading import load
from gates.task.task import Task

FILES = {
    "pyproject.toml": '[project]\nname = "words"\nversion = "1.0"\n' + pytest_options(),
    "src/words/__init__.py": "",
    "src/words/coding.py": (
        'def encode(text):\n    """Turn words into numbers."""\n    return [len(word) for word in text.split()]\n\n\n'
        'def decode(numbers):\n    return " ".join("x" * number for number in numbers)\n'
    ),
    "src/words/store.py": "class Store:\n    def save(self, key):\n        self.key = key\n        return self.key\n",
    "tests/test_coding.py": (
        "from words.coding import decode, encode\n\n\n"
        "def test_encoding_counts_letters():\n    assert encode('a bc') == [1, 2]\n\n\n"
        "def test_decoding_repeats_letters():\n    assert decode([2]) == 'xx'\n"
    ),
    "tests/test_store.py": (
        "import unittest\n\nfrom words.store import Store\n\n\nclass Saving(unittest.TestCase):\n"
        "    def test_save(self):\n        self.assertEqual(Store().save('a'), 'a')\n"
    ),
}
STORE, LOADED = "src/words/store.py", "\n    def load(self):\n        return self.key\n"
ISSUE = """# Words as numbers

1. not a criterion

## Acceptance criteria

- [ ] AC7: words are encoded as numbers
- [x] decoding repeats letters
* a store is saved 1.5x faster
- nothing like this exists

## Notes
- not one either
"""


def proposed(project: Path, *words: str) -> Task:
    ended = gates(project, "init", *words)
    assert ended.code == 0, ended.err
    return load(project / "tasks/T1.yaml", project)


def bound(task: Task) -> dict[str, tuple[list[str | None], tuple[str, ...]]]:
    return {each.id: ([code.symbol for code in each.code], each.tests) for each in task.criteria}


def test_criteria_of_an_issue_get_the_code_and_tests_that_share_their_words(tmp_path: Path) -> None:
    project = written(tmp_path / "project", {**FILES, "issue.md": ISSUE})
    task = proposed(project, "T1", "--from", str(project / "issue.md"))
    assert (task.title, task.implementation, task.tests) == ("Words as numbers", ("src/words",), ("tests",))
    assert bound(task) == {
        "AC7": (["words.coding:encode"], ("tests/test_coding.py::test_encoding_counts_letters",)),
        "AC1": (["words.coding:decode"], ("tests/test_coding.py::test_decoding_repeats_letters",)),
        "AC2": (["words.store:Store", "words.store:Store.save"], ()),
        "AC3": ([], ()),
    }
    assert '# code: [{symbol: "package.module:name"}]' in (project / "tasks/T1.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "quantity"),
    [("It is 1.5x faster", "1.5x"), ("Takes under 40 % of it", "40 %"), ("Is on CUDA", "CUDA"), ("Takes 3 words", "")],
)
def test_no_test_is_proposed_for_a_quantity_or_a_device(text: str, quantity: str, tmp_path: Path) -> None:
    project = written(tmp_path / "project", FILES)
    ended = gates(project, "init", "--criterion", f"{text}: encode")
    assert ("AC1  name its measures or tests" in ended.out) is bool(quantity)
    task = load(project / "tasks/T1.yaml", project)
    assert bound(task)["AC1"][1] == (() if quantity else ("tests/test_coding.py::test_encoding_counts_letters",))
    assert (f"What measures {quantity!r}? See `measures`" in (project / "tasks/T1.yaml").read_text()) is bool(quantity)


def test_without_criteria_there_is_one_for_each_file_of_tests(tmp_path: Path) -> None:
    assert bound(proposed(written(tmp_path / "project", FILES))) == {
        "AC1": (["words.coding:encode", "words.coding:decode"], ("tests/test_coding.py",)),
        "AC2": (["words.store:Store", "words.store:Store.save"], ("tests/test_store.py",)),
    }


def test_code_that_none_of_the_proposed_tests_uses_is_left_out(tmp_path: Path) -> None:
    files = {**FILES, "src/words/pages.py": 'def page(words):\n    """Encode a page of words."""\n    return words\n'}
    task = proposed(written(tmp_path / "project", files), "T1", "--criterion", "Words are encoded by letters")
    assert bound(task)["AC1"][0] == ["words.coding:encode"]


def test_what_tests_take_of_other_packages_is_no_code_of_the_project(tmp_path: Path) -> None:
    tests = "import json\nfrom pickle import dumps\n\n" + FILES["tests/test_store.py"].replace(
        "Store().save('a'), 'a')", "Store().save('a'), json.load(dumps('a')))"
    )
    eco = "def dumps(): ...\n\n\ndef load(): ...\n\n\ndef save(): ...\n"
    files = {**FILES, "src/words/eco.py": eco, "tests/test_store.py": tests}
    task = proposed(written(tmp_path / "project", files))
    assert bound(task)["AC2"][0] == ["words.store:Store", "words.store:Store.save"]


def test_all_tests_that_use_the_code_are_proposed_where_they_are_few(tmp_path: Path) -> None:
    file = "tests/test_coding.py"
    tests = {file: FILES[file] + "\n\ndef test_nothing():\n    assert encode('') == []\n"}
    task = proposed(written(tmp_path / "project", FILES | tests), "T1", "--criterion", "Encoding counts letters")
    assert bound(task)["AC1"][1] == (f"{file}::test_encoding_counts_letters", f"{file}::test_nothing")


def test_a_package_of_nothing_but_tests_is_no_implementation(tmp_path: Path) -> None:
    moved = {path.removeprefix("src/").replace("tests/", "tests_core/"): text for path, text in FILES.items()}
    task = proposed(written(tmp_path / "project", {**moved, "tests_core/__init__.py": ""}))
    assert (task.implementation, task.tests) == (("words",), ("tests_core",))


@pytest.mark.parametrize("name", ["tests/all.py", "src/tests.py", "tests.py"])  # as `python_files` may say
def test_tests_in_files_of_other_names_are_proposed(name: str, tmp_path: Path) -> None:
    other = {path: text for path, text in FILES.items() if not path.startswith("tests/")}
    task = proposed(written(tmp_path / "project", {**other, name: FILES["tests/test_coding.py"]}))
    assert bound(task) == {"AC1": (["words.coding:encode", "words.coding:decode"], (name,))}


def test_words_of_a_tests_file_count(tmp_path: Path) -> None:
    test, top = "def test_{}(): assert LRUCache().popitem() == 1\n", "from caches import LRUCache\n"
    locks = top + "".join(test.format(f"cached_lock_{number}") for number in range(8))
    files = {"tests/test_lru.py": top + test.format("popitem"), "tests/test_locks.py": locks}
    files["caches/__init__.py"] = "class LRUCache:\n    def popitem(self): return 1\n"
    task = proposed(written(tmp_path / "project", files), "T1", "--criterion", "An LRU cache drops an item")
    assert bound(task)["AC1"][1] == ("tests/test_lru.py::test_popitem",)


MIXED = """
from mixing import Kept, TestCase
from words.store import Store

class Mixin(Kept):
    def test_save(self): assert Store().save("a") == "a"

class Saving(TestCase, Mixin): pass

class Direct(Saving):
    def test_save(self): assert Store().save("b") == "b"
"""


def test_what_a_change_touches_inside_is_proposed_by_its_class_and_by_tests_that_pytest_takes(tmp_path: Path) -> None:
    change = "class Store:\n    def _to(self): return 1\n    def save(self, key):\n        return key\n"
    turned, many = change.replace("1", "2"), "".join(f"\ndef test_{n}():\n    Store()\n" for n in range(9))
    cases = (change, turned, "", ""), (FILES[STORE], FILES[STORE] + LOADED, ".load", ""), (change, turned, "", many)
    for old, new, name, more in cases:
        project = written(tmp_path / f"p{name}{len(more)}", {**FILES, STORE: old, "tests/test_store.py": MIXED + more})
        committed(project)
        git(project, "checkout", "-qb", "change")
        (project / STORE).write_text(new)
        tests = ("tests/test_store.py", "tests/test_store.py::Direct::test_save")[: 1 if more else 2]
        assert bound(proposed(project)) == {"AC1": ([f"words.store:Store{name}"], tests)}


@pytest.mark.parametrize(("line", "rules"), [("from torch import nn", ("amp",)), ("import torchless", ())])
def test_code_with_torch_is_asked_the_rules_of_mixed_precision(
    line: str, rules: tuple[str, ...], tmp_path: Path
) -> None:
    files = {**FILES, "src/words/net.py": f"{line}\n"}
    assert proposed(written(tmp_path / "project", files), "T1", "--criterion", "encode").rules == rules


def test_a_change_is_proposed_by_what_it_touches_and_the_proposal_passes(tmp_path: Path) -> None:
    project = written(tmp_path / "project", {**FILES, "conftest.py": "import sys\nsys.path.insert(0, 'src')\n"})
    committed(project)
    git(project, "checkout", "-qb", "change")
    coding = project / "src/words/coding.py"
    coding.write_text(coding.read_text().replace("text.split()", 'text.split(" ")'))
    task = proposed(project)
    assert bound(task) == {"AC1": (["words.coding:encode"], ("tests/test_coding.py::test_encoding_counts_letters",))}
    assert gates(project, "init", "T2", "--criterion", "decode repeats letters").code == 0
    assert "words.coding:decode" in (project / "tasks/T2.yaml").read_text()
    (project / "tasks/T2.yaml").unlink()
    ended = gates(project, "run", "T1", "--out", str(tmp_path / "out"))
    assert (ended.code, "PASS  T1" in ended.out) == (0, True), ended.out + ended.err


@pytest.mark.parametrize(
    ("files", "words", "said"),
    [
        (FILES, ("1T",), "no task id '1T': expected a letter"),
        ({**FILES, "tasks/T1.yaml": ""}, ("T1",), "tasks/T1.yaml is there already"),
        ({"README.md": "no code"}, ("T1",), "found no Python package or module"),
        ({"words.py": "def f():\n    pass\n"}, ("T1",), "nothing to propose: give criteria"),
        (FILES, ("T1", "--base", "nowhere"), "git repository"),
        (FILES, ("T1", "--from", "nowhere.md"), "nowhere.md"),
    ],
)
def test_what_cannot_be_proposed_is_said_and_nothing_is_written(
    files: dict[str, str], words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    project = written(tmp_path / "project", files)
    ended = gates(project, "init", *words)
    assert ended.code == 2
    assert said in ended.err
    assert {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()} == {*files}
