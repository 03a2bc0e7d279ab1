"""The performance gate, judged on built samples: measured, on the device that was asked for, with its interval."""

import pytest
from building import a_criterion, a_measure, a_task, evidence, measured, samples

from gates import pipeline
from gates.evidence.measurements import Measurements
from gates.model import Finding, Level, Outcome, Severity
from gates.render import _views
from gates.stages import PERFORMANCE as GATE
from gates.task.task import Task

P, F, U, N = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE


def asking(*measures: dict[str, object], level: str = "must") -> Task:
    return a_task(criteria=[a_criterion(tests=[], level=level, measures=list(measures or (a_measure(),)))])


def found(task: Task, seen: Measurements) -> Finding:
    (finding,) = GATE.judge(task, evidence(seen))
    return finding


NOISY = [1.0, 1.2, 1.4, 1.6, 1.8000123, 2.0]


def test_clear_speedup_passes_with_its_number_device_and_file() -> None:
    finding = found(asking(), measured())
    assert (finding.outcome, finding.severity, finding.criterion) == (P, Severity.INFO, "AC1")
    assert (finding.expected, finding.actual) == (">= 1.5", "2 [2, 2], n = 12, on a cpu")
    assert "on a cpu" in finding.message
    assert finding.evidence == "measurements/bench-cpu.json"


def test_a_ratio_far_above_its_target_passes_and_is_asked_about() -> None:
    new = [0.0101, 0.0113, 0.0107, 0.0119, 0.0102, 0.0117, 0.0111, 0.0123]
    seen = measured(samples(old=[2.03, 2.11, 2.01, 2.17, 2.05, 2.02, 2.13, 2.09], new=new))
    number, question = GATE.judge(asking(), evidence(seen))
    assert (number.outcome, question.outcome, question.level) == (P, U, Level.ADVISORY)
    assert ("times its target" in question.message, question.leaves_open) == (True, False)
    report = pipeline.judge(GATE, asking(), evidence(seen))
    assert (report.score.total, report.score.of, _views.endings(report)) == (100, 100, "1 passed")
    asked = report.model_copy(update={"findings": (question,)})  # a reader must see that it keeps nothing from a pass
    assert _views.endings(asked) == "1 unknown (none required)"


def test_clear_miss_fails() -> None:
    finding = found(asking(a_measure(at_least=2.5)), measured())
    assert (finding.outcome, finding.severity, finding.level) == (F, Severity.HIGH, Level.MUST)


def test_interval_that_holds_the_limit_is_unknown() -> None:
    finding = found(asking(), measured(samples(old=NOISY, new=[1.0, 1.0, 1.0, 1.0, 1.0, 1.000001])))
    assert (finding.outcome, finding.actual) == (U, "1.5 [1, 2], n = 6, on a cpu")
    assert "too uncertain" in finding.message


@pytest.mark.parametrize("device", ["cuda", "rocm", "xpu", "mps"])
def test_cpu_evidence_never_satisfies_another_device(device: str) -> None:
    task = asking(a_measure(on=device))
    for seen in (measured(), measured(samples(), device=device), measured(samples(), device="any")):
        finding = found(task, seen)
        assert finding.outcome is U
        assert finding.actual.startswith("not measured: ")


AMX = a_measure(when=["amx_bf16"])
NO_CUDA = measured("no CUDA device", device="cuda")


def test_measure_does_not_apply_where_the_device_lacks_what_it_needs() -> None:
    finding = found(asking({**AMX, "at_least": 9}), measured())
    assert (finding.outcome, finding.severity) == (N, Severity.INFO)
    assert "the device has no amx_bf16" in finding.message


@pytest.mark.parametrize(("limit", "outcome"), [(1.5, P), (9, F)])
def test_measure_applies_where_the_device_has_what_it_needs(limit: float, outcome: Outcome) -> None:
    seen = measured(samples(capabilities=["avx2", "amx_bf16"]))
    assert found(asking({**AMX, "at_least": limit}), seen).outcome is outcome


@pytest.mark.parametrize(
    ("asked", "seen", "said"),
    [
        ({}, measured("the measurement ended well but wrote no samples file"), "wrote no samples file"),
        ({}, measured("holds NaN"), "holds NaN"),
        ({"of": "memory"}, measured(), "only step_time_s"),
        ({}, measured(samples(old=[2.0], new=[1.0])), "at least 6 needed"),
        ({}, measured(samples(old=[2.0] * 5, new=[1.0] * 5)), "at least 6 needed"),
        ({"from": "other"}, measured(), ""),
        ({"on": "cuda"}, Measurements(how="", runs=(*measured().runs, *NO_CUDA.runs)), "no CUDA device"),
        ({"when": ["amx_bf16"]}, measured("wrote no samples file"), ""),
    ],
)
def test_what_is_measured_badly_is_unknown_with_reason(asked: dict[str, object], seen: Measurements, said: str) -> None:
    finding = found(asking(a_measure(**asked)), seen)
    assert (finding.outcome, said in finding.message) == (U, True)


def test_level_of_a_measure_goes_before_that_of_its_criterion() -> None:
    finding = found(asking(a_measure(at_least=9, level="should")), measured())
    assert (finding.outcome, finding.level, finding.severity) == (F, Level.SHOULD, Severity.MEDIUM)


def test_task_without_targets_says_so() -> None:
    assert [(f.rule, f.outcome) for f in GATE.judge(a_task(criteria=[a_criterion()]), evidence())] == [("PF001", N)]


def test_each_measure_is_a_check_of_its_own() -> None:
    seen = list(GATE.judge(asking(a_measure(), a_measure(at_least=9)), evidence(measured())))
    assert [(f.check, f.outcome) for f in seen] == [("measure:AC1:0", P), ("measure:AC1:1", F)]
    assert seen[0].fingerprint != seen[1].fingerprint


def test_two_measures_that_differ_only_in_their_level_are_told_apart() -> None:
    seen = list(GATE.judge(asking(a_measure(level="should"), a_measure()), evidence(measured())))
    assert seen[0].fingerprint != seen[1].fingerprint


@pytest.mark.parametrize(
    ("unit", "of", "shown"),
    [
        ("s", "run_time_s", ("<= 3 s", "1.5 [1, 2] s")),
        ("B", "peak_memory_bytes", ("<= 3 bytes", "1.5 B [1 B, 2 B]")),
        ("1", "applied_steps", ("<= 3", "1.5 [1, 2]")),
        ("none", "loss", ("<= 3", "1.5 [1, 2]")),
        ("ms", "latency", ("<= 3 ms", "1.5 [1, 2] ms")),
    ],
)
def test_number_that_is_no_part_of_something_has_its_unit(unit: str, of: str, shown: tuple[str, str]) -> None:
    seen = samples(old=NOISY, new=NOISY)
    metric = seen.metrics["step_time_s"].model_copy(update={"unit": unit})
    task = asking(a_measure(ratio=None, value="old", at_least=None, at_most=3, of=of))
    finding = found(task, measured(seen.model_copy(update={"metrics": {of: metric}})))
    assert (finding.outcome, finding.expected, finding.actual) == (P, shown[0], f"{shown[1]}, n = 6, on a cpu")
    assert f"{shown[1]} from 6 samples meets the target" in finding.message
