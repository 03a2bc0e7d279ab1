"""A20: bfloat16 taken for supported on a GPU that only emulates it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import torch

from amp_core.device import inspect
from amp_core.precision import resolve
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, verdict


@contextmanager
def as_on_a_t4() -> Iterator[None]:
    """Let torch answer as it does on a Tesla T4, which has float16 tensor cores and emulates bfloat16."""

    def supported(including_emulation: bool = True) -> bool:
        return including_emulation

    with patch.multiple(
        torch.cuda,
        is_available=lambda: True,
        is_bf16_supported=supported,
        get_device_name=lambda _=None: "Tesla T4",
        get_device_capability=lambda _=None: (7, 5),
        get_device_properties=lambda _=None: SimpleNamespace(major=7, minor=5),
    ):
        yield


def by_ours() -> bool:
    """Ask amp_core whether bf16 is native there."""
    resolved = resolve("bf16", None, inspect(torch.device("cuda")))
    return resolved.native and not resolved.warnings


def by_torch() -> bool:
    """Ask torch, as its documentation's examples do."""
    return bool(torch.cuda.is_bf16_supported())


def by_accelerate() -> bool:
    """Ask Accelerate, as it asks itself before it turns bf16 on."""
    from accelerate.utils import is_bf16_available

    return bool(is_bf16_available())


OFFERS: Offers[Callable[[], bool]] = Offers(
    {"amp_core": by_ours, "by_hand": by_torch, "accelerate": by_accelerate, "broken": by_torch},
    missing="does not ask whether a device has bf16",
)


def judge(subject: Subject) -> Result:
    """Ask whether a T4 has bfloat16."""
    question = OFFERS.of(subject)
    with as_on_a_t4():
        taken = question()
    return verdict(not taken, f"bf16 on a T4: {'taken for native' if taken else 'known not to be native'}")


CASE = Case(
    hazard="A20",
    question="Is a GPU that emulates bf16 told from one that has it?",
    conforming="bf16 is not taken for native on a T4, and the user is warned",
    references=("PyT #148322", "PyT #124996", "Soup #387", "diffusers #14129"),
    judge=judge,
    broken=BROKEN,
    unseen="a real T4: torch's answers for it are put in",
)
