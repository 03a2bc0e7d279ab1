"""Training steps with one fault each are found by what is recorded of them, at their line; sound ones are let be."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from building import PATIENCE_S, ROOT, a_process, a_task, clean, evidence
from recording import SECRET, read_journal

from gates.checks.training_steps.judge import CHECK
from gates.child.asking import Teller
from gates.child.probing import read_entries
from gates.evidence.recorded_step import Recorded, Recording, StepRecording, runtime_orders
from gates.model import Finding, Outcome
from gates.scan.loading import load_rules

TRAINED = ROOT / "benchmarks/cases/trained"
MARK = re.compile(r"# <- (?P<aspects>[a-z ]+)$")
ELSEWHERE = re.compile(r"# <-- (?P<name>\w+)$")
NEAR = 3


def steps_of(file: str) -> dict[str, tuple[int, int]]:
    """The training steps of a file, with the lines that each stands in."""
    tree = ast.parse((TRAINED / file).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    return {node.name: (node.lineno, node.end_lineno or node.lineno) for node in functions}


def marked() -> dict[str, tuple[int, list[str]]]:
    """For each faulty step the line that must be found, and the aspects that must find it."""
    lines = (TRAINED / "faults.py").read_text(encoding="utf-8").splitlines()
    found = {}
    for name, (first, last) in steps_of("faults.py").items():
        for number, line in enumerate(lines, 1):
            mark, elsewhere = MARK.search(line), ELSEWHERE.search(line)
            if mark and first <= number <= last:
                found[name] = (number, mark["aspects"].split())
            elif elsewhere and elsewhere["name"] == name:
                found[name] = (number, ["overflow"])
    return found


FAULTS, SOUND, HIDDEN = marked(), steps_of("sound.py"), steps_of("unseen.py")
WINDOWS = steps_of("windows.py")
HINTS = {"scaled_norm_logged", "schedule_runs_ahead", "schedule_first", "scaled_bfloat16", "half_window"}
HINTS |= {"gradients_dropped"}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Finding]]:
    folder = tmp_path_factory.mktemp("recorded")
    shutil.copytree(ROOT / "gates/child", folder / "plugin/gates_probe")
    calls = [f"faults:{name}" for name in FAULTS] + [f"sound:{name}" for name in SOUND]
    calls += [f"unseen:{name}" for name in HIDDEN] + [f"windows:{name}" for name in WINDOWS]
    env = clean({"PYTHONPATH": str(folder / "plugin"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"})
    done = subprocess.run([sys.executable, TRAINED / "record_all.py", folder, *calls], env=env, capture_output=True,
                          text=True, check=False, timeout=PATIENCE_S, cwd=TRAINED)  # fmt: skip
    assert done.returncode == 0, done.stderr
    ended = dict(line.split() for line in done.stdout.splitlines())
    return {name: judged(folder, name, good=ended[name] == "True") for name in ended}


def judged(folder: Path, name: str, *, good: bool) -> list[Finding]:
    again = folder / f"{name}-overflow.jsonl"
    plain = as_run(folder / f"{name}.jsonl", good=good or again.exists())
    overflow = as_run(again, good=good) if again.exists() else None
    step = StepRecording(name=name, plain=plain, overflow=overflow, orders=runtime_orders(load_rules()))
    asked: dict[str, object] = {"needs": ["mean"], "criteria": ["AC1"]} if name in WINDOWS else {}
    task = a_task(training_steps=[{"call": f"x:{name}", "line": 7, **asked}])
    return list(CHECK.judge(task, evidence(Recording(how="forks", seen=(step,)))))


def as_run(journal: Path, *, good: bool) -> Recorded:
    run = read_journal(journal)
    return run.model_copy(update={"process": a_process(0 if good else 1), "complete": run.complete and good})


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found_at_its_line(name: str, seen: Mapping[str, list[Finding]]) -> None:
    line, aspects = FAULTS[name]
    failed = [finding for finding in seen[name] if finding.outcome is Outcome.FAILED]
    by_aspect = {finding.check.rpartition(":")[2]: finding for finding in failed}
    assert set(aspects) <= set(by_aspect), [finding.message for finding in seen[name]]
    places = [by_aspect[aspect].location for aspect in aspects]
    assert all(place is not None and place.path == "faults.py" for place in places), places
    assert all(abs((place.line or 0) - line) <= NEAR for place in places if place), places
    assert any(finding.blocks for finding in failed) is (name not in HINTS)


@pytest.mark.parametrize("name", SOUND)
def test_sound_step_is_let_be(name: str, seen: Mapping[str, list[Finding]]) -> None:
    wrong = [finding.message for finding in seen[name] if finding.outcome is Outcome.FAILED]
    needed = [finding.message for finding in seen[name] if finding.leaves_open]
    assert (wrong, needed) == ([], [])
    assert {"run", "order", "parameters"} <= passed(seen[name])


def test_what_cannot_be_compared_is_said_to_be_unknown(seen: Mapping[str, list[Finding]]) -> None:
    alone = "not those of the recorded calls alone"
    for name, why in [("noisy_gradients", alone), ("scaled_by_hand", alone), ("unscaled_by_hand", "once more")]:
        (gradients,) = [finding for finding in seen[name] if finding.check.endswith("gradients")]
        assert (gradients.outcome, why in gradients.message) == (Outcome.UNKNOWN, True)


def test_gradients_and_overflow_of_the_recipe_are_seen(seen: Mapping[str, list[Finding]]) -> None:
    names = ("checkpointed", "loss_inside", "awaited", "late_norm", "sharpness_aware")
    assert all("gradients" in passed(seen[name]) for name in names)
    assert passed(seen["recipe"]) == {"run", "order", "precision", "gradients", "parameters", "overflow"}


@pytest.mark.parametrize("name", HIDDEN)
def test_device_that_is_hidden_is_not_absent(name: str, seen: Mapping[str, list[Finding]]) -> None:
    assert [finding.message for finding in seen[name] if finding.outcome is Outcome.FAILED] == []
    unknown = " ".join(finding.message for finding in seen[name] if finding.outcome is Outcome.UNKNOWN)
    assert re.search("CUDA (is not available|enabled)|No CUDA|NVIDIA", unknown), unknown


@pytest.mark.parametrize("name", ["wrapped_optimizer", "unhooked_optimizer"])
def test_step_is_taken_where_parameters_moved(name: str, seen: Mapping[str, list[Finding]]) -> None:
    (ran,) = [finding for finding in seen[name] if finding.check.endswith(":run")]
    assert "4 steps taken, 0 left out" in ran.message
    assert {"gradients", "overflow"} <= passed(seen[name])


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_that_is_no_mean_of_its_losses_fails_what_asks_for_it(
    name: str, seen: Mapping[str, list[Finding]]
) -> None:
    outcomes = {finding.check.rpartition(":")[2]: finding.outcome for finding in seen[name]}
    expected = Outcome.FAILED if "sums" in name else Outcome.PASSED
    assert (outcomes["mean"], outcomes["AC1"]) == (expected, expected)
    assert not name.startswith("held") or outcomes["gradients"] is Outcome.PASSED  # those that are kept are no others


def passed(findings: list[Finding]) -> set[str]:
    return {finding.check.rpartition(":")[2] for finding in findings if finding.outcome is Outcome.PASSED}


def test_a_journal_holds_thousands_of_events(tmp_path: Path) -> None:
    tell = Teller(str(tmp_path / "journal"), SECRET)
    for _ in range(6000):
        tell.note({"word": "step"})
    assert read_entries(tmp_path / "journal", SECRET) == ([{"word": "step"}] * 6000, 0)


def test_rules_that_are_judged_at_run_time_lose_no_order_there() -> None:
    rules = [rule for rule in load_rules().values() if rule.form.runtime]
    orders = {order.order.text for rule in rules for order in (*rule.never, *rule.always)}
    assert orders <= {order.order for order in runtime_orders(load_rules())}
