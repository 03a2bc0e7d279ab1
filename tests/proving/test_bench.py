"""The process that workers fork from: what it imports, where it cannot fork, when it starts and ends."""

from pathlib import Path

import pytest
from building import GOOD, PATIENCE_S, a_context, a_task, written

from gates import pipeline
from gates.check import Evidence, EvidenceSet
from gates.model import Location
from gates.proving.bench import Bench, benched
from gates.proving.cases import Baseline
from gates.proving.emptied_code import EmptiedCode
from gates.proving.source import Text, mutants
from gates.task.task import Selection

CALM, BUSY = "WARM = True\n", "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
TEST = """\
import os, pathlib, sys
from pkg.core import double
def test_double():
    pathlib.Path(os.environ["SEEN"]).write_text(str("library" in sys.modules))
    assert double(2) == 4 and os.getcwd() in os.environ["PYTHONPATH"].split(os.pathsep)
"""


def end_of_a_mutant(bench: Bench, root: Path) -> str:
    fault = next(mutants(Text.read(root, "pkg/core.py"), [Location(path="pkg/core.py", line=1, last_line=9)]))
    asked = {"one": (fault, ["tests/test_core.py::test_double"])}
    bench.try_all(None, faults := Baseline(None, None).faults(asked, PATIENCE_S))
    return str(faults.ends["one"]["end"])


@pytest.mark.parametrize(("library", "forks"), [(CALM, True), (BUSY, False)])
def test_workers_fork_from_what_was_imported_unless_it_has_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, forks: bool
) -> None:
    root = written(tmp_path / "project", {**GOOD, "tests/test_core.py": TEST})
    monkeypatch.setenv("PYTHONPATH", str(written(tmp_path / "lib", {"library.py": library})))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    with benched(a_task(), a_context(root)) as bench:
        bench.start(["library"])
        assert end_of_a_mutant(bench, root) == "killed"
        assert (tmp_path / "seen").read_text() == str(forks)


def test_what_tries_faults_starts_beside_the_tests_where_some_will_be_tried(tmp_path: Path) -> None:
    root = written(tmp_path, GOOD)
    ran: dict[type[Evidence], Evidence] = {EmptiedCode: EmptiedCode(how="", symbols=())}
    for gates, present, expected in (((), {}, 1), (("execution",), {}, 0), ((), ran, 0)):
        seen = EvidenceSet({**present})
        pipeline._foresee(a_task(), a_context(root), Selection(gates=gates), seen)
        assert len(seen.opened) == expected
        seen.stack.close()
        assert not seen.opened
