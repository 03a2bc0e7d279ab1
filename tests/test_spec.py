"""The loader of task files: every kind of bad input, with its exact place; YAML 1.1 kept out; finding by id."""

from pathlib import Path

import pytest
from building import SMALL, TASK_FILE, loaded, refused, written

from gates.errors import UsageError
from gates.model import Level
from gates.task import loading as spec

MEASURED = f"""{SMALL}\
    measures:
      - {{from: bench, of: time_s, %s}}
measurements:
  - id: bench
    run: [python, bench.py, "{{out}}"]
"""


def complaints(tmp_path: Path, text: str | bytes) -> list[str]:
    """What the loader says of a file: one entry for each thing that is wrong, the shown lines left out."""
    return [line for line in said(tmp_path, text).splitlines() if not line.startswith("  ")]


def said(tmp_path: Path, text: str | bytes) -> str:
    return f"tasks/T1.yaml:{refused(tmp_path, text)}"


def test_good_file_loads_with_defaults_and_lines(tmp_path: Path) -> None:
    task = loaded(tmp_path, TASK_FILE)
    assert (task.id, task.path, task.coverage_at_least) == ("T1", "tasks/T1.yaml", 0.8)
    assert [(c.id, c.level, c.line) for c in task.criteria] == [("AC1", Level.MUST, 9), ("AC2", Level.MUST, 13)]
    assert task.criteria[1].measures[0].line == 16
    assert task.entry_points[0].run == ("python", "-c", "import pkg.core; pkg.core.double(1)")


BAD: dict[str, tuple[str | bytes, str]] = {
    "task": (SMALL + "titel: x\n", "7:1: unknown key 'titel'; did you mean 'title'?"),
    "criterion": (SMALL + "    txet: x\n", "7:5: unknown key 'txet'; did you mean 'text'?"),
    "code": (SMALL + "    code: [{symbl: 'a:b'}]\n", "7:13: unknown key 'symbl'; did you mean 'symbol'?"),
    "claims": (SMALL + "claims: [r.md]\n", "7:1: 'claims' is gone: run `gates audit REPORT --task TASK`"),
    "empty_cache": (SMALL + "hot_paths: [{call: 'a:b', limits: {empty_cache: 0}}]\n", "7:36: 'empty_cache' is gone"),
    "regressions": (SMALL + "regressions: []\n", "7:1: 'regressions' is gone: write a criterion with measures: "),
    "slope": (MEASURED % "slope: a, at_most: 1", "8:35: 'slope' is gone: name what must not go on growing"),
    "measure": (MEASURED % "value: a, at_leest: 1", "8:45: unknown key 'at_leest'; did you mean 'at_least'?"),
    "entry point": (
        SMALL + "entry_points:\n  - {run: [x], criterai: [AC1]}\n",
        "8:16: unknown key 'criterai'; did you mean 'criteria'?",
    ),
    "measurement": (
        SMALL + "measurements:\n  - {id: b, run: ['{out}'], timout_s: 3}\n",
        "8:29: unknown key 'timout_s'; did you mean 'timeout_s'?",
    ),
    "reserved line": (SMALL + "line: 3\n", "7:1: unknown key 'line'"),
    "reserved line of a criterion": (SMALL + "    line: 3\n", "7:5: unknown key 'line'"),
    "duplicate key": (SMALL + "title: again\n", "7:1: duplicate key 'title', first in line 2; keep one"),
    "duplicate inner key": (SMALL + "    text: x\n", "7:5: duplicate key 'text', first in line 6; keep one"),
    "anchor": (SMALL.replace("[pkg]", "&a [pkg]"), "3:17: anchors and aliases are not allowed"),
    "alias": (SMALL + "tests: *a\n", "7:8: anchors and aliases are not allowed"),
    "tag": (SMALL.replace("Doubling", "!!str Doubling"), "2:8: the tag"),
    "two documents": (SMALL + "---\nid: T2\n", "7:1: a second document; one file holds one task"),
    "merge key": (SMALL.replace("title:", "<<: {title: x}\ntitle:"), "2:1: unknown key '<<'"),
    "list at the top": ("- id: T1\n", "1:1: expected a mapping"),
    "empty": ("", "1:1: the file is empty"),
    "null": ("~\n", "1:1: expected a mapping"),
    "tab": (SMALL + "\ttests: [tests]\n", "7:1: not valid YAML"),
    "open bracket": (SMALL + "tests: [a\n", "8:1: not valid YAML"),
    "control character": (SMALL.replace("Doubling", "Doub\x07ling"), "2:12: the character #x0007 is not allowed"),
    "missing key": (SMALL.replace("title: Doubling\n", ""), "1:1: missing key 'title' in the file"),
    "missing inner key": (SMALL.replace("    text: Double a number\n", ""), "5:5: missing key 'text' in criteria[0]"),
    "key without a value": (SMALL.replace("title: Doubling", "title:"), "2:7: title: expected"),
    "mapping for text": (SMALL.replace("Doubling", "{a: b}"), "2:8: title: expected a valid string"),
    "text for a list": (SMALL.replace("[pkg]", "pkg"), "3:17: implementation: expected a list, found 'pkg'"),
    "list as a key": (SMALL + "? [a, b]\n: c\n", "7:3: a key must be plain text"),
    "empty criteria": ("id: T1\ntitle: x\nimplementation: [pkg]\ncriteria: []\n", "4:1: 'criteria' is empty"),
    "empty implementation": (SMALL.replace("[pkg]", "[]"), "3:1: 'implementation' is empty"),
    "empty title": (SMALL.replace("Doubling", "''"), "2:1: 'title' is empty, expected some text"),
    "blank title": (SMALL.replace("Doubling", "'  '"), "2:8: title: expected some text"),
    "bad id": (SMALL.replace("id: T1", "id: 1T"), "1:5: id: expected a letter"),
    "bad level": (SMALL + "    level: shuold\n", "7:12: expected 'must', 'should' or 'advisory', found 'shuold'"),
    "empty run": (SMALL + "entry_points:\n  - run: []\n", "8:5: 'run' is empty"),
    "run that is text": (SMALL + "entry_points:\n  - run: python x\n", "8:10: entry_points[0].run: expected a list"),
    "time limit of words": (SMALL + "entry_points: [{run: [x], timeout_s: soon}]\n", "7:38: entry_points[0].timeout_s"),
    "time limit of nothing": (SMALL + "entry_points: [{run: [x], timeout_s: 0}]\n", "7:38: entry_points[0].timeout_s"),
    "endless time limit": (SMALL + "entry_points: [{run: [x], timeout_s: .inf}]\n", "7:38: entry_points[0].timeout_s"),
    "coverage above one": (SMALL + "coverage_at_least: 80\n", "7:20: coverage_at_least: expected"),
    "coverage is no number": (SMALL + "coverage_at_least: nan\n", "7:20: coverage_at_least: expected"),
    "path outside": (SMALL + "tests: [../other]\n", "7:9: expected a path inside the project, found '../other'"),
    "absolute path": (SMALL + "tests: [/etc]\n", "7:9: expected a path inside the project, found '/etc'"),
    "criterion's path outside": (SMALL + "    tests: [a/../../b]\n", "7:13: expected a path inside the project"),
    "symbol without a module": (SMALL + "    code: [{symbol: double}]\n", "7:21: criteria[0].code[0].symbol: expected"),
    "symbol with a path": (SMALL + "    code: [{symbol: 'pkg/core.py:double'}]\n", "7:21: criteria[0].code[0].symbol"),
    "symbol and rule": (SMALL + "    code: [{symbol: 'a:b', rule: r}]\n", "7:12: expected exactly one of 'symbol'"),
    "neither symbol nor rule": (SMALL + "    code: [{uses: [a]}]\n", "7:12: expected exactly one of 'symbol'"),
    "pattern and symbol": (
        SMALL + "    code: [{pattern: 'f(...)', symbol: 'a:b'}]\n", "7:12: expected exactly one of 'symbol'"),
    "broken pattern": (
        SMALL + "    code: [{pattern: 'f(', at_least: 2}]\n", "7:22: not a pattern of Python: '(' was never closed"),
    "empty pattern": (SMALL + "    code: [{pattern: '# nothing'}]\n", "7:22: expected an expression or a statement"),
    "pattern of everything": (SMALL + "    code: [{pattern: $X}]\n", "7:22: a pattern of a hole alone fits everything"),
    "hole without a name": (SMALL + "    code: [{pattern: f($x)}]\n", "7:22: expected '$NAME' in capitals or '$$$'"),
    "no places": (SMALL + "    code: [{pattern: f(), at_least: 0}]\n", "7:37: criteria[0].code[0].at_least: expected"),
    "places of a symbol": (SMALL + "    code: [{symbol: 'a:b', at_least: 2}]\n", "7:12: 'at_least' goes with"),
    "file of a symbol": (SMALL + "    code: [{symbol: 'a:b', in: pkg}]\n", "7:12: 'in' goes with 'pattern'"),
    "file outside": (SMALL + "    code: [{pattern: f(), in: ../x}]\n", "7:31: expected a path inside the project"),
    "an entry that code is reached from": (
        SMALL + "    code: [{symbol: 'a:b', reached_from: 'a:c'}]\n", "7:28: 'reached_from' is gone"),
    "unknown criterion": (
        SMALL + "entry_points:\n  - {run: [x], criteria: [AC11]}\n",
        "8:27: unknown criterion 'AC11'; did you mean 'AC1'?",
    ),
    "unknown measurement": (
        (MEASURED % "value: a, at_least: 1").replace("from: bench", "from: bensh"),
        "8:16: unknown measurement 'bensh'; did you mean 'bench'?",
    ),
    "duplicate criterion": (SMALL + "  - id: AC1\n    text: again\n", "7:9: duplicate id 'AC1', first in line 5"),
    "duplicate measurement": (
        SMALL + "measurements:\n  - {id: b, run: ['{out}']}\n  - {id: b, run: ['{out}']}\n",
        "9:10: duplicate id 'b', first in line 8",
    ),
    "nowhere to write": (SMALL + "measurements:\n  - {id: b, run: [x]}\n", "8:5: expected '{out}' in 'run'"),
    "no bound": (MEASURED % "value: a", "8:9: expected exactly one of 'at_least', 'at_most' and 'below'"),
    "two bounds": (MEASURED % "value: a, at_least: 1, below: 2", "8:9: expected exactly one of 'at_least'"),
    "two kinds": (MEASURED % "value: a, ratio: [a, b], at_least: 1", "8:9: expected exactly one of 'ratio'"),
    "no kind": (MEASURED % "at_least: 1", "8:9: expected exactly one of 'ratio'"),
    "bound is nan": (MEASURED % "value: a, at_least: .nan", "8:55: criteria[0].measures[0].at_least: expected"),
    "bound is 1e999": (MEASURED % "value: a, below: 1e999", "8:52: criteria[0].measures[0].below: expected a finite"),
    "ratio above nothing": (MEASURED % "ratio: [a, b], at_least: 0", "8:9: a ratio is compared with a number above 0"),
    "ratio with itself": (MEASURED % "ratio: [a, a], at_least: 2", "8:9: 'ratio' compares 'a' with itself: name two"),
    "ratio below nothing": (MEASURED % "ratio: [a, b], below: -1", "8:9: a ratio is compared with a number above 0"),
    "unknown device": (MEASURED % "value: a, at_least: 1, on: gpu", "8:62: expected"),
    **{f"ratio of {arms}": (MEASURED % f"ratio: {arms}, at_least: 1", "8:42: criteria[0].measures[0].ratio: expected")
       for arms in ("[a]", "[a, b, c]", "a")},
    "entry point of nothing": (SMALL + "entry_points:\n  - {}\n", "8:5: expected exactly one of 'run' and 'call'"),
    "a command and a call": (
        SMALL + "entry_points:\n  - {run: [x], call: 'pkg:f'}\n", "8:5: expected exactly one of 'run' and 'call'"),
    "arguments of a command": (SMALL + "entry_points:\n  - {run: [x], args: [1]}\n", "8:5: 'args' goes with 'call'"),
    "indentation": (SMALL.replace("    text:", "   text:"),
                    "6:4: not valid YAML: this line does not fit those around it"),
    "a byte that is no UTF-8": (b"id: T1\ntitle: caf\xe9\n", "2:11: byte 0xe9 is not UTF-8; save the file as UTF-8"),
    "UTF-16": (SMALL.encode("utf-16"), "1:1: byte 0xf"),
    "zeros": (b"\0" * 100, "1:1: the character #x0000 is not allowed"),
    "ten megabytes": (b"# " + b"x" * 10_000_000, "1:1: the file has 10000002 bytes, expected at most"),
    "deep lists": ("[" * 100_000, "1:21: nested more than 20 deep"),
    "deep mappings": ("{a: " * 50_000, "1:81: nested more than 20 deep"),
    "deep dashes": ("- " * 100_000, "1:41: nested more than 20 deep"),
    "deep indents": ("".join(" " * i + "a:\n" for i in range(300)), "21:21: nested more than 20 deep"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_with_its_exact_place(tmp_path: Path, kind: str) -> None:
    text, expected = BAD[kind]
    (only,) = complaints(tmp_path, text)
    assert only.startswith(f"tasks/T1.yaml:{expected}")


def test_offending_line_is_shown_with_a_mark_under_the_column(tmp_path: Path) -> None:
    assert said(tmp_path, SMALL + "titel: x\n").splitlines()[1:] == ["      7 | titel: x", "        | ^"]


def test_offending_line_shows_no_control_character(tmp_path: Path) -> None:
    assert all(c.isprintable() or c == "\n" for c in said(tmp_path, SMALL + 'tests: [7, "a\u202eb"]\ntitel: "\x85"\n'))


def test_everything_wrong_is_said_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = SMALL.replace("Doubling", "''") + "    level: no\n    code: [{rule: 7}]\n  - id: AC1\n    txt: again\nx: y\n"
    places = [line.removeprefix("error: ").split(" ")[0] for line in complaints(tmp_path, text)]
    numbers = [tuple(map(int, place.split(":")[1:3])) for place in places]
    assert numbers == sorted(numbers)
    assert {line for line, _ in numbers} == {2, 7, 8, 9, 10, 11}


def test_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\ufeff" + SMALL).id == "T1"


def test_directory_is_refused(tmp_path: Path) -> None:
    root = written(tmp_path, {"tasks/T1.yaml/x": ""})
    with pytest.raises(UsageError, match=r"^tasks/T1\.yaml:1:1: expected a task file, found a directory$"):
        spec.load(root / "tasks" / "T1.yaml", root)


def test_yaml_1_1_types_nothing_the_model_does(tmp_path: Path) -> None:
    task = loaded(tmp_path, SMALL.replace("Doubling", "no").replace("Double a number", "012"))
    assert (task.title, task.criteria[0].text) == ("no", "012")


@pytest.mark.parametrize(
    ("written_as", "number"), [("1e-3", 0.001), ("012", 12.0), ("1_0", 10.0), ("0.40", 0.4), ("'2'", 2.0)]
)
def test_numbers_are_what_they_look_like(tmp_path: Path, written_as: str, number: float) -> None:
    task = loaded(tmp_path, MEASURED % f"value: a, at_least: {written_as}")
    assert task.criteria[0].measures[0].bound == (">=", number)


@pytest.mark.parametrize("word", ["1:30", "0x10", "on", "yes", "2026-11-21"])
def test_sexagesimals_and_the_like_are_not_numbers(tmp_path: Path, word: str) -> None:
    (only,) = complaints(tmp_path, MEASURED % f"value: a, at_least: {word}")
    assert f"found {word!r}" in only


def a_folder(tmp_path: Path, **files: str) -> Path:
    return written(tmp_path, {f"tasks/{name}.yaml": SMALL.replace("T1", task) for name, task in files.items()})


def found(root: Path, task_id: str) -> str:
    return spec.find(task_id, root / "tasks", root).relative_to(root).as_posix()


def test_task_is_found_by_the_id_it_gives_itself(tmp_path: Path) -> None:
    assert found(a_folder(tmp_path, doubling="T7", halving="T8"), "T8") == "tasks/halving.yaml"


def test_task_is_found_by_its_path(tmp_path: Path) -> None:
    root = a_folder(tmp_path, x="T1")
    assert found(root, str(root / "tasks" / "x.yaml")) == "tasks/x.yaml"


@pytest.mark.parametrize("asked", ["T1", "tasks/T1.yaml", "tasks/other.yaml"])
def test_files_of_one_id_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    root = a_folder(tmp_path, T1="T1", other="T1", T2="T2")
    monkeypatch.chdir(root)
    with pytest.raises(UsageError, match=r"^tasks/T1\.yaml, tasks/other\.yaml: each has the id 'T1'; give each"):
        found(root, asked)
    assert found(root, "T2") == "tasks/T2.yaml"


def test_unknown_task_gets_a_suggestion_or_the_place_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no task 'T053' in 'tasks'; did you mean 'T035'\?$"):
        found(a_folder(tmp_path / "project", amp="T035"), "T053")
    with pytest.raises(UsageError, match=rf"in '{tmp_path}/tasks'; write T1\.yaml there$"):
        found(tmp_path, "T1")


def test_the_arguments_of_a_call_have_the_types_of_json(tmp_path: Path) -> None:
    call = 'entry_points:\n  - {call: "pkg.core:run", args: [1, 0.5, true, "true", null, no, 1e3, NaN, {a: [2]}]}\n'
    (entry,) = loaded(tmp_path, SMALL + call).entry_points
    assert entry.args == (1, 0.5, True, "true", None, "no", 1000.0, "NaN", {"a": [2]})
    assert [type(arg) for arg in entry.args[:3]] == [int, float, bool]
    assert entry.name.startswith("pkg.core:run(1, 0.5, true, ")
