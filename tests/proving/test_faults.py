import ast
import os
from pathlib import Path
from typing import Any

import pytest
from building import written

from gates.model import Location
from gates.project.copies import copy_project, relocated
from gates.proving._worker.keeping import Copy
from gates.proving.general import Change, Maker, from_statements, general, operators
from gates.proving.source import Text


def a_text(text: str, path: str = "pkg/core.py") -> Text:
    return Text(path, text)


def place(text: str) -> Location:
    return Location(path="pkg/core.py", line=1, last_line=text.count("\n") + 1)


def texts(changes: Any) -> list[str]:
    return [change.text for change in changes]


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


def test_statements_are_left_out_and_conditions_turned_round() -> None:
    changed = {
        pair for text in texts(from_statements(place(QUIET), a_text(QUIET))) for pair in changed_lines(QUIET, text)
    }
    assert changed == {
        ('raise ValueError(f"no {number - 1} " + "please")', "pass"),
        ("if number < 0:", "if (not (number < 0)):"),
        ("if number < 0:", "if number <= 0:"),
        ("return number + by", "return None"),
    }


def test_general_mutations_leave_out_what_is_only_told_and_what_is_dead() -> None:
    pytest.importorskip("mutmut", reason="general mutations need mutmut (the extra 'prove')")
    file = a_text(QUIET)
    found = list(general(file, frozenset(range(1, 30)) - file.idle, operators()))
    changed = {pair for change in found for pair in changed_lines(QUIET, change.text)}
    assert ("return number + by", "return number - by") in changed
    assert ("if number < 0:", "if number <= 0:") in changed
    assert {number for change in found for number in (change.first,)} <= {6, 11, 14, 16}
    assert not [before for before, _ in changed if before.startswith(("log.", '"""', "__all__", "from", "raise"))]


def test_a_change_in_the_middle_of_a_line_with_other_signs_hits_its_place() -> None:
    pytest.importorskip("mutmut", reason="general mutations need mutmut (the extra 'prove')")
    text = 'def f(x):\r\n    é = "ä—ö"; y = (\r\n        x  +  1)\r\n    return y\r\n'
    found = [change.text for change in general(a_text(text), frozenset({2, 3}), operators())]
    assert any("x  -  1" in each.replace("- ", "-  ") or "x - 1" in each for each in found)
    for each in found:
        ast.parse(each)
        assert each.endswith("return y\r\n")


def test_faults_that_mean_the_same_are_made_once() -> None:
    file = a_text("x = 1\n")
    texts = ("x = 2\n", "x = (2)\n", "x = 1  # the same\n", "x = (\n")
    same = [Change(text, file, 1, 1, text) for text in texts]
    made, left = Maker().make(same)
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
