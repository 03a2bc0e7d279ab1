"""The table on the integrity of what is trained: all that was seen of it side by side, and what was not."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, evidence, written
from recording import a_recorded, a_trained_task, after_overflow, an_attempt, overflowed, recorded

from gates.check import Evidence
from gates.evidence.code_rules import CodeRules, RuleSite, RuleTrace
from gates.evidence.source_tree import SourceTree
from gates.model import Location
from gates.stages._data_integrity import describe
from gates.task.task import Task

STEP = "training step 1, pkg.train:few(2)"
PARAMETERS, STATE = "Parameters stay in float32", "The scaler's state is saved with the optimizer's"
SAVES = """import torch
def main(model, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    torch.save({"optimizer": optimizer.state_dict(), "model": model.state_dict()}, "last.pt")
"""


def table(task: Task, *seen: Evidence) -> dict[str, list[tuple[str, ...]]]:
    (section,) = describe(task, evidence(*seen))
    assert section.columns == ("What", "Expected", "Actual", "Where", "Seen by", "Outcome")
    found: dict[str, list[tuple[str, ...]]] = {}
    for what, *rest in section.rows:
        found.setdefault(what, []).append(tuple(rest))
    return found


def test_task_without_training_and_rules_says_nothing() -> None:
    assert list(describe(a_task(), evidence())) == []


def test_what_a_sound_training_step_shows_is_kept_and_the_rest_is_not_seen() -> None:
    found = table(a_trained_task(), recorded())
    assert {what: rows[0][-1] for what, rows in found.items()} == {
        PARAMETERS: "kept",
        "Gradients are unscaled once before they are clipped and used": "kept",
        "A step that overflows changes no parameter": "kept",
        "The learning rate stays in a step that is left out": "not applicable",
        STATE: "not seen",
    }
    assert found[PARAMETERS] == [("float32", "float32", "pkg/train.py:7", STEP, "kept")]


def test_training_step_that_was_not_recorded_shows_nothing() -> None:
    found = table(a_trained_task())
    assert {row[-1] for rows in found.values() for row in rows} == {"not seen"}
    assert {row[2] for rows in found.values() for row in rows} == {"-"}


def test_violations_have_their_place() -> None:
    plain = a_recorded(attempts=(an_attempt(params=("float16",)),) * 2)
    seen = recorded(plain, after_overflow(overflows=(overflowed(changed=3),)))
    found = table(a_trained_task(), seen)
    assert found[PARAMETERS] == [("float32", "float16", "pkg/train.py:7", STEP, "VIOLATED")]
    assert found["A step that overflows changes no parameter"][0][-1] == "VIOLATED"


def test_places_that_a_rule_cannot_decide_share_a_row() -> None:
    places = [Location(path="pkg/m.py", line=line) for line in range(1, 4)]
    sites = tuple(RuleSite(location=one, ok=False, message="too many paths", undecided=True) for one in places)
    trace = RuleTrace(rule="amp-half-parameters", sites=sites)
    tree = SourceTree(how="", files=1, symbols=(), rules=(trace,), unparsed=())
    found = table(a_task(), tree)[PARAMETERS]
    assert [(row[1], row[2], row[-1]) for row in found] == [("too many paths (and 2 more)", "pkg/m.py:1", "not seen")]


@pytest.mark.parametrize("bound", [True, False])
def test_rules_show_what_they_found(tmp_path: Path, *, bound: bool) -> None:
    rule = "amp-scaler-not-saved"
    code = [{"rule": rule}] if bound else []
    task = a_task(rules=[] if bound else [rule], criteria=[a_criterion(code=code)])
    for number, (body, actual, outcome) in enumerate(((SAVES, "", "VIOLATED"), ("x = 1\n", "no place", "none found"))):
        context = a_context(written(tmp_path / f"project{number}", {"pkg/m.py": body}))
        seen = (SourceTree if bound else CodeRules).collect(task, context)
        found = table(task, seen)
        ((expected, said, where, by, ended),) = found[STATE]
        assert (expected, by, ended, actual in said) == (f"{rule} is kept", f"rule {rule}", outcome, True)
        assert where == ("pkg/m.py:4" if ended == "VIOLATED" else "-")
        assert found[PARAMETERS] == [("-", "nothing looked at it", "-", "-", "not seen")]
