"""What `gates doctor` tells."""

import json
import math
import random
import sys
from pathlib import Path

import pytest
from building import ROOT, a_project, gates, written
from taking import a_taken, some_samples

from gates.commands.doctor import KEPT_S, DoctorRequest, _rates, perform
from gates.measuring.rounds import Trace

TOLD = {
    "python": "3.12.0", "implementation": "cpython", "versions": {"pytest": "9.0", "torch": "2.13"},
    "clocks": {"perf_counter": ["monotonic", 1e-9]}, "devices": ["cpu", "cuda: a big one"],
}  # fmt: skip


def test_it_tells_what_the_machine_can_verify(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path / "p"), "doctor", "--python", a_python(tmp_path, f"echo '{json.dumps(TOLD)}'"))
    assert ended.code == 0
    assert "cores may be used" in ended.out
    for line in ("can verify   tests", "can verify   numbers on the cpu", "can verify   numbers on cuda"):
        assert line in ended.out
    assert "cannot       numbers on rocm: this machine shows no rocm device" in ended.out
    assert "cannot       lines that tests execute: coverage is not installed" in ended.out


def test_this_interpreter_tells_of_itself(tmp_path: Path) -> None:
    probe = str(ROOT / "gates/measuring/_probe.py")
    code = f"import runpy, sys; sys.modules['torch'] = None; runpy.run_path({probe!r}, run_name='__main__')"
    text, _ = perform(
        DoctorRequest(root=tmp_path, python=a_python(tmp_path, f'{sys.executable} -c "{code}"')), say=print
    )
    assert "pytest" in text
    assert "torch        cannot be imported" in text


def a_python(folder: Path, says: str) -> str:
    """An interpreter that does one thing."""
    path = written(folder, {"python": f"#!/bin/sh\n{says}\n"}) / "python"
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_is_not_there_is_said(tmp_path: Path) -> None:
    text, code = perform(DoctorRequest(root=tmp_path, python="/no/python"), say=print)
    assert code == 0
    assert "'/no/python' cannot be started: No such file or directory: nothing of a project can be run" in text


@pytest.mark.parametrize("says", ["exit 3", "echo garbage", "echo '[]'", "true"])
def test_an_interpreter_that_is_none_is_said(tmp_path: Path, says: str) -> None:
    text, _ = perform(DoctorRequest(root=tmp_path, python=a_python(tmp_path, says)), say=print)
    assert "nothing of a project can be run" in text


def test_it_measures_where_that_is_asked_for(tmp_path: Path) -> None:
    request = DoctorRequest(root=tmp_path, python=sys.executable, measure=True, seconds=KEPT_S + 4)
    text, code = perform(request, say=lambda _: None)
    assert code == 0
    assert "two equal arms" in text


def a_trace(*, noise: float, pairs: int = 400, split: int = 1) -> Trace:
    """A trace as it would be recorded on a machine of that much noise."""
    source = random.Random(3)
    base, cand = ([0.001 * math.exp(source.gauss(0, noise)) for _ in range(pairs)] for _ in range(2))
    samples = some_samples(old=base, new=cand)
    metric = samples.metrics["step_time_s"]
    arms = {"base": metric.arms["old"], "cand": metric.arms["new"]}
    calm = dict.fromkeys(arms, (1.0,) * pairs)
    return Trace(
        samples=samples.model_copy(update={"metrics": {"step_time_s": metric.model_copy(update={"arms": arms})}}),
        taken=a_taken(pairs=pairs, most=pairs, split=split, restarts=tuple(i // (8 * split) for i in range(pairs)),
                      stretch=calm, halves={}, switches={}, copies=((1.0, 1.0),) * (pairs // 4)),
    )  # fmt: skip


def test_a_calm_machine_sees_small_changes_and_is_right() -> None:
    text = "\n".join(_rates(a_trace(noise=0.005)))
    assert "equal arms: 0% false BLOCK, 0% open" in text
    assert "10% slower: 0% false PASS, 100% BLOCK, 0% open" in text
    assert "change of 0." in text


def test_a_noisy_machine_says_so_and_is_open_rather_than_wrong() -> None:
    text = "\n".join(_rates(a_trace(noise=0.3)))
    assert "equal arms: 0% false BLOCK" in text
    assert "10% slower: 0% false PASS" in text
    assert "99% open" in text


def test_pairs_that_were_split_are_judged_as_a_measurement_of_them_would_be() -> None:
    text = "\n".join(_rates(a_trace(noise=0.03, pairs=2400, split=6)))
    assert "with 96 pairs" in text
    assert "with 384 pairs" in text
    assert "equal arms: 0% false BLOCK, 0% open" in text
    assert "about 6 independent" in text


def test_too_few_pairs_have_no_error_rates() -> None:
    assert "not known: fewer than 64 pairs" in "\n".join(_rates(a_trace(noise=0.01, pairs=40)))
