"""Functions without their bodies: what is taken away, what stays, and what is given back."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gates.child.trying import values
from gates.child.trying.keeping import marked
from gates.child.trying.values import another, hearing
from gates.model import Location
from gates.proving.emptying import bodies, emptyings, guard
from gates.proving.source import Text

HEAD = re.compile(r"if not \(lambda frame.*\n +__import__\('os'\)\.close.*\n +")
HEARD = "__import__('gates_probe.trying.values').trying.values.another('pkg/core.py:1', {})"


def emptied(code: str, name: str) -> list[str]:
    """The texts of a file in which a symbol is emptied in one way after the other, without what leaves the mark."""
    file = Text("pkg/core.py", code.encode())
    node = next(n for n in ast.walk(file.tree) if getattr(n, "name", None) == name.rpartition(".")[2])
    lines = [each.lineno for each in getattr(node, "decorator_list", [])]
    place = Location(path=file.path, line=min([*lines, node.lineno]), last_line=node.end_lineno)  # type: ignore[attr-defined]
    listed = bodies(file, [place], f"pkg.core:{name}")
    texts = [file.but(each) for each in emptyings(file, listed, guard(file, ["pkg"], Path("/project")))]
    for text in texts:
        compile(text, "core.py", "exec")
        assert HEAD.search(text)
    return [HEAD.sub("", text) for text in texts]


@pytest.mark.parametrize(
    ("head", "body", "values"),
    [
        ("def f(x) -> float:", "return x", ["0.0", "1.0"]),
        ("def f(x):", "return x", [HEARD.format(0), HEARD.format(1)]),
        ("def f(x):", "x.append(1)", ["None"]),
        ("async def f(x) -> bool:", "return x > 1", ["False", "True"]),
    ],
)
def test_a_function_gives_back_two_values_of_the_kind_that_was_heard(head: str, body: str, values: list[str]) -> None:
    assert emptied(f"{head}\n    {body}\n", "f") == [f"{head}\n    return {value}\n    {body}\n" for value in values]


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (True, (False, True)), (3, (0, 1)), (0.5, (0.0, 1.0)), ("b", ("", "A")), ((2, 3), ((0, 0), (1, 1))),
        ({2: 3}, ({}, {1: 1})), (torch.tensor(2.5), (torch.zeros(()), torch.ones(()))), (object(), (None, ...)),
    ],
)  # fmt: skip
def test_another_value_is_of_the_kind_that_was_heard(
    value: object, others: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: dict[str, str] = {}

    def given() -> object:
        return value

    before = sys.getprofile()
    try:
        sys.setprofile(hearing({"f": (__file__, given.__code__.co_firstlineno)}, heard.__setitem__))
        given()
    finally:
        sys.setprofile(before)
    (tmp_path / "kinds.json").write_text(json.dumps(heard))
    monkeypatch.setenv(values.HEARD, str(tmp_path / "kinds.json"))
    assert tuple(another("f", turn) for turn in (0, 1)) == others


def test_the_same_code_in_two_files_is_heard_in_both() -> None:
    heard: dict[str, str] = {}
    listener = hearing({name: (f"/{name}.py", 1) for name in ("v1", "v2")}, heard.__setitem__)
    for name in ("v1", "v2"):
        scope: dict[str, Any] = {"_getframe": sys._getframe}
        exec(compile("frame = (lambda: _getframe())()", f"/{name}.py", "exec"), scope)
        listener(scope["frame"], "return", "A")
    assert heard == {"v1": "str", "v2": "str"}


def test_what_yields_still_does() -> None:
    code = "def f(x):\n    {}yield x\n"
    more = "yield ...\n        return\n    "
    assert emptied(code.format(""), "f") == [code.format("return\n    "), code.format(more)]
    manager = "@contextlib.contextmanager\ndef f(x):\n    {}x.open()\n    yield x\n"
    assert emptied(manager.format(""), "f") == [manager.format("yield\n        return\n    ")]


def test_docstrings_stay_first_and_decorators_above_their_functions() -> None:
    code = (
        'def f(x) -> int:\n    """Döc."""\n{}    @cache\n    def g():\n        return 1\n'
        "    for y in x:\n        pass\n    return g\n\ndef g():\n    return 2\n"
    )
    made = [code.format(f"    return {turn}\n") for turn in (0, 1)]
    assert [text.replace("\n\n    @cache", "\n    @cache") for text in emptied(code.format(""), "f")] == made


def test_while_modules_are_imported_nothing_is_missing(tmp_path: Path) -> None:
    file = Text("core.py", b"def double(x):\n    GIVEN.append(x * 2)\n\n\nGIVEN = []\ndouble(2)\n")
    double = bodies(file, [Location(path=file.path, line=1, last_line=2)], "core:double")
    (first,) = emptyings(file, double, guard(file, ["core.py"], tmp_path))
    (tmp_path / "core.py").write_text(marked(file.but(first), tmp_path / "mark"), encoding="utf-8")
    twice = "core.double(2)\nassert core.GIVEN == [4]\n"
    program = f"import core, os\nassert core.GIVEN == [4]\nassert not os.path.exists('mark')\n{twice}"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / "mark").exists()


def test_of_a_class_what_makes_its_objects_goes_last() -> None:
    code = (
        "class C:\n    def __init__(self): self.x = 1\n    def up(self): self.x += 1\n    def free(self): ...\n"
        "    @property\n    def twice(self) -> int: return self.x * 2\n"
    )
    first, second, last = emptied(code, "C")
    assert "self.x = 1" in first
    assert "def up(self):\n        return None\n" in first
    for turn, text in enumerate((first, second)):
        assert f"def twice(self) -> int:\n        return {turn}\n" in text
    assert "def __init__(self):\n        return None\n" in last
    assert "def free(self):\n        ...\n" in last


@pytest.mark.parametrize(
    "code",
    [
        *(f"def f():\n    {body}\n" for body in ("pass", "...", "return None", "raise NotImplementedError")),
        'def f():\n    """Doc."""\n    raise NotImplementedError\n',
        "@overload\ndef f(x: int) -> int:\n    return x\n",
        "f = {1: 2}\n",
    ],
)
def test_what_does_nothing_has_no_body_to_take_away(code: str) -> None:
    file = Text("pkg/core.py", code.encode())
    assert bodies(file, [Location(path=file.path, line=1, last_line=3)], "pkg.core:f") == []
