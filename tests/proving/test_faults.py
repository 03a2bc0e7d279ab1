import ast
import os
from pathlib import Path

import pytest
from building import written

from gates.child.trying.keeping import Copy
from gates.model import Location
from gates.project.copies import copy_project, relocated
from gates.proving.source import Fault, Text, distinct, mutants


def a_text(text: str, path: str = "pkg/core.py") -> Text:
    return Text(path, text)


def changed_lines(text: str, other: str) -> set[tuple[str, str]]:
    return {(a.strip(), b.strip()) for a, b in zip(text.splitlines(), other.splitlines(), strict=False) if a != b}


QUIET = '''\
"""Words."""
import logging
from typing import TYPE_CHECKING

__all__ = ["grow", "x" + "y"]
log = logging.getLogger(__name__)
if TYPE_CHECKING:
    from pkg.other import Other


def grow(number: "int | None", *, by: int = 1) -> "int":
    """Grow by 1."""
    log.info("growing %d by %d", number + 1, by)
    if number < 0:
        raise ValueError(f"no {number - 1} " + "please")
    return number + by
    return 17
'''


def test_mutants_leave_out_what_is_only_told_and_what_is_dead() -> None:
    file = a_text(QUIET)
    found = list(mutants(file, range(7, 30)))
    assert {pair for change in found for pair in changed_lines(QUIET, change.text)} == {
        (
            'def grow(number: "int | None", *, by: int = 1) -> "int":',
            'def grow(number: "int | None", *, by: int = (2)) -> "int":',
        ),
        ('raise ValueError(f"no {number - 1} " + "please")', "pass"),
        ("if number < 0:", "if (not (number < 0)):"),
        ("if number < 0:", "if (number <= 0):"),
        ("if number < 0:", "if number < (1):"),
        ("return number + by", "return (number - by)"),
        ("return number + by", "return None"),
    }


MUTANTS = {
    "x = a and not b": {"x = None", "x = (a or not b)"},
    "x += -y": {"pass", "x -= -y", "x += (+y)"},
    "x[0] = y": {"pass", "x[(1)] = y"},
    "f(a, b=True)": {"pass", "(f(None, b=True))", "(f(a))", "f(a, b=(False))"},
    "f(*a, None)": {"pass"},
    "while 'k' in (a + b) * 2: break": {
        "while ('k' not in (a + b) * 2): break", "while ('XXkXX') in (a + b) * 2: break",
        "while 'k' in ((a + b) / 2): break", "while 'k' in (a - b) * 2: break", "while 'k' in (a + b) * (3): break",
        "while 'k' in (a + b) * 2: continue",
    },
}  # fmt: skip


@pytest.mark.parametrize("text", MUTANTS)
def test_operators_constants_and_arguments_are_exchanged(text: str) -> None:
    found = {change.text.replace("((a - b))", "(a - b)") for change in mutants(a_text(text), {1})}
    assert found == MUTANTS[text]


def test_a_change_in_the_middle_of_a_line_with_other_signs_hits_its_place() -> None:
    text = 'def f(x):\r\n    é = "ä—ö"; y = (\r\n        x  +  1)\r\n    return y\r\n'
    found = [change.text for change in mutants(a_text(text), {2, 3})]
    assert any("(x - 1)" in each for each in found)
    for each in found:
        ast.parse(each)
        assert each.endswith("return y\r\n")


def test_faults_that_mean_the_same_are_made_once() -> None:
    file = a_text("x = 1\n")
    texts = ("x = 2\n", "x = (2)\n", "x = 1  # the same\n", "x = (\n")
    same = [Fault(text, file, Location(path="pkg/core.py", line=1), text) for text in texts]
    made, left = distinct(same, 9)
    assert ([fault.title for fault in made], left) == (["x = 2\n"], 0)


def test_a_copy_has_all_but_history_environments_caches_and_reports(tmp_path: Path) -> None:
    root = written(
        tmp_path / "project",
        {
            "pkg/core.py": "", "data/x.bin": b"\0", ".git/HEAD": "", "env/pyvenv.cfg": "", "env/lib/x.py": "",
            "pkg/__pycache__/core.pyc": b"", "reports/T1/result.json": b'"schema": "gates.result/1"',
            ".hidden": "", "reports/templates/summary.md.j2": "",
        },
    )  # fmt: skip
    (root / "pkg/inside").symlink_to(root / "data")
    (root / "outside").symlink_to("../elsewhere")
    copy_project(root, tmp_path / "copy", 1)
    copy = tmp_path / "copy"
    names = sorted(
        path.relative_to(copy).as_posix() for path in copy.rglob("*") if not path.is_dir() or path.is_symlink()
    )
    assert names == [".hidden", "data/x.bin", "outside", "pkg/core.py", "pkg/inside", "reports/templates/summary.md.j2"]
    assert (copy / "pkg/inside").readlink() == Path("../data")  # for the copy of a copy, too
    assert (copy / "outside").readlink() == tmp_path / "elsewhere"


def test_variables_that_name_places_of_the_project_name_those_of_a_copy(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"data/x.bin": b"", ".venv/bin/tool": ""})
    (tmp_path / "link").symlink_to(root)
    copy = tmp_path / "copy"
    copy_project(root, copy, 1)
    env = {
        "ROOT": str(root), "LINKED": str(tmp_path / "link/data"), "PATH": f"/bin{os.pathsep}{root / '.venv/bin'}",
        "BOTH": f"{root / 'data'}{os.pathsep}/usr", "HOME": str(root), "NAME": "data", "BESIDE": f"{root}-old",
        "PYTHONPATH": "/lib",
    }  # fmt: skip
    assert relocated(env, root, copy) == {
        "ROOT": str(copy),
        "LINKED": str(copy / "data"),
        "BOTH": f"{copy / 'data'}{os.pathsep}/usr",
        "PYTHONPATH": "/lib",
    }


ENCODED = {
    "byte order mark": (b"\xef\xbb\xbfx = 'a'\n", "x = 'a'\n"),
    "its own encoding": (b"# coding: latin-1\nx = '\xe9'\n", "# coding: latin-1\nx = '\xe9'\n"),
    "other line ends": (b"x = 1\r\n\x0c\r\ny = 2\r\n", "x = 1\r\n\x0c\r\ny = 2\r\n"),
}


@pytest.mark.parametrize("case", ENCODED)
def test_a_file_is_read_and_written_in_its_encoding(tmp_path: Path, case: str) -> None:
    raw, text = ENCODED[case]
    for name in ("copy", "pristine"):
        written(tmp_path / name, {"pkg/m.py": raw})
    found = Text.read(tmp_path / "copy", "pkg/m.py")
    assert (found.text, bool(found.tree.body)) == (text, True)
    Copy(tmp_path / "copy", tmp_path / "pristine").put("pkg/m.py", found.text)
    assert (tmp_path / "copy/pkg/m.py").read_bytes() == raw
