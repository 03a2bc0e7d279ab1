"""Tests that every probe leaves training as it is: the same bits with it as without."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from amp_audit import Loop, dtypes, gradient_integrity, host_reads, predict_peak, saved_bytes
from amp_core.model import next_token_loss
from amp_core.precision import precision_for


def integrity(loop: Loop) -> object:
    tokens = torch.zeros(2, 9, dtype=torch.int64)
    gradient_integrity(loop.model, (tokens,), next_token_loss, precision_for("bf16", "cpu"))
    return loop()


def prediction(loop: Loop) -> object:
    def make() -> Callable[[], object]:
        layer = torch.nn.Linear(4, 4)
        return lambda: layer(torch.randn(2, 4)).sum().backward()

    predict_peak(make, like_cuda=True)
    return loop()


def final_state(loop: Loop) -> list[Tensor]:
    (optimizer,) = loop.optimizers
    states = [value for state in optimizer.state_dict()["state"].values() for value in state.values()]
    return [*(each.detach() for each in loop.model.parameters()), *states, torch.get_rng_state()]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("probe", [host_reads, dtypes, saved_bytes, integrity, prediction])
def test_training_goes_on_with_the_same_bits(probe: Callable[[Loop], object], precision: str, make_loop: Any) -> None:
    finals = []
    for take in (Loop.__call__, probe):
        loop = make_loop(precision, lean=True)
        loop()
        take(loop)
        loop()
        finals.append(final_state(loop))
    assert all(torch.equal(one, other) for one, other in zip(*finals, strict=True))
    assert _get_current_dispatch_mode_stack() == []


@pytest.mark.parametrize("probe", [host_reads, dtypes, saved_bytes])
def test_two_probes_at_once_see_the_same_as_each_alone(probe: Callable[[Loop], object], make_loop: Any) -> None:
    found: list[object] = []
    alone = probe(make_loop())
    dtypes(lambda: found.append(probe(make_loop())))
    assert found == [alone]
