"""Symbols that are not defined where they are named: aliases, fallbacks, inheritance, fields, second definitions."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, written
from symbols import Files, traced

from gates.evidence.source_tree import SourceTree

IMPL = "def f(): return 1\n\ndef g(): return 2\n"
TRY = "try:\n    from {} import f\nexcept ImportError:\n    from {} import f\n"
PROPERTY = (
    "import torch\nclass A:\n    @property\n    def x(self): return torch.amp\n"
    "    @x.setter\n    def x(self, value): self._x = value\n"
)
BASE = "class Base:\n    def fit(self): return 1\n    def stop(self): raise NotImplementedError\n"
LED: dict[str, tuple[Files, str, str]] = {
    "fallback of another library": ({"pkg/__init__.py": TRY.format(".impl", "other"), "pkg/impl.py": IMPL},
                                    "pkg:f", "pkg/impl.py:1"),
    "fallback of our own": ({"pkg/__init__.py": TRY.format("other", ".impl"), "pkg/impl.py": IMPL},
                            "pkg:f", "pkg/impl.py:1"),
    "name of a module's function": ({"pkg/__init__.py": "from . import impl\nh = impl.g\n", "pkg/impl.py": IMPL},
                                    "pkg:h", "pkg/impl.py:3"),
    "name of an imported function": ({"pkg/__init__.py": "from .impl import g\nh = g\n", "pkg/impl.py": IMPL},
                                     "pkg:h", "pkg/impl.py:3"),
    "name of a function beside it": ({"pkg/m.py": IMPL + "h = g\n"}, "pkg.m:h", "pkg/m.py:3"),
    "name of what a library has": ("import torch\nh = torch.amp.GradScaler\n", "pkg.m:h", "pkg/m.py:2"),
    "function of a module": ({"pkg/__init__.py": "from . import impl\n", "pkg/impl.py": IMPL},
                             "pkg:impl.g", "pkg/impl.py:3"),
    "function of a renamed module": ({"pkg/__init__.py": "import pkg.impl as other\n", "pkg/impl.py": IMPL},
                                     "pkg:other.g", "pkg/impl.py:3"),
    "long way": ({**{f"pkg/m{i}.py": f"from .m{i + 1} import f\n" for i in range(8)}, "pkg/m8.py": IMPL},
                 "pkg.m0:f", "pkg/m8.py:1"),
    "second name of a method": ("class A:\n    def go(self): return 1\n    run = go\n",
                                "pkg.m:A.run", "pkg/m.py:2"),
    "inherited": ({"pkg/__init__.py": "from .b import Base\nclass A(Base):\n    x = 1\n", "pkg/b.py": BASE},
                  "pkg:A.fit", "pkg/b.py:2"),
    "inherited twice over": ({"pkg/m.py": BASE + "class B(Base): pass\nclass A(B):\n    x = 1\n"},
                             "pkg.m:A.fit", "pkg/m.py:2"),
    "field of a dataclass": ("from dataclasses import dataclass\n@dataclass\nclass A:\n    lr: float\n",
                             "pkg.m:A.lr", "pkg/m.py:4"),
    "field of a named tuple": ("from typing import NamedTuple\nclass A(NamedTuple):\n    lr: float\n",
                               "pkg.m:A.lr", "pkg/m.py:3"),
    "property with a setter": (PROPERTY, "pkg.m:A.x", "pkg/m.py:3-6"),
    "one of two branches": ("import os\nif os.x:\n    def f(): return 1\nelse:\n    def f(): return 2\n",
                            "pkg.m:f", "pkg/m.py:5"),
    "defined again around itself": ("def f(): return 1\n_f = f\ndef f(): return _f()\n",
                                    "pkg.m:f", "pkg/m.py:3"),
}  # fmt: skip


@pytest.mark.parametrize("case", LED)
def test_symbol_is_followed_to_its_definition(tmp_path: Path, case: str) -> None:
    files, symbol, place = LED[case]
    assert str(traced(tmp_path, files, symbol).location) == place


ABSENT: dict[str, tuple[Files, str, str]] = {
    "name of what is not there": ({"pkg/__init__.py": "from . import impl\nh = impl.gone\n", "pkg/impl.py": IMPL},
                                  "pkg:h", "pkg/impl.py defines no 'gone'"),
    "name of what does nothing": ({"pkg/__init__.py": "from .impl import g\nh = g\n", "pkg/impl.py": "def g(): pass\n"},
                                  "pkg:h", "pkg/impl.py:1 only promises 'g'"),
    "inherited promise": ({"pkg/m.py": BASE + "class A(Base):\n    x = 1\n"},
                          "pkg.m:A.stop", "only promises 'Base.stop'"),
    "not inherited": ({"pkg/m.py": BASE + "class A(Base):\n    x = 1\n"}, "pkg.m:A.nope",
                      "pkg/m.py defines no 'A.nope', nor does what it extends"),
    "no module": ({}, "pkg.m:A", "there is no module 'pkg.m' in the project"),
    "no name": (IMPL, "pkg.m:B", "pkg/m.py defines no 'B'"),
    "no method": (BASE, "pkg.m:Base.go", "pkg/m.py defines no 'Base.go'"),
    "dead": ("if False:\n    def f(): return 1\n", "pkg.m:f", "defines no 'f'"),
    "foreign": ("import torch\n", "pkg.m:torch", "only imports 'torch'"),
    "deleted": ("def f(): return 1\ndel f\n", "pkg.m:f", "defines no 'f'"),
    "annotation of a plain class": ("class A:\n    lr: float\n    x = 1\n", "pkg.m:A.lr", "defines no 'A.lr'"),
    "misspelt": ("class Shop:\n    def total(self): return 1\n", "pkg.m:Shop.totl", "totl'; did you mean 'total'?"),
}  # fmt: skip


@pytest.mark.parametrize("case", ABSENT)
def test_symbol_that_leads_to_nothing_is_not_implemented(tmp_path: Path, case: str) -> None:
    files, symbol, problem = ABSENT[case]
    found = traced(tmp_path, files, symbol)
    assert (found.location, found.checked) == (None, True)
    assert problem in found.problem


def test_symbol_that_is_defined_more_than_once_is_not_decided(tmp_path: Path) -> None:
    text = "import sys, torch\nif sys.x:\n    def f(): return torch.amp()\nelse:\n    def f(): return 2\n"
    found = traced(tmp_path, text, "pkg.m:f", "torch.amp")
    problem = "not checked, it is defined in pkg/m.py:3 and pkg/m.py:5, of which one uses torch.amp"
    assert (found.location, found.checked, found.problem) == (None, False, problem)


def test_inheritance_from_a_library_is_not_decided(tmp_path: Path) -> None:
    found = traced(tmp_path, "from other import Base\nclass A(Base):\n    x = 1\n", "pkg.m:A.go")
    assert (found.checked, "may inherit 'go'" in found.problem) == (False, True)


def test_all_branches_that_use_a_name_are_enough(tmp_path: Path) -> None:
    text = "import sys, torch\nif sys.x:\n    def f(): return torch.amp()\nelse:\n    def f(): return torch.amp\n"
    assert traced(tmp_path, text, "pkg.m:f", "torch.amp").uses[0].lines == (5,)


def test_getter_and_setter_are_one_symbol(tmp_path: Path) -> None:
    text = PROPERTY.replace("self._x = value", "self._x = torch.cuda(value)")
    assert [use.lines for use in traced(tmp_path, text, "pkg.m:A.x", "torch.amp", "torch.cuda").uses] == [(4,), (6,)]


BRANCH = "import sys\nif sys.x:\n    {}\nelse:\n    {}\n"
WAYS: dict[str, tuple[Files, str, list[str]]] = {
    "two branches": ({"pkg/m.py": BRANCH.format("def f(): return 1", "def f(): return 2")}, "pkg.m:f", ["pkg/m.py:3"]),
    "one branch": ("def f(): return 1\nif f():\n    def f(): return 2\n", "pkg.m:f", ["pkg/m.py:1"]),
    "two classes": (
        {"pkg/m.py": BRANCH.format(*("class A:\n        def f(self): return 1" for _ in "12"))},
        "pkg.m:A.f", ["pkg/m.py:4"],
    ),
    "two imports": (
        {"pkg/__init__.py": "from .m import f\n", "pkg/a.py": IMPL, "pkg/b.py": IMPL,
         "pkg/m.py": BRANCH.format("from .a import f", "from .b import f")}, "pkg:f", ["pkg/a.py:1"],
    ),
    "an import after it": (
        {"pkg/m.py": "def f(): return 1\ntry:\n    from .a import f\nexcept ImportError: pass\n", "pkg/a.py": IMPL},
        "pkg.m:f", ["pkg/a.py:1"],
    ),
    "an import before it": ({"pkg/m.py": "from .a import f\ndef f(): return 1\n", "pkg/a.py": IMPL}, "pkg.m:f", []),
    "another name": ("def f(): return 1\ndef g(): return 2\nif g():\n    f = g\n", "pkg.m:f", ["pkg/m.py:2"]),
    "no other": (IMPL, "pkg.m:f", []),
}  # fmt: skip


@pytest.mark.parametrize("case", WAYS)
def test_other_definitions_that_another_run_may_take_are_named(tmp_path: Path, case: str) -> None:
    files, symbol, others = WAYS[case]
    trace = traced(tmp_path, files, symbol)
    assert trace.location is not None
    assert [str(place).split("-")[0] for place in trace.others] == others


def test_path_of_the_implementation_that_is_not_there_is_named(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"pkg/m.py": IMPL, "other/m.py": IMPL})
    task = a_task(implementation=["pkgg", "other"], criteria=[a_criterion(code=[{"symbol": "pkg.m:f"}])])
    (found,) = SourceTree.collect(task, a_context(root)).symbols
    assert found.problem == "pkg/m.py:1 lies outside of the task's implementation, of which 'pkgg' is not there"
