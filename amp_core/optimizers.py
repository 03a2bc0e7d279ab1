"""Optimizers of every make: which of them skip a step by themselves, and what they take over from a checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

IMPLEMENTATION = ("fused", "foreach", "capturable", "differentiable")


def skips_on_device(optimizer: torch.optim.Optimizer) -> bool:
    """Say whether the optimizer's own kernel leaves out a marked step: torch's fused ones do.

    Of a `step` that somebody else wrote it cannot be known, whatever the optimizer says of itself.
    """
    by_torch = type(optimizer).step.__module__.startswith("torch.optim.")
    return by_torch and False not in [bool(group.get("fused")) for group in optimizer.param_groups]


def begin_momentum(optimizer: torch.optim.Optimizer) -> None:
    """Give fused SGD the momentum buffers of its first step, as zeros: momentum * 0 + gradient is the gradient.

    torch 2.13 allocates them without content and lets the kernel fill them. A kernel that skips its step does not,
    and the next one takes what lay in that memory for momentum. Fine after the first step, and for other optimizers.

    Raises:
        ValueError: the optimizer has dampening, which would shrink the first gradient.
    """
    if not isinstance(optimizer, torch.optim.SGD) or not skips_on_device(optimizer):
        return
    for group in optimizer.param_groups:
        if group["momentum"] == 0.0:
            continue
        if group["dampening"] != 0.0:
            raise ValueError(
                f"fused SGD with dampening={group['dampening']!r} loses its momentum if its first step is skipped:"
                " use dampening=0, or fused=False"
            )
        for param in group["params"]:
            if param.grad is not None and optimizer.state[param].get("momentum_buffer") is None:
                optimizer.state[param]["momentum_buffer"] = torch.zeros_like(param)


def load_optimizers(optimizers: Sequence[torch.optim.Optimizer], states: Sequence[Mapping[str, Any]]) -> None:
    """Load all optimizers' states, or none, and share no tensor with them."""
    before = [optimizer.state_dict() for optimizer in optimizers]
    try:
        _put_into(optimizers, states)
    except BaseException:
        _put_into(optimizers, before)
        raise


def refuse_other_optimizers(optimizers: Sequence[torch.optim.Optimizer], state: Mapping[str, Any]) -> None:
    """Raise ValueError unless a step's saved state is of optimizers of these types and parameter counts."""
    types = [type(optimizer).__name__ for optimizer in optimizers]
    saved = state.get("optimizer_types", types)
    if saved != types:
        raise ValueError(f"the checkpoint is of {', '.join(saved)}, expected {', '.join(types)}: build that optimizer")
    found = [[len(group["params"]) for group in each["param_groups"]] for each in state["optimizers"]]
    expected = [[len(group["params"]) for group in each.param_groups] for each in optimizers]
    if found != expected:
        raise ValueError(
            f"the checkpoint's optimizers hold {found} parameters by group, expected {expected}:"
            " build the optimizers as they were when it was saved"
        )


def _put_into(optimizers: Sequence[torch.optim.Optimizer], states: Sequence[Mapping[str, Any]]) -> None:
    for optimizer, saved in zip(optimizers, states, strict=True):
        optimizer.load_state_dict(_as_implemented(optimizer, saved))
        theirs = {id(value) for moments in saved["state"].values() for value in moments.values()}
        for moments in optimizer.state.values():  # torch takes tensors as they are: a step would change the saved state
            moments.update({name: value.clone() for name, value in moments.items() if id(value) in theirs})


def _as_implemented(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return an optimizer's saved state with the implementation of the optimizer that is there.

    How the same numbers are computed is the choice of who goes on with them, not of who saved them.
    """
    groups = [
        {**group, **{flag: own[flag] for flag in IMPLEMENTATION if flag in own}}
        for group, own in zip(saved["param_groups"], optimizer.param_groups, strict=True)
    ]
    return {**saved, "param_groups": groups}
