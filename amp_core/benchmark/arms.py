"""The arms of the benchmark: the precisions that a device is measured in, and the same step written out by hand."""

from collections.abc import Sequence

from amp_core.device import DeviceFacts
from amp_core.precision import Precision, precision_for

BASELINE = "fp32"
BY_HAND = "_by_hand"
LEAN = "_lean"  # the same model with 16-bit norms and residual stream, and its loss in chunks
HALF = ("bf16", "fp16")


def precision_of(arm: str, device_type: str) -> Precision:
    """Return the precision that an arm computes in."""
    return precision_for(arm.removesuffix(BY_HAND).removesuffix(LEAN), device_type)


def precisions_for(facts: DeviceFacts) -> tuple[str, ...]:
    """Return the precisions worth timing on a device: those it computes natively, on a CPU fp32 and bf16.

    A CPU's bf16 is timed in any case, for what it shows of the step; its fp16 is emulated, and timed on request only.
    """
    if facts.type == "cpu":
        return (BASELINE, "bf16")
    return (BASELINE, *(name for name in ("tf32", *HALF) if name in facts.capabilities))


def timed_arms(precisions: Sequence[str]) -> tuple[str, ...]:
    """Return the arms of the step times: each precision, and beside a 16-bit one its step by hand."""
    return tuple(arm for name in precisions for arm in ((name, name + BY_HAND) if name in HALF else (name,)))


def lean_arms(precisions: Sequence[str]) -> tuple[str, ...]:
    """Return the arms that save memory wherever autocast lets them: one for each 16-bit precision."""
    return tuple(name + LEAN for name in precisions if name in HALF)


def accept(names: Sequence[str], facts: DeviceFacts) -> tuple[str, ...]:
    """Return the precisions that were asked for, the baseline first.

    Raises:
        ValueError: one is unknown, named twice or not to be had on the device, or the baseline is missing.
    """
    found = tuple(precision_for(name, facts.type).name for name in names)
    if len(set(found)) < len(found):
        raise ValueError(f"expected each precision once, found {', '.join(found)!r}")
    if BASELINE not in found:
        raise ValueError(f"expected the baseline {BASELINE!r} among the precisions, found {', '.join(found)!r}")
    if "tf32" in found and "tf32" not in facts.capabilities:
        raise ValueError(f"{facts.name} has no TF32, leave 'tf32' out")
    return (BASELINE, *(name for name in found if name != BASELINE))
