"""Definitions that implement nothing: what has only a name, a text or a refusal is no implementation."""

from pathlib import Path

import pytest
from symbols import traced

REPLACED = {
    "by another function": ("def f():\n    return 1\ndef _g():\n    return 2\nf = _g\n", 3),
    "by what is called": ("def f():\n    return 1\nf = make()\n", 3),
    "by itself, wrapped": ("def f():\n    return 1\nf = wrap(f)\n", 1),
    "in one way of two": ("def f():\n    return 1\nif fast:\n    f = make()\n", 1),
    "before": ("f = make()\ndef f():\n    return 1\n", 2),
}


@pytest.mark.parametrize("case", REPLACED)
def test_symbol_is_what_its_name_stands_for_in_the_end(tmp_path: Path, case: str) -> None:
    body, line = REPLACED[case]
    found = traced(tmp_path, body, "pkg.m:f")
    assert found.location and found.location.line == line


HOLLOW = {
    "set to None": "def f(): return 1\nf = None\n",
    "only annotated": "f: int\n",
    "only refused": "def f():\n    '''Later.'''\n    raise NotImplementedError('later')\n",
    "only overloads": "from typing import overload\n@overload\ndef f(x: int) -> int: ...\n",
    "inside of a function": "def g():\n    def f(): return 1\n    return f\n",
    "pass": "def f(): pass\n",
    "dots": "async def f(x): ...\n",
    "a text": "def f():\n    '''Later.'''\n",
    "a bare return": "def f(): return\n",
    "return None": "def f():\n    '''Later.'''\n    return None\n",
    "under a decorator that adds nothing": "import torch\n@torch.no_grad()\ndef f(): pass\n",
    "a lambda of None": "f = lambda *a, **k: None\n",
    "defined again": "def f(): return 1\ndef f(): raise NotImplementedError\n",
    "defined again in any case": "def f(): return 1\nif True:\n    def f(): pass\n",
    "replaced": "def _no(*a): pass\ndef f(): return 1\nf = _no\n",
    "replaced by a lambda": "def f(): return 1\nf = lambda: None\n",
    "in a loop that never runs": "while False:\n    def f(): return 1\n",
    "empty class": "class f: pass\n",
    "class of promises": "class f:\n    x: int\n    def go(self): ...\n    def stop(self): raise NotImplementedError\n",
    "protocol": "from typing import Protocol\nclass f(Protocol):\n    def go(self) -> int: ...\n",
    "abstract class": "import abc\nclass f(abc.ABC):\n    @abc.abstractmethod\n    def go(self): ...\n",
}


@pytest.mark.parametrize("case", HOLLOW)
def test_promise_is_no_implementation(tmp_path: Path, case: str) -> None:
    trace = traced(tmp_path, HOLLOW[case], "pkg.m:g.f" if case == "inside of a function" else "pkg.m:f")
    assert (trace.location, trace.checked) == (None, True)


@pytest.mark.parametrize("body", ["pass", "...", "raise NotImplementedError", "return None"])
def test_method_that_does_nothing_is_named_with_its_line(tmp_path: Path, body: str) -> None:
    trace = traced(tmp_path, f"class A(B):\n    x = 1\n    def go(self): {body}\n", "pkg.m:A.go")
    assert trace.problem == "pkg/m.py:3 only promises 'A.go': its body does nothing"


@pytest.mark.parametrize("how", ["globals()['f'] = 1\n", "exec('f = 1')\n", "setattr(sys.modules[__name__], 'f', 1)\n"])
def test_name_that_a_module_may_make_by_an_expression_is_not_checked(tmp_path: Path, how: str) -> None:
    found = traced(tmp_path, f"import sys\n{how}", "pkg.m:f")
    assert (found.checked, "pkg/m.py:2 makes names by an expression" in found.problem) == (False, True)
    assert traced(tmp_path / "other", f"def g():\n    {how}", "pkg.m:f").checked


HONEST = {
    "one way of two": "if x:\n    def f(): return 1\nelse:\n    def f(): pass\n",
    "stub first": "def f(): pass\ndef f(): return 1\n",
    "in a try": "def f(): return 1\ntry:\n    import x\nexcept ImportError:\n    def f(): pass\n",
    "overloads": "from typing import overload\n@overload\ndef f(x: int): ...\ndef f(x): return x\n",
    "wrapped": "def f(): return 1\nf = compile(f)\n",
    "made by a decorator": "import click\n@click.group()\ndef f(): pass\n",
    "a constant": "def f(): return 0\n",
    "exception": "class f(ValueError): pass\n",
    "data": "from dataclasses import dataclass\n@dataclass\nclass f:\n    x: int\n",
    "abstract with a body": "import abc\nclass f(abc.ABC):\n    @abc.abstractmethod\n    def go(self): return 1\n",
    "one method of two": "class f:\n    def go(self): ...\n    def stop(self): return 1\n",
    "given on": "def g(): return 1\nf = g\n",
}


@pytest.mark.parametrize("case", HONEST)
def test_what_does_something_is_an_implementation(tmp_path: Path, case: str) -> None:
    assert traced(tmp_path, HONEST[case], "pkg.m:f").location is not None
