"""Tests of FLOPs counted from shapes, peaks by device and precision, and their ratio."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.step import Batch
from amp_core.throughput import PEAKS, Peak, Throughput, count_flops, count_training_flops, peak_for

A_PEAK = Peak(1e12, "a made-up device, bf16")


def squared(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = model(batch[0]).square().mean()
    return loss


def test_a_product_counts_two_flops_for_each_multiplication() -> None:
    assert count_flops(lambda: torch.ones(3, 4) @ torch.ones(4, 5)) == 2 * 3 * 4 * 5


@pytest.mark.parametrize("frozen", [False, True])
def test_training_counts_forward_and_backward_but_no_gradient_of_a_frozen_layer(frozen: bool) -> None:
    first, second = nn.Linear(8, 16, bias=False), nn.Linear(16, 4, bias=False)
    of_first = 0 if frozen else 2 * 10 * (16 * 4 + 8 * 16)  # of its weight, and of its output; its input needs none
    flops = 2 * 10 * (8 * 16 + 2 * 16 * 4) + of_first
    model = nn.Sequential(first.requires_grad_(not frozen), second)
    inputs: Any = {"inputs": torch.ones(10, 8)}
    assert count_training_flops(model, lambda each, batch: squared(each, (*batch.values(),)), inputs) == flops  # type: ignore[attr-defined]


def test_counting_from_shapes_agrees_with_really_computing() -> None:
    config = GPTConfig(vocab_size=32, context=16, layers=2, heads=2, width=16)
    model, batch = GPT(config), (torch.randint(32, (3, 17)),)

    def really() -> None:
        next_token_loss(model, batch).backward()  # type: ignore[no-untyped-call]  # torch declares no types for it

    counted = count_training_flops(model, next_token_loss, batch)
    assert all(param.grad is None and param.device.type == "cpu" for param in model.parameters())
    with sdpa_kernel(SDPBackend.MATH):  # the counter does not know the CPU's own attention kernel
        assert counted == count_flops(really)


def test_counting_takes_no_memory_and_leaves_buffers_and_ties_alone() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with torch.device("meta"):  # 64 GiB, if it were computed
                self.embed = nn.Embedding(2**17, 2**17)
            self.register_buffer("scale", torch.ones(1))

        def forward(self, tokens: Tensor) -> Tensor:
            return functional.linear(self.embed(tokens) * self.get_buffer("scale"), self.embed.weight)

    model = Tied()
    assert count_training_flops(model, squared, (torch.zeros(2, dtype=torch.int64),)) == 3 * 2 * 2 * 2**34
    assert model.scale.device.type == "cpu"


@pytest.mark.parametrize(
    ("name", "precision", "tflops"),
    [
        ("NVIDIA H200", "fp32", 67.0),
        ("NVIDIA H100 PCIe", "bf16", 756.5),
        ("NVIDIA A100-SXM4-40GB", "tf32", 156.0),
        ("NVIDIA A10G", "bf16", None),  # not an A10
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "bf16", None),  # a slice of one
        ("Tesla T4", "bf16", None),  # it has none
        ("Intel(R) Xeon(R) Platinum 8481C CPU", "bf16", None),
    ],
)
def test_peaks_are_those_of_the_data_sheets_or_unknown(name: str, precision: str, tflops: float | None) -> None:
    peak = peak_for(name, precision)
    assert (peak and peak.flops_per_s) == (tflops and tflops * 1e12)
    assert peak is None or peak.source.startswith(f"{name}, {precision}: ")


def test_every_peak_grows_as_the_precision_falls() -> None:
    for _, tflops in PEAKS.values():
        listed = [tflops[name] for name in ("fp32", "tf32", "bf16") if name in tflops]
        assert listed == sorted(listed)
        assert tflops["fp16"] >= tflops["fp32"]


def test_mfu_is_the_achieved_share_of_the_peak_if_both_are_known() -> None:
    by_token, by_sample = Throughput(A_PEAK, flops_per_token=1e9), Throughput(A_PEAK, flops_per_sample=2e9)
    assert by_token.mfu(None, 250.0) == 0.25
    assert by_sample.mfu(250.0, None) == 0.5
    assert by_token.mfu(250.0, None) is by_sample.mfu(None, 250.0) is None
    assert Throughput(None, flops_per_token=1e9).mfu(None, 250.0) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give flops_per_sample or flops_per_token, found 0 of them"),
        ({"flops_per_sample": 1.0, "flops_per_token": 1.0}, "give flops_per_sample or flops_per_token, found 2 of"),
        ({"flops_per_token": 0.0}, "the FLOPs must be a positive number, found 0.0"),
        ({"flops_per_token": 1.0, "peak": Peak(float("nan"), "")}, "the peak must be a positive number, found nan"),
    ],
)
def test_wrong_numbers_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Throughput(**{"peak": A_PEAK, **arguments})
