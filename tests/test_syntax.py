"""Python source as a tree: names resolved through imports, live code only."""

import ast

import pytest

from gates.code.meanings import member
from gates.code.syntax import SourceModule, Unparsed, constant_truth, live_nodes, origin, parse


def module(text: str, package: str = "") -> SourceModule:
    return parse(text.encode(), "m.py", package)


def called(text: str, package: str = "") -> list[str | None]:
    """The full names of what live code calls."""
    source = module(text, package)
    return [source.dotted(node.func) for node in live_nodes(source.tree) if isinstance(node, ast.Call)]


IMPORTS = {
    "plain": ("import torch\ntorch.amp.GradScaler()", "torch.amp.GradScaler"),
    "dotted": ("import torch.amp\ntorch.amp.GradScaler()", "torch.amp.GradScaler"),
    "dotted alias": ("import torch.amp as a\na.GradScaler()", "torch.amp.GradScaler"),
    "from": ("from torch.amp import GradScaler\nGradScaler()", "torch.amp.GradScaler"),
    "from alias": ("from torch.amp import GradScaler as GS\nGS()", "torch.amp.GradScaler"),
    "from module": ("from torch import amp\namp.GradScaler()", "torch.amp.GradScaler"),
    "inside a function": ("def f():\n    from torch.amp import GradScaler as GS\n    GS()", "torch.amp.GradScaler"),
    "not imported": ("GradScaler()", "GradScaler"),
    "of itself": ("self.scaler.scale(loss)", "self.scaler.scale"),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_names_are_resolved_through_imports(case: str) -> None:
    text, name = IMPORTS[case]
    assert called(text) == [name]


@pytest.mark.parametrize(
    ("text", "package", "name"),
    [("from .scaler import S\nS()", "pkg", "pkg.scaler.S"), ("from . import S\nS()", "pkg", "pkg.S"),
     ("from ..a import S\nS()", "pkg.sub", "pkg.a.S"), ("from .. import S\nS()", "pkg.sub.deep", "pkg.sub.S")],
)  # fmt: skip
def test_relative_imports_are_resolved_in_their_package(text: str, package: str, name: str) -> None:
    assert called(text, package) == [name]


def test_relative_import_beyond_the_top_names_nothing_real() -> None:
    (node,) = ast.parse("from ...a import b").body
    assert isinstance(node, ast.ImportFrom)
    assert origin(node, "pkg") in {"a", ".a", ""}


def test_what_is_called_on_a_call_has_no_name() -> None:
    assert called("f().g()") == [None, "f"]


DEAD = {
    "if False": "if False:\n    f()",
    "if 0": "if 0:\n    f()",
    "if not True": "if not True:\n    f()",
    "if None": "if None:\n    f()",
    "else of True": "if True:\n    pass\nelse:\n    f()",
    "while False": "while False:\n    f()",
    "type checking": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    f()",
    "typing.TYPE_CHECKING": "import typing\nif typing.TYPE_CHECKING:\n    f()",
    "after return": "def g():\n    return 1\n    f()",
    "after raise": "def g():\n    raise E\n    f()",
    "after break": "while x:\n    break\n    f()",
    "after continue": "for x in y:\n    continue\n    f()",
    "in a string": "x = 'f()'",
    "in a docstring": "def g():\n    '''f()'''",
    "in a comment": "# f()\nx = 1",
    "and False": "if False and x:\n    f()",
    "x and False": "if x and False:\n    f()",
    "inline if": "x = f() if False else 1",
    "short circuit": "False and f()",
    "both arms return": "def g():\n    if x:\n        return 1\n    else:\n        return 2\n    f()",
    "after while True": "def g():\n    while True:\n        pass\n    f()",
    "in an uncalled lambda of False": "if False:\n    g = lambda: f()",
}


@pytest.mark.parametrize("case", DEAD)
def test_dead_code_calls_nothing(case: str) -> None:
    assert "f" not in called(DEAD[case])


LIVE = {
    "plain": "f()",
    "if True": "if True:\n    f()",
    "if unknown": "if x:\n    f()",
    "else of False": "if False:\n    pass\nelse:\n    f()",
    "else of type checking": "if TYPE_CHECKING:\n    pass\nelse:\n    f()",
    "after a return in a branch": "def g():\n    if x:\n        return 1\n    f()",
    "except": "try:\n    pass\nexcept E:\n    f()",
    "finally after return": "def g():\n    try:\n        return 1\n    finally:\n        f()",
    "with": "with x:\n    f()",
    "match": "match x:\n    case 1:\n        f()",
    "lambda": "g = lambda: f()",
    "decorator": "@f()\ndef g(): pass",
    "default": "def g(x=f()): pass",
    "comprehension": "[f() for x in y]",
    "f-string": "f'{f()}'",
    "while else": "while x:\n    pass\nelse:\n    f()",
}


@pytest.mark.parametrize("case", LIVE)
def test_live_code_is_seen(case: str) -> None:
    assert "f" in called(LIVE[case])


@pytest.mark.parametrize(
    ("text", "truth"),
    [("True", True), ("1", True), ("'x'", True), ("False", False), ("0", False), ("''", False), ("None", False),
     ("not 1", False), ("not x", None), ("x", None), ("TYPE_CHECKING", False), ("t.TYPE_CHECKING", False)],
)  # fmt: skip
def test_truth_of_a_condition(text: str, truth: bool | None) -> None:
    assert constant_truth(ast.parse(text, mode="eval").body) is truth


def test_member_is_the_last_live_definition() -> None:
    text = "def f(): return 1\nif False:\n    def f(): pass\ntry:\n    x: int = 1\nexcept E:\n    x = 2\n"
    body = module(text).tree.body
    found_f, found_x = member(body, "f"), member(body, "x")
    assert (found_f and found_f.lineno, found_x and found_x.lineno) == (1, 7)
    assert member(body, "E") is None


@pytest.mark.parametrize(
    "text",
    ["def f(:\n", "x = '\n", "  indented\n", "x = 1\0", "(" * 500, "x = " + "-" * 100_000 + "1", "# coding: nope\n"],
    ids=["syntax", "string", "indent", "zero", "brackets", "signs", "coding"],
)
def test_what_is_no_python_is_unparsed_with_its_place(text: str) -> None:
    with pytest.raises(Unparsed, match=r"^m\.py:\d+(:\d+)?: "):
        module(text)
