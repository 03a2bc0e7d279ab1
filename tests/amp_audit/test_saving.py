"""Tests of the bytes that are saved for the backward pass."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint

from amp_audit import saved_bytes

ROWS, WIDTH = 6, 5


def test_activations_count_once_and_parameters_not_at_all() -> None:
    layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    inputs = torch.ones(ROWS, WIDTH)
    peak = saved_bytes(lambda: layers(inputs).sum().backward())
    assert peak.bytes == 2 * ROWS * WIDTH * 4  # the input, and tanh's output, which two operators save
    assert peak.by_dtype == ((torch.float32, peak.bytes),)


def test_autocasts_copies_of_the_weights_count() -> None:
    layer, inputs = nn.Linear(WIDTH, WIDTH), torch.ones(ROWS, WIDTH, requires_grad=True)

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = layer(inputs).square()
        out.sum().backward()

    half = (ROWS * WIDTH + WIDTH * WIDTH + ROWS * WIDTH) * 2  # input, weight, output
    assert saved_bytes(step).by_dtype == ((torch.bfloat16, half),)


def test_micro_batches_one_after_the_other_do_not_add_up() -> None:
    layer, inputs = nn.Linear(WIDTH, WIDTH), torch.ones(ROWS, WIDTH)

    def one() -> None:
        layer(inputs).exp().sum().backward()

    def three() -> None:
        for _ in range(3):
            one()

    assert saved_bytes(three) == saved_bytes(one)


def test_checkpointing_saves_less() -> None:
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(6)))
    inputs = torch.ones(ROWS, WIDTH, requires_grad=True)
    whole = saved_bytes(lambda: layers(inputs).sum().backward())
    assert saved_bytes(lambda: checkpoint(layers, inputs, use_reentrant=False).sum()).bytes < 0.4 * whole.bytes


def test_hooks_of_the_users_own_keep_working_and_ours_are_gone_after_an_error() -> None:
    seen = []

    def step() -> None:
        value = torch.ones(2, requires_grad=True)
        with save_on_cpu():
            out = value.exp()
        out.sum().backward()  # type: ignore[no-untyped-call]
        seen.append(value.grad)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        saved_bytes(step)
    (grad,) = seen
    assert grad is not None
    assert torch.equal(grad, torch.ones(2).exp())
    assert torch._C._autograd._top_saved_tensors_default_hooks(False) is None
