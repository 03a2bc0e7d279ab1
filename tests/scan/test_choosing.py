"""Which files are read for a rule: never fewer than those in which it could find something."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from building import written
from scanning import WORDS

from gates.scan.checking import check
from gates.scan.facts import facts_of
from gates.scan.import_lines import imported
from gates.scan.loading import load_folder
from gates.scan.memory import Memory

RULES = {
    "stacked": "pattern: torch.stack($X).to($$$)",
    "scaled": "any: [torch.cuda.amp.GradScaler(...), from torch.cuda.amp import $$$]",
    "read": "pattern: $X.item()\nnot_inside: 'with torch.no_grad(): ...'",
}
USE = "s(rows).to(device)\n"


def found(root: Path, files: Mapping[str, str | bytes], memory: Memory | None = None) -> dict[str, list[str]]:
    written(root / "p", dict(files))
    for name, body in RULES.items():
        written(root / "rules", {f"{name}.yaml": f"{body}\n{WORDS.replace('id: mine', '')}id: {name}\n"})
    rules = list(load_folder(root / "rules", root).values())
    paths = sorted((root / "p").rglob("*.py"))
    sites = check(rules, paths, root / "p", memory).sites
    for rule in rules:  # fewer files are read for one rule than for all
        assert check([rule], paths, root / "p").sites[rule.id] == sites[rule.id], rule.id
    return {name: [f"{s.path}:{s.line}" for s in there if not s.ok] for name, there in sites.items()}


@pytest.mark.parametrize(
    "lent",
    [
        "from torch import stack as s\n",
        "from torch import (\n    cat,\n    stack  # rows\n    as s,\n)\n",
        "import torch\ns = torch.stack\n",
        "import torch\ns = (\n    torch.stack\n)\n",
        "import torch as t\nold = s = t.stack\n",
        "import torch\ns: object = torch.stack if torch.cuda else torch.cat\n",
        "import functools, torch\ns = functools.partial(torch.stack, dim=0)\n",
        "from torch import stack\\\n    as s\n",
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
        ("from again import r\nr(rows).to(device)\n", 2),
        ("\ufefffrom compat import s\n" + USE, 2),
        ("from compat \\\r\n  import s\r\n" + USE, 3),
    ],
)
def test_name_that_another_file_lends_is_followed(tmp_path: Path, lent: str, use: str, line: int) -> None:
    again = "from compat import s as r\n"
    assert found(tmp_path, {"compat.py": lent, "again.py": again, "use.py": use})["stacked"] == [f"use.py:{line}"]


def test_name_is_followed_through_many_files(tmp_path: Path) -> None:
    files = {f"m{n}.py": f"from m{n + 1} import s{n + 1} as s{n}\n" for n in range(12)}
    files |= {"m12.py": "from torch import stack as s12\n", "use.py": "from m0 import s0\ns0(rows).to(device)\n"}
    assert found(tmp_path, files)["stacked"] == ["use.py:2"]


def test_name_that_is_given_on_with_all_others_is_followed(tmp_path: Path) -> None:
    files = {
        "compat.py": "from torch import stack as s\n",
        "again.py": "from compat import *\n",
        "use.py": "from again import s\ns(rows).to(device)\n",
    }
    assert found(tmp_path, files)["stacked"] == ["use.py:2"]


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


def test_change_of_a_lender_is_noticed(tmp_path: Path) -> None:
    files = {"compat.py": "from torch import cat as s\n", "use.py": "from compat import s\n" + USE}
    assert found(tmp_path, files, Memory(tmp_path / "m.json"))["stacked"] == []
    files["compat.py"] = "from torch import stack as s\n"
    assert found(tmp_path, files, Memory(tmp_path / "m.json"))["stacked"] == ["use.py:2"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"import a.b, c as d  # e\n", ("a.b", "c=d")),
        (b"from . import x\nfrom ..y import (z,\n  w as v)\n", ("p.", "p.x", "y.", "y.w=v", "y.z")),
        (b"if a: from b import *\n", ("b.", "b.*")),
        (b"x = 1; import os\n", ("os",)),
        (b"y = 2; z = 3\ndef f():\n    import os.path as p, sys\n", ("os.path=p", "sys")),
        ("import na\u00efve as n\n".encode(), ("na\u00efve=n",)),
        (b"important = 1\n# import x\n'import y'\n", ()),
        (b"from a import (", ("a.",)),
    ],
)
def test_imports_are_read_without_parsing(text: bytes, names: tuple[str, ...]) -> None:
    assert imported(text, "p/m.py") == names


def test_rules_of_other_kinds_make_no_library_of_a_file(tmp_path: Path) -> None:
    written(tmp_path / "p", {"compat.py": "from torch import stack as s\n", "use.py": "from compat import s\n" + USE})
    bodies = {"stacked": RULES["stacked"], "typed": "pattern: compat.run($X)\nwhere: {$X: {type: torch.Tensor}}"}
    for name, body in bodies.items():
        written(tmp_path / "r", {f"{name}.yaml": f"{body}\n{WORDS.replace('id: mine', '')}id: {name}\n"})
    rules = list(load_folder(tmp_path / "r", tmp_path).values())
    sites = check(rules, sorted((tmp_path / "p").rglob("*.py")), tmp_path / "p").sites["stacked"]
    assert [f"{site.path}:{site.line}" for site in sites if not site.ok] == ["use.py:2"]


@pytest.mark.parametrize("many", [[], [f"other{n}" for n in range(40)]], ids=["few", "many"])
@pytest.mark.parametrize("word", ["stack", "stac*", "ack*", "= {", "st.k", "missing", "tack", "na\u00efve", "x*"])
def test_words_are_found_alike_one_by_one_and_together(tmp_path: Path, word: str, many: list[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text("rows = {1: restack, 'st.k': na\u00efve, 2: stack}  # \u201cexact\u201d\n", encoding="utf-8")
    there = word not in {"missing", "tack"}
    assert facts_of(path, "a.py", [word, *many]).words == ((word,) if there else ())


def test_words_count_as_whole_names_only(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("restack = tot = 1  # stack_ _to 2to to3\n", encoding="utf-8")
    assert facts_of(path, "a.py", ["stack", "to", "return {"]).words == ()


@pytest.mark.parametrize("text", ["stack", "a.stack(", "x = [stack]\n", "\u00e9 stack\n", "restack; stack"])
def test_word_is_found_wherever_it_stands_by_itself(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    assert facts_of(path, "a.py", ["stack", "", "k"]).words == ("stack", "")
