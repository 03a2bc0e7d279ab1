"""Leaks, collected for real: epochs of a project in processes of their own, and what there is to say where none ran."""

from pathlib import Path
from typing import Any

import pytest
from building import ROOT, a_context, evidence, written
from leaking import a_leaking_task

from gates.checks.leaks import CHECK, LeakRun, Leaks
from gates.model import Finding, Outcome

CASES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks/cases/leaked").glob("*.py")}
P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
HEAD = "import gc, os, sys, time, tracemalloc\nKEPT = []\n\n\n"


def look(tmp_path: Path, body: str = "pass", torch: str = "", **changes: Any) -> tuple[LeakRun, Finding]:
    """Run a callable of the cases, or one with a body of its own; with a torch of its own, too, where there is one."""
    files = {**CASES, "pkg/__init__.py": "", "pkg/own.py": f"{HEAD}def epoch(*args):\n    {body}\n"}
    root = written(tmp_path / "project", files | ({"torch.py": torch} if torch else {}))
    task = a_leaking_task(**{"call": "pkg.own:epoch", "args": [], "epochs": 20, **changes})
    leaks = Leaks.collect(task, a_context(root))
    assert not (root.parent / "project-evidence/leaks/plugin").exists()
    return leaks.seen[0], next(iter(CHECK.judge(task, evidence(leaks))))


def marked(name: str, *, after: str) -> str:
    """Return the first marked line of a case after some text."""
    lines = CASES[name].splitlines()
    start = next(i for i, line in enumerate(lines) if after in line)
    return f"{name}:{next(i for i, line in enumerate(lines, 1) if i > start and '# <- here' in line)}"


@pytest.mark.parametrize("name", ["asynchronous", "cache_without_a_bound", "arrays_of_a_session", "a_chain"])
def test_leak_of_a_megabyte_is_found_with_its_line(tmp_path: Path, name: str) -> None:
    run, finding = look(tmp_path, call=f"planted_plain:{name}")
    assert finding.outcome is F
    assert str(finding.location) == marked("planted_plain.py", after="def encode" if "cache" in name else
                                           "class Link" if "chain" in name else f"def {name}")  # fmt: skip
    assert (run.form, run.longer, run.epochs) == ("returned", True, 60)


def test_list_of_losses_with_their_graphs_is_found_with_its_line(tmp_path: Path) -> None:
    _, finding = look(tmp_path, call="planted:losses_with_their_graphs")
    assert finding.outcome is F
    assert str(finding.location) == marked("planted.py", after="def losses_with_their_graphs")
    assert "autograd graphs by 24 nodes [24 nodes, 24 nodes] an epoch" in finding.actual
    assert "what stays is allocated at planted.py:" in finding.message


def test_leak_that_begins_late_is_found_with_its_line(tmp_path: Path) -> None:
    body = "KEPT.extend([0] * (not KEPT)); KEPT[0] += 1; KEPT[0] > 14 and KEPT.append(bytes(1 << 20))"
    _, finding = look(tmp_path, body)
    assert finding.outcome is F
    assert str(finding.location) == "pkg/own.py:6"


def test_queue_that_is_filling_is_no_leak(tmp_path: Path) -> None:
    queue = "KEPT or KEPT.append(__import__('collections').deque(maxlen=300))"
    run, finding = look(tmp_path, f"{queue}; KEPT[0].extend([bytes(1 << 17) for _ in range(4)])")
    assert finding.outcome is U
    assert f"a deque of at most 300 is filling ({4 * run.epochs} of 300)" in finding.message


def test_memory_of_a_library_alone_is_unknown(tmp_path: Path) -> None:
    _, finding = look(tmp_path, call="planted_plain:memory_of_a_library")
    assert (finding.outcome, "a library knows of" in finding.message) == (U, True), finding.message


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "KEPT[:] = [bytes(1 << 20)]",
        "len(KEPT) < 25 and KEPT.append(bytes(1 << 16))",  # fills, and ends
        "a = []; a.append(a); a.append(bytes(1 << 20))",  # a cycle, for the collector
        "return open(__file__)",  # no iterator of epochs
        "return type('Model', (), {'forward': 1, '__call__': lambda self, x: x})()",
    ],
)
def test_what_keeps_nothing_passes(tmp_path: Path, body: str) -> None:
    run, finding = look(tmp_path, body)
    assert (finding.outcome, run.form) == (P, "called"), finding.message
    assert {rung.name for rung in run.rungs} == {"python", "private"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no')", "ValueError: no (after 0 of 20 epochs)"),
        ("KEPT.append(0); len(KEPT) > 3 and 1 / 0", "ZeroDivisionError: division by zero (after 3 of 20 epochs)"),
        ("KEPT.append(0); len(KEPT) > 3 and os._exit(0)", "before it was done: exit code 0 (after 3 of 20 epochs)"),
        ("sys.exit(0)", "before it was done: exit code 0 (after 0 of 20 epochs)"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("time.sleep(60)", "stopped at the time limit of 1.5 s"),
        ("import contextlib; return contextlib.nullcontext()", "it returned a nullcontext, which nobody enters"),
        ("return iter([1, 2, 3])", "it returned a list_iterator, which nobody enters or goes through"),
        ("import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30,) * 2); bytes(1 << 31)", "MemoryError"),
        ("tracemalloc.stop(); tracemalloc.start()", "the project stopped tracemalloc"),
        ("open(SELF, 'ab').write(b'x {}\\n')", "lines that are not its own"),
    ],
)
def test_what_does_not_run_to_its_end_is_unknown_with_the_reason(tmp_path: Path, body: str, said: str) -> None:
    journal = tmp_path / "project-evidence/leaks/0.jsonl"
    limit: dict[str, Any] = {"timeout_s": 1.5} if "sleep" in body else {}  # others may take their time to begin
    _, finding = look(tmp_path, body.replace("SELF", repr(str(journal))), **limit)
    assert (finding.outcome, said in finding.message) == (U, True), finding.message
    assert "\n" not in finding.message
    assert ("1 / 0" not in body) or str(finding.location) == "pkg/own.py:6"


def test_what_cannot_be_called_is_unknown(tmp_path: Path) -> None:
    _, finding = look(tmp_path, call="pkg.own:KEPT")
    assert (finding.outcome, "pkg.own:KEPT is a list, which cannot be called" in finding.message) == (U, True)


def test_interpreter_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    context = a_context(written(tmp_path / "project", {"a.py": ""}))
    leaks = Leaks.collect(a_leaking_task(), type(context)(**{**vars(context), "python": str(tmp_path / "none")}))
    assert "cannot be started" in leaks.seen[0].problem


FAKE = """
import contextlib, types
LIVE = []
class Tensor: pass
autograd = types.SimpleNamespace()
_C = types.SimpleNamespace(DisableTorchFunctionSubclass=contextlib.nullcontext)
backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: False))
cuda = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, device_count=lambda: 1,
                             memory_allocated=lambda device: len(LIVE) << 20)
"""


def test_leak_on_a_device_is_found_by_its_allocator(tmp_path: Path) -> None:
    _, finding = look(tmp_path, "import torch; torch.LIVE.append(0)", FAKE)
    assert finding.outcome is F
    assert finding.actual == "device cuda:0 by 1 MB [1 MB, 1 MB] an epoch"
    assert "no line of the project was found" in finding.message  # the locating run had nothing to look with
