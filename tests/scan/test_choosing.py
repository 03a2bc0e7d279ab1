"""Which files are read for a rule: never fewer than those in which it could find something."""

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest
from building import written
from scanning import WORDS

from gates.scan import checking
from gates.scan.checking import check
from gates.scan.choosing import facts_of
from gates.scan.loading import load_folder, load_rules
from gates.scan.program.project import module_of

RULES = {
    "stacked": "pattern: torch.stack($X).to($$$)",
    "scaled": "any: [torch.cuda.amp.GradScaler(...), from torch.cuda.amp import $$$]",
    "read": "pattern: $X.item()\nnot_inside: 'with torch.no_grad(): ...'",
}
USE = "s(rows).to(device)\n"


def found(root: Path, files: Mapping[str, str | bytes]) -> dict[str, list[str]]:
    written(root / "p", dict(files))
    for name, body in RULES.items():
        written(root / "rules", {f"{name}.yaml": f"{body}\n{WORDS.replace('id: mine', '')}id: {name}\n"})
    rules = list(load_folder(root / "rules", root).values())
    paths = sorted((root / "p").rglob("*.py"))
    sites = check(rules, paths, root / "p").sites
    for rule in rules:  # fewer files are read for one rule than for all
        assert check([rule], paths, root / "p").sites[rule.id] == sites[rule.id], rule.id
    return {name: [f"{s.path}:{s.line}" for s in there if not s.ok] for name, there in sites.items()}


@pytest.mark.parametrize(
    "lent",
    [
        "from torch import stack as s\n",
        "import torch\ns = torch.stack\n",
        "import torch as t\nold = s = t.stack\n",
        "import torch\ns: object = torch.stack if torch.cuda else torch.cat\n",
        "import functools, torch\ns = functools.partial(torch.stack, dim=0)\n",
        "try:\n    from torch import stack as s\nexcept ImportError:\n    s = None\n",
    ],
)
@pytest.mark.parametrize(
    ("use", "line"),
    [
        ("from compat import s\n" + USE, 2),
        ("from compat import *\n" + USE, 2),
        ("import compat\ncompat.s(rows).to(device)\n", 2),
        ("from compat import s as q\nq(rows).to(device)\n", 2),
    ],
)
def test_name_that_another_file_lends_is_followed(tmp_path: Path, lent: str, use: str, line: int) -> None:
    assert found(tmp_path, {"compat.py": lent, "use.py": use})["stacked"] == [f"use.py:{line}"]


@pytest.mark.parametrize(
    ("compat", "use"),
    [
        ("from torch import stack\n", "from compat import stack\nstack(rows).to(device)\n"),
        ("from torch import *\n", "from compat import stack\nstack(rows).to(device)\n"),
        ("import torch as t\n", "from compat import t\nt.stack(rows).to(device)\n"),
        ("import torch\n", "from compat import torch\ntorch.stack(rows).to(device)\n"),
        ("x = 1\n", "import torch\ntorch . stack(rows). to(device)\n"),
        (
            "x = 1\n",
            "import torch\n\uff54orch.\U0001d42ctack(rows).to(device)\n",
        ),  # Python reads these as `torch.stack`
    ],
)
def test_library_under_any_spelling_is_found(tmp_path: Path, compat: str, use: str) -> None:
    assert found(tmp_path, {"compat.py": compat, "use.py": use})["stacked"] == ["use.py:2"]


def test_what_excuses_a_place_is_had_from_another_file_too(tmp_path: Path) -> None:
    files = {
        "compat.py": "import torch\nquiet = torch.no_grad\n",
        "use.py": "from compat import quiet\nwith quiet():\n    loss.item()\nloss.item()\n",
    }
    assert found(tmp_path, files)["read"] == ["use.py:4"]


def test_same_name_of_no_library_is_not_flagged(tmp_path: Path) -> None:
    files = {
        "compat.py": "def stack(rows): return rows\n",
        "use.py": "from compat import stack\nstack(rows).to(device)  # not torch\n",
    }
    assert found(tmp_path, files)["stacked"] == []


def test_file_of_another_encoding_is_read(tmp_path: Path) -> None:
    text = "# coding: latin-1\nimport torch  # \xe9\ntorch.cuda.amp.GradScaler()\n".encode("latin-1")
    assert found(tmp_path, {"use.py": text})["scaled"] == ["use.py:3"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b, c as d  # e\n", ("a.b", "c")),
        ("from . import x\nfrom ..y import (z,\n  w as v)\n", ("p", "p.x", "y", "y.w", "y.z")),
        ("if a: from b import *\n", ("b", "b.*")),
        ("y = 2\ndef f():\n    import os.path as p, sys\n", ("os.path", "sys")),
        ("important = 1\n# import x\n'import y'\n", ()),
    ],
)
def test_imports_are_read(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    assert facts_of(written(tmp_path, {"m.py": text}) / "m.py", "p/m.py", frozenset()).imports == names


KIT = "import torch\nhalf = torch.autocast\n"
UNDER_KIT = "import kit\ndef f(x):\n    with kit.half('cuda'):\n        x.backward()\n"
TYPED = "from a import A\ndef f(a: A):\n    return a.y\n"


@pytest.mark.parametrize(
    ("rule", "files", "place"),
    [
        ("amp-backward-inside-autocast", {"kit.py": KIT, "use.py": UNDER_KIT}, "use.py:4"),
        ("hidden-members", {"a.py": "class A:\n    pass\n", "use.py": TYPED}, "use.py:3"),
    ],
)
def test_what_other_files_do_is_followed_by_name(tmp_path: Path, rule: str, files: dict[str, str], place: str) -> None:
    others = {f"other{n}.py": "def f(d):\n    d.update(step=1)\nclass B:\n    pass\n" for n in range(3)}
    root = written(tmp_path, files | others)
    sites = check([load_rules()[rule]], sorted(root.rglob("*.py")), root).sites[rule]
    assert [f"{site.path}:{site.line}" for site in sites if not site.ok] == [place]


def test_file_whose_members_are_judged_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_parsed", parsed := Mock(wraps=module_of))
    text = "import torch\nclass A:\n    def f(self, x):\n        return x.update(torch.step), self.gone\n"
    root = written(tmp_path, {f"m{n}.py": text for n in range(60)})
    check(list(load_rules().values()), sorted(root.rglob("*.py")), root, kept=False)
    assert parsed.call_count == 60
