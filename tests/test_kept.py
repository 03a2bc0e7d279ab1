"""Evidence that an earlier run left is taken while all that it rests on is as it was, and in no doubt."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from bar import committed, git
from building import TASK_FILE, Ended, a_context, a_project, gates, result, written

from gates import kept
from gates.config import Project, Settings
from gates.task import loading
from gates.task.task import Selection

OWN = {"CI": ""}
ONE = {"tasks/T1.yaml": TASK_FILE.partition("  - id: AC2")[0]}
TESTS = ("--gate", "execution")
WITH_DATA = "from pathlib import Path\nfrom pkg.core import double\n\ndef test_double():\n"
FLAKY = """
from pathlib import Path
from pkg.core import double

def test_double() -> None:
    assert double(2) == 4

def test_flaky(request) -> None:
    seen = Path(__file__).with_name("seen.tmp")
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    assert len(seen.read_text()) % 2
"""


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the packages of this environment, tens of thousands of files, be looked at by the first test alone."""
    monkeypatch.setattr(kept, "installed", lambda *_: nullcontext(str))


few = pytest.mark.usefixtures("_few")


def run(project: Path, *words: str) -> Ended:
    return gates(project, "run", "T1", *words, env=OWN)


def outcomes(project: Path) -> list[tuple[str, str, str]]:
    return [(f["rule"], f["outcome"], f["message"]) for gate in result(project)["gates"] for f in gate["findings"]]


def test_nothing_changed_takes_all_and_says_so_in_its_first_line(tmp_path: Path) -> None:
    committed(project := a_project(tmp_path / "p", ONE))
    first, seen = run(project), outcomes(project)
    run(project, "--out", str(project / "elsewhere"))
    again = run(project)
    assert (first.code, again.code) == (0, 0)
    assert "evidence of the run of" not in first.out
    assert again.out.splitlines()[0].startswith("PASS (evidence of the run of 20")
    assert (project / "reports/T1/summary.md").read_text().startswith("# PASS (evidence of the run of 20")
    assert f"Z; {result(project)['taken']})" in gates(project, "verify", "reports/T1").out.splitlines()[0]
    assert (outcomes(project), (project / "reports/T1/evidence/pytest/junit.xml").is_file()) == (seen, True)
    assert "evidence of" not in run(project, "--fresh").out
    (report,) = (project / kept.STORE).glob(f"*/{kept.REPORT}")
    (report.parent / kept.PIECES).unlink()
    assert "evidence of" in run(project).out, "the report is enough"
    (report.parent / "raw/pytest/junit.xml").write_text("")
    assert run(project).out.startswith("PASS  T1")
    (project / ".git/HEAD").unlink()  # git fails
    assert "evidence of" not in run(project).out
    assert [*(project / kept.STORE).glob(f"*/{kept.REPORT}")] == [report], "what is missing may be there next time"


def test_continuous_integration_takes_nothing() -> None:
    assert [kept.takes(env) for env in ({}, OWN, {"CI": "false"}, {"CI": "true"})] == [True, True, True, False]


@few
def test_a_verdict_follows_each_change_of_what_it_rests_on(tmp_path: Path) -> None:
    test = f"{WITH_DATA}    assert double(2) == int(Path('data.txt').read_text())\n"
    files = {**ONE, ".gitignore": "reports/\n.gates/\ndata.txt\n", "data.txt": "4", "tests/test_core.py": test}
    project = a_project(tmp_path / "p", files)
    assert run(project).code == 0
    (project / "data.txt").write_text("5")  # ignored by git, and no Python
    assert run(project).code == 1
    (project / "data.txt").write_text("4")
    assert "PASS (evidence of the run of" in run(project).out


TWO = """\
def double(x):
    return x + x


def half(x):
    return x // 2
"""
TESTS_OF_TWO = """\
from pkg.core import double, half


def test_double():
    assert double(2) == 4


def test_half():
    assert half(4) == 2


def test_more():
    assert half(2) == 1
"""


@few
def test_after_an_edit_only_what_ran_it_and_its_faults_are_tried_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"  # of the entry point
    task = ONE["tasks/T1.yaml"].replace("tests/test_core.py", "tests/test_core.py::test_double")
    task = task.replace('-c, "import pkg.core; pkg.core.double(1)"', "main.py")
    main = f"from pkg.core import double\nopen({str(runs)!r}, 'a').write(f'{{double(1)}} ')\n"
    files = {"tasks/T1.yaml": task, "pkg/core.py": TWO, "tests/test_core.py": TESTS_OF_TWO, "main.py": main}
    project = a_project(tmp_path / "p", files)
    assert run(project).code == 0
    (project / "pkg/core.py").write_text(TWO.replace("x // 2", "int(x / 2)"))
    assert run(project).out.startswith("PASS (1 of 3 tests and 2 of 8 kinds of evidence of the run of 20")
    commands = [command["purpose"] for command in result(project)["commands"]]
    assert "tests without the code that they verify" not in commands
    assert run(project).out.startswith("PASS (evidence of the run of 20")
    (project / "pkg/core.py").write_text(TWO.replace("x // 2", "x // 3"))
    broken = run(project)
    assert broken.out.startswith("BLOCK (2 of 8 kinds of evidence of the run of 20")
    assert (broken.code, runs.read_text()) == (1, "2 ")
    (project / "pkg/core.py").write_text(TWO.replace("x + x", "2 * x"))
    assert (run(project).code, runs.read_text()) == (0, "2 2 ")


@few
def test_a_file_that_a_link_takes_the_place_of_is_another(tmp_path: Path) -> None:
    files = {"pkg/core.py": TWO, "pkg/more.py": TWO.replace("x + x", "3 * x"), "tests/test_core.py": TESTS_OF_TWO}
    project = a_project(tmp_path / "p", {**ONE, **files})
    assert run(project).code == 0
    (project / "pkg/core.py").unlink()
    (project / "pkg/core.py").symlink_to("more.py")
    assert run(project).code == 1


@few
def test_what_a_program_writes_for_another_is_written_again(tmp_path: Path) -> None:
    task = ONE["tasks/T1.yaml"].replace('-c, "import pkg.core; pkg.core.double(1)"', "main.py")
    task += '\ncalculations:\n  - {call: "pkg.core:half", table: [{args: [2], expected: 1}]}\n'
    text = TWO.replace("x // 2", "x // int(open('by').read())")
    main = "from pkg.core import double\nopen('by', 'w').write(str(double(1)))\n"
    project = a_project(tmp_path / "p", {"tasks/T1.yaml": task, "pkg/core.py": text, "main.py": main})
    assert run(project).code == 0
    (project / "pkg/core.py").write_text(text.replace("x //", "(x + 0) //"))
    assert run(project).code == 0
    (project / "pkg/core.py").write_text(text.replace("x + x", "x + x + x"))
    run(project, "--keep-going")
    assert ("BL008", "failed") in {found[:2] for found in outcomes(project)}


@few
def test_what_chance_had_a_part_in_is_run_again(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"tests/test_core.py": FLAKY, ".gitignore": "*.tmp\n"})
    run(project, "--repeat", "2", *TESTS)
    assert "evidence of the run of" not in run(project, "--repeat", "2", *TESTS).out


@few
def test_a_test_that_asks_a_network_is_run_again(tmp_path: Path) -> None:
    asks = "assert double(2) == 4\n\ndef test_asks():\n    __import__('socket').socket().connect_ex(('127.0.0.1', 9))"
    project = a_project(tmp_path / "p", {**ONE, "tests/test_core.py": f"{WITH_DATA}    {asks}\n"})
    assert (run(project).code, run(project).out.partition(" of ")[2][:9]) == (0, "8 kinds o")


@few
def test_nothing_is_kept_where_a_file_changed_during_the_run(tmp_path: Path) -> None:
    test = f"{WITH_DATA}    Path('data.txt').write_text('5')\n    assert double(2) == 4\n"
    project = a_project(tmp_path / "p", {"data.txt": "4", "tests/test_core.py": test, ".gitignore": "data.txt\n"})
    run(project, *TESTS)
    (project / "data.txt").write_text("4")
    assert "evidence of the run of" not in run(project, *TESTS).out


EDITS: dict[str, Callable[[Path], object]] = {
    "code": lambda p: (p / "pkg/core.py").write_text("def double(x):\n    return 2 * x\n"),
    "a new file": lambda p: (p / "pkg/more.py").write_text(""),
    "a mode": lambda p: (p / "bench.py").chmod(0o755),
    "a link": lambda p: (p / "link").symlink_to("bench.py"),
    "settings": lambda p: (p / "pyproject.toml").write_text("[tool.gates]\ntimeout_s = 9\n"),
    "a large file": lambda p: (p / "large.bin").write_bytes(b"1" * (kept.READ_WHOLE + 1)),
    "a commit": lambda p: git(p, "commit", "-q", "--allow-empty", "-m", "more"),
    "a branch": lambda p: git(p, "branch", "other"),
    "a file less": lambda p: (p / "tests/test_core.py").unlink(),
    "a file beside the project": lambda p: (p.parent / "conftest.py").write_text("x = 2\n"),
    "the branch": lambda p: git(p, "checkout", "-q", "other"),
    "a linked folder": lambda p: (p / "folder").symlink_to("pkg"),
    "what a linked folder holds": lambda p: (p / "data/.real/a.txt").write_text("1"),
    "what lies among caches": lambda p: (p / ".venv/d/a.txt").write_text("12"),
    "a file of the project's among the reports": lambda p: (p / "reports/golden.txt").write_text("1"),
    "the index": lambda p: git(p, "rm", "-q", "--cached", "bench.py"),
    "a variable": lambda p: os.environ.update({"SOMETHING_OF_A_TEST": "1"}),
}  # fmt: skip


def test_every_change_is_another_state_and_a_report_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMETHING_OF_A_TEST", "0")
    project = a_project(tmp_path / "p")
    (tmp_path / "conftest.py").write_text("x = 1\n")
    committed(tmp_path)
    (project / "large.bin").write_bytes(b"0" * (kept.READ_WHOLE + 1))
    (project / "data").symlink_to(written(tmp_path.with_name("data"), {".real/a.txt": "", "b/c.txt": ""}))
    (project / "data/linked").symlink_to(".real")
    (project / "above").symlink_to("..")
    (written(project, {".venv/d/a.txt": "1"}) / "in").symlink_to(".venv/d")
    task, context = loading.load(project / "tasks/T1.yaml", project), a_context(project)

    def state() -> str:
        return kept.state_of(task, context, Selection()).name("")

    seen = {"at first": state()}
    written(project, {"reports/T1/result.json": '{"schema": "gates.result/1"}', ".coverage.here.pid7.Xa": "x"})
    monkeypatch.setenv("TMUX", "40")
    assert state() == seen["at first"]
    for name, edit in EDITS.items():
        edit(project)
        seen[name] = state()
    assert len({*seen.values()}) == len(seen), seen
    monkeypatch.setattr(kept, "MOST_LINKED", 1)
    assert state() != state()


def test_packages_and_the_interpreter_are_part_of_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = written(tmp_path / "elsewhere", {"three.py": ""})
    finder = {"__editable___two_finder.py": f"MAPPING = {{'two': '{elsewhere}'}}\n"}
    library = written(tmp_path / "p/.venv/lib/python3/site-packages", {"one.py": "x = 1\n", **finder})
    monkeypatch.setattr(sys, "path", [str(library)])
    monkeypatch.delenv("CI", raising=False)
    here, seen = Project(tmp_path / "p", Settings()), set[str]()
    for change in ((elsewhere / "two.py", "y = 1\n"), (library / "one.py", "x = 12\n"), None):
        with kept.installed(here) as digest:
            assert digest
            seen.add(digest())
        if change:
            change[0].write_text(change[1])
    assert len(seen) == 3


@few
def test_a_store_is_bounded_and_what_cannot_be_read_in_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_RUNS", 1)
    project = a_project(tmp_path / "p")
    for text in ("a = 1\n", "a = 2\n"):
        (project / "pkg/more.py").write_text(text)
        run(project, *TESTS)
    (folder,) = (project / kept.STORE).iterdir()
    told = json.loads((folder / kept.STATE).read_text())
    state = kept.State(files=told["files"], git="", around=told["around"])
    assert kept.find(project, state, "", tmp_path / "raw") is not None
    shutil.copytree(folder, further := folder.with_name("newer-"))
    files = {**told["files"], **dict.fromkeys(json.loads((folder / kept.SOURCES).read_text()), "another text")}
    (further / kept.STATE).write_text(json.dumps({**told, "at": "later", "files": files}))
    nearest = kept.find(project, state, "", tmp_path / "raw")
    assert nearest and nearest.at == told["at"], "of two states the one that differs least"
    shutil.rmtree(further)
    for damage in ("{", 'No {"a": 1}\n', "PytestRun {}\n", "PytestRun []\n"):
        (folder / kept.PIECES).write_text(damage)
        assert kept.find(project, state, "", tmp_path / "raw") is None
    (folder / kept.STATE).write_text("[]")
    assert kept.find(project, state, "", tmp_path / "raw") is None
