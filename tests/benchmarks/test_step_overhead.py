"""Tests of the overhead benchmark: what it times, and how it judges."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from amp_audit.operators import Operators
from benchmarks import step_arms, step_overhead
from benchmarks.step_arms import AMP_CORE_WHOLE, ARMS, Elapsed, Setting
from benchmarks.step_overhead import held_to, main, measure, rows

VIEWS = {"aten::detach", "aten::expand", "aten::select.int", "aten::t", "aten::view"}


def samples(**cpu_us: float) -> dict[str, list[Elapsed]]:
    names = {"hand": "by hand", "again": "by hand, again", "guarded": "by hand, guarded"}
    return {names.get(name, name): [Elapsed(each * 1e-6, each * 2e-6)] * 6 for name, each in cpu_us.items()}


@pytest.mark.parametrize("clip", [1.0, None])
def test_every_arm_is_timed_in_every_round_or_says_why_not(clip: float | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        found, without = measure(Setting("fp16", clip), rounds=6, steps=3)
    assert {*found, *without} == set(ARMS)
    assert set(without) == ({"fabric", "lightning"} if clip else set())
    assert all(reason.startswith("refused: ") for reason in without.values())
    assert all(len(times) == 6 and min(each.cpu_s for each in times) > 0 for times in found.values())


def test_a_row_has_ratios_to_the_recipe_in_the_same_round() -> None:
    times = samples(hand=100, again=101, guarded=120, amp_core=125, accelerate=150)
    lines = rows(Setting("bf16", None), times, {"fabric": "refused: no", "lightning": "not installed"})
    assert lines[0] == "| bf16, unclipped | by hand | 100 [100, 100] | | | |"
    cells = ["bf16, unclipped", "amp_core", "125 [125, 125]", *["1.250 [1.250, 1.250]"] * 2, "+25 [+25, +25] us"]
    assert lines[3] == f"| {' | '.join(cells)} |"
    assert lines[5] == "| bf16, unclipped | fabric | | | | refused: no |"


def test_the_whole_stack_takes_at_most_44_operators_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_arms, "timed", lambda step: step)
    step: Any = ARMS[AMP_CORE_WHOLE](Setting("fp32", 1.0))
    step(batch := step_arms.batches()[0])
    seen: list[str] = []
    with Operators(lambda op: seen.append(op.name)):
        step(batch)
    assert len([name for name in seen if name not in VIEWS and not name.startswith("profiler::")]) <= 44


def test_an_unclipped_step_is_held_to_the_recipe_with_its_guard() -> None:
    times = samples(hand=100, guarded=120, amp_core=126)
    assert held_to(Setting("fp32", 1.0), times).value == pytest.approx(1.26)
    assert held_to(Setting("fp32", None), times).value == pytest.approx(1.05)


@pytest.mark.parametrize(("amp_core", "code"), [(1.03, 0), (1.06, 1)])
def test_the_exit_code_says_whether_the_bar_is_met(
    amp_core: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = samples(hand=100, guarded=100, amp_core=100 * amp_core)
    monkeypatch.setattr(step_overhead, "measure", lambda *_, **__: (found, {}))
    assert main(["--precisions", "bf16", "--out", str(tmp_path / "table.md")]) == code
    text = (tmp_path / "table.md").read_text("utf-8")
    assert f"- bf16, clipped: {amp_core:.3f} [{amp_core:.3f}, {amp_core:.3f}]" in text
