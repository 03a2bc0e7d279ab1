"""How much of a device a training run uses: FLOPs counted from shapes, peaks from data sheets, and their ratio."""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from amp_core.data.transfer import to_device
from amp_core.step import Batch, LossFn

NVIDIA = "NVIDIA's data sheet, dense"
AMPERE = {"fp32": 19.5, "tf32": 156.0, "bf16": 312.0, "fp16": 312.0}
HOPPER_SXM = {"fp32": 67.0, "tf32": 494.5, "bf16": 989.5, "fp16": 989.5}

# TFLOP/s by the whole name that torch gives the device, so that a slice of one is not taken for it. Dense: where a data
# sheet tells only the figure with sparsity, half of it. fp32 is without tensor cores (matmul precision "highest"); a
# precision that is not listed is not native.
PEAKS: dict[str, tuple[str, dict[str, float]]] = {
    r"NVIDIA H200": (NVIDIA, HOPPER_SXM),
    r"NVIDIA H100 80GB HBM3": (NVIDIA, HOPPER_SXM),
    r"NVIDIA H100 PCIe": (NVIDIA, {"fp32": 51.0, "tf32": 378.0, "bf16": 756.5, "fp16": 756.5}),
    r"(NVIDIA )?A100-(SXM4|PCIE)-[48]0GB|NVIDIA A100 80GB PCIe": (NVIDIA, AMPERE),
    r"NVIDIA A10": (NVIDIA, {"fp32": 31.2, "tf32": 62.5, "bf16": 125.0, "fp16": 125.0}),
    r"NVIDIA L40S": (NVIDIA, {"fp32": 91.6, "tf32": 183.0, "bf16": 362.0, "fp16": 362.0}),
    r"NVIDIA L4": (NVIDIA, {"fp32": 30.3, "tf32": 60.0, "bf16": 121.0, "fp16": 121.0}),
    r"Tesla V100-SXM2-(16|32)GB": (NVIDIA, {"fp32": 15.7, "fp16": 125.0}),
    r"Tesla V100-PCIE-(16|32)GB": (NVIDIA, {"fp32": 14.0, "fp16": 112.0}),
    r"Tesla T4": (NVIDIA, {"fp32": 8.1, "fp16": 65.0}),
}


@dataclass(frozen=True)
class Peak:
    """The most that a device can compute: FLOP/s in one precision, and who says so."""

    flops_per_s: float
    source: str


@dataclass(frozen=True)
class Throughput:
    """What turns samples or tokens per second into a share of a peak (MFU): FLOPs of training on one, and the peak.

    FLOPs are those that the model asks for, forward and backward; recomputing activations must not count. The peak is
    that of one device, as the rates are those of one process. An unknown peak gives no MFU.

    Raises:
        ValueError: none or both of the FLOPs are given, or a number is not positive.
    """

    peak: Peak | None
    flops_per_sample: float | None = None
    flops_per_token: float | None = None

    def __post_init__(self) -> None:
        given = [flops for flops in (self.flops_per_sample, self.flops_per_token) if flops is not None]
        if len(given) != 1:
            raise ValueError(f"give flops_per_sample or flops_per_token, found {len(given)} of them")
        for name, value in (("FLOPs", given[0]), ("peak", 1.0 if self.peak is None else self.peak.flops_per_s)):
            if not 0.0 < value < float("inf"):
                raise ValueError(f"the {name} must be a positive number, found {value!r}")

    def mfu(self, samples_per_s: float | None, tokens_per_s: float | None) -> float | None:
        """Return the share of the peak that a rate comes to; None if the peak or the rate is unknown."""
        per_sample = self.flops_per_sample is not None
        flops, rate = (self.flops_per_sample, samples_per_s) if per_sample else (self.flops_per_token, tokens_per_s)
        if self.peak is None or flops is None or rate is None:
            return None
        return flops * rate / self.peak.flops_per_s


def peak_for(device_name: str, precision: str) -> Peak | None:
    """Return the dense peak of a device, by its name in torch, in a precision such as "bf16"; None if not known."""
    for pattern, (source, tflops) in PEAKS.items():
        if re.fullmatch(pattern, device_name) and precision in tflops:
            return Peak(tflops[precision] * 1e12, f"{device_name}, {precision}: {source}")
    return None


def count_flops(work: Callable[[], object]) -> int:
    """Return the FLOPs of the matrix products, convolutions and attention that `work()` does (a product counts 2)."""
    from torch.utils.flop_counter import FlopCounterMode  # only now: it imports more than a training run needs

    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def count_training_flops(model: nn.Module, loss_fn: LossFn, batch: Batch) -> int:
    """Return the FLOPs of one forward and backward pass over a batch, from shapes alone: nothing is computed.

    The model and the batch are replaced by tensors on the meta device, which takes no memory. Divide by the batch's
    samples or tokens for Throughput.
    """
    hollow = _hollow(model)

    def work() -> None:
        loss = loss_fn(hollow, to_device(batch, torch.device("meta")))
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it

    return count_flops(work)


def _hollow(model: nn.Module) -> nn.Module:
    """Return a copy of a model whose parameters and buffers have shapes only."""
    memo: dict[int, object] = {}
    for param in model.parameters():
        memo[id(param)] = nn.Parameter(torch.empty_like(param, device="meta"), requires_grad=param.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    return copy.deepcopy(model, memo)
