"""Functions without their bodies: what is taken away, what stays, and what is given back."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gates.model import Location
from gates.proving.emptying import KINDS, emptyings
from gates.proving.source import Text

MARK = Path("/mark")
CALLABLE = KINDS["Callable"]
HEAD = re.compile(r"if not \(lambda frame.*? 0o600\)\); ")


def emptied(code: str, name: str) -> list[str]:
    """The texts of a file in which a symbol is emptied in one way after the other, without what leaves the mark."""
    file = Text("pkg/core.py", code)
    node = next(n for n in ast.walk(file.tree) if getattr(n, "name", None) == name.rpartition(".")[2])
    lines = [each.lineno for each in getattr(node, "decorator_list", [])]
    place = Location(path=file.path, line=min([*lines, node.lineno]), last_line=node.end_lineno)  # type: ignore[attr-defined]
    texts = [each.text(file, MARK, ("pkg/",)) for each in emptyings(file, [place], f"pkg.core:{name}")]
    for text in texts:
        compile(text, "core.py", "exec")
        assert HEAD.search(text)
    return [HEAD.sub("", text) for text in texts]


@pytest.mark.parametrize(
    ("head", "body", "values"),
    [
        ("def f(x) -> float:", "return x", ["0.0", "1.0"]),
        ("def f(x) -> 'dict[str, int]':", "return x", ["{}", "{1: 1}"]),
        ("def f(x) -> np.ndarray:", "return x", ['__import__("numpy").zeros(0)', '__import__("numpy").ones(2)']),
        ("def f(x) -> Thing:", "return Thing(x)", ["None", "..."]),
        ("def f(x):", "return x", ["None", "..."]),
        ("def f(x):", "return [y for y in x]", ["[]", "[1]"]),
        ("def f(x):", "return ''.join(x)", ['""', '"A"']),
        ("def f(x):", "return len(x) / 2", ["0", "1"]),
        ("def f(x):", "return np.array(x)", ['__import__("numpy").zeros(0)', '__import__("numpy").ones(2)']),
        ("def f(x):", "return float(x) if x else 0.0", ["0.0", "1.0"]),
        ("def f(x):", "return not x", ["False", "True"]),
        ("def f(x):", "return x, 2", ["(0,) * 2", "(1,) * 2"]),
        ("def f(x):", "return lambda: x", [*CALLABLE]),
        ("def f(x):", "x.append(1)", ["None"]),
        ("async def f(x):", "return x > 1", ["False", "True"]),
    ],
)
def test_a_function_gives_back_two_values_of_its_kind(head: str, body: str, values: list[str]) -> None:
    assert emptied(f"{head}\n    {body}\n", "f") == [f"{head}\n    return {value}\n    {body}\n" for value in values]


def test_what_yields_still_does() -> None:
    code = "def f(x):\n    {}yield x\n"
    assert emptied(code.format(""), "f") == [code.format("return\n    "), code.format("yield ...; return\n    ")]
    manager = "@contextlib.contextmanager\ndef f(x):\n    {}x.open()\n    yield x\n"
    assert emptied(manager.format(""), "f") == [manager.format("yield; return\n    ")]


def test_docstrings_stay_first_and_decorators_above_their_functions() -> None:
    code = (
        'def f(x):\n\t"""Döc."""\n{}\t@cache\n\tdef g():\n\t\treturn 1\n\tfor y in x:\n\t\tpass  # ä\n\treturn g\n'
        "\n\ndef g():\n\treturn 2\n"
    )
    assert emptied(code.format(""), "f") == [code.format(f"\treturn {value}\n") for value in CALLABLE]


def test_what_stands_on_the_line_of_its_def_gets_lines_of_its_own() -> None:
    code = "class C:\r\n    def f(\r\n        self): y = 1; return y\r\n"
    made = "class C:\r\n    def f(\r\n        self): \n     return {}\n     y = 1; return y\r\n"
    assert emptied(code, "f") == [made.format("None"), made.format("...")]


def test_while_modules_are_imported_nothing_is_missing(tmp_path: Path) -> None:
    file = Text("core.py", "def double(x):\n    return x * 2\n\n\nFOUR = double(2)\n")
    (first, _) = emptyings(file, [Location(path=file.path, line=1, last_line=2)], "core:double")
    (tmp_path / "core.py").write_text(first.text(file, tmp_path / "mark", ("core.py",)), encoding="utf-8")
    program = "import core, os\nassert core.FOUR == 4\nassert not os.path.exists('mark')\nassert core.double(2) == 0\n"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / "mark").exists()


def test_of_a_class_what_makes_its_objects_goes_last() -> None:
    code = (
        "class C:\n    def __init__(self): self.x = 1\n    def up(self): self.x += 1\n    def free(self): ...\n"
        "    @property\n    def twice(self) -> int: return self.x * 2\n"
    )
    first, second, last = emptied(code, "C")
    assert "self.x = 1" in first
    assert "def up(self): \n     return None\n" in first
    assert "def twice(self) -> int: \n     return 0\n" in first
    assert "def twice(self) -> int: \n     return 1\n" in second
    assert "def __init__(self): \n     return None\n" in last
    assert "def free(self): ..." in last


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "...",
        '"""Doc."""',
        "return None",
        "raise NotImplementedError",
        '"""Doc."""\n    raise NotImplementedError',
    ],
)
def test_what_does_nothing_has_no_body_to_take_away(body: str) -> None:
    file = Text("pkg/core.py", f"def f():\n    {body}\n")
    assert emptyings(file, [Location(path=file.path, line=1, last_line=3)], "pkg.core:f") == []


def test_constants_and_overloads_have_no_body() -> None:
    file = Text("pkg/core.py", "TABLE = {1: 2}\n\n\n@overload\ndef f(x: int) -> int:\n    return x\n")
    assert emptyings(file, [Location(path=file.path, line=1)], "pkg.core:TABLE") == []
    assert emptyings(file, [Location(path=file.path, line=4, last_line=6)], "pkg.core:f") == []
