"""Programs that are forked from what has imported libraries are as their commands would be, or are started by these."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from building import PATIENCE_S, a_context, a_task, written

from gates.child import probing
from gates.child.forks import Warm, warm
from gates.child.noting import Noted, noting
from gates.child.probing import Probe, Probed

BUSY = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
LIBRARY = {"library.py": "", "hidden.py": "", "threads.py": BUSY}
SEEN = """\
import json, os, sys, tempfile, time
def seen():
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GATES_", "WANDB_DIR"))}
    paths = [path for path in sys.path if not path.endswith("noting")]
    print(json.dumps(["library" in sys.modules, os.getcwd(), sys.argv, paths, env, tempfile.gettempdir()]))
    print(os.getpid() == os.getsid(0), sys.stdin.read(), file=sys.stderr)
def never(): pass
def does(code): exec(code)
"""


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warm]:
    monkeypatch.setenv("PYTHONPATH", str(written(tmp_path / "lib", LIBRARY)))
    monkeypatch.setattr(probing, "FORKED", {"leaks"})
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    with warm(sys.executable, tmp_path, tmp_path / "warm", {}) as found:
        found.load([tmp_path / "project"], "warm:load", ["library"])
        yield found


def asked(tmp_path: Path, call: str, forks: Warm | None, *args: str, limit_s: float = PATIENCE_S) -> Probed:
    root = written(tmp_path / "project", {"pkg/seen.py": SEEN})
    (folder := tmp_path / ("forked" if forks else "started")).mkdir(exist_ok=True)
    probe = Probe(replace(a_context(root), warm=lambda: forks), a_task(implementation=["pkg"]), folder)
    told = {"call": f"pkg.seen:{call}", "args": args, "least": 1, "epochs": 1, "warm": 0}
    return probe.ask("leaks", call, told, limit_s, env={"OWN": "told"})


def test_a_fork_has_folder_arguments_paths_environment_and_streams_of_its_command(tmp_path: Path, forks: Warm) -> None:
    runs = [run for how in (forks, None) if (run := asked(tmp_path, "seen", how).process)]
    forked, started = ([*json.loads(run.stdout.tail.splitlines()[0]), run.stderr.tail] for run in runs)
    assert (forked.pop(0), started.pop(0)) == (True, False)
    assert forked == started
    assert "True" in forked[-1]


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("os._exit(3)", "exit code 3"),
        ("sys.exit(4)", "exit code 4"),
        ("os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("os.fork() or os.setsid() or os.fork() or time.sleep(600)", "exit code 0"),
        ("time.sleep(600)", "stopped at the time limit of 1 s"),
    ],
)
def test_a_fork_ends_as_its_command_would(tmp_path: Path, forks: Warm, code: str, ended: str) -> None:
    run = asked(tmp_path, "does", forks, code, limit_s=1 if "limit" in ended else PATIENCE_S).process
    assert (run.ended if run else "") == ended
    assert f"{tmp_path}/project" not in {each.info["cwd"] for each in psutil.process_iter(["cwd"])}
    assert asked(tmp_path, "seen", forks).of("epoch")


def test_a_fork_notes_what_it_runs(tmp_path: Path, forks: Warm) -> None:
    noted = []
    for how in (forks, None):
        (folder := tmp_path / f"notes-{how is None}").mkdir()
        with noting(folder) as notes:
            asked(tmp_path, "seen", how)
            noted.append(Noted.of(notes, ()))
    path = str(tmp_path / "project/pkg/seen.py")
    assert [(each.doubt, each.read, each.idle[path]) for each in noted] == [("", (), ("does", "never"))] * 2


@pytest.mark.parametrize("modules", [["threads"], ["library", "pkg.seen"], ["missing"], ["library", "hidden"]])
def test_what_no_fork_is_safe_after_is_started_by_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: list[str]
) -> None:
    paths = (written(tmp_path / "lib", LIBRARY), written(tmp_path / "project", {"pkg/seen.py": SEEN, "hidden.py": ""}))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    monkeypatch.setattr(probing, "FORKED", {"leaks"})
    with warm(sys.executable, tmp_path, tmp_path / "warm", {}) as forks:
        forks.load([tmp_path / "project"], "warm:load", modules)
        run = asked(tmp_path, "seen", forks).process
    assert (run.stdout.tail if run else "").startswith("[false, ")


def test_on_other_systems_it_only_starts_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with warm(sys.executable, tmp_path, tmp_path / "warm", {}) as forks:
        forks.load([], "warm:load", ["json"])
        assert not forks.ready()
        assert asked(tmp_path, "never", forks).of("epoch")


def test_where_what_forks_is_gone_a_program_is_started_by_its_command(tmp_path: Path, forks: Warm) -> None:
    assert asked(tmp_path, "seen", forks).process
    os.kill(int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[-1]), signal.SIGKILL)
    assert asked(tmp_path, "seen", forks).of("epoch")
