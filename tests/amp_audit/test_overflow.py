"""Tests of the injected overflow, on our own step and on loops that get it wrong."""

from typing import Any

import pytest
import torch
from torch import nn

from amp_audit import Loop, Overflow, inject_overflow


@pytest.mark.parametrize(
    ("precision", "scales"), [("fp32", (1.0, 1.0)), ("bf16", (1.0, 1.0)), ("fp16", (2.0**16, 2.0**15))]
)
@pytest.mark.parametrize("warm", [False, True])
def test_our_step_skips_it_unmoved(precision: str, scales: tuple[float, float], warm: bool, make_loop: Any) -> None:
    loop = make_loop(precision)
    if warm:
        loop()
    found = inject_overflow(loop)
    assert found == Overflow(poisoned=True, moved=(), scale_before=scales[0], scale_after=scales[1])
    assert found.problems == ()
    before = [parameter.detach().clone() for parameter in loop.model.parameters()]
    loop()  # the poison is gone
    assert any(not torch.equal(old, new) for old, new in zip(before, loop.model.parameters(), strict=True))


def by_hand(*, scaled: bool, fused: bool = True, ahead: bool = False) -> Loop:
    """Return a loop written out: without a scaler it has no guard; `ahead` moves its schedule whatever happens."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(torch.ones(2, 3)).float().square().mean()
        scaler.scale(loss).backward()
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if ahead or scaler.get_scale() >= scale:
            schedule.step()

    return Loop(step, model, [optimizer], scaler.get_scale if scaled else None)


def test_a_loop_without_a_guard_is_found_out() -> None:
    found = inject_overflow(by_hand(scaled=False))
    assert found.moved == ("parameters", "optimizer state", "learning rate")
    assert (found.scale_before, found.scale_after) == (None, None)
    assert found.problems == ("parameters moved", "optimizer state moved", "learning rate moved")


@pytest.mark.parametrize("fused", [False, True])
def test_a_right_loop_of_someone_elses_passes(fused: bool) -> None:
    assert inject_overflow(by_hand(scaled=True, fused=fused)).problems == ()


def test_a_schedule_that_runs_ahead_is_found_out() -> None:
    loop = by_hand(scaled=True, ahead=True)
    loop()
    assert inject_overflow(loop).problems == ("learning rate moved",)


def test_a_scale_that_does_not_back_off_is_found_out() -> None:
    loop = by_hand(scaled=True)
    stubborn = Loop(loop.step, loop.model, loop.optimizers, scale=lambda: 1024.0)
    assert inject_overflow(stubborn).problems == ("the loss scale stayed at 1024",)


def test_what_the_user_names_is_watched_too() -> None:
    loop, counter = by_hand(scaled=True), torch.zeros(())

    def step() -> None:
        loop.step()
        counter.add_(1.0)

    watched = Loop(step, loop.model, loop.optimizers, still={"my counter": lambda: {"steps": counter}})
    assert inject_overflow(watched).moved == ("my counter",)


def test_a_poison_that_reaches_no_gradient_proves_nothing() -> None:
    found = inject_overflow(by_hand(scaled=True), parameter=nn.Parameter(torch.ones(1)))
    assert not found.poisoned
    assert "the poisoned parameter got no gradient, so nothing was tested" in found.problems


def test_the_poison_is_removed_when_the_step_raises() -> None:
    model = nn.Linear(1, 1)

    def step() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        inject_overflow(Loop(step, model, []))
    model(torch.ones(1, 1)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_a_frozen_model_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a model with a trainable parameter, found none"):
        inject_overflow(Loop(lambda: None, nn.Linear(1, 1).requires_grad_(False), []))
