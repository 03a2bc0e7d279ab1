"""Tests of the loss head in chunks, beside the plain head."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from amp_audit import Phase, dtypes, saved_bytes
from amp_core.loss import chunked_cross_entropy

ROWS, WIDTH, VOCAB = 22, 16, 40
HALF = [torch.bfloat16, torch.float16]


def leaves(dtype: torch.dtype = torch.float32, *, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return hidden states (2, 11, 16), a head's weight (40, 16) and targets, every fifth of them ignored."""
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(2, ROWS // 2, WIDTH, generator=generator, dtype=torch.float64) * spread
    weight = torch.randn(VOCAB, WIDTH, generator=generator, dtype=torch.float64)
    targets = torch.randint(VOCAB, (ROWS,), generator=generator)
    targets[::5] = -100
    return hidden.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_(), targets.view(2, -1)


def plain(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    logits = functional.linear(hidden, weight)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(wide.flatten(0, -2), targets.flatten())


def chunked(hidden: Tensor, weight: Tensor, targets: Tensor, chunk: int = 4) -> Tensor:
    return chunked_cross_entropy(hidden, weight, targets, chunk=chunk)


def gradients(head: Any, dtype: torch.dtype, *, scale: float = 1.0, spread: float = 1.0) -> tuple[Tensor, ...]:
    """Return loss, gradient of hidden and gradient of weight; for 16 bit under autocast, with a loss scale."""
    hidden, weight, targets = leaves(torch.float64 if dtype == torch.float64 else torch.float32, spread=spread)
    with torch.autocast("cpu", dtype=dtype if dtype in HALF else None, enabled=dtype in HALF):
        loss = head(hidden, weight, targets)
    of_hidden, of_weight = torch.autograd.grad(loss * scale, (hidden, weight))
    return loss.detach(), of_hidden / scale, of_weight / scale


def test_the_gradients_are_those_of_finite_differences() -> None:
    hidden, weight, targets = leaves(torch.float64)
    few = hidden[..., :6].detach().requires_grad_(), weight[:, :6].detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda hidden, weight: chunked(hidden, weight, targets), few)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("chunk", [1, 4, 1000])
def test_it_equals_the_plain_head(dtype: torch.dtype, chunk: int) -> None:
    ours = gradients(lambda hidden, weight, targets: chunked(hidden, weight, targets, chunk), dtype)
    torch.testing.assert_close(ours, gradients(plain, dtype))
    assert ours[0].dtype == dtype


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("scale", [1.0, 2.0**10])
def test_under_autocast_it_is_as_near_to_float64_as_the_plain_head(dtype: torch.dtype, scale: float) -> None:
    exact = gradients(plain, torch.float64)
    ours, theirs = (gradients(head, dtype, scale=scale) for head in (chunked, plain))
    assert ours[0].dtype == torch.float32
    for mine, other, true in zip(ours, theirs, exact, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - true).norm() <= 1.05 * (other - true).norm() + 1e-7
        assert (mine - true).norm() <= 0.02 * true.norm()


def test_the_weights_gradient_is_summed_in_float32() -> None:
    """In bfloat16 a sum of 512 equal parts would stop growing at 256 of them."""
    hidden, weight = torch.ones(512, 1, dtype=torch.bfloat16), torch.zeros(2, 1, requires_grad=True)
    chunked(hidden, weight, torch.zeros(512, dtype=torch.int64), chunk=1).backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None and weight.grad.flatten().tolist() == pytest.approx([-0.5, 0.5])


def test_an_overflow_of_float16_reaches_both_gradients() -> None:
    _, hidden, weight = gradients(chunked, torch.float16, scale=2.0**24)
    assert not hidden.isfinite().all()
    assert not weight.isfinite().all()


def test_an_overflow_of_the_weights_product_alone_reaches_its_gradient() -> None:
    """Each row's part fits into float16, and their sum does not."""
    hidden, weight = torch.full((ROWS, 2), 8.0, requires_grad=True), torch.zeros(VOCAB, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = chunked(hidden, weight, torch.zeros(ROWS, dtype=torch.int64), ROWS)
    of_hidden, of_weight = torch.autograd.grad(loss * 2.0**15, (hidden, weight))
    assert of_hidden.isfinite().all()
    assert of_weight[0].isinf().all()


def test_an_overflow_of_the_logits_shows_in_loss_and_gradients() -> None:
    assert not any(bool(each.isfinite().all()) for each in gradients(chunked, torch.float16, spread=3e4))


def test_only_kept_targets_count() -> None:
    hidden, weight, targets = leaves()
    kept = targets.flatten() != -100
    expected = plain(hidden.flatten(0, 1)[kept], weight, targets.flatten()[kept])
    torch.testing.assert_close(chunked(hidden, weight, targets), expected)
    sevens, logits = targets.where(targets != -100, 7), (hidden @ weight.T).flatten(0, 1)
    ours = chunked_cross_entropy(hidden, weight, sevens, chunk=4, ignore_index=7)
    torch.testing.assert_close(ours, functional.cross_entropy(logits, sevens.flatten(), ignore_index=7))
    assert chunked(hidden, weight, torch.full_like(targets, -100)).isnan()  # as plain does


def test_two_uses_in_one_graph_and_two_backward_passes_add_up() -> None:
    hidden, weight, targets = leaves()
    both = chunked(hidden, weight, targets) + chunked(hidden * 2.0, weight, targets, chunk=5)
    both.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    both.backward()  # type: ignore[no-untyped-call]
    again, head, _ = leaves()
    (2.0 * (plain(again, head, targets) + plain(again * 2.0, head, targets))).backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close((hidden.grad, weight.grad), (again.grad, head.grad))


def test_a_backward_pass_inside_autocast_computes_the_same() -> None:
    hidden, weight, targets = leaves()
    loss = chunked(hidden, weight, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss.backward()  # type: ignore[no-untyped-call]
    expected = gradients(chunked, torch.float32)
    assert torch.equal(torch.stack([loss.detach()]), torch.stack([expected[0]]))
    assert hidden.grad is not None and torch.equal(hidden.grad, expected[1])


def test_a_frozen_head_gets_no_gradient_and_costs_no_product_for_it() -> None:
    hidden, weight, targets = leaves()
    weight.requires_grad_(False)
    found = dtypes(lambda: chunked(hidden, weight, targets, ROWS).backward())  # type: ignore[no-untyped-call]
    assert weight.grad is None
    assert hidden.grad is not None
    torch.testing.assert_close(hidden.grad, gradients(plain, torch.float32)[1])
    assert found.matmuls(Phase.BACKWARD) == {torch.float32: 2}


def test_nothing_as_large_as_the_logits_is_saved() -> None:
    hidden, weight, targets = leaves()
    logits = ROWS * VOCAB * 4
    assert saved_bytes(lambda: plain(hidden, weight, targets)).bytes > logits
    parts = hidden.numel() * 4 + weight.numel() * 4 + ROWS * (8 + 1 + 4)
    assert saved_bytes(lambda: chunked(hidden, weight, targets)).bytes == parts


@pytest.mark.parametrize(
    ("shapes", "chunk", "message"),
    [
        (((4, 8), (5, 8), (4,)), 0, "chunk must be at least 1 row, found 0"),
        (((4, 8), (5, 7), (4,)), 2, r"head_weight \(vocab, width\) .* found \(4, 8\), \(5, 7\) and \(4,\)"),
        (((4, 8), (5, 8), (3,)), 2, r"found \(4, 8\), \(5, 8\) and \(3,\)"),
        (((8,), (5, 8), ()), 2, r"expected hidden \(\.\.\., width\)"),
    ],
)
def test_what_does_not_fit_is_refused(shapes: Any, chunk: int, message: str) -> None:
    hidden, weight, targets = shapes
    with pytest.raises(ValueError, match=message):
        chunked(torch.zeros(hidden), torch.zeros(weight), torch.zeros(targets, dtype=torch.int64), chunk)


def test_a_target_outside_of_the_vocabulary_is_an_error() -> None:
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        chunked(torch.zeros(2, 3), torch.zeros(5, 3), torch.tensor([0, 5]))
