"""The hot path, judged by what was seen of its steps."""

from typing import Any

import pytest
from building import evidence
from hot_steps import a_hot_run, a_hot_task, a_read, a_step, hot

from gates.check import EvidenceSet
from gates.checks.hot_path import CHECK, HotPaths, HotSeen, HotStep
from gates.model import Finding, Level, Location, Outcome, Severity
from gates.task.task import Task


def judged(seen: HotPaths | None, task: Task | None = None) -> list[Finding]:
    return list(CHECK.judge(task or a_hot_task(), evidence(seen) if seen else EvidenceSet()))


def of(aspect: str, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.check == f"hot_path:0:{aspect}"]


def outcome(aspect: str, *steps: HotStep, **changes: Any) -> Outcome:
    (found,) = {f.outcome for f in of(aspect, judged(hot(a_hot_run(steps)), a_hot_task(**changes)))}
    return found


def test_sound_steps_pass_for_their_criterion() -> None:
    findings = judged(hot())
    assert {finding.outcome for finding in findings} == {Outcome.PASSED}
    assert {check.id for check in CHECK.plan(a_hot_task())} == {finding.check for finding in findings}
    assert {f.level for f in findings if f.criterion == "AC1"} == {Level.MUST}
    (folded,) = [f for f in findings if f.criterion == "AC1"]
    assert folded.actual == "host-reads, synchronisations, stall"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (None, "it was not run: it was not collected"),
        (hot(HotSeen()), "no optimizer of torch stepped"),
        (hot(HotSeen(run=(a_step(),) * 7)), "it made 7 steps, and at least 7 after the first 2 are needed"),
        (hot(a_hot_run([a_step()] * 9, problem="no such module")), "no such module"),
        (hot(a_hot_run([a_step()] * 9, problem="stopped at the time limit")), "time limit"),
    ],
)
def test_what_was_not_seen_is_unknown_with_its_reason(seen: HotPaths | None, said: str) -> None:
    findings = judged(seen)
    assert {finding.outcome for finding in findings} == {Outcome.UNKNOWN}
    assert all(said in finding.message for finding in findings)
    assert {finding.severity for finding in findings} == {Severity.HIGH}
    (section,) = CHECK.page(a_hot_task(), evidence(seen) if seen else EvidenceSet())
    assert section.facts[0][1].startswith("Too little was seen") if seen else section.text.startswith("Not run: ")


@pytest.mark.parametrize(
    ("aspect", "call"),
    [("host-reads", "item"), ("host-reads", "cpu"), ("synchronisations", "cuda.synchronize"),
     ("synchronisations", "cuda.Event.synchronize"), ("synchronisations", "wait"),
     ("synchronisations", "cuda.empty_cache")],
)  # fmt: skip
def test_what_a_step_does_each_time_fails_with_its_line(aspect: str, call: str) -> None:
    findings = judged(hot(a_hot_run([a_step(a_read(call))] * 12)))
    (found,) = of(aspect, findings)
    assert (found.outcome, found.severity, str(found.location)) == (Outcome.FAILED, Severity.CRITICAL, "pkg/train.py:5")
    assert f"`{call}`" in found.message
    assert {f.outcome for f in findings if aspect not in f.check and not f.criterion} == {Outcome.PASSED}


def test_what_happens_once_in_a_while_is_told_and_passes() -> None:
    steps = [a_step(a_read(count=8)) if i % 10 == 0 else a_step() for i in range(20)]
    (found,) = of("host-reads", judged(hot(a_hot_run(steps))))
    assert found.outcome is Outcome.PASSED
    assert "pkg/train.py:5 does on 10% of them" in found.message


def test_lines_that_read_in_turn_are_both_named() -> None:
    found = of("host-reads", judged(hot(a_hot_run([a_step(a_read(line=5 + i % 2)) for i in range(20)]))))
    assert [str(finding.location) for finding in found] == ["pkg/train.py:5", "pkg/train.py:6"]
    assert len({finding.subject for finding in found}) == 2


def test_limit_says_how_many_are_allowed() -> None:
    steps = [a_step(a_read(count=2))] * 12
    assert outcome("host-reads", *steps, limits={"host_reads": 2}) is Outcome.PASSED
    assert outcome("host-reads", *steps, limits={"host_reads": 1}) is Outcome.FAILED


@pytest.mark.parametrize(
    ("by", "failed"),
    [("torch.amp.grad_scaler", False), ("torch.optim.adam", False), ("torch.optim.lr_scheduler", True),
     ("torch.nn.utils.clip_grad", True), ("lightning.loops", True)],
)  # fmt: skip
def test_what_torch_reads_by_itself_is_not_counted(by: str, *, failed: bool) -> None:
    assert outcome("host-reads", *[a_step(a_read(by=by))] * 12) is (Outcome.FAILED if failed else Outcome.PASSED)


def test_read_on_the_host_is_none_where_training_is_on_a_device() -> None:
    there: dict[str, Any] = {"device": "cuda"}
    assert outcome("host-reads", *[a_step(a_read(device="cpu"), **there)] * 12) is Outcome.PASSED
    assert outcome("host-reads", *[a_step(a_read(device="cuda"), **there)] * 12) is Outcome.FAILED


def test_device_that_was_asked_for_must_be_the_one() -> None:
    assert outcome("stall", *[a_step()] * 12, on="cuda") is Outcome.UNKNOWN
    assert outcome("stall", *[a_step(device="cuda", waited=0.0)] * 12, on="cuda") is Outcome.PASSED


def test_what_has_no_limit_is_advised() -> None:
    findings = judged(hot(a_hot_run([a_step(a_read())] * 12)), a_hot_task(limits={}))
    (found,) = of("host-reads", findings)
    assert (found.outcome, found.level, found.severity) == (Outcome.FAILED, Level.ADVISORY, Severity.LOW)
    assert {finding.criterion for finding in findings} == {None}


def test_limit_that_is_advisory_fails_the_criterion_that_it_verifies() -> None:
    findings = judged(hot(a_hot_run([a_step(a_read())] * 12)), a_hot_task(level="advisory", limits={"host_reads": 0}))
    assert ("AC1", Outcome.FAILED) in {(f.criterion, f.outcome) for f in findings}


def test_wait_for_batches_fails_with_its_line_and_what_it_costs() -> None:
    lines = ((Location(path="pkg/data.py", line=3), 9),)
    (found,) = of("stall", judged(hot(a_hot_run([a_step(waited=0.02, rest=0.02, lines=lines)] * 12))))
    assert (found.outcome, str(found.location)) == (Outcome.FAILED, "pkg/data.py:3")
    assert "45.0% [45.0%, 45.0%]" in found.message
    assert "without it a step would be at most 1.82 times as fast" in found.message


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (a_step(waited=0.0019, rest=0.001), Outcome.PASSED),  # a small loader's own machinery
        (a_step(waited=0.0019, rest=0.001, device="cuda"), Outcome.FAILED),
        (a_step(waited=0.0035, rest=0.03), Outcome.PASSED),
        (a_step(waited=0.01, rest=0.03), Outcome.FAILED),
    ],
)
def test_wait_counts_beyond_what_a_small_loader_takes_on_a_cpu(step: HotStep, expected: Outcome) -> None:
    assert outcome("stall", *[step] * 12) is expected


def test_wait_around_its_limit_is_not_decided() -> None:
    assert outcome("stall", *(a_step(waited=0.004 + 0.002 * (i % 3), rest=0.03) for i in range(12))) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("at", "expected"), [({7}, Outcome.PASSED), ({7, 15}, Outcome.UNKNOWN), ({*range(0, 24, 2)}, Outcome.FAILED)]
)
def test_one_pause_may_be_anybodys_and_more_are_a_wait(at: set[int], expected: Outcome) -> None:
    assert outcome("stall", *[a_step(waited=0.2 if i in at else 0.0) for i in range(24)]) is expected


def test_report_tells_waits_and_reads() -> None:
    step = a_step(a_read(), a_read(by="torch.optim.adam", line=6), waited=0.032, rest=0.01)
    (section,) = CHECK.page(a_hot_task(), evidence(hot(a_hot_run([step] * 12))))
    assert "12 steps of 42 ms (median) on cpu" in section.facts[0][1]
    assert "Waiting for batches takes 71.4% [71.4%, 71.4%] of the time" in section.facts[0][1]
    assert [row[-2] for row in section.rows] == ["the project's", "torch's own"]
