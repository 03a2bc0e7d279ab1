"""Training steps, collected for real: what is recorded, and what there is to say where nothing could be."""

from pathlib import Path
from typing import Any

import pytest
from building import ROOT, a_context, a_task, evidence, written
from recording import an_attempt

from gates.errors import EvidenceUnavailable
from gates.evidence._journal import read_journal
from gates.evidence.recorded import Recorded
from gates.evidence.recording import Recording, StepRecording, step_to_overflow
from gates.model import Outcome
from gates.stages import _recorded

STEP = "import os, time, torch\n\n\ndef few(*args):\n    {}\n"


def record(tmp_path: Path, body: str = "pass", **changes: Any) -> tuple[StepRecording, dict[str, Outcome]]:
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests/trained").glob("*.py")}
    root = written(tmp_path / "project", {**files, "pkg/__init__.py": "", "pkg/steps.py": STEP.format(body)})
    task = a_task(training_steps=[{"call": "pkg.steps:few", "criteria": ["AC1"], "line": 7, **changes}])
    recording = Recording.collect(task, a_context(root))
    findings = _recorded.judge(task, evidence(recording))
    (step,) = recording.steps
    return step, {finding.check.partition(":0:")[2]: finding.outcome for finding in findings}


def test_sound_step_shows_all_that_it_needs(tmp_path: Path) -> None:
    needs = ["scaler", "autocast", "gradients", "overflow", "logged-scale"]
    step, outcomes = record(tmp_path, call="sound:recipe", needs=needs)
    assert outcomes.pop("schedule") is Outcome.NOT_APPLICABLE
    assert set(outcomes.values()) == {Outcome.PASSED}
    assert set(outcomes) == {"run", "order", "precision", "gradients", "parameters", "overflow", "logging", "for:AC1"}
    assert step.plain.troubles == ()
    assert step.overflow is not None
    assert step.overflow.troubles == ()
    assert [attempt.skipped for attempt in step.overflow.attempts] == [False, True, False, False]
    assert [attempt.window for attempt in step.plain.attempts] == [0, 1, 2, 3]
    where = [event.location for event in step.plain.events if event.word == "unscale"]
    lines = (ROOT / "tests/trained/sound.py").read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, 1) if "unscale_(" in line)
    assert {str(place) for place in where} == {f"sound.py:{first}"}


@pytest.mark.parametrize(
    ("through", "scaled", "step"),
    [((1, 1, 1), True, 1), ((1,), True, 0), ((1, None, 1), True, 2), ((1, None), True, 0), ((None, None), True, 1),
     ((None, None), False, 1)],
)  # fmt: skip
def test_step_that_is_to_overflow_is_the_second_through_a_scaler(
    through: tuple[int | None, ...], scaled: bool, step: int
) -> None:
    attempts = [an_attempt(scaler=scaler, optimizer=i + 5) for i, scaler in enumerate(through)]
    assert step_to_overflow(attempts, scaled=scaled) == {"step": step, "optimizer": step + 5}


def test_crash_is_located_in_the_project(tmp_path: Path) -> None:
    step, outcomes = record(tmp_path, "torch.nn.Linear(2, 3)(torch.ones(1, 5))")
    assert (str(step.plain.crash), step.plain.error.split(":")[0]) == ("pkg/steps.py:5", "RuntimeError")
    assert outcomes["run"] is Outcome.FAILED
    assert outcomes["for:AC1"] is Outcome.FAILED
    assert {outcomes[name] for name in ("order", "gradients", "overflow", "precision")} == {Outcome.UNKNOWN}


@pytest.mark.parametrize(
    ("changes", "body", "said"),
    [
        ({"call": "pkg.nothing:few"}, "pass", "there is no module 'pkg.nothing'"),
        ({"call": "pkg.steps:many"}, "pass", "pkg.steps has no 'many'"),
        ({"timeout_s": 4}, "time.sleep(60)", "stopped at the time limit of 4 s"),
    ],
)
def test_step_that_cannot_be_seen_is_unknown(changes: dict[str, Any], body: str, said: str, tmp_path: Path) -> None:
    step, outcomes = record(tmp_path, body, **changes)
    assert said in (step.plain.problem or (step.plain.process.ended if step.plain.process else ""))
    assert set(outcomes.values()) == {Outcome.UNKNOWN}


def test_process_that_leaves_early_is_not_believed(tmp_path: Path) -> None:
    step, outcomes = record(tmp_path, "os._exit(0)")
    assert not step.plain.complete
    assert outcomes["run"] is Outcome.FAILED


def test_step_that_asks_for_an_accelerator_must_fall_back(tmp_path: Path) -> None:
    step, outcomes = record(tmp_path, "assert not torch.cuda.is_available(), 'not hidden'")
    assert step.plain.complete
    assert outcomes["run"] is Outcome.UNKNOWN  # it took no step


def test_task_without_training_steps_has_no_recording(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="names no 'training_steps'"):
        Recording.collect(a_task(), a_context(written(tmp_path / "project", {"x.py": ""})))


JOURNALS = {
    "no line of its own": ("garbage\n", "1 lines of the journal are not its own"),
    "cut in the middle": ('{"word": "start", "place": null}\n{"wo', "1 lines of the journal are not its own"),
}


@pytest.mark.parametrize(("text", "trouble"), JOURNALS.values(), ids=JOURNALS.keys())
def test_journal_with_foreign_lines_is_incomplete(text: str, trouble: str, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(text + '{"word": "end", "place": null}\n', encoding="utf-8")
    seen = read_journal(path)
    assert not seen.complete
    assert trouble in seen.troubles[0]


@pytest.mark.parametrize(
    "line",
    [
        '{"word": "attempt"}',
        '{"word": "log", "values": 3}',
        '{"word": "step", "place": ["x", "y"]}',
        '{"word": "object"}',
    ],
)
def test_journal_of_another_form_is_a_problem(line: str, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    assert read_journal(path).problem.startswith("the journal cannot be read")


def test_numbers_that_are_none_and_text_of_others_are_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(
        '{"word": "log", "to": "x\\ud800", "values": {"a": NaN, "b": Infinity, "c": 1}}\n', encoding="utf-8"
    )
    (record,) = read_journal(path).logged
    assert (record.to, record.values) == ("x\\ud800", {"a": None, "b": None, "c": 1.0})


def test_missing_journal_is_a_problem(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none.jsonl") == Recorded(problem="the recorder wrote no journal")
