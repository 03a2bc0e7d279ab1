"""Tests of the conformance suite: each case passes amp_core, and fails a subject that has the bug."""

import dataclasses
from pathlib import Path

import pytest
from refusing import refused

from amp_core.precision import CACHES_CASTS
from benchmarks.conformance import __main__ as command
from benchmarks.conformance.case import BROKEN, Case, Outcome, Result, Subject, ask, verdict
from benchmarks.conformance.cases import bits
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.ranks import cause
from benchmarks.conformance.stepwise import PlainLoop, broken
from benchmarks.conformance.suite import discover_cases, discover_subjects, run
from benchmarks.conformance.table import render

CASES = discover_cases()
OLDEST = set() if CACHES_CASTS else {"A18", "A19"}  # what the core gives up there, so that A17 holds
RANKS = {"A21", "A22", "A23"}  # started by torchrun: what they ask of the core, tests/amp_core/adapters/ranks.py asks
SUBJECTS = {subject.name: subject for subject in discover_subjects()}


def a_case(result: Result | Exception) -> Case:
    """Return a case with a foregone result."""

    def judge(_: Subject) -> Result:
        if isinstance(result, Exception):
            raise result
        return result

    return Case("A99", "Is it?", "it is", ("measured",), judge, BROKEN)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.hazard not in RANKS | OLDEST])
def test_amp_core_conforms_and_a_subject_with_the_bug_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "STEPS", 20)
    case = CASES[name]
    asked = [(SUBJECTS["amp_core"], Outcome.CONFORMS)]
    if not (OLDEST and case.hazard == "A17"):  # torch's own loop ends with an error there
        asked.append((case.broken, Outcome.FAILS))
    for subject, outcome in asked:
        result = ask(case, subject)
        assert result.outcome is outcome, result


def test_every_hazard_of_the_catalogue_has_a_case() -> None:
    assert {case.hazard for case in CASES.values()} == {f"A{number:02}" for number in range(1, 47)} | {"bits"}
    for name, case in CASES.items():
        assert name.startswith(case.hazard.lower())
        assert case.question.endswith("?")
        assert all((case.conforming, case.references, *case.references))


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_every_library_trains_as_the_plain_loop_does(name: str, precision: str) -> None:
    job = Job(windows=windows(3, 2), precision=precision)
    plain = broken(PlainLoop).train(job)

    def judge(subject: Subject) -> Result:
        trace = subject.train(job)
        gaps = [one.moved_from(other) for one, other in zip(trace.steps, plain.steps, strict=True)]
        alike = trace.start.same_parameters(plain.start) and trace.last.scale == plain.last.scale
        return verdict(alike and max(gaps) < 1e-6, f"{gaps} apart, scale {trace.last.scale}")

    result = ask(dataclasses.replace(a_case(verdict(good=True, observed="")), judge=judge), SUBJECTS[name])
    assert result.outcome is Outcome.CONFORMS, result


def test_an_unforeseen_exception_is_an_error_and_no_failure() -> None:
    assert ask(a_case(KeyError("lr")), BROKEN) == Result(Outcome.ERROR, "KeyError: 'lr'")


def test_the_table_counts_each_outcome_and_shows_what_was_observed() -> None:
    results = {Outcome.CONFORMS: "one *way*", Outcome.FAILS: "other", Outcome.ERROR: "E: a|b"}
    cases = {outcome.value: a_case(Result(outcome, text)) for outcome, text in results.items()}
    found: dict[str, dict[str, Result]] = {name: {} for name in cases}
    for name, subject, result in run(cases.items(), [BROKEN]):
        found[name][subject] = result
    text = render(cases, found)
    assert "| conforms | 1 |\n| fails | 1 |\n| not applicable | 0 |\n| error | 1 |" in text
    assert r"- broken: conforms; one \*way\*" in text
    assert "- broken: error; E: a/b" in text  # a bar would end a cell
    assert "| A99 | Is it? | **fails** |" in text


def test_a_conforming_run_ends_with_0_and_writes_what_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "table.md"
    assert command.main(["--case", "A05", "--subject", "amp_core", "--out", str(out)]) == 0
    assert "a05_skip_with_fused" in capsys.readouterr().out
    assert "| A05 | Is a skipped step of a fused optimizer reported as skipped? | conforms |" in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "A77"], "error: no case 'A77': expected a hazard such as A05, or one of a01_clip_before_unscale"),
        (["--subject", "keras"], "error: no subject 'keras': expected one of amp_core, by_hand"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(command.main, arguments, capsys).startswith(message)


@pytest.mark.parametrize(
    ("stderr", "named"),
    [
        (
            "Traceback ...\n  File x\n[rank1]: ValueError: no such name\nChildFailedError: report",
            "ValueError: no such name",
        ),
        ("torch.distributed.DistStoreError: timed out\nlast", "torch.distributed.DistStoreError: timed out"),
        ("killed\nby somebody\n", "by somebody"),
        ("", "it wrote nothing"),
    ],
)
def test_ranks_that_fail_name_the_first_exception(stderr: str, named: str) -> None:
    assert cause(stderr) == named
