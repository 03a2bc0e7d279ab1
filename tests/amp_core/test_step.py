"""Tests of the training step: the order of its calls, its gradients, its skips, and its bits."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, call

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from amp_audit import host_reads
from amp_core import checkpoint, observation
from amp_core.benchmark.workload import make_scaler, step_by_hand
from amp_core.ema import Ema
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler, ScaleCollapsed, ScaleState
from amp_core.schedule import Schedule
from amp_core.step import Batch, StepResult, TrainStep

NAMES = ("fp32", "bf16", "fp16")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
INF = float("inf")


def a_model(seed: int = 3) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def linear(model: nn.Sequential, index: int) -> nn.Linear:
    layer = model[index]
    assert isinstance(layer, nn.Linear)
    return layer


def a_batch(seed: int = 0, *, rows: int = 5, factor: float = 1.0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = torch.randn(rows, 6, generator=generator), torch.randn(rows, 2, generator=generator)
    return inputs, targets, torch.tensor(factor)


def squared_error(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean squared error times the batch's factor, which injects overflows and NaN."""
    inputs, targets, factor = batch
    loss: Tensor = (model(inputs).float() - targets).square().mean() * factor
    return loss


def fused(model: nn.Module, lr: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=lr, fused=True)


def a_step(name: str = "fp16", **options: Any) -> TrainStep:
    model = options.pop("model", None) or a_model()
    optimizer, loss = options.pop("optimizer", None) or fused(model), options.pop("loss", squared_error)
    return TrainStep(model, optimizer, precision_for(name, "cpu"), loss, **options)


def copies(model: nn.Module) -> list[Tensor]:
    return [param.detach().clone() for param in model.parameters()]


def same(left: Iterable[Tensor], right: Iterable[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.criterion("T035/AC1")
@pytest.mark.parametrize(("name", "scale"), [("fp16", 65536.0), ("bf16", 1.0), ("fp32", 1.0)])
def test_every_precision_gets_a_real_enabled_grad_scaler(name: str, scale: float) -> None:
    scaler = a_step(name).scaler
    assert isinstance(scaler, torch.amp.GradScaler)
    assert scaler.is_enabled()
    assert scaler.get_scale() == scaler.read().scale == scaler.scale(torch.ones(())).item() == scale


@pytest.mark.criterion("T035/AC2")
@pytest.mark.parametrize("name", NAMES)
def test_linear_layers_run_in_the_compute_dtype_and_backward_runs_outside_autocast(name: str) -> None:
    forward_dtypes, gradient_dtypes, autocast_in_backward = set(), set(), set()
    model = a_model()

    def seen(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> None:
        forward_dtypes.add(output.dtype)
        assert torch.is_autocast_enabled("cpu") == (name != "fp32")
        output.register_hook(gradient)  # type: ignore[no-untyped-call]

    def gradient(grad: Tensor) -> None:
        gradient_dtypes.add(grad.dtype)
        autocast_in_backward.add(torch.is_autocast_enabled("cpu"))

    for module in model:
        if isinstance(module, nn.Linear):
            module.register_forward_hook(seen)
    a_step(name, model=model)(a_batch())
    assert forward_dtypes == {DTYPES[name]}
    assert gradient_dtypes == {DTYPES[name]}
    assert autocast_in_backward == {False}
    assert {param.dtype for param in model.parameters()} == {torch.float32}


@pytest.mark.criterion("T035/AC2")
def test_fp32_turns_off_an_autocast_around_it() -> None:
    model, dtypes = a_model(), set()
    model[0].register_forward_hook(lambda _, __, output: dtypes.add(output.dtype))
    step = a_step("fp32", model=model)
    for around in (False, True, False):  # the step enters a context of its own again and again
        with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=around):
            step(a_batch())
            assert torch.is_autocast_enabled("cpu") == around
    assert dtypes == {torch.float32}


@pytest.mark.criterion("T035/AC3")
def test_backward_sees_scaled_gradients_and_the_norm_is_of_true_ones() -> None:
    plain, scaled = a_model(), a_model()
    true = torch.autograd.grad(squared_error(plain, a_batch()), list(plain.parameters()))
    seen: list[Tensor] = []
    linear(scaled, 2).weight.register_hook(lambda grad: seen.append(grad.clone()))  # type: ignore[no-untyped-call]
    scaler = LossScaler("cpu", dynamic=True, init_scale=1024.0)
    result = a_step("fp16", model=scaled, scaler=scaler, max_grad_norm=0.01)(a_batch())
    torch.testing.assert_close(seen[0], true[2] * 1024.0, rtol=1e-2, atol=1.0)
    torch.testing.assert_close(result.grad_norm, nn.utils.get_total_norm(true), rtol=1e-2, atol=0.0)
    assert result.loss_scale.item() == 1024.0


@pytest.mark.criterion("T035/AC3")
def test_clipping_limits_the_true_gradients_that_the_optimizer_sees() -> None:
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, fused=True)
    before = copies(model)
    result = a_step("fp16", model=model, optimizer=optimizer, max_grad_norm=0.001)(a_batch())
    moved = torch.stack([(old - new).norm() for old, new in zip(before, copies(model), strict=True)]).norm()
    assert result.grad_norm.item() > 0.1
    assert moved.item() == pytest.approx(0.001, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_each_group_may_have_its_own_limit_and_each_number_too(name: str) -> None:
    def moves(model: nn.Sequential, **limits: Any) -> tuple[list[Tensor], StepResult]:
        before, groups = copies(model), [{"params": model[index].parameters()} for index in (0, 2)]
        result = a_step(name, model=model, optimizer=torch.optim.SGD(groups, lr=1.0, fused=True), **limits)(a_batch())
        return [old - new for old, new in zip(before, copies(model), strict=True)], result

    moved, result = moves(a_model(), max_grad_norm=[0.001, math.inf])
    first, second = (result.metrics[f"grad_norm/{index}"].item() for index in range(2))
    assert math.hypot(first, second) == pytest.approx(result.grad_norm.item())
    assert math.hypot(*(each.norm().item() for each in moved[:2])) == pytest.approx(0.001, rel=1e-3) != first
    assert math.hypot(*(each.norm().item() for each in moved[2:])) == pytest.approx(second, rel=1e-3)
    moved, _ = moves(a_model(), max_grad_norm=None, max_grad_value=0.01)
    assert max(each.abs().max().item() for each in moved) == pytest.approx(0.01)


@pytest.mark.criterion("T035/AC3")
def test_scaling_rescues_gradients_that_float16_would_flush_to_zero() -> None:
    def tiny(scale: float) -> int:
        model = a_model()
        grads: list[Tensor] = []
        linear(model, 0).weight.register_hook(lambda grad: grads.append(grad))  # type: ignore[no-untyped-call]
        a_step("fp16", model=model, scaler=LossScaler("cpu", dynamic=True, init_scale=scale))(a_batch(factor=1e-7))
        return int((grads[0] == 0).sum())

    assert tiny(1.0) > 24
    assert tiny(65536.0) == 0


@pytest.mark.criterion("T035/AC3")
def test_an_overflow_skips_the_step_and_halves_the_scale() -> None:
    step = a_step("fp16")
    step(a_batch())
    before = copies(step.model)
    bad = step(a_batch(factor=INF))
    assert same(before, copies(step.model))
    good = step(a_batch(1))
    assert not same(before, copies(step.model))
    assert (bad.found_inf.item(), bad.loss_scale.item()) == (1.0, 65536.0)  # a later step changes no result
    assert (good.found_inf.item(), good.loss_scale.item()) == (0.0, 32768.0)
    assert step.scaler.read() == ScaleState(32768.0, 2, 1)


@pytest.mark.criterion("T035/AC3")
@pytest.mark.parametrize("clip", [0.3, None], ids=["clip", "no clip"])
@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_forty_steps_have_the_bits_of_the_recipe_by_hand(name: str, accumulate: int, clip: float | None) -> None:
    ours, peer = a_model(), a_model()
    step = a_step(name, model=ours, max_grad_norm=clip)
    optimizer, scaler = fused(peer), make_scaler("cpu", DTYPES[name])
    options: dict[str, Any] = {"device_type": "cpu", "dtype": DTYPES[name], "max_grad_norm": clip}
    for index in range(40):
        window = [a_batch(index * accumulate + micro) for micro in range(accumulate)]
        if name == "fp16" and index in (3, 17):  # one bad micro-batch, the last or another, skips its window once
            window[index % accumulate] = a_batch(index, factor=INF)
        step(*window)
        step_by_hand(peer, optimizer, scaler, window, squared_error, **options)
    assert same(copies(ours), copies(peer))
    moments = [
        [value for state in each.state.values() for value in state.values()] for each in (step.optimizer, optimizer)
    ]
    assert same(*moments)
    if name == "fp16":
        assert step.read() == ScaleState(scaler.get_scale(), 38, 2) == ScaleState(16384.0, 38, 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("scheduled", [False, True])
def test_a_step_with_a_fused_optimizer_reads_nothing_back(name: str, accumulate: int, scheduled: bool) -> None:
    model = a_model()
    optimizer = fused(model)
    schedule = Schedule(optimizer, lambda step: 1.0 / (1 + step), steps=9, device="cpu") if scheduled else None
    weigh = (lambda batch: len(batch[0])) if scheduled else None
    ema = Ema(model.parameters(), 0.9) if scheduled else None
    step = a_step(name, model=model, optimizer=optimizer, schedule=schedule, ema=ema, weigh=weigh)
    windows = [[a_batch(seed, factor=INF if seed == 3 else 1.0)] * accumulate for seed in range(6)]
    assert host_reads(lambda: [step(*window) for window in windows]).count == 0


@pytest.mark.criterion("T035/AC1")
def test_an_unfused_optimizer_announces_its_host_read_and_makes_it() -> None:
    model = a_model()
    with pytest.warns(UserWarning, match="AdamW is not fused"):
        step = a_step("fp16", model=model, optimizer=torch.optim.AdamW(model.parameters()))
    step(a_batch())
    before = copies(model)
    assert host_reads(lambda: step(a_batch(factor=INF))).count >= 1
    assert same(before, copies(model))


@pytest.mark.criterion("T035/AC3")
@settings(max_examples=25, deadline=None)
@given(bad=st.lists(st.booleans(), min_size=1, max_size=12), name=st.sampled_from(["fp32", "bf16"]))
def test_the_schedule_follows_applied_steps(bad: list[bool], name: str) -> None:
    model = a_model()
    optimizer = fused(model, lr=1.0)
    factors = [1.0 / (2 + step) for step in range(len(bad) + 1)]
    schedule = Schedule(optimizer, lambda step: factors[step], steps=len(factors), device="cpu")
    step = a_step(name, model=model, optimizer=optimizer, schedule=schedule)
    for index, overflow in enumerate([*bad, False]):
        applied = bad[:index].count(False)
        assert step.lr.item() == optimizer.param_groups[0]["lr"].item() == pytest.approx(factors[applied])
        step(a_batch(index, factor=INF if overflow else 1.0))


@pytest.mark.criterion("T035/AC3")
@pytest.mark.parametrize(
    ("weigh", "sizes"),
    [(None, (4, 4, 4)), (lambda b: len(b[0]), (7, 1, 4)), (lambda b: torch.tensor(len(b[0])), (7, 1, 4))],
)
@pytest.mark.parametrize("name", NAMES)
def test_accumulated_windows_equal_one_large_batch(name: str, weigh: Any, sizes: tuple[int, ...]) -> None:
    window = [a_batch(seed, rows=size) for seed, size in enumerate(sizes)]
    inputs, targets = (torch.cat([batch[index] for batch in window]) for index in (0, 1))
    one = a_step(name)((inputs, targets, torch.tensor(1.0)))

    def measured(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor | float]]:
        return squared_error(model, batch), {"rows": len(batch[0]), "first": batch[0][:1, 0]}

    several, equally = a_step(name, weigh=weigh, loss=measured)(*window), a_step(name)(*window)
    tolerance = 1e-6 if name == "fp32" else 2e-2
    assert several.metrics["rows"].item() == pytest.approx(sum(size * size for size in sizes) / 12)
    first = sum(size * batch[0][0, 0].item() for size, batch in zip(sizes, window, strict=True)) / 12
    assert several.metrics["first"].item() == pytest.approx(first)
    torch.testing.assert_close(several.loss, one.loss, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(several.grad_norm, one.grad_norm, rtol=tolerance, atol=tolerance)
    assert (abs(equally.grad_norm - one.grad_norm) > 0.05) == (weigh is not None)  # a mean of means is another thing


def test_a_window_that_weighs_nothing_is_skipped() -> None:
    step = a_step("bf16", weigh=lambda _: 0)
    before = copies(step.model)
    assert step(a_batch(), a_batch(1)).found_inf.item() == 1.0
    assert same(before, copies(step.model))


def a_step_of_two(model: nn.Sequential) -> TrainStep:
    return a_step("fp16", model=model, optimizer=[fused(model[0]), torch.optim.SGD(model[2].parameters(), fused=True)])


@pytest.mark.parametrize("name", NAMES)
def test_averages_follow_applied_steps_only(name: str) -> None:
    model = a_model()
    ema = Ema(model.parameters(), 0.5)
    expected = copies(model)
    step = a_step(name, model=model, ema=ema)
    for index, factor in enumerate((1.0, INF, 1.0)):
        before = [average.clone() for average in ema.averages]
        step(a_batch(index, factor=factor))
        if factor == INF:
            assert same(before, ema.averages)
        else:
            expected = [torch.lerp(old, new, 0.5) for old, new in zip(expected, copies(model), strict=True)]
    for average, value in zip(ema.averages, expected, strict=True):
        torch.testing.assert_close(average, value)


@pytest.mark.parametrize("name", NAMES)
def test_a_collapse_names_the_first_parameter_to_blame(name: str) -> None:
    model = a_model()
    step = a_step(name, model=model, scaler=LossScaler("cpu", dynamic=name == "fp16", max_consecutive_skips=3))
    linear(model, 2).weight.register_hook(lambda grad: grad * math.nan)  # type: ignore[no-untyped-call]
    for index in range(3):
        step(a_batch(index))
    culprit = r"the first parameter without a finite gradient is 2\.weight \(gradient norm nan\)"
    skipped = "the last 3 steps had non-finite gradients and were skipped, loss scale "
    with pytest.raises(ScaleCollapsed, match=rf"^{skipped}[^\n]*{culprit}[^\n]*$"):
        step.read()


@pytest.mark.criterion("T035/AC2")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compiled", ["nothing", "whole", "part"])
def test_the_dtype_that_ran_is_observed_once_unless_it_is_compiled(name: str, compiled: str) -> None:
    model = a_model()
    if compiled != "nothing":
        (model if compiled == "whole" else model[0]).compile(backend="eager")
    step = a_step(name, model=model)
    assert step.observed_dtypes == frozenset()
    step(a_batch())
    assert step.observed_dtypes == ({DTYPES[name]} if compiled == "nothing" else frozenset())
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.criterion("T035/AC2")
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_every_step_runs_in_autocast_and_only_the_first_is_watched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    observed, seen = MagicMock(side_effect=observation.observed_dtypes), []
    monkeypatch.setattr("amp_core.step.observed_dtypes", observed)
    step = a_step(name)
    step.model.get_submodule("0").register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))
    for _ in range(3):
        step(a_batch())
    assert seen == [DTYPES[name]] * 3
    assert observed.mock_calls == [call(step.model)]
    assert step.observed_dtypes == {DTYPES[name]}


@pytest.mark.criterion("T035/AC1")
@pytest.mark.parametrize(("given", "kept"), [(2.5, 2.5), (math.inf, None), (None, None), (0.25, 0.25)])
def test_the_limit_of_the_norm_is_kept_unless_it_limits_nothing(given: float | None, kept: float | None) -> None:
    assert a_step("fp32", max_grad_norm=given).max_grad_norm == kept


@pytest.mark.criterion("T035/AC2")
def test_a_model_that_turns_autocast_off_is_announced() -> None:
    class Stubborn(nn.Sequential):
        def forward(self, inputs: Tensor) -> Tensor:
            with torch.amp.autocast("cpu", enabled=False):
                out: Tensor = super().forward(inputs)  # type: ignore[no-untyped-call]  # torch declares no types for it
            return out

    step = a_step("bf16", model=Stubborn(*a_model()))
    with pytest.warns(UserWarning, match=r"^bf16 was asked for, but every linear .* computed in torch.float32: "):
        step(a_batch())


@pytest.mark.parametrize("name", NAMES)
def test_sparse_gradients_are_clipped_and_stepped(name: str) -> None:
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters())
    with pytest.warns(UserWarning, match="SparseAdam is not fused"):
        loss = lambda m, batch: m(batch[0]).square().sum()  # noqa: E731
        step = a_step(name, model=model, optimizer=optimizer, loss=loss, max_grad_norm=0.1)
    before = copies(model)
    assert step((torch.tensor([1, 1, 2]),)).grad_norm.item() > 0.1
    assert not same(before, copies(model))


def scheduled_step(name: str, seed: int) -> TrainStep:
    model = a_model(seed).to(torch.bfloat16 if name == "bf16 parameters" else torch.float32)
    name = name.removesuffix(" parameters")
    optimizer = fused(model)
    schedule = Schedule(optimizer, lambda step: 1.0 / (1 + step), steps=20, device="cpu")
    scaler, ema = LossScaler("cpu", dynamic=name == "fp16", growth_interval=3), Ema(model.parameters(), 0.9)
    return a_step(name, model=model, optimizer=optimizer, schedule=schedule, ema=ema, scaler=scaler)


@pytest.mark.parametrize("at", [1, 4, 8])
@pytest.mark.parametrize("name", [*NAMES, "bf16 parameters"])
def test_a_restored_step_goes_on_bit_for_bit(name: str, at: int, tmp_path: Path) -> None:
    def run(step: TrainStep, first: int, last: int) -> None:
        for index in range(first, last):
            step(a_batch(index, factor=INF if index in (2, 6) else 1.0), a_batch(index + 100))

    through, begun, resumed = scheduled_step(name, 1), scheduled_step(name, 1), scheduled_step(name, 2)
    run(through, 0, 12)
    run(begun, 0, at)
    checkpoint.save(tmp_path / "state.pt", begun.state_dict())
    state = checkpoint.load(tmp_path / "state.pt")
    for _ in range(2):  # a state that was loaded is not what is trained on
        resumed.load_state_dict(state)
        run(resumed, at, 12)
    assert same(copies(through.model), copies(resumed.model))
    assert through.ema and resumed.ema and same(through.ema.averages, resumed.ema.averages)
    assert through.lr.item() == resumed.lr.item()
    assert through.scaler.state_dict() == resumed.scaler.state_dict()
    assert {average.dtype for average in resumed.ema.averages} == {torch.float32}


@pytest.mark.parametrize("old", NAMES)
@pytest.mark.parametrize("new", NAMES)
def test_a_state_of_one_precision_goes_on_in_another(old: str, new: str) -> None:
    begun, resumed = scheduled_step(old, 1), scheduled_step(new, 2)
    for index in range(4):
        begun(a_batch(index, factor=INF if index == 1 else 1.0))
    resumed.load_state_dict(begun.state_dict())
    assert same(copies(begun.model), copies(resumed.model))
    state = resumed.scaler.read()
    assert (state.applied, state.skipped) == (3, 1)
    if new != "fp16":
        assert state.scale == 1.0
    elif old != "fp16":
        assert state.scale == 65536.0  # a static scaler's 1 would flush gradients to zero
    assert resumed(a_batch(9)).found_inf.item() == 0.0
    assert resumed.observed_dtypes == {DTYPES[new]}


def test_a_state_of_another_step_is_refused_and_changes_nothing() -> None:
    step, model = a_step("fp16"), a_model()
    before = copies(step.model)
    shorter, wider = nn.Sequential(nn.Linear(6, 2)), nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2))
    for other, message in (
        (a_step("fp16", model=wider), r".*another model: '0.weight' is torch.float32 of shape \(9, 6\), expected"),
        (a_step("fp16", model=shorter), ".*another model: it lacks '2.bias' and 1 more: build the model"),
        (a_step_of_two(a_model()), "the checkpoint is of AdamW, SGD, expected AdamW: build that optimizer$"),
        (a_step(model=model, optimizer=moving_sgd(model)), "the checkpoint is of SGD, expected AdamW: build that"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            step.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match=r"^a step's state needs ema, model, optimizers, scaler, found \['step'\]"):
        step.load_state_dict({"step": step.state_dict()})
    with pytest.raises(ValueError, match=r"^this is the state of a model: load it with model.load_state_dict, before"):
        step.load_state_dict(model.state_dict())
    assert same(before, copies(step.model))


def moving_sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True, **options)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_skipped_first_step_leaves_the_bits_of_a_run_without_it(name: str, nesterov: bool) -> None:
    with_skip, without = a_model(), a_model()
    one, other = (
        a_step(
            name,
            model=model,
            optimizer=moving_sgd(model, nesterov=nesterov),
            scaler=LossScaler("cpu", dynamic=name == "fp16", init_scale=1024.0 * scale),
        )
        for model, scale in ((with_skip, 2.0), (without, 1.0))
    )
    assert one(a_batch(factor=INF)).found_inf.item() == 1.0
    for index in range(4):
        one(a_batch(index))
        other(a_batch(index))
    assert same(copies(with_skip), copies(without))


@pytest.mark.parametrize("later", ["unfrozen", "added"])
@pytest.mark.parametrize("name", NAMES)
def test_parameters_that_come_later_are_guarded_and_clipped(name: str, later: str) -> None:
    model = a_model()
    linear(model, 0).requires_grad_(later != "unfrozen")
    optimizer = torch.optim.AdamW((model if later == "unfrozen" else model[2]).parameters(), lr=0.05, fused=True)
    step = a_step(name, model=model, optimizer=optimizer)
    step(a_batch())
    linear(model, 0).requires_grad_(True)
    if later == "added":
        optimizer.add_param_group({"params": list(model[0].parameters())})
    handle = linear(model, 0).weight.register_hook(lambda grad: grad * INF)  # type: ignore[no-untyped-call]
    assert step(a_batch(1)).found_inf.item() == 1.0
    handle.remove()
    before = copies(model)
    step.max_grad_norm = 1e-9
    assert step(a_batch(2)).grad_norm.item() > 0.01
    assert not same(before, copies(model))
    assert all(param.isfinite().all() for param in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_an_error_inside_the_optimizer_does_not_end_the_step_s_life(name: str) -> None:
    step = a_step(name)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    handle = step.optimizer.register_step_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        step(a_batch())
    handle.remove()
    assert step(a_batch()).found_inf.item() == 0.0
    assert step.read().applied == 1


def test_averages_may_be_swapped_in_twice_and_no_step_is_taken_meanwhile() -> None:
    model = a_model()
    step = a_step("fp32", model=model, ema=Ema(model.parameters(), 0.5))
    step(a_batch())
    trained = copies(model)
    with step.with_averages(), step.with_averages():
        assert not same(trained, copies(model))
        with pytest.raises(RuntimeError, match=r"holds its averages now: leave with_averages\(\) before the next step"):
            step(a_batch())
        with pytest.raises(RuntimeError, match="before saving"):
            step.state_dict()
    assert same(trained, copies(model))


def test_averages_that_a_checkpoint_lacks_begin_at_its_parameters() -> None:
    model = a_model()
    with torch.no_grad():
        linear(model, 0).weight.add_(1.0)
    step = a_step("fp32", model=model, ema=Ema(model.parameters(), 0.5))
    with pytest.warns(UserWarning, match="the checkpoint has no averages: they begin at its parameters"):
        step.load_state_dict(a_step("fp32").state_dict())
    assert step.ema and same(step.ema.averages, copies(model))
    with pytest.warns(UserWarning, match="they are left out"):
        a_step("fp32").load_state_dict(step.state_dict())


def test_float64_models_train_too() -> None:
    model = a_model().double()
    step = a_step("fp32", model=model)
    batch = tuple(tensor.double() for tensor in a_batch())
    before = copies(model)
    assert step(batch).found_inf.item() == 0.0
    assert not same(before, copies(model))


def half(model: nn.Sequential) -> nn.Sequential:
    model[2].half()
    return model


def grown(second: nn.Module, **options: Any) -> object:
    """Take a step after the optimizer has got a second parameter group."""
    step = a_step(optimizer=(optimizer := fused(model := a_model())), model=model, **options)
    step.schedule = Schedule(optimizer, lambda _: 1.0, steps=1) if not options else None
    optimizer.add_param_group({"params": second.parameters()})
    return step(a_batch())


REFUSED: dict[str, Callable[[nn.Sequential], object]] = {
    r"parameter 2.weight is torch.float16, expected torch.float32: [^\n]+$": lambda model: a_step(model=half(model)),
    r"LBFGS needs a closure[^\n]+AdamW[^\n]+$": lambda m: a_step(model=m, optimizer=torch.optim.LBFGS(m.parameters())),
    r"the optimizer has no trainable parameter: [^\n]+$": lambda model: a_step(model=model.requires_grad_(False)),
    r"max_grad_norm must be a positive number or None \(no clipping\), found 0.0": lambda _: a_step(max_grad_norm=0.0),
    r"max_grad_norm has 1 limits for 2 parameter groups: give each one its own$": lambda other: grown(
        other, max_grad_norm=[1.0]
    ),
    r"the schedule was made for 1 parameter groups, found 2: make it after the last add_param_group$": grown,
    r"parameter of another model is torch.float16": lambda other: grown(other.half(), max_grad_norm=1.0),
    r"max_grad_value must be positive, with max_grad_norm=None, found 1.0$": lambda _: a_step(max_grad_value=1.0),
    r"parameter 0.weight is torch.bfloat16, expected torch.float32: [^\n]+$": lambda m: a_step(model=m.bfloat16()),
    r"a step needs at least one batch, found none: is the loader empty\?$": lambda _: a_step()(),
    r"two optimizers share a parameter: [^\n]+$": lambda model: a_step(model=model, optimizer=[fused(model)] * 2),
    "the optimizer holds no parameter of the model": lambda other: a_step(optimizer=fused(other)),
    "the averages hold no parameter of the model": lambda other: a_step(ema=Ema(other.parameters(), 0.5)),
    "the scaler must be an amp_core.LossScaler, found GradScaler": lambda _: a_step(scaler=torch.amp.GradScaler("cpu")),
    "the schedule is of other optimizers": lambda other: a_step(
        schedule=Schedule(fused(other), lambda _: 1.0, steps=1, device="cpu")
    ),
    "fp16 needs a scaler that scales": lambda _: a_step(scaler=LossScaler("cpu", dynamic=False)),
    "fused SGD with dampening=0.5 loses its momentum": lambda model: a_step(
        model=model, optimizer=moving_sgd(model, dampening=0.5)
    )(a_batch()),
}


@pytest.mark.criterion("T035/AC1")
@pytest.mark.parametrize("message", REFUSED)
def test_what_no_step_can_be_made_of_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        REFUSED[message](a_model())


def test_parameters_that_no_checkpoint_will_have_are_counted() -> None:
    both = nn.ModuleList([model := a_model(), nn.Linear(1, 1)])
    with pytest.warns(UserWarning, match="^2 parameters of the optimizer are not the model's: no checkpoint has them$"):
        a_step(model=model, optimizer=fused(both))


@pytest.mark.criterion("T035/AC2")
def test_what_is_no_loss_or_no_precision_is_refused() -> None:
    step = a_step("fp32")
    step.loss_fn = lambda model, batch: model(batch[0])
    with pytest.raises(ValueError, match=r"^loss_fn must return one number, a scalar tensor, or .* shape \(5, 2\)$"):
        step(a_batch())
    step.loss_fn = lambda model, batch: (squared_error(model, batch), {"each": batch[0][0]})
    with pytest.raises(ValueError, match=r"^the metric 'each' must be one number, found a tensor of shape \(6,\)$"):
        step(a_batch())
    step.loss_fn = lambda model, batch: (squared_error(model, batch), {str(batch[2].item()): 1.0})
    with pytest.raises(ValueError, match=r"must have the same metrics, found \['1.0'\] and \['2.0'\]$"):
        step(a_batch(), a_batch(factor=2.0))
    step.loss_fn = lambda model, batch: (squared_error(model, batch), batch[0])  # type: ignore[assignment, return-value]
    with pytest.raises(ValueError, match=r"or that and a mapping of metrics, found .* shape \(\) and a Tensor$"):
        step(a_batch())
    with pytest.raises(ValueError, match=r"^precision must be a name such as 'bf16', .* found 3.5$"):
        TrainStep(step.model, step.optimizer, 3.5, squared_error)  # type: ignore[arg-type]


def test_a_micro_batch_without_targets_costs_nothing_but_itself() -> None:
    def targets(*values: int) -> Batch:
        return torch.ones(len(values), 6), torch.tensor(values)

    options: dict[str, Any] = {"loss": lambda m, batch: nn.functional.cross_entropy(m(batch[0]).float(), batch[1])}
    step, alone = a_step("bf16", weigh=lambda batch: (batch[1] != -100).sum(), **options), a_step("bf16", **options)
    assert torch.equal(step(targets(1, 0), targets(-100, -100)).loss, alone(targets(1, 0)).loss)
    assert same(copies(step.model), copies(alone.model))


def test_what_is_no_batch_is_refused_at_every_call() -> None:
    step = a_step("fp32")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^a batch is a tuple of tensors, found a tensor of shape \(5, 6\)"):
            step(*a_batch()[:2])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^a batch is empty: its first tensor has shape \(0, 6\)"):
            step(a_batch(), a_batch(rows=0))
        with pytest.raises(ValueError, match=r"^a batch is empty: its first tensor has shape \(0, 6\)"):
            step({"inputs": torch.zeros(0, 6)})  # type: ignore[arg-type]
        step(a_batch())
    assert step.read().applied == 2


def test_what_comes_later_is_averaged_and_put_back_from_then_on() -> None:
    model = a_model()
    first, second = linear(model, 0), linear(model, 2)
    step = a_step("fp32", model=model, optimizer=fused(first), ema=Ema(first.parameters(), 0.5))
    step(a_batch())
    before = second.weight.detach().clone()
    model[1] = norm = nn.BatchNorm1d(8)
    step.optimizer.add_param_group({"params": [*second.parameters(), *norm.parameters()]})
    step(a_batch())
    expected = (before + second.weight.detach()) / 2
    with step.with_averages():
        torch.testing.assert_close(second.weight.detach(), expected)
    statistics = norm.state_dict()["running_var"].clone()
    step(a_batch(1, factor=INF))
    assert torch.equal(norm.state_dict()["running_var"], statistics)


def test_a_learning_rate_that_the_user_sets_is_reported_on_the_device() -> None:
    step = a_step("fp32")
    assert step(a_batch()).lr.item() == pytest.approx(0.05)
    step.optimizer.param_groups[0]["lr"] = 0.01
    assert step(a_batch()).lr.item() == pytest.approx(0.01)
    model = a_model().to("meta")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = torch.tensor(0.1)
    with pytest.warns(UserWarning, match="is not fused"):
        assert TrainStep(model, optimizer, "fp32", squared_error).lr.device == torch.device("meta")
