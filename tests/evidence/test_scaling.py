"""Scaling, collected for real: steps of a project at several sizes."""

from pathlib import Path
from typing import Any

import pytest
from building import ROOT, a_context, a_task, evidence, written

from gates.checks.scaling import CHECK, Scaled, Scaling, power
from gates.model import Finding, Outcome

CASES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks/cases/scaled").glob("*.py")}
P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
SIZES = [100, 200, 400]


def look(tmp_path: Path, body: str = "return lambda: 1", **changes: Any) -> tuple[Scaled, Finding]:
    """Measure a step of the cases, or one with a body of its own, by its calls if nothing else is said."""
    own = f"import os, sys, time\n\n\ndef make(n=0, batch=0):\n    {body}\n"
    root = written(tmp_path / "project", {**CASES, "pkg/__init__.py": "", "pkg/own.py": own})
    asked = {"call": "pkg.own:make", "over": {"batch": SIZES}, "of": "python_calls", "exponent": {"at_most": 1.3},
             "budget_s": 1.0, "restarts": 3, **changes}  # fmt: skip
    task = a_task(scaling=[asked])
    scaling = Scaling.collect(task, a_context(root))
    return scaling.seen[0], next(iter(CHECK.judge(task, evidence(scaling))))


@pytest.mark.parametrize(
    ("name", "of"),
    [("duplicates", "step_cpu_time_s"), ("in_a_helper", "step_cpu_time_s"), ("all_pairs", "peak_memory_bytes"),
     ("calls_of_calls", "python_calls")],
)  # fmt: skip
def test_quadratic_step_is_found(tmp_path: Path, name: str, of: str) -> None:
    sizes = {"peak_memory_bytes": [64, 128, 256, 512], "python_calls": [30, 60, 120]}.get(of, [30, 120, 480])
    seen, finding = look(tmp_path, call=f"planted_steps:{name}", of=of, over={"batch": sizes})
    assert finding.outcome is F, finding.message
    assert power(seen.sizes, seen.starts).low > 1.3


@pytest.mark.parametrize(
    ("name", "of", "over"),
    [("linear", "step_cpu_time_s", [2000, 8000, 32000]), ("held", "peak_memory_bytes", [64, 128, 256, 512]),
     ("called", "python_calls", SIZES), ("constant", "python_calls", SIZES)],
)  # fmt: skip
def test_linear_step_does_not_fail(tmp_path: Path, name: str, of: str, over: list[int]) -> None:
    _, finding = look(tmp_path, call=f"sound_steps:{name}", of=of, over={"batch": over})
    assert finding.outcome is P or (finding.outcome is U and of == "step_cpu_time_s"), finding.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no')", "ValueError: no"),
        ("return lambda: 1 // (batch < 400)", "ZeroDivisionError"),
        ("return 3", "it returned int, expected the step"),
        ("return lambda: (i for i in range(3))", "the step returned a generator that nobody runs"),
        ("os._exit(0)", "it ended by itself"),
        ("sys.exit(0)", "it ended by itself"),
        ("os.kill(os.getpid(), 9)", "it was killed by SIGKILL"),
        ("time.sleep(60)", "stopped at the time limit of 2 s"),
        ("", "pkg.own has no 'nothing'"),
    ],
)
def test_what_is_no_step_is_unknown_with_the_reason(tmp_path: Path, body: str, said: str) -> None:
    limit = {"timeout_s": 2} if "sleep" in body else {}  # a busy machine takes its time to begin the others
    _, finding = look(tmp_path, body or "pass", **limit, **({} if body else {"call": "pkg.own:nothing"}))
    assert (finding.outcome, said in finding.message) == (U, True), finding.message


def test_time_that_is_not_enough_is_unknown(tmp_path: Path) -> None:
    _, finding = look(tmp_path, "return lambda: time.sleep(0.15)", of="step_time_s", budget_s=2, timeout_s=3)
    assert finding.outcome is U
    assert "of 3 starts in the time there is" in finding.message or "time limit" in finding.message


def test_numbers_of_another_device_do_not_answer(tmp_path: Path) -> None:
    _, finding = look(tmp_path, call="sound_steps:called", on="cuda")
    assert finding.outcome is U
    assert "measured on cpu, asked is cuda" in finding.message
