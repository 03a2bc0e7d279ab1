import ast
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from building import PATIENCE_S, written

from gates.child.trying.keeping import Copy
from gates.child.trying.session import run
from gates.child.trying.work import Worker
from gates.model import Location
from gates.project.copies import copy_project, relocated
from gates.proving.source import Fault, Text, distinct, mutants


def a_text(text: str, path: str = "pkg/core.py") -> Text:
    return Text(path, text.encode())


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
    assert file.same == f"{ast.unparse(file.tree)}\n"
    found = list(mutants(file, [Location(path=file.path, line=7, last_line=30)]))
    assert {pair for change in found for pair in changed_lines(file.same, change.text)} == {
        (
            "def grow(number: 'int | None', *, by: int=1) -> 'int':",
            "def grow(number: 'int | None', *, by: int=2) -> 'int':",
        ),
        ("raise ValueError(f'no {number - 1} ' + 'please')", "pass"),
        ("if number < 0:", "if not number < 0:"),
        ("if number < 0:", "if number <= 0:"),
        ("if number < 0:", "if number < 1:"),
        ("return number + by", "return number - by"),
        ("return number + by", "return None"),
    }


MUTANTS = {
    "x = a and not b": {"x = None", "x = a or not b"},
    "x += -y": {"pass", "x -= -y", "x += +y"},
    "x[0] = y": {"pass", "x[1] = y"},
    "f(a, b=True)": {"pass", "f(None, b=True)", "f(a)", "f(a, b=False)"},
    "f(*a, None)": {"pass"},
    "while 'k' in (a + b) * 2: break": {
        "while 'k' not in (a + b) * 2: break", "while 'XXkXX' in (a + b) * 2: break",
        "while 'k' in (a + b) / 2: break", "while 'k' in (a - b) * 2: break", "while 'k' in (a + b) * 3: break",
        "while 'k' in (a + b) * 2: continue",
    },
}  # fmt: skip


@pytest.mark.parametrize("text", MUTANTS)
def test_operators_constants_and_arguments_are_exchanged(text: str) -> None:
    found = mutants(a_text(text), [Location(path="pkg/core.py", line=1)])
    assert {change.text.rstrip().replace("\n    ", " ") for change in found} == MUTANTS[text]


def test_faults_that_mean_the_same_are_made_once() -> None:
    file, place = a_text("x = 1\n"), Location(path="pkg/core.py", line=1)
    value = file.tree.body[0].value  # type: ignore[attr-defined]
    others = {"2": ast.Constant(2), "2 again": ast.Constant(2), "the same": ast.Constant(1), "none": ast.Break()}
    made, left = distinct([Fault(title, file, place, {value: other}) for title, other in others.items()], 9)
    assert ([fault.title for fault in made], left) == (["2"], 0)


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
    names = sorted(one.relative_to(copy).as_posix() for one in copy.rglob("*") if not one.is_dir() or one.is_symlink())
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


def test_a_loop_that_does_not_end_is_stopped_by_what_it_computed(tmp_path: Path) -> None:
    written(tmp_path, {"test_it.py": "def test_it():\n    while True:\n        pass\n"})
    told = {"tests": ["test_it.py::test_it"], "events": str(tmp_path / "events"), "cache": str(tmp_path / "cache"),
            "arguments": [str(tmp_path / "test_it.py"), f"--rootdir={tmp_path}"], "busy_s": 0.1}  # fmt: skip
    ended = run(told, forked=False, log=tmp_path / "log", limit_s=PATIENCE_S, limit_bytes=1 << 40)
    assert (ended["why"], ended["busy"] > 0.1, ended["seconds"] < PATIENCE_S) == ("timeout", True, True)


def test_wait_that_a_busy_machine_explains_is_tried_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    calm = {"events": [{"event": "ended", "id": "t", "when": "call", "outcome": "passed"}, {"event": "exit"}],
            "tests": ["t"], "why": "", "code": 0, "busy": 0.0, "seconds": 0.1}  # fmt: skip
    stalled = {**calm, "events": [{"event": "started", "id": "t"}], "why": "timeout"}
    monkeypatch.setattr(Worker, "_run", run := Mock(side_effect=[stalled, calm, calm]))
    (worker := Worker.__new__(Worker)).__dict__.update(_controls={}, _forked=False)
    found = worker._noticed({"file": "a.py", "tests_s": 0.1, "longest_s": 0.1}, "x = 1", ["t"], 5.0)
    assert (found["end"], [call.args[-1] for call in run.call_args_list]) == ("survived", [5.0, 5.0, 15.0])


ENCODED = {
    "byte order mark": b"\xef\xbb\xbfx = 'a'\n",
    "its own encoding": b"# coding: latin-1\nx = '\xe9'\n",
    "other line ends": b"x = 1\r\n\x0c\r\ny = 2\r\n",
}


@pytest.mark.parametrize("case", ENCODED)
def test_a_file_means_the_same_whatever_its_encoding_and_line_ends(tmp_path: Path, case: str) -> None:
    for name in ("copy", "pristine"):
        written(tmp_path / name, {"pkg/m.py": ENCODED[case]})
    found = Text.read(tmp_path / "copy", "pkg/m.py")
    for text in (found.same, found.retold):
        Copy(tmp_path / "copy", tmp_path / "pristine").put("pkg/m.py", text)
        assert ast.dump(ast.parse((tmp_path / "copy/pkg/m.py").read_bytes())) == ast.dump(found.tree)
    assert found.same != found.retold


def test_a_file_that_is_too_deep_to_be_written_anew_is_refused(tmp_path: Path) -> None:
    written(tmp_path, {"m.py": f"x = {' + '.join(['y'] * 600)}\n"})
    with pytest.raises(ValueError, match="too deep"):
        Text.read(tmp_path, "m.py")
