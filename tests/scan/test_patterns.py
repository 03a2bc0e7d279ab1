# ruff: noqa: E501  # each program is one line
"""Patterns: what fits and what does not, whatever names are imported as."""

import textwrap
from pathlib import Path

import pytest
from scanning import a_rule, broken

from gates.scan.pattern import Pattern, PatternError


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch.amp.autocast('cuda')",
        "from torch import amp\namp.autocast('cuda')",
        "from torch.amp import autocast as cast\ncast('cuda')",
        "import torch.amp as t\nt.autocast('cuda')",
        "import torch\namp = torch.amp\namp.autocast('cuda')",
        "import torch\nmake = torch.amp.autocast\ndef f():\n    return make('cuda')",
        "import functools, torch\nmake = functools.partial(torch.amp.autocast, 'cuda')\nmake()",
        "try:\n    from torch.amp import autocast\nexcept ImportError:\n    from torch.cuda.amp import autocast\nautocast()",
        "import torch\nclass A:\n    def __init__(self):\n        self.cast = torch.amp.autocast\n    def go(self):\n        self.cast()",
        "from torch.amp.autocast_mode import autocast\nautocast('cuda')",
        "import torch\ntorch.autocast('cuda')",
    ],
)
def test_call_is_found_by_what_its_name_means(tmp_path: Path, code: str) -> None:
    assert broken(a_rule(tmp_path, "pattern: torch.amp.autocast(...)"), code) == [f"m.py:{len(code.splitlines())}"]


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nif False:\n    torch.amp.autocast()",
        "import torch\ndef f():\n    return 1\n    torch.amp.autocast()",
        "import torch\ndef f():\n    def unused():\n        torch.amp.autocast()\n    return 1",
        "from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    torch.amp.autocast()",
        "'torch.amp.autocast()'  # torch.amp.autocast()",
        "from mine import autocast\nautocast()",
        "from torch.amp import autocast\ndef f(autocast):\n    autocast()",
    ],
)
def test_what_cannot_run_or_means_something_else_is_not_found(tmp_path: Path, code: str) -> None:
    assert broken(a_rule(tmp_path, "pattern: torch.amp.autocast(...)"), code) == []


def test_reexport_relative_import_and_star_are_followed(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from .compat import *\n",
        "pkg/compat.py": "from torch.amp import autocast as cast\n",
        "pkg/use.py": "from . import cast\ncast()\n",
        "main.py": "from pkg import cast as c\nc()\n",
    }
    assert broken(a_rule(tmp_path, "pattern: torch.amp.autocast(...)"), files) == ["main.py:2", "pkg/use.py:2"]


PATTERNS = [
    ("f($X, $X)", "f(a, a)", True),
    ("f($X, $X)", "f(a, b)", False),
    ("f($X)", "f(a, b)", False),
    ("f($X, $$$)", "f(a, b, c=1)", True),
    ("f($$$, k=$V)", "f(a, k=2)", True),
    ("f(k=$V)", "f(k=2, other=3)", False),
    ("f($$$, k=$V, $$$)", "f(other=3, k=2)", True),
    ("$X.item()", "loss.mean().item()", True),
    ("$X = None", "a.b = None", True),
    ("torch.stack([$E for $I in $Y]).to($$$)", "torch.stack([g(i) for i in y]).to(d)", True),
    ("with f(...): ...", "with g(), f(1) as x:\n    pass", True),
    ("def $F(...): ...", "@d\ndef f(a, b=1):\n    return a", True),
    ("def $F(self, $$$): ...", "def f(self, a, *, b=1): pass", True),
    ("def $F(self, $$$): ...", "def f(a): pass", False),
]


@pytest.mark.parametrize(("pattern", "code", "fits"), PATTERNS)
def test_pattern_fits(tmp_path: Path, pattern: str, code: str, *, fits: bool) -> None:
    quoted = "pattern: |\n" + textwrap.indent(pattern, "  ")
    assert bool(broken(a_rule(tmp_path, quoted), f"import torch\n{code}\n")) is fits


@pytest.mark.parametrize(
    ("body", "code", "lines"),
    [
        ("pattern: f()\ninside: loop", "f()\nfor x in y:\n    f()\nfor x in f():\n    pass", [3]),
        ("pattern: f()\nnot_inside: loop", "f()\nfor x in y:\n    f()", [1]),
        ("pattern: f()\ninside: loop", "for x in y:\n    def g():\n        f()\n    g()", []),
        ("pattern: f()\ninside: 'with g(...): ...'", "f()\nwith g(1):\n    f()", [3]),
        ("pattern: f($$$)\nnot: f($$$, k=$V, $$$)", "f(1)\nf(k=1)\nf(**more)", [1]),
        ("pattern: f($X)\nwhere: {$X: {regex: '^c'}}", "f(cat)\nf(dog)", [1]),
        ("pattern: $X.go()\nwhere: {$X: {type: torch.amp.GradScaler}}", "import torch\nS = torch.amp.GradScaler\ns = S()\nt = 1\ns.go()\nt.go()", [5]),
        ("pattern: 'def $F(...): ...'\nhas: g()", "def a():\n    g()\ndef b():\n    pass", [1]),
        ("pattern: 'for $I in $Y: ...'\nnot_has: g()", "for i in y:\n    g()\nfor i in y:\n    h()", [3]),
        ("pattern: f()\ninside: {pattern: function, not_has: g()}", "def a():\n    f()\ndef b():\n    f()\n    g()", [2]),
    ],
)  # fmt: skip
def test_what_is_around_and_what_holes_must_be(tmp_path: Path, body: str, code: str, lines: list[int]) -> None:
    assert broken(a_rule(tmp_path, body), code) == [f"m.py:{line}" for line in lines]


@pytest.mark.parametrize("text", ["", "f(", "$", "$X", "$x.y()", "\0", "(" * 300 + ")" * 300, "f()\ng()", "if a: b"])
def test_broken_pattern_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern.parse(text)
