"""Patterns that criteria are bound to: the live code that fits, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from symbols import Files, tree

from gates.evidence.source_tree import PatternTrace

SCALER = "torch.amp.GradScaler(...)"


def fitting(tmp_path: Path, files: Files, pattern: str = SCALER, **more: Any) -> PatternTrace:
    (trace,) = tree(tmp_path, files, {"pattern": pattern, **more}).patterns
    return trace


LIVE = {
    "plain": ("import torch\nS = torch.amp.GradScaler('cpu')\n", "pkg/m.py:2"),
    "by another name": ("from torch.amp import GradScaler as G\ndef make():\n    return G()\n", "pkg/m.py:3"),
    "over lines": ("import torch\nS = torch.amp.GradScaler(\n    'cpu',\n)\n", "pkg/m.py:2-4"),
    "in a private function that is used": (
        "import torch\ndef _make():\n    return torch.amp.GradScaler()\ndef make():\n    return _make()\n",
        "pkg/m.py:3",
    ),
    "in a method": ("import torch\nclass A:\n    def go(self):\n        return torch.amp.GradScaler()\n", "pkg/m.py:4"),
    "in a branch": ("import torch\ndef f(x):\n    if x:\n        return torch.amp.GradScaler()\n", "pkg/m.py:4"),
    "in the second way of two": (
        "import torch\nif torch.x:\n    def f(): return 1\nelse:\n    def f(): return torch.amp.GradScaler()\n",
        "pkg/m.py:5",
    ),
}


@pytest.mark.parametrize("case", LIVE)
def test_live_code_that_fits_is_found_with_its_lines(tmp_path: Path, case: str) -> None:
    body, place = LIVE[case]
    found = fitting(tmp_path, body)
    assert ([str(one) for one in found.places], found.problem, found.checked) == ([place], "", True)


IDLE = {
    "comment": "# torch.amp.GradScaler()\n",
    "string": "x = 'torch.amp.GradScaler()'\n",
    "if False": "import torch\nif False:\n    torch.amp.GradScaler()\n",
    "after return": "import torch\ndef f():\n    return 1\n    torch.amp.GradScaler()\n",
    "inner function that nobody calls": (
        "import torch\ndef f():\n    def g():\n        return torch.amp.GradScaler()\n    return 1\n"
    ),
    "loop over nothing": "import torch\nfor _ in []:\n    torch.amp.GradScaler()\n",
    "after a try of which all ways return": (
        "import torch\ndef f():\n    try:\n        return 1\n    except ValueError:\n        raise\n"
        "    torch.amp.GradScaler()\n"
    ),
    "mention": "import torch\ntorch.amp.GradScaler\n",
    "another": "import torch\ntorch.cuda.amp.GradScaler()\n",
    "of the same name": "from mine import GradScaler\nGradScaler()\n",
}


@pytest.mark.parametrize("case", IDLE)
def test_code_that_never_runs_does_not_fit(tmp_path: Path, case: str) -> None:
    found = fitting(tmp_path, IDLE[case])
    assert (found.places, found.checked, bool(found.problem)) == ((), True, True)


@pytest.mark.parametrize(
    ("more", "count", "problem"),
    [
        ({"in": "pkg/m.py"}, 1, ""),
        ({"in": "pkg"}, 2, ""),
        ({"in": "."}, 2, ""),
        ({"in": "pkg/sub"}, 1, ""),
        ({"in": "pkg/su"}, 0, "no Python file of the implementation is in pkg/su"),
        ({"in": "tests"}, 0, "no Python file of the implementation is in tests"),
        ({"in": "pkg/__init__.py"}, 0, "no live code of pkg/__init__.py fits it"),
        ({"at_least": 2}, 2, ""),
        ({"at_least": 3}, 2, "2 places of the implementation fit it, not 3"),
        ({"at_least": 2, "in": "pkg/m.py"}, 1, "1 place of pkg/m.py fit it, not 2"),
    ],
)
def test_places_are_counted_where_asked_for(tmp_path: Path, more: dict[str, Any], count: int, problem: str) -> None:
    one = "import torch\nS = torch.amp.GradScaler()\n"
    found = fitting(tmp_path, {"pkg/m.py": one, "pkg/sub/n.py": one, "tests/test_m.py": one}, **more)
    assert (len(found.places), found.problem) == (count, problem)


@pytest.mark.parametrize(
    "bad",
    [
        "import torch\ntorch.amp.GradScaler(:\n",
        b"import torch\ntorch.amp.GradScaler('\xff')\n",
        "torch.amp.GradScaler()\n" * 100_000,
    ],
)
def test_file_that_cannot_be_read_leaves_open_what_is_not_found_elsewhere(tmp_path: Path, bad: str | bytes) -> None:
    found = fitting(tmp_path, {"pkg/bad.py": bad})
    assert (found.checked, found.problem.startswith("not checked, pkg/bad.py:")) == (False, True)
    good = fitting(tmp_path / "again", {"pkg/bad.py": bad, "pkg/m.py": LIVE["plain"][0]})
    assert (good.checked, good.problem, len(good.places)) == (True, "", 1)
