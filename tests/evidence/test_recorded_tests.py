"""Tests of a project, recorded for real: what its own code does in them is told from what the tests do on purpose."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_record, a_run, a_task, evidence, written
from driven import LIBRARY, PROJECT, TESTS

from gates.checks.training_steps import in_tests as _recorded_tests
from gates.checks.training_steps.collect import RecordedTest, RecordedTests
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Finding, Level, Outcome
from gates.task.task import Task


def a_recorded_task(**changes: Any) -> Task:
    asked = {"criteria": ["AC1"], "timeout_s": 100, "line": 7, **changes}
    return a_task(recorded_tests=[asked])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> RecordedTests:
    context = a_context(written(tmp_path_factory.mktemp("recorded") / "project", PROJECT))
    return RecordedTests.collect(a_recorded_task(), context)


def chosen(seen: RecordedTests, mark: str) -> RecordedTests:
    """What was recorded of the tests with one mark alone."""
    marked = [block for block in TESTS.split("\n\n\n") if f"mark.{mark}\n" in block]
    names = {line.partition("(")[0][4:] for block in marked for line in block.splitlines() if line.startswith("def ")}
    return seen.model_copy(update={"tests": tuple(t for t in seen.tests if t.id.split("::")[1].split("[")[0] in names)})


def judged(seen: RecordedTests, mark: str, *needs: str, **ends: TestOutcome) -> dict[str, list[Finding]]:
    mine = chosen(seen, mark)
    task = a_recorded_task(needs=list(needs))
    tests = [a_record(ends.get(test.id.split("::")[1], TestOutcome.PASSED), id=test.id) for test in mine.tests]
    found: dict[str, list[Finding]] = {}
    for finding in _recorded_tests.judge(task, evidence(mine, a_run(*tests))):
        found.setdefault(finding.check.partition(":0:")[2], []).append(finding)
    return found


def line_of(mark: str) -> int:
    return next(i for i, line in enumerate(LIBRARY.splitlines(), 1) if line.endswith(f"# <- {mark}"))


def outcomes(found: Mapping[str, list[Finding]]) -> dict[str, Outcome]:
    return {name: findings[0].outcome for name, findings in found.items()}


def test_recorder_has_no_trouble(seen: RecordedTests) -> None:
    assert (seen.complete, seen.troubles) == (True, ())
    assert {test.id.split("::")[0] for test in seen.tests} == {"tests/test_core.py"}


def test_sound_tests_pass_with_all_that_is_needed(seen: RecordedTests) -> None:
    found = judged(seen, "sound", "scaler", "autocast", "overflow",
                   test_skipped=TestOutcome.SKIPPED, test_expected_to_fail=TestOutcome.XFAILED)  # fmt: skip
    expected = dict.fromkeys(("order", "precision", "parameters", "overflow", "for:AC1"), Outcome.PASSED)
    assert outcomes(found) == {**expected, "run": Outcome.UNKNOWN}
    assert "tests/test_core.py::test_that_sees_the_recorder" in found["run"][0].message
    assert found["run"][0].level is Level.ADVISORY
    assert "first in tests/test_core.py::test_overflow" in found["overflow"][0].message


def test_what_tests_do_on_purpose_is_their_own(seen: RecordedTests) -> None:
    found = judged(seen, "own")
    assert [f.message for each in found.values() for f in each if f.outcome is Outcome.FAILED] == []


def test_overflow_is_needed_of_the_projects_own_code(seen: RecordedTests) -> None:
    found = judged(seen, "own", "overflow")
    assert outcomes(found)["overflow"] is outcomes(found)["for:AC1"] is Outcome.UNKNOWN
    assert found["overflow"][0].leaves_open
    assert outcomes(judged(seen, "class_of_scaler", "overflow"))["overflow"] is Outcome.PASSED


@pytest.mark.parametrize(
    ("mark", "aspect", "said"),
    [
        ("clip", "order", "amp-clip-before-unscale"),
        ("update", "order", "amp-update-before-step"),
        ("clear", "order", "amp-missing-zero-grad"),
        ("round", "order", "amp-plain-step"),
    ],
)
def test_fault_of_the_project_is_found_in_a_sound_test(seen: RecordedTests, mark: str, aspect: str, said: str) -> None:
    found = judged(seen, mark)
    (first,) = [finding for finding in found[aspect] if finding.outcome is Outcome.FAILED]
    assert said in first.subject
    assert first.blocks
    assert str(first.location) == f"pkg/core.py:{line_of(mark)}"
    assert "tests/test_core.py::test_" in first.message
    assert outcomes(found)["for:AC1"] is Outcome.FAILED


def test_overflow_that_is_applied_is_found(seen: RecordedTests) -> None:
    (found,) = judged(seen, "applied")["overflow"]
    assert (found.outcome, found.blocks) == (Outcome.FAILED, True)
    assert "in tests/test_core.py::test_applied" in found.message


@pytest.mark.parametrize(("mark", "said"), [("cuda", "CUDA is not available"), ("on_cuda", "torch says: ")])
def test_device_that_is_hidden_is_not_absent(seen: RecordedTests, mark: str, said: str) -> None:
    found = [one for each in judged(seen, mark, "scaler", "autocast", "overflow").values() for one in each]
    assert Outcome.FAILED not in {one.outcome for one in found}
    assert any(one.outcome is Outcome.UNKNOWN and said in one.message and one.leaves_open for one in found)


def test_test_that_failed_shows_nothing(seen: RecordedTests) -> None:
    failed = judged(seen, "clip", test_clips=TestOutcome.FAILED)
    assert set(outcomes(failed).values()) == {Outcome.UNKNOWN}


def test_run_that_was_not_heard_to_its_end_shows_nothing(seen: RecordedTests) -> None:
    cut = seen.model_copy(update={"complete": False})
    assert set(outcomes(judged(cut, "sound")).values()) == {Outcome.UNKNOWN}


def test_test_that_was_run_twice_shows_nothing() -> None:
    entries: list[dict[str, object]] = [{"word": "test", "id": "t.py::test_a"},
                                        {"word": "tested", "id": "t.py::test_a", "outcome": "passed"}]  # fmt: skip
    seen = RecordedTests.read(a_run().process, [*entries, *entries, {"word": "end"}])
    assert seen.tests == (RecordedTest(id="t.py::test_a", outcome="run again", run=seen.tests[0].run),)


def attack(body: str) -> str:
    inside = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    passing = "\n\n\n".join(f"def test_{name}():\n    pass" for name in ("first", "other"))
    return f"import gc, json, os\n\n\n{passing}\n\n\ndef test_attack():\n{inside}\n"


def test_tests_of_the_criterion_alone_are_run_and_a_process_that_is_left_shows_nothing(tmp_path: Path) -> None:
    body = """
    with open("JOURNAL", "a") as journal:
        journal.write('{"word": "tested"}\\n{"word": "end"}\\n')
    os._exit(0)
    """
    body = body.replace("JOURNAL", str(tmp_path / "project-evidence/recorded-tests/told.jsonl"))
    context = a_context(written(tmp_path / "project", {**PROJECT, "tests/test_core.py": attack(body)}))
    ours = [f"tests/test_core.py::test_{name}" for name in ("first", "attack")]
    seen = RecordedTests.collect(a_recorded_task(tests=ours), context)
    assert not seen.complete
    assert "2 lines of the journal are not its own" in seen.troubles[0]
    assert [(test.id, test.outcome) for test in seen.tests] == [*zip(ours, ["passed", "not run"], strict=True)]


def test_interpreter_without_torch_is_told(tmp_path: Path) -> None:
    blocked = {**PROJECT, "torch.py": "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"}
    context = a_context(written(tmp_path / "project", blocked))
    with pytest.raises(EvidenceUnavailable, match="has no torch"):
        RecordedTests.collect(a_recorded_task(), context)


def test_each_test_with_a_step_is_in_the_report(seen: RecordedTests) -> None:
    (section,) = _recorded_tests.describe(a_recorded_task(), evidence(seen))
    rows = {row[0]: row[1:] for row in section.rows}
    assert rows["tests/test_core.py::test_overflow"][:4] == ("passed", "3", "1", "1")
    assert "tests/test_core.py::test_refusal" not in rows
