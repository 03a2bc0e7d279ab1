"""What processes note of themselves: which changes of a project's functions they rest on, and what leaves that open."""

import shutil
import sys
from pathlib import Path

import pytest
from building import written

from gates.child import process
from gates.child.noting import Noted, noting
from gates.code.units import Units

MODULE = """
def ran(): return [lambda: 1][0]()
def idle(): return 2
def some(): yield 3
def warns(): __import__("warnings").warn("a line is shown")
class Thing:
    @property
    def size(self):
        "A documented size."
        return 4
"""
CHANGED = [Units.of(text.encode()) for text in (MODULE, MODULE.replace("return 2", "pass"))]
START = "import os, subprocess, sys\nfrom mod import Thing, idle, ran, some\nran()\n"


def noted(root: Path, *argv: str, cwd: Path | None = None) -> Noted:
    """Run a command and return what its processes noted."""
    notes = root.with_name("notes")
    notes.mkdir()
    with noting(notes) as begun:
        process.run([*argv], cwd=cwd or root, timeout_s=60, log=notes.with_name("log"))
    shutil.rmtree(cwd or root)  # as copies are
    return Noted.of(begun, [])


def rests(told: Noted, root: Path, old: str, new: str) -> bool:
    """Return whether the processes rest on a change of the module."""
    before, now = MODULE.encode(), MODULE.replace(old, new, 1).encode()
    assert before != now
    return told.rests_on("mod.py", Units.of(before), Units.of(now))


def test_a_process_rests_on_what_it_ran_and_on_docstrings_that_it_may_read_and_on_nothing_else(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"mod.py": MODULE, "main.py": START + "other = [Thing]\n"})
    told = noted(root, sys.executable, "main.py")
    assert told.doubt == ""
    changes = {"return [lambda: 1]": "return [lambda: 2]", "return 2": "return 3", "return 4": "return 5"}
    changes["A documented"] = "Another"
    assert [rests(told, root, *change) for change in changes.items()] == [True, False, False, True]
    assert rests(told, root, "class Thing", "class Other")
    assert not told.rests_on("no.py", Units.of(b"A = 1"), Units.of(b"A = 2"))


def test_what_runs_in_a_copy_rests_on_the_project(tmp_path: Path) -> None:
    files = {"mod.py": MODULE, "main.py": START}
    root, copy = written(tmp_path / "p", files), written(tmp_path / "copy", files)
    told = noted(root, sys.executable, "main.py", cwd=copy)
    assert not rests(told, root, "return 2", "pass")
    assert rests(told, root, "lambda: 1", "lambda: 2")


@pytest.mark.parametrize(
    "more",
    [
        "idle()",
        "some()",  # a generator that nobody goes through
        "os.fork() or (idle(), sys.modules['gates_noting'].notes.end(), os._exit(0)); os.wait()",
        "os.fork() or (idle(), os._exit(0)); os.wait()",
        "subprocess.run([sys.executable, '-c', 'import mod; mod.idle()'])",
        "subprocess.run([sys.executable, '-S', '-c', 'import mod; mod.idle()'])",
        "subprocess.run(['sh', '-c', 'cat mod.py'], stdout=-3)",
        "import inspect; inspect.getsource(idle)",
        "type(idle)(idle.__code__.replace(co_name='copied'), globals())()",
        "os._exit(0)",
        "os.execv(sys.executable, [sys.executable, '-c', 'import mod; mod.idle()'])",
        "import socket; socket.getaddrinfo('localhost', 0)",
        "import dis; dis.dis(idle)",  # as a compiler reads it
        "import marshal; exec(marshal.loads(marshal.dumps(idle.__code__)))",
        "import mod, inspect; mod.warns(); inspect.getsource(Thing)",  # the text is there already
        "import pkgutil; pkgutil.get_data('mod', 'mod.py')",
        "import mod; mod.__loader__.get_source('mod')",
        "open(b'mod.py')",
        "class Last:\n    def __del__(self): idle()\nlast = Last()",  # of which nobody hears
        "from unittest import mock\nwith mock.patch('builtins.open'): subprocess.run(['cat', 'mod.py'], stdout=-3)",
        "open(os.environ['GATES_NOTED'] + '/more', 'w').write('(')",
    ],
)
def test_where_it_may_rest_on_more_it_rests_on_it(tmp_path: Path, more: str) -> None:
    root = written(tmp_path / "p", {"mod.py": MODULE, "main.py": START + more})
    assert rests(noted(root, sys.executable, "main.py"), root, "return 2" if "some" not in more else "yield 3", "pass")


@pytest.mark.parametrize(("folder", "known"), [("f'wandb-{os.getpid()}-1'", True), ("'wandb-1-1'", False)])
def test_a_tracker_may_talk_to_the_service_that_it_started(tmp_path: Path, folder: str, known: bool) -> None:
    talk = f"import socket as s; path = './' + {folder}; one, two = s.socket(s.AF_UNIX), s.socket(s.AF_UNIX)\n"
    talk += "one.bind(path), one.listen(), two.connect(path)\n"
    root = written(tmp_path / "p", {"mod.py": MODULE, "main.py": START + talk})
    assert (noted(root, sys.executable, "main.py").doubt == "") is known


@pytest.mark.parametrize("argv", [("sh", "-c", f"{sys.executable} main.py"), (sys.executable, "-I", "main.py")])
def test_what_notes_nothing_may_rest_on_anything(tmp_path: Path, argv: tuple[str, ...]) -> None:
    assert noted(written(tmp_path / "p", {"mod.py": MODULE, "main.py": ""}), *argv).doubt


@pytest.mark.parametrize("folder", ["own-packages", "linked"])
def test_it_rests_on_what_it_ran_wherever_that_lies(tmp_path: Path, folder: str) -> None:
    root = written(tmp_path / folder, {"lib/mod.py": MODULE, "main.py": START.replace("mod", "linked.mod") + "idle()"})
    (root / "linked").symlink_to("lib")
    assert noted(root, sys.executable, "main.py").rests_on("lib/mod.py", *CHANGED)


def test_what_a_site_customization_imported_may_have_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(tmp_path / "p", {"mod.py": MODULE, "sitecustomize.py": "import mod; mod.idle()", "main.py": ""})
    monkeypatch.setenv("PYTHONPATH", str(root))
    assert noted(root, sys.executable, "main.py").rests_on("mod.py", *CHANGED)


def test_another_site_customization_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(
        tmp_path / "p",
        {"sitecustomize.py": "SEEN = 1", "main.py": "import os, sitecustomize as s\nhasattr(s, 'SEEN') or os._exit(3)"},
    )
    monkeypatch.setenv("PYTHONPATH", str(root))
    assert noted(root, sys.executable, "main.py").doubt == ""
