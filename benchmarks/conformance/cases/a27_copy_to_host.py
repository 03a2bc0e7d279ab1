"""A27: a copy to the host that does not block, and is read before it has ended."""

from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor

from amp_core.data import to_device
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, verdict

CPU = torch.device("cpu")


def by_ours(tensor: Tensor) -> object:
    """Move a batch to the host, asking for no blocking."""
    return to_device((tensor,), CPU, non_blocking=True)


def by_lightning(tensor: Tensor) -> object:
    """Move a batch to the host as Fabric and the Trainer do; they choose for themselves whether it blocks."""
    from lightning.fabric.utilities import move_data_to_device

    return move_data_to_device((tensor,), CPU)


def carelessly(tensor: Tensor) -> object:
    """Move a batch to the host without blocking."""
    return tensor.to(CPU, non_blocking=True)


OFFERS: Offers[Callable[[Tensor], object]] = Offers(
    {
        "amp_core": by_ours,
        "fabric": by_lightning,
        "lightning": by_lightning,
        "broken": carelessly,
    },
    missing="copies to the host are the user's own calls",
)


def judge(subject: Subject) -> Result:
    """Watch `Tensor.to` while a batch that is not pinned goes to the host: the race itself needs a GPU."""
    move = OFFERS.of(subject)
    asked: list[bool] = []
    original = Tensor.to

    def watched(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        asked.append(bool(kwargs.get("non_blocking", False)))
        return original(self, *args, **kwargs)  # type: ignore[call-overload, no-any-return]  # passed on as they came

    with patch.object(Tensor, "to", watched):
        move(torch.zeros(4))
    return verdict(not any(asked), "copy to the host " + ("without blocking" if any(asked) else "blocks"))


CASE = Case(
    hazard="A27",
    question="Does a copy of a batch to the host always block?",
    conforming="no copy to the CPU is made with non_blocking=True, even if that was asked for",
    references=("PyT #137878", "PyT #137951", "DS #3426", "sglang #16493"),
    judge=judge,
    broken=BROKEN,
    unseen="the race itself, which needs a device that copies on its own",
)
