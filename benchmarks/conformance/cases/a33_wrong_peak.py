"""A33: a model FLOPs utilisation (MFU) against another device's peak."""

from collections.abc import Callable

from amp_core.throughput import Throughput, peak_for
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, verdict

RATE = 1e9  # samples a second at 1 FLOP each
UNKNOWN = "NVIDIA GeForce GTX 9999"


def by_ours(device: str, precision: str) -> float | None:
    """Return amp_core's MFU."""
    return Throughput(peak_for(device, precision), flops_per_sample=1.0).mfu(RATE, None)


def of_an_a100(_device: str, _precision: str) -> float | None:
    """Return the MFU against an A100's bf16 peak, whatever the device."""
    return RATE / 312e12


def by_lightning(device: str, precision: str) -> float | None:
    """Return the MFU against the peak that Lightning's throughput monitor finds by the device's name."""
    from unittest.mock import patch

    import torch
    from lightning.fabric.utilities.throughput import get_available_flops

    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    named = patch.multiple(
        torch.cuda, get_device_name=lambda _=None: device, get_device_capability=lambda _=None: (9, 0)
    )
    with named:
        flops = get_available_flops(torch.device("cuda"), dtype)
    return None if flops is None else RATE / flops


OFFERS: Offers[Callable[[str, str], float | None]] = Offers(
    {"amp_core": by_ours, "fabric": by_lightning, "lightning": by_lightning, "broken": of_an_a100},
    missing="counts no FLOPs",
)


def judge(subject: Subject) -> Result:
    """Ask for the MFU on an H100 in two precisions, and on a device that nobody knows."""
    mfu = OFFERS.of(subject)
    known = [mfu("NVIDIA H100 80GB HBM3", precision) for precision in ("fp32", "bf16")]
    unknown = mfu(UNKNOWN, "bf16")
    peaks = [None if share is None else RATE / share / 1e12 for share in known]
    good = unknown is None and None not in peaks and peaks[0] != peaks[1]
    said = ", ".join("none" if peak is None else f"{peak:g}" for peak in peaks)
    return verdict(
        good, f"H100 peaks in fp32, bf16: {said} TFLOP/s; unknown device: {'no MFU' if unknown is None else 'an MFU'}"
    )


CASE = Case(
    hazard="A33",
    question="Is MFU taken against the peak of this device and dtype, or not at all?",
    conforming="an H100's peaks differ by dtype, and an unknown device has no MFU",
    references=("nanoGPT #464", "nanoGPT #182"),
    judge=judge,
    broken=BROKEN,
    unseen="a real GPU: its name is put in",
)
