"""Tests of the dtypes that a step computed in."""

from typing import Any

import pytest
import torch
from torch import nn

from amp_audit import OpDtypes, Phase, dtypes


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_our_step_multiplies_in_the_dtype_that_was_asked_for(
    precision: str, dtype: torch.dtype, lean: bool, make_loop: Any
) -> None:
    found = dtypes(make_loop(precision, lean=lean))
    assert found.ran_in(dtype)
    layers = 2 * 2 * (4 + 1) + 2  # micro-batches, blocks, linear layers and attention; heads
    assert found.matmuls(Phase.FORWARD) == {dtype: layers}
    recomputed = 2 * lean  # the heads' logits, one chunk each
    assert found.matmuls(Phase.BACKWARD) == {dtype: 2 * layers - 2 * 2 + recomputed}  # attention's is one operator
    assert found.matmuls(Phase.UPDATE) == {}


def test_a_step_that_escapes_autocast_is_found_out() -> None:
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.float16):
            hidden = layers[0](torch.ones(2, 3))
            with torch.autocast("cpu", enabled=False):
                out = layers[1](hidden.float())
        out.sum().backward()

    found = dtypes(step)
    assert not found.ran_in(torch.float16)
    assert found.matmuls(Phase.FORWARD) == {torch.float16: 1, torch.float32: 1}
    assert found.matmuls(Phase.BACKWARD) == {torch.float16: 1, torch.float32: 2}


def test_operators_are_counted_by_phase_and_dtype() -> None:
    weight = torch.ones(2, 2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0, foreach=False)

    def step() -> None:
        for _ in range(2):
            (weight.to(torch.bfloat16) @ weight.to(torch.bfloat16)).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    found = dtypes(step)
    half = torch.bfloat16
    assert OpDtypes("aten::mm", Phase.FORWARD, (half, half), (half,), 2) in found.ops
    assert OpDtypes("aten::mm", Phase.BACKWARD, (half, half), (half,), 4) in found.ops
    assert OpDtypes("aten::_to_copy", Phase.FORWARD, (torch.float32,), (half,), 4) in found.ops
    assert [each.op for each in found.ops if each.phase is Phase.UPDATE] == ["aten::add_.Tensor"]


def test_a_foreach_operator_is_one_entry() -> None:
    parameters = [torch.ones(1, requires_grad=True) for _ in range(30)]
    optimizer = torch.optim.AdamW(parameters, fused=True)

    def step() -> None:
        sum(parameters, torch.zeros(1)).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    (fused,) = [each for each in dtypes(step).ops if "fused" in each.op]
    assert (fused.phase, fused.inputs, fused.count) == (Phase.UPDATE, (torch.float32,), 1)


def test_nothing_multiplied_is_not_a_precision() -> None:
    assert not dtypes(lambda: torch.ones(2) + 1.0).ran_in(torch.float32)
