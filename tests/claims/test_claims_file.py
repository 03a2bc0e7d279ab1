"""The claims file: every form that it knows, and what is wrong in one."""

import json
from pathlib import Path

import pytest
import yaml
from building import a_record, a_run, evidence, measured, samples, written
from covering import executed
from jsonschema import Draft202012Validator, ValidationError
from reporting import a_reported_project

from gates.check import EvidenceSet
from gates.claims import claims_file
from gates.claims.checking import Judged, World, rule
from gates.claims.claim import Claim, Ruling, Standing, Verdict
from gates.claims.sources import Looked, Sources
from gates.commands.schemas import schema_of
from gates.errors import UsageError
from gates.evidence.test_records import TestOutcome
from gates.model import Decision, Level, Location

GOOD, BAD, OPEN = Standing.CONFIRMED, Standing.CONTRADICTED, Standing.UNSUPPORTED
CLAIMS = {
    "tests: {passed: 2, skipped: 1, total: 3}": GOOD,
    "tests: {passed: 3}": BAD,
    "tests: {failed: 0, deselected: 0}": GOOD,
    "tests: {passed: 1, in: tests/test_core.py}": GOOD,
    "tests: {passed: 2, in: tests/test_core.py}": BAD,
    "tests: {passed: 1, in: tests/nowhere}": OPEN,
    "test: {id: test_double, outcome: passed}": GOOD,
    "test: {id: test_double, outcome: failed}": BAD,
    "test: {id: 'test_other.py::test_gpu', outcome: skipped}": GOOD,
    "test: {id: test_nothing, outcome: passed}": OPEN,
    "exit_code: 0": GOOD,
    "exit_code: 1": BAD,
    "measure: {ratio: [old, new], of: step_time_s, value: 2.0}": GOOD,
    "measure: {ratio: [old, new], of: step_time_s, value: 1.72}": BAD,
    "measure: {ratio: [old, new], of: step_time_s, value: 1.72, tolerance: 0.3}": GOOD,
    "measure: {ratio: [old, new], of: step_time_s, value: 2.0, on: cuda}": OPEN,
    "measure: {from: other, ratio: [old, new], of: step_time_s, value: 2.0}": OPEN,
    "measure: {reduction: [old, new], of: step_time_s, value: 0.5}": GOOD,
    "measure: {arm: new, of: step_time_s, value: 9}": BAD,
    "measure: {ratio: [old, newer], of: step_time_s, value: 2.0}": OPEN,
    "line: {path: pkg/step.py, line: 25, contains: 'self.log(\"train/overflow\", 1.0)'}": BAD,
    "line: {path: pkg/step.py, line: 26, contains: 'self.log(\"train/overflow\", 1.0)'}": GOOD,
    "line: {path: pkg/step.py, line: 6, defines: compute_precision}": GOOD,
    "line: {path: pkg/step.py, line: 24, defines: compute_precision}": BAD,
    "line: {path: pkg/step.py, line: 24, defines: step}": BAD,
    "line: {path: pkg/step.py, line: 99, contains: pass}": BAD,
    "file: pkg/step.py": GOOD,
    "file: step.py": BAD,
    "symbol: 'pkg.step:compute_precision'": GOOD,
    "symbol: 'pkg.step:Trainer.training_step'": GOOD,
    "symbol: 'pkg.step:compute'": BAD,
    "symbol: 'pkg.step:scaler'": OPEN,
    "symbol: 'pkg.nothing:x'": BAD,
    "functions_executed: 0.5": GOOD,
    "verdict: {gate: execution, decision: PASS}": GOOD,
    "verdict: {gate: execution, decision: PASS, score: 95}": GOOD,
    "verdict: {gate: execution, score: 96}": BAD,
    "verdict: {gate: performance, decision: PASS}": BAD,
    "verdict: {gate: other, decision: PASS}": OPEN,
    "verdict: {decision: PASS}": BAD,
    "verdict: {decision: BLOCK}": GOOD,
    "criterion: AC1": GOOD,
    "criterion: AC2": BAD,
    "criterion: AC3": OPEN,
    "claim: '2 tests passed, 1 skipped'": GOOD,
    "claim: 'The speedup is 3x'": BAD,
    "claim: 'It is a joy to use'": OPEN,
}
WRONG = {
    "claims: []\n": "claims",
    "claims:\n- measure: {arm: new, of: step_time_s, value: 9, tolerance: 10}\n": "'tolerance': 10 is as large as",
    "other: 1\n": "expected a key 'claims'",
    "claims:\n  - {tests: {passd: 1}}\n": "did you mean",
    "claims:\n  - {tests: {}}\n": "expected a count",
    "claims:\n  - {tests: {passed: 1}, exit_code: 0}\n": "expected a 'claim' or one of",
    "claims:\n  - {file: ../x}\n": "inside the project",
    "claims:\n  - {line: {path: a, line: 9, last_line: 3, contains: x}}\n": "before 'line'",
    "claims:\n  - {line: {path: a, line: 9}}\n": "either 'contains' or 'defines'",
    "claims:\n  - {measure: {of: x, value: 1}}\n": "exactly one of",
    "claims:\n  - {verdict: {score: 3}}\n": "goes with 'gate'",
    "claims: [\n": "not valid YAML",
}


def seen() -> EvidenceSet:
    skipped = a_record(TestOutcome.SKIPPED, id="tests/test_other.py::test_gpu")
    run = a_run(a_record(), a_record(id="tests/test_other.py::test_cpu"), skipped)
    return evidence(run, measured(samples()), executed())


def loaded(folder: Path, text: str) -> list[Ruling]:
    """Write a claims file into the project of the report, load it, and rule on each claim."""
    written(a_reported_project(folder), {"claims.yaml": text})
    files = Sources(folder)
    gates = (
        Judged(name="execution", decision=Decision.PASS, score=95, complete=True),
        Judged(name="performance", decision=Decision.BLOCK, score=0, complete=True),
    )
    criteria = {"AC1": "PASS", "AC2": "FAIL", "AC3": "PARTIAL"}
    world = World(seen(), gates, Decision.BLOCK, criteria)
    return [rule(files.look(claim), world) for claim in claims_file.load(folder / "claims.yaml", "claims.yaml")]


@pytest.mark.parametrize(("entry", "expected"), CLAIMS.items(), ids=CLAIMS)
def test_claim_is_ruled_on(entry: str, expected: Standing, tmp_path: Path) -> None:
    (ruling,) = loaded(tmp_path, f"claims:\n  - exit_code: 0\n  - {entry}\n")[1:]
    assert (ruling.standing, str(ruling.claim.at)) == (expected, "claims.yaml:3")
    assert ruling.expected
    assert ruling.seen


def test_verdict_on_evidence_that_is_not_whole_is_unsupported() -> None:
    half = Judged(name="execution", decision=Decision.PASS, score=95, complete=False)
    world = World(EvidenceSet(), (half,), Decision.PASS)
    for said in (Verdict(gate="execution", decision=Decision.PASS), Verdict(decision=Decision.BLOCK)):
        claim = Claim(at=Location(path="c.yaml", line=1), text="x", said=said)
        assert rule(Looked(claim=claim), world).standing is OPEN


def test_entry_may_be_a_sentence_and_has_a_level(tmp_path: Path) -> None:
    text = 'claims:\n  - "2 tests passed"\n  - {claim: "Fast", exit_code: 0, level: must}\n'
    first, second = loaded(tmp_path, text)
    assert (first.claim.text, first.claim.level, first.standing) == ("2 tests passed", Level.ADVISORY, GOOD)
    assert (second.claim.text, second.claim.level, second.standing) == ("Fast", Level.MUST, GOOD)


@pytest.mark.parametrize(("text", "told"), WRONG.items(), ids=range(len(WRONG)))
def test_what_is_wrong_is_named_with_its_place(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"claims\.yaml:\d+:\d+: ") as caught:
        loaded(tmp_path, text)
    assert told in str(caught.value)


def test_published_schema_knows_every_form() -> None:
    schema = Draft202012Validator(json.loads(schema_of("claims")))
    for entry in CLAIMS:
        schema.validate({"claims": [yaml.safe_load(entry.replace(" on:", ' "on":'))]})
    schema.validate({"claims": ["a sentence"]})
    for wrong in ({"exit_cod": 0}, {"tests": {"passd": 1}}, ""):
        with pytest.raises(ValidationError):
            schema.validate({"claims": [wrong]})
