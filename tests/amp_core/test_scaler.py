"""Tests of the loss scaler: its scale, its counters, its limits and its state."""

from typing import Any

import pytest
import torch
from torch import nn

from amp_core.scaler import LossScaler, ScaleCollapsed, ScaleState


def a_run(scaler: LossScaler, good: list[bool]) -> None:
    """Take one step for each entry as with torch's scaler, with an infinite gradient where it is false."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    for fine in good:
        scaler.scale(model(torch.ones(1, 2)).sum() * (1.0 if fine else float("inf"))).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def dynamic(**options: float) -> LossScaler:
    return LossScaler("cpu", dynamic=True, **options)  # type: ignore[arg-type]


def test_the_scale_grows_after_the_interval_and_halves_on_overflow() -> None:
    scaler = dynamic(init_scale=8.0, growth_interval=3)
    a_run(scaler, [True] * 3)
    assert scaler.read() == ScaleState(16.0, 3, 0)
    a_run(scaler, [False, True, True])
    assert scaler.read() == ScaleState(8.0, 5, 1)


def test_the_scale_stays_within_floor_and_ceiling() -> None:
    low = dynamic(init_scale=2.0, max_consecutive_skips=1000)
    a_run(low, [False] * 160)
    assert low.read() == ScaleState(1.0, 0, 160)
    high = dynamic(init_scale=2.0**23, growth_interval=1)
    a_run(high, [True] * 4)
    assert high.read().scale == 2.0**24


def test_a_static_scaler_never_scales_but_counts() -> None:
    scaler = LossScaler("cpu", dynamic=False, init_scale=64.0)
    a_run(scaler, [True, False, True])
    assert scaler.read() == ScaleState(1.0, 2, 1)


def test_reading_raises_after_too_many_skips_in_a_row() -> None:
    scaler = dynamic(max_consecutive_skips=5)
    a_run(scaler, [*[False] * 4, True, *[False] * 4])  # a good step ends a row
    assert scaler.read().skipped == 8
    a_run(scaler, [False])
    with pytest.raises(
        ScaleCollapsed, match=r"^the last 5 steps had non-finite gradients[^\n]+loss scale 128: [^\n]+$"
    ):
        scaler.read()


def test_a_state_restores_the_scale_the_growth_and_the_counters() -> None:
    saved = dynamic(init_scale=8.0, growth_interval=3)
    a_run(saved, [False, True, True])
    loaded = dynamic()
    loaded.load_state_dict(saved.state_dict())
    a_run(loaded, [True])  # the third good one
    assert loaded.read() == ScaleState(8.0, 3, 1)


def static() -> LossScaler:
    return LossScaler("cpu", dynamic=False)


@pytest.mark.parametrize(
    ("saved", "loaded", "expected"),
    [
        (lambda: None, dynamic, ScaleState(16384.0, 0, 2)),  # an empty state changes nothing
        (lambda: torch.amp.GradScaler("cpu", init_scale=128.0), dynamic, ScaleState(128.0, 0, 0)),
        (static, dynamic, ScaleState(65536.0, 1, 1)),  # its 1 would flush gradients to zero
        (dynamic, static, ScaleState(1.0, 1, 1)),
    ],
    ids=["empty", "torch's own", "static into dynamic", "dynamic into static"],
)
def test_a_state_of_another_kind_gives_what_it_has(saved: Any, loaded: Any, expected: ScaleState) -> None:
    source, scaler = saved(), loaded()
    a_run(scaler, [False, False])
    if isinstance(source, LossScaler):
        a_run(source, [True, False])
        scaler = loaded()
    scaler.load_state_dict(source.state_dict() if source else {})
    assert scaler.read() == expected


def test_overflow_in_one_of_two_optimizers_counts_as_one_skip() -> None:
    scaler = dynamic()
    first, second = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, fused=True) for model in (first, second)]
    inputs = torch.ones(1, 2)
    scaler.scale(first(inputs).sum() + second(inputs).sum() * float("inf")).backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert scaler.read() == ScaleState(32768.0, 0, 1)


def a_backward(scaler: LossScaler, model: nn.Linear, factor: float = 1.0) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    scaler.scale(model(torch.ones(1, 2)).sum() * factor).backward()
    return optimizer


@pytest.mark.parametrize("scaler", [dynamic(), static()], ids=["dynamic", "static"])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("unscales", [True, False])
def test_in_a_loop_of_torch_s_own_form_a_bad_step_is_skipped(scaler: LossScaler, fused: bool, unscales: bool) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    before = model.weight.detach().clone()
    for factor, moves in ((float("nan"), False), (1.0, True)):
        scaler.scale(model(torch.ones(1, 2)).sum() * factor).backward()
        if unscales:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert torch.equal(model.weight, before) is not moves
    torch.testing.assert_close(model.weight, before - 0.1)  # true gradients are ones


@pytest.mark.parametrize("scaler", [dynamic(), static()], ids=["dynamic", "static"])
def test_a_second_step_without_an_update_is_refused(scaler: LossScaler) -> None:
    optimizer = a_backward(scaler, nn.Linear(2, 1))
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"^step\(\) was called twice for this optimizer: call update\(\)"):
        scaler.step(optimizer)


def test_a_second_unscale_without_an_update_and_a_closure_are_refused() -> None:
    scaler = dynamic()
    optimizer = a_backward(scaler, nn.Linear(2, 1))
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="a closure cannot be passed"):
        scaler.step(optimizer, closure=lambda: 0.0)
    with pytest.raises(RuntimeError, match="a closure cannot be passed"):
        scaler.step(optimizer, lambda: 0.0)


def test_an_update_after_a_step_that_the_loop_itself_skipped_backs_off_and_one_without_a_step_does_nothing() -> None:
    scaler = dynamic(growth_interval=1)
    scaler.update()
    assert scaler.read() == ScaleState(65536.0, 0, 0)
    optimizer = a_backward(scaler, nn.Linear(2, 1), float("inf"))
    scaler.unscale_(optimizer)
    scaler.update()
    assert scaler.read() == ScaleState(32768.0, 0, 1)
    scaler.unscale_(optimizer)  # and may unscale again


def test_a_scale_that_is_set_stays_within_the_limits() -> None:
    scaler = dynamic()
    scaler.update(2.0**30)
    assert scaler.read().scale == 2.0**24
    scaler.update(torch.tensor(4.0))
    assert scaler.read().scale == 4.0
    unscaled = static()
    unscaled.update(4.0)
    assert unscaled.read().scale == 1.0


def test_a_bad_mark_of_another_rank_skips_the_step_here() -> None:
    scaler = LossScaler("cpu", dynamic=True, across=torch.ones_like)
    model = nn.Linear(2, 1)
    before = model.weight.detach().clone()
    scaler.step(a_backward(scaler, model))
    scaler.update()
    assert torch.equal(model.weight, before)
    assert scaler.read() == ScaleState(32768.0, 0, 1)


def test_what_is_no_scaler_s_state_is_refused_and_changes_nothing() -> None:
    scaler = dynamic()
    a_run(scaler, [False])
    with pytest.raises(
        ValueError, match=r"^a scaler's state needs _growth_tracker, .* found only \['applied', 'scale'\]$"
    ):
        scaler.load_state_dict({"scale": 8.0, "applied": 3})
    assert scaler.read() == ScaleState(32768.0, 0, 1)
