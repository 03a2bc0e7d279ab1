"""Tests of the small GPT."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amp_audit import Peak, cuda_autocast, saved_bytes
from amp_core import model as model_module
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler
from amp_core.step import TrainStep

CONFIG = GPTConfig(vocab_size=11, context=8, layers=2, heads=2, width=12)


def a_gpt(**changes: Any) -> GPT:
    torch.manual_seed(0)
    return GPT(dataclasses.replace(CONFIG, **changes))


def some_tokens(sequences: int = 4) -> Tensor:
    return torch.randint(11, (sequences, 9), generator=torch.Generator().manual_seed(1))


def test_no_position_sees_the_future() -> None:
    model, tokens = a_gpt(), torch.arange(8).unsqueeze(0)
    changed = tokens.clone()
    changed[0, 5] = 10
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.equal(before[0, 5:], after[0, 5:])


def test_an_untrained_model_has_the_loss_of_a_guess_in_float32() -> None:
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        loss = next_token_loss(a_gpt(), (torch.randint(11, (64, 9), generator=torch.Generator().manual_seed(1)),))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(math.log(11), rel=0.02)


def test_the_loss_scores_the_token_after_each_position() -> None:
    class Successor(torch.nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot((tokens + 1) % 11, 11) * 50.0

    counting = torch.arange(9).unsqueeze(0)
    assert next_token_loss(Successor(), (counting,)).item() < 1e-6
    assert next_token_loss(Successor(), (counting.flip(1),)).item() > 40.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 5}, "width must be a multiple of heads, found width 12 and 5 heads"),
        ({"layers": 0}, "layers must be at least 1, found 0"),
    ],
)
def test_shapes_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    shape = {"vocab_size": 11, "context": 8, "layers": 2, "heads": 2, "width": 12} | change
    with pytest.raises(ValueError, match=message):
        GPTConfig(**shape)


def test_the_options_change_no_weight_and_are_off_unless_asked_for() -> None:
    plain, lean = a_gpt().state_dict(), a_gpt(lean=True).state_dict()
    assert (CONFIG.lean, CONFIG.tied) == (False, False)
    assert str(CONFIG) == "GPT width=12 layers=2 heads=2 context=8 vocab=11"
    assert str(dataclasses.replace(CONFIG, lean=True, tied=True)) == f"{CONFIG} lean tied"
    assert list(plain) == list(lean)
    assert all(torch.equal(plain[name], lean[name]) for name in plain)


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_a_lean_model_has_the_loss_and_gradients_of_a_plain_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "LOSS_CHUNK", 5)  # several chunks, the last one ragged
    found = []
    for lean in (False, True):
        model = a_gpt(lean=lean)
        with precision_for(name, "cpu").autocast():
            loss = next_token_loss(model, (some_tokens(),))
        loss.backward()  # type: ignore[no-untyped-call]
        grads = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
        found.append((loss.detach(), torch.cat(grads)))
    (loss, grad), (lean_loss, lean_grad) = found
    assert lean_loss.dtype == torch.float32
    assert lean_loss.item() == pytest.approx(loss.item(), rel={"fp32": 1e-6, "bf16": 2e-3, "fp16": 3e-4}[name])
    assert (lean_grad - grad).norm() <= {"fp32": 1e-5, "bf16": 2e-2, "fp16": 3e-3}[name] * grad.norm()


@pytest.mark.parametrize(("lean", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_the_residual_stream_of_a_lean_model_is_in_16_bit(lean: bool, dtype: torch.dtype) -> None:
    model, seen = a_gpt(lean=lean), set()
    for block in model.blocks:
        block.register_forward_hook(lambda _module, _inputs, output: seen.add(output.dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(some_tokens()[:, :-1])
    assert seen == {dtype}
    assert logits.dtype == torch.bfloat16
    assert model(some_tokens()[:, :-1]).dtype == torch.float32


def what_is_saved(name: str, *, lean: bool) -> Peak:
    model = GPT(GPTConfig(vocab_size=512, context=32, layers=2, heads=2, width=32, lean=lean))
    with cuda_autocast(), precision_for(name, "cpu").autocast():
        return saved_bytes(lambda: next_token_loss(model, (torch.zeros(4, 33, dtype=torch.int64),)))


def test_a_lean_model_saves_less_than_half_of_what_float32_saves_and_next_to_nothing_in_float32() -> None:
    lean = what_is_saved("bf16", lean=True)
    assert lean.bytes < 0.5 * what_is_saved("fp32", lean=False).bytes
    assert lean.bytes < 0.6 * what_is_saved("bf16", lean=False).bytes
    assert dict(lean.by_dtype)[torch.float32] < 0.05 * lean.bytes


def test_a_lean_model_skips_an_overflow_and_learns_from_the_rest() -> None:
    model = a_gpt(lean=True)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    scaler = LossScaler("cpu", dynamic=True, init_scale=2.0**24, max_scale=2.0**24)
    step = TrainStep(model, optimizer, precision_for("fp16", "cpu"), next_token_loss, scaler=scaler)
    batch = (some_tokens(),)
    results = [step(batch)]
    assert (results[0].found_inf.item(), scaler.read().scale) == (1.0, 2.0**23)
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    results += [step(batch) for _ in range(40)]
    assert results[-1].found_inf.item() == 0.0
    assert results[-1].loss.item() < 0.7 * results[0].loss.item()


def test_a_tied_head_is_the_token_embedding() -> None:
    tied, untied = a_gpt(tied=True), a_gpt()
    assert tied.head.weight is tied.tokens.weight
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in (tied, untied)]
    assert sizes[1] - sizes[0] == 11 * 12
    for lean in (False, True):
        model = a_gpt(tied=True, lean=lean)
        next_token_loss(model, (some_tokens(),)).backward()  # type: ignore[no-untyped-call]
        assert model.tokens.weight.grad is not None and model.tokens.weight.grad.norm() > 0.0


def test_a_wrapped_lean_model_is_run_through_its_wrapper() -> None:
    """As DistributedDataParallel, whose own forward must run."""
    calls: list[str] = []
    wrapper = nn.DataParallel(a_gpt(lean=True))
    wrapper.register_forward_hook(lambda *_: calls.append("forward"))
    loss = next_token_loss(wrapper, (some_tokens(),))
    assert (loss.shape, calls) == ((), ["forward"])
    assert loss.item() == next_token_loss(a_gpt(lean=True), (some_tokens(),)).item()
