"""Tests of the gradients' errors against float64."""

from typing import Any

import pytest
import torch
from products import rounding, settable
from torch import Tensor, nn
from torch.nn import functional

from amp_audit import GradientError, gradient_integrity
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import precision_for

GPT_CONFIG = GPTConfig(vocab_size=32, context=8, layers=2, heads=2, width=16)
TOKENS = (torch.randint(32, (4, 9), generator=torch.Generator().manual_seed(2)),)


def a_gpt(**options: Any) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(**{**vars(GPT_CONFIG), **options}))


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize(("name", "least", "most"), [("fp32", 0.0, 1e-5), ("fp16", 1e-5, 5e-3), ("bf16", 1e-4, 4e-2)])
def test_the_error_is_that_of_the_precision(name: str, least: float, most: float, lean: bool) -> None:
    model = a_gpt(lean=lean)
    model.head.weight.grad = torch.full_like(model.head.weight, 1e3)  # a leftover, which must not count
    found = gradient_integrity(model, TOKENS, next_token_loss, precision_for(name, "cpu"))
    assert least < found.total.relative_error < most
    assert 1.0 - most**2 < found.total.cosine <= 1.0 + 1e-12
    assert [each.name for each in found.parameters] == [key for key, _ in model.named_parameters()]
    assert found.total.size == sum(parameter.numel() for parameter in model.parameters())
    assert found.total.non_finite == 0.0


def small_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    return functional.mse_loss(model(batch[0]).float(), batch[1].to(torch.float32)) * 1e-5


def test_without_a_loss_scale_float16_flushes_gradients_to_zero_and_with_one_it_does_not() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))
    batch, fp16 = (torch.randn(64, 32), torch.randn(64, 4)), precision_for("fp16", "cpu")
    unscaled = gradient_integrity(model, batch, small_loss, fp16, loss_scale=1.0).total
    scaled = gradient_integrity(model, batch, small_loss, fp16).total
    assert unscaled.flushed > 0.05
    assert scaled.flushed == 0.0
    assert scaled.relative_error < 0.1 * unscaled.relative_error


def test_an_overflow_is_a_share_and_an_infinite_error() -> None:
    found = gradient_integrity(a_gpt(), TOKENS, next_token_loss, precision_for("fp16", "cpu"), loss_scale=2.0**40)
    assert 0.0 < found.total.non_finite <= 1.0
    assert (found.total.relative_error, found.total.cosine) == (float("inf"), 0.0)


class Wrong(torch.autograd.Function):
    """The identity with a gradient of the wrong sign in float32, and the right one in float64."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad if grad.dtype == torch.float64 else -grad


def test_a_wrong_gradient_is_found_out_by_parameter() -> None:
    model = nn.Linear(3, 2)

    def loss(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        weight, bias = module.parameters()
        total: Tensor = Wrong.apply(functional.linear(batch[0], weight)).sum() + bias.sum()  # type: ignore[no-untyped-call]
        return total

    weight, bias = gradient_integrity(model, (torch.ones(4, 3),), loss, precision_for("fp32", "cpu")).parameters
    assert weight.cosine == pytest.approx(-1.0)
    assert weight == GradientError("weight", 6, 2.0, weight.cosine, flushed=0.0, non_finite=0.0)
    assert bias.cosine == pytest.approx(1.0)
    assert bias == GradientError("bias", 2, 0.0, bias.cosine, flushed=0.0, non_finite=0.0)


def test_a_gradient_that_is_flushed_whole_and_one_that_is_zero_have_a_meaning() -> None:

    def loss(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        weight, bias = module.parameters()
        return (functional.linear(batch[0], weight) * 1e-12).sum() + (bias * 0.0).sum()

    fp16 = precision_for("fp16", "cpu")
    weight, bias = gradient_integrity(nn.Linear(2, 1), (torch.ones(3, 2),), loss, fp16, loss_scale=1.0).parameters
    assert weight == GradientError("weight", 2, relative_error=1.0, cosine=0.0, flushed=1.0, non_finite=0.0)
    assert bias == GradientError("bias", 1, relative_error=0.0, cosine=1.0, flushed=0.0, non_finite=0.0)


@settable
def test_tf32_is_measured_with_its_own_matrix_products_and_the_setting_is_put_back() -> None:
    settings = []
    before = rounding()

    def loss(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        settings.append(rounding())
        total: Tensor = module(batch[0]).sum()
        return total

    gradient_integrity(nn.Linear(2, 1), (torch.ones(3, 2),), loss, precision_for("tf32", "cpu"))
    assert settings == [before, "tf32"]
    assert rounding() == before


def test_model_gradients_buffers_and_random_state_stay_as_they_are() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model[0].weight.grad = torch.full((4, 4), 3.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    gradient_integrity(
        model,
        (torch.randn(8, 4, generator=torch.Generator()),),
        lambda m, b: m(b[0]).mean(),
        precision_for("bf16", "cpu"),
    )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model[0].weight.grad, torch.full((4, 4), 3.0))
    assert model[3].weight.grad is None


@pytest.mark.parametrize(
    ("frozen", "scale", "message"),
    [(False, 0.0, "loss_scale must be above 0, found 0.0"), (True, None, "no parameter got a gradient")],
)
def test_what_cannot_be_measured_is_refused(frozen: bool, scale: float | None, message: str) -> None:
    model, batch = nn.Linear(1, 1).requires_grad_(not frozen), (torch.ones(1, 1, requires_grad=True),)
    fp32 = precision_for("fp32", "cpu")
    with pytest.raises(ValueError, match=message):
        gradient_integrity(model, batch, lambda m, b: m(b[0]).sum(), fp32, loss_scale=scale)
