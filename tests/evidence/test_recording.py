"""Training steps, collected for real: what is recorded, and what there is to say where nothing could be."""

import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, a_context, a_task, evidence, written
from recording import SECRET, WITHOUT_COMPILER, an_attempt, read_journal

from gates.checks.training_steps.judge import CHECK
from gates.evidence.recorded_step import Recording, StepRecording, step_to_overflow
from gates.model import Outcome

STEP = "import os, sys, time, torch\n\n\ndef few(*args):\n    {}\n"


def record(tmp_path: Path, body: str = "pass", **changes: Any) -> tuple[StepRecording, dict[str, Outcome]]:
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks/cases/trained").glob("*.py")}
    root = written(tmp_path / "project", {**files, "pkg/__init__.py": "", "pkg/steps.py": STEP.format(body)})
    asked = {"call": "pkg.steps:few", "criteria": ["AC1"], "timeout_s": 240, "line": 7, **changes}
    task = a_task(training_steps=[asked])
    recording = Recording.collect(task, a_context(root))
    findings = CHECK.judge(task, evidence(recording))
    (step,) = recording.seen
    return step, {finding.check.partition(":0:")[2]: finding.outcome for finding in findings}


def test_sound_step_shows_all_that_it_needs_though_its_call_closes_everything(tmp_path: Path) -> None:
    body = f"{WITHOUT_COMPILER}; import sound; os.closerange(3, 4096); return sound.recipe()"
    step, outcomes = record(tmp_path, body, needs=["scaler", "autocast", "gradients", "overflow", "logged-scale"])
    assert outcomes.pop("schedule") is Outcome.NOT_APPLICABLE
    assert set(outcomes.values()) == {Outcome.PASSED}
    assert set(outcomes) == {"run", "order", "precision", "gradients", "parameters", "overflow", "logging", "for:AC1"}
    assert (step.plain.complete, step.plain.troubles) == (True, ())
    assert step.overflow and step.overflow.troubles == ()
    assert [attempt.skipped for attempt in step.overflow.attempts] == [False, True, False, False]
    assert [attempt.window for attempt in step.plain.attempts] == [0, 1, 2, 3]
    where = [event.location for event in step.plain.events if event.word == "unscale"]
    lines = (ROOT / "benchmarks/cases/trained/sound.py").read_text(encoding="utf-8").splitlines()
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
        ({"call": "pkg.steps:many"}, "pass", "pkg.steps has no 'many'"),
        ({}, "os.remove(os.environ['WANDB_DIR'] + '/../0.jsonl')", "the recorder wrote no journal"),
    ],
)
def test_step_that_cannot_be_seen_is_unknown(changes: dict[str, Any], body: str, said: str, tmp_path: Path) -> None:
    step, outcomes = record(tmp_path, body, **changes)
    assert said in (step.plain.problem or (step.plain.process.ended if step.plain.process else ""))
    assert set(outcomes.values()) == {Outcome.UNKNOWN}


def test_process_that_closes_everything_and_leaves_early_is_not_believed(tmp_path: Path) -> None:
    step, outcomes = record(tmp_path, "os.closerange(0, 4096); os._exit(0)")
    assert not step.plain.complete
    assert outcomes["run"] is Outcome.FAILED
    assert Outcome.PASSED not in outcomes.values()


def test_step_that_leaves_with_exit_code_0_is_heard_and_sees_no_accelerator_and_no_secret(tmp_path: Path) -> None:
    body = "print(dict(os.environ), sys.argv, open('/proc/self/cmdline').read()); "
    step, outcomes = record(tmp_path, body + "assert not torch.cuda.is_available(), 'not hidden'; sys.exit(0)")
    assert step.plain.complete
    assert outcomes["run"] is Outcome.UNKNOWN  # it took no step
    assert step.plain.process and "secret" not in step.plain.process.stdout.tail


def sealed(path: Path, *lines: str, secret: str = SECRET) -> Path:
    """A journal as the recorder would have sealed it."""
    lines = tuple(f"[{line}]" for line in lines)
    seals = [hmac.digest(secret.encode(), line.encode(), "sha256").hex() for line in lines]
    path.write_text("".join(f"={seal} {line}\n" for seal, line in zip(seals, lines, strict=True)), encoding="utf-8")
    return path


START, END = '{"word": "start"}', '{"word": "end"}'
STEP_TOLD = '{"word": "step", "location": {"path": "pkg/a.py", "line": 3}}'


def test_journal_is_believed_by_its_seal_alone(tmp_path: Path) -> None:
    seen = read_journal(sealed(tmp_path / "own", START, STEP_TOLD, END))
    assert (seen.complete, seen.troubles, len(seen.events)) == (True, (), 1)
    other = read_journal(sealed(tmp_path / "other", START, STEP_TOLD, END, secret="guessed"))
    assert (other.complete, other.events) == (False, ())
    assert "3 lines of the journal are not its own" in other.troubles[0]


FORGED: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "put in": lambda told: [told[0], b'{"word": "end"}\n', *told[1:]],
    "changed": lambda told: [told[0], told[1].replace(b"step", b"skip"), told[2]],
    "cut in the middle": lambda told: [told[0], told[1], told[2][:-9]],
    "without its end": lambda told: told[:2],
    "bytes that are no text": lambda told: [told[0], b"\xff\x00\n", *told[1:]],
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_forged_journal_is_not_complete(forge: Callable[[list[bytes]], list[bytes]], tmp_path: Path) -> None:
    path = sealed(tmp_path / "j", START, STEP_TOLD, END)
    path.write_bytes(b"".join(forge(path.read_bytes().splitlines(keepends=True))))
    assert not read_journal(path).complete


@pytest.mark.parametrize("line", ['{"word": "attempt"}', '{"word": "log", "values": 3}'])
def test_journal_of_another_form_is_a_problem(line: str, tmp_path: Path) -> None:
    assert read_journal(sealed(tmp_path / "j", line)).problem.startswith("the journal cannot be read")


def test_numbers_that_are_none_and_text_of_others_are_cleaned(tmp_path: Path) -> None:
    line = '{"word": "log", "to": "x\\ud800", "values": {"a": NaN, "b": Infinity, "c": 1}}'
    (record,) = read_journal(sealed(tmp_path / "j", line)).logged
    assert (record.to, record.values) == ("x\\ud800", {"a": None, "b": None, "c": 1.0})
