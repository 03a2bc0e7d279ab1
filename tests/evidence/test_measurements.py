"""Measurements, run for real: on which devices, and what is believed of what they hand over."""

import json
from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_criterion, a_measure, a_task, evidence, raw_samples, written

from gates.check import EvidenceSet
from gates.errors import EvidenceUnavailable
from gates.evidence.measurements import Measurements
from gates.measuring import machine
from gates.measuring.taken import MeasurementRun
from gates.model import Outcome
from gates.stages import PERFORMANCE as GATE

BENCH = """
import json, sys, time
device, out = sys.argv[1:]
samples = json.load(open("samples.json"))
arms = samples["metrics"]["step_time_s"]["arms"]
arms["old"] = [value + time.time_ns() % 10**6 / 1e12 for value in arms["old"]]
samples["device"]["type"] = DEVICE
json.dump(samples, open(out, "w"))
"""


def runs(folder: Path, *measures: dict[str, Any], device: str = "device", **changes: Any) -> tuple[MeasurementRun, ...]:
    files = {"bench.py": BENCH.replace("DEVICE", device), "samples.json": json.dumps(raw_samples())}
    task = a_task(criteria=[a_criterion(measures=list(measures))], **changes)
    return Measurements.derive(task, a_context(written(folder / "project", files)), EvidenceSet()).runs


def test_each_device_that_is_asked_for_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "may_have", lambda _device: True)
    seen = runs(tmp_path, a_measure(on="cuda"), a_measure(on="any"), a_measure(on="cpu"), a_measure(on="cuda"))
    assert [(run.device, run.samples is not None, run.raw) for run in seen] == [
        ("cpu", True, "measurements/bench-cpu.json"),
        ("cuda", True, "measurements/bench-cuda.json"),
    ]


def test_samples_of_another_device_than_asked_for_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "may_have", lambda _device: True)
    (run,) = runs(tmp_path, a_measure(on="cuda"), device="'cpu'")
    assert (run.samples, run.problem) == (None, "measured on 'cpu' (a cpu), asked for 'cuda'")


def test_measurement_that_nobody_asks_for_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="asks for a measurement"):
        runs(tmp_path)
    assert not (tmp_path / "project-evidence/measurements").exists()


def one(tmp_path: Path, *run: str, **limits: float) -> MeasurementRun:
    (only,) = runs(tmp_path, a_measure(), measurements=[{"id": "bench", "run": [*run], **limits}])
    return only


LONG = raw_samples(old=[2000.0 + i for i in range(12)], new=[1000.0 + i for i in range(12)])
REFUSED = {
    "pass": "the measurement ended well but wrote no samples file",
    "import shutil, sys; shutil.copy('samples.json', sys.argv[1]); sys.exit('failed after all')":
        "the measurement ended with exit code 1: failed after all",
    "import sys; open(sys.argv[1], 'wb').write(b'\\xff\\xfe')": "the samples file is not UTF-8",
    "import os, sys; os.mkdir(sys.argv[1])": "something other than a plain file",
    "import os, sys; os.symlink(os.path.abspath('old.json'), sys.argv[1])": "something other than a plain file",
    "import os, shutil, sys; os.utime('samples.json', (1, 1)); shutil.copy2('samples.json', sys.argv[1])":
        "the samples file was written before the measurement began: it is an old one",
    f"import sys; open(sys.argv[1], 'w').write({json.dumps(LONG)!r})":
        "step_time_s of 'old' has a sample of 2.01e+03 s, and the whole run took ",
}  # fmt: skip


@pytest.mark.parametrize("code", REFUSED)
def test_file_that_holds_no_samples_of_this_run_is_refused(tmp_path: Path, code: str) -> None:
    run = one(tmp_path, "python", "-c", code, "{out}")
    assert run.samples is None
    assert REFUSED[code] in run.problem


def test_hang_is_stopped_at_its_limit(tmp_path: Path) -> None:
    run = one(tmp_path, "python", "-c", "import time; time.sleep(60)", "{out}", timeout_s=0.5)
    assert run.problem == "the measurement ended with stopped at the time limit of 0.5 s: it wrote nothing"


def test_command_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    assert one(tmp_path, "no-such-command", "{out}").problem.startswith("'no-such-command' cannot be started: No such")


def test_samples_of_a_device_that_the_machine_does_not_show_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "may_have", lambda device: device != "cuda")
    always = [{"id": "bench", "run": ["python", "bench.py", "cuda", "{out}"]}]
    (run,) = runs(tmp_path, a_measure(on="any"), measurements=always)
    assert run.samples is None
    assert run.problem == "it says that it was measured on 'cuda' (a cpu), and this machine shows no such device"


TIMES = {"fast": (0.002, 0.001), "slow": (0.001, 0.001)}
REPEATED = """
import json, sys, time
old, new = json.load(open("times.json"))
old = [value + time.time_ns() % 10**6 / 1e15 for value in old]
samples = json.load(open("samples.json"))
samples["metrics"]["step_time_s"]["arms"] = {"old": old, "new": new}
json.dump(samples, open(sys.argv[1], "w"))
"""


def attempted(root: Path, speed: str, **task: Any) -> tuple[Outcome, str, int]:
    """Measure once more, at a speed that the code does not decide; return outcome, message and earlier attempts."""
    columns = [[s + (i + (i * i * (k + 1) + k) % 7) / 10**6 for i in range(12)] for k, s in enumerate(TIMES[speed])]
    (root / "times.json").write_text(json.dumps(columns), encoding="utf-8")
    measurements = [{"id": "bench", "run": ["python", "repeated.py", "{out}"]}]
    asking = a_task(criteria=[a_criterion(tests=[], measures=[a_measure()])], measurements=measurements, **task)
    seen = Measurements.derive(asking, a_context(root), EvidenceSet())
    (finding,) = GATE.judge(asking, evidence(seen))
    return finding.outcome, finding.message, len(seen.runs[0].earlier)


def a_repeated(tmp_path: Path) -> Path:
    files = {"repeated.py": REPEATED, "samples.json": json.dumps(raw_samples()), "pkg/core.py": "x = 1\n"}
    return written(tmp_path / "project", files)


def test_what_a_command_missed_is_no_pass_when_it_is_run_again(tmp_path: Path) -> None:
    root = a_repeated(tmp_path)
    assert attempted(root, "slow")[::2] == (Outcome.FAILED, 0)
    outcome, message, earlier = attempted(root, "fast")
    assert (outcome, earlier) == (Outcome.UNKNOWN, 1)
    assert message.endswith("this attempt meets it, and attempt 1 with the same code on the same machine missed it")
    assert attempted(root, "fast")[::2] == (Outcome.UNKNOWN, 2)
    assert attempted(root, "slow")[::2] == (Outcome.FAILED, 3)


@pytest.mark.parametrize("path", ["repeated.py", "pkg/core.py"])
def test_other_code_of_a_command_is_another_attempt_and_what_it_meets_it_meets_again(tmp_path: Path, path: str) -> None:
    root = a_repeated(tmp_path)
    attempted(root, "slow")
    (root / path).write_text(f"# faster\n{(root / path).read_text()}", encoding="utf-8")
    assert attempted(root, "fast")[::2] == (Outcome.UNKNOWN, 1)
    with (root / path).open("a", encoding="utf-8") as file:
        file.write("FASTER = 1\n")
    assert [attempted(root, "fast")[::2] for _ in range(3)] == [(Outcome.PASSED, earlier) for earlier in (0, 1, 2)]


def test_the_same_times_again_are_no_measurement(tmp_path: Path) -> None:
    root = a_repeated(tmp_path)
    drawn = "import random\nold = [0.001 + random.Random(n).random() / 1000 for n in range(12)]\n"
    (root / "repeated.py").write_text(REPEATED.replace("samples =", f"{drawn}samples =", 1), encoding="utf-8")
    assert attempted(root, "fast")[0] is Outcome.UNKNOWN
    assert "to the last digit" in attempted(root, "fast")[1]
    (root / "pkg/core.py").write_text("x = 2\n", encoding="utf-8")
    assert "to the last digit" in attempted(root, "fast")[1]


def test_a_command_without_samples_is_no_attempt_and_takes_none_back(tmp_path: Path) -> None:
    root = a_repeated(tmp_path)
    attempted(root, "slow")
    (root / "samples.json").rename(root / "kept.json")
    assert attempted(root, "fast")[::2] == (Outcome.UNKNOWN, 1)
    (root / "kept.json").rename(root / "samples.json")
    assert attempted(root, "fast")[::2] == (Outcome.UNKNOWN, 1)
