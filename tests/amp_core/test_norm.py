"""Tests of the normalisations with 16-bit input and output."""

import pytest
import torch
from torch import Tensor, nn

from amp_audit import cuda_autocast, saved_bytes
from amp_core import norm
from amp_core.norm import LeanLayerNorm, LeanRMSNorm

HALF = [torch.bfloat16, torch.float16]
WIDTH, ROWS = 48, 10


def trained(module: nn.Module) -> nn.Module:
    """Return a module whose parameters are no longer ones and zeros."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return module


def values(dtype: torch.dtype, *, around: float = 0.0) -> Tensor:
    return (torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(6)) + around).to(dtype).requires_grad_()


def run(module: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
    """Return output and the gradients of input and parameters, for a fixed gradient of the output."""
    out = module(inputs)
    slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    return out, *torch.autograd.grad(out, [inputs, *module.parameters()], slope.to(out.dtype))


@pytest.mark.parametrize("affine", [True, False])
def test_in_float32_a_lean_layer_norm_has_the_bits_of_torch(affine: bool) -> None:
    lean, plain = (trained(kind(WIDTH, elementwise_affine=affine)) for kind in (LeanLayerNorm, nn.LayerNorm))
    assert lean.state_dict().keys() == plain.state_dict().keys()
    for ours, theirs in zip(run(lean, values(torch.float32)), run(plain, values(torch.float32)), strict=True):
        assert torch.equal(ours, theirs)


def test_in_float32_a_lean_rms_norm_equals_torch() -> None:
    lean, plain = trained(LeanRMSNorm(WIDTH)), trained(nn.RMSNorm(WIDTH))
    lean.load_state_dict(plain.state_dict())
    torch.testing.assert_close(run(lean, values(torch.float32)), run(plain, values(torch.float32)))


def test_the_gradients_of_a_lean_rms_norm_are_those_of_finite_differences() -> None:
    norm = LeanRMSNorm(6, eps=1e-6).double()
    rows = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: torch.func.functional_call(norm, {"weight": w}, (x,)), (rows, weight))


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("kind", [LeanLayerNorm, LeanRMSNorm])
@pytest.mark.parametrize("around", [0.0, 30.0])
def test_16_bit_values_are_computed_in_float32(dtype: torch.dtype, kind: type[nn.Module], around: float) -> None:
    module = trained(kind(WIDTH))
    inputs = values(dtype, around=around)
    with cuda_autocast(), torch.autocast("cpu", dtype=dtype):  # a CPU's leaves norms alone
        found = run(module, inputs)
    assert [each.dtype for each in found] == [dtype, dtype, *(torch.float32 for _ in module.parameters())]
    exact = run(module.double(), inputs.detach().double().requires_grad_())
    unit = torch.finfo(dtype).eps
    for mine, true in zip(found, exact, strict=True):
        assert (mine - true).norm() <= unit * true.norm()


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("kind", [LeanLayerNorm, LeanRMSNorm])
def test_only_the_16_bit_input_and_float32_statistics_are_saved(dtype: torch.dtype, kind: type[nn.Module]) -> None:
    module, inputs = kind(WIDTH), values(dtype)
    with cuda_autocast(), torch.autocast("cpu", dtype=dtype):
        saved = dict(saved_bytes(lambda: module(inputs)).by_dtype)
    assert saved == {dtype: ROWS * WIDTH * 2, torch.float32: (1 + (kind is LeanLayerNorm)) * ROWS * 4}


def test_kernels_of_other_devices_get_parameters_of_the_inputs_dtype() -> None:
    parameter, elsewhere = torch.ones(2), torch.ones(2, dtype=torch.bfloat16, device="meta")
    assert getattr(norm._cast(parameter, elsewhere), "dtype", None) == torch.bfloat16
    assert norm._cast(parameter, torch.ones(2, dtype=torch.bfloat16)) is parameter
    assert norm._cast(None, elsewhere) is None
