"""The gradients of the first steps, compared with those of the same modules computed again in float64.

A copy computes them from the calls of outermost modules and the gradients that a backward pass brings to their outputs.
Whatever the loss was, the gradients that an optimizer steps with, or that are clipped, must be these.
"""

import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves, tree_map

from .observing import Reached, Scene, held, is_finite, same

STEPS, CALLS, MOST_PARAMETERS = 3, 64, 20_000_000
TINY = 1e-12
SECOND = "it differentiates gradients (create_graph=True); second derivatives have no reference"


@dataclass(eq=False)
class Kept:
    """A call of a module: its parameters then, what it was called with and returned, what a backward pass brought."""

    module: nn.Module
    random: Tensor
    args: tuple[object, ...] = ()
    kwargs: dict[str, object] = field(default_factory=dict)
    params: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    gradients: dict[int, Tensor] = field(default_factory=dict)
    precision: str = "float64"


class Reference:
    """Keeps the calls of a step, and compares before the gradients are clipped or used."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._calls: list[Kept] = []
        self._next: Kept | None = None
        self._scale, self._by_hand = 1.0, 1.0
        self._copies, self._compared, self._done = dict[int, Tensor](), set[int](), dict[int, int]()
        self._why_not = ""

    def before_call(self, module: nn.Module) -> None:
        """Keep the state of the random generator, from which dropout draws."""
        self._next = None
        done = [self._done.get(id(each), 0) for each in self._scene.holding(module.parameters())]
        if self._why_not or min([*self._done.values(), *done], default=0) >= STEPS:  # then all were compared
            return
        if len(self._calls) >= CALLS:
            self._why_not = f"more than {CALLS} calls of modules in one step"
        elif sum(param.numel() for param in module.parameters()) > MOST_PARAMETERS:
            self._why_not = f"a module of more than {MOST_PARAMETERS} parameters"
        else:
            self._next = Kept(module, torch.get_rng_state())

    def after_call(self, module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], out: object) -> None:
        """Keep what the module was called with, and listen to the gradients of what it returned."""
        kept, self._next = self._next, None
        if kept is None or kept.module is not module:
            return
        kept.args, kept.kwargs = tree_map(_kept, args), tree_map(_kept, kwargs)
        kept.params = [self._as_it_is(param) for param in module.parameters()]  # a step may follow, as SAM's first one
        found = _tensors(out)
        kept.outputs = [leaf.detach().clone() for leaf in found]
        for index, leaf in enumerate(found):
            if leaf.requires_grad and leaf.grad_fn is not None:
                leaf.register_hook(partial(self._brought, kept, index))  # type: ignore[no-untyped-call]  # as torch has it
        self._calls.append(kept)

    def _as_it_is(self, param: Tensor) -> Tensor:
        """Return a copy of a parameter: the last one, where it is the same still."""
        last = self._copies.get(id(param))
        if last is None or not same(param.detach(), last):
            last = self._copies[id(param)] = param.detach().clone()
        return last

    def _brought(self, kept: Kept, index: int, grad: Tensor) -> None:
        if ("backward", 0) not in self._scene.here.active:  # `autograd.grad`, which leaves no gradient anywhere
            return
        true = grad.detach().double() / self._scale
        before = kept.gradients.get(index)
        kept.gradients[index] = true if before is None else before + true

    def before_backward(self, reached: Reached) -> None:
        """Keep the scale that the gradients will have."""
        self._scale, self._by_hand = self._scene.scale_of(reached.scaler) * reached.again, reached.by_hand

    def before_clip(self, params: list[Tensor]) -> None:
        """Compare what is about to be clipped; after a step nothing is kept that it could be compared with."""
        for optimizer in filter(self._calls_of, self._scene.holding(params)):
            self._compare(optimizer, "clip", 1.0)

    def stepping(self, optimizer: Optimizer) -> None:
        """Compare what is about to be used, where nothing was clipped."""
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales inside its kernel
        self._compare(optimizer, "step", float(scale) if isinstance(scale, Tensor) else 1.0)

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Forget the calls whose gradients are gone with it."""
        gone = [kept for optimizer in optimizers for kept in self._calls_of(optimizer) if kept.gradients]
        self._calls = [kept for kept in self._calls if kept not in gone]

    def after_step(self, optimizer: Optimizer) -> None:
        """Begin the next step; calls whose gradients belong to other optimizers are kept for theirs."""
        self._compared.discard(id(optimizer))
        used = self._calls_of(optimizer)
        self._calls = [kept for kept in self._calls if kept not in used]

    def _calls_of(self, optimizer: Optimizer) -> list[Kept]:
        mine = {id(param) for param in held(optimizer)}
        return [kept for kept in self._calls if any(id(param) in mine for param in kept.module.parameters())]

    def _compare(self, optimizer: Optimizer, when: str, divisor: float) -> None:
        if id(optimizer) in self._compared or self._done.get(id(optimizer), 0) >= STEPS:
            return
        if all(param.grad is None for param in held(optimizer)):  # a step with nothing to compare
            return
        self._compared.add(id(optimizer))
        self._done[id(optimizer)] = self._done.get(id(optimizer), 0) + 1
        facts: dict[str, Any] = {"optimizer": self._scene.number(optimizer), "when": when, "by_hand": self._by_hand}
        why = self._why_not or (SECOND if self._scene.here.differentiated else "")
        try:
            with torch.enable_grad():  # which a step is mostly taken without
                facts = {**({} if why else self._figures(optimizer, divisor)), **facts}
        except Exception as error:  # noqa: BLE001  # a module that cannot be copied or called again
            why = f"the module cannot be computed again: {type(error).__name__}: {error}"[:300]
        self._scene.tell("reference", **{"why_not": why, **facts})

    def _figures(self, optimizer: Optimizer, divisor: float) -> dict[str, Any]:
        calls = [kept for kept in self._calls if kept.gradients]
        expected: dict[int, Tensor] = {}
        off = max((_again(kept, expected) for kept in calls), default=0.0)
        pairs = [(param, expected.get(id(param))) for param in held(optimizer)]
        known = [(_used(param).double().flatten(), true.flatten()) for param, true in pairs if true is not None]
        if not known:
            return {"why_not": "no gradient of a recorded call"}
        actual, true = torch.cat([used for used, _ in known]) / divisor, torch.cat([true for _, true in known])
        lost = (actual == 0) & (true.abs() > TINY)
        return {
            "precision": "/".join(sorted({kept.precision for kept in calls})),
            "outputs_off": off,
            "parameters": len(known),
            "left_out": sum(true is None and bool(_used(param).any()) for param, true in pairs),
            "finite": is_finite(actual) and is_finite(true),
            **_told(actual, true),
            "length": float(true.norm()),
            "lost": float(lost.double().mean()),
        }


def _used(param: Tensor) -> Tensor:
    return torch.zeros_like(param) if param.grad is None else param.grad.detach()


def _told(actual: Tensor, true: Tensor) -> dict[str, float | None]:
    """Return the factor by which gradients are too large, and the distance from the reference with and without it."""
    length = true.norm()
    if not (is_finite(actual) and is_finite(true)) or length <= TINY:
        return {"factor": None, "error": None, "error_less_factor": None}
    factor = float(actual @ true / (true @ true))
    rest = float((actual - factor * true).norm() / (abs(factor) * length)) if factor else None
    return {"factor": factor, "error": float((actual - true).norm() / length), "error_less_factor": rest}


def _again(kept: Kept, expected: dict[int, Tensor]) -> float:
    """Add the gradients of a call, computed again, to those that are expected; return how far its outputs are off."""
    try:
        twin, outputs = _called(kept, torch.float64)
    except RuntimeError:  # a module that insists on a dtype
        twin, outputs = _called(kept, torch.float32)
        kept.precision = "float32"
    wanted = _from_outside([(outputs[i], grad) for i, grad in kept.gradients.items() if outputs[i].requires_grad])
    for param in twin.parameters():
        param.grad = None
    if wanted:  # not `autograd.grad`, which passes by what a checkpoint computes again
        torch.autograd.backward([each for each, _ in wanted], [grad.to(each.dtype) for each, grad in wanted])
    for param, its in zip(kept.module.parameters(), twin.parameters(), strict=True):
        if its.grad is not None:
            before = expected.get(id(param))
            expected[id(param)] = its.grad.double() if before is None else before + its.grad.double()
    return max((_off(old, new) for old, new in zip(kept.outputs, outputs, strict=True)), default=0.0)


def _from_outside(brought: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Return of each output's gradient what came from outside of the module.

    The gradient of logits has in it the share of their loss, if both are outputs: the copy's backward pass adds it.
    """
    left, done = list(brought), list[tuple[Tensor, Tensor]]()
    while left:
        at = next((i for i, (one, _) in enumerate(left) if not any(_leads(two, one) for two, _ in left)), 0)
        output, grad = left.pop(at)
        for other, share in done:
            inner = _through(other, output, share.to(other.dtype))
            grad = grad if inner is None else grad - inner.double()
        done.append((output, grad))
    return done


def _leads(result: Tensor, source: Tensor) -> bool:
    """Whether one output is made of another."""
    return result is not source and _through(result.sum(), source) is not None


def _through(result: Tensor, source: Tensor, share: Tensor | None = None) -> Tensor | None:
    return torch.autograd.grad(result, source, share, retain_graph=True, allow_unused=True)[0]


def _tensors(output: object) -> list[Tensor]:
    found = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
    return list({id(leaf): leaf for leaf in found}.values())


def _called(kept: Kept, dtype: torch.dtype) -> tuple[nn.Module, list[Tensor]]:
    """Call a copy of the module in another dtype, outside of autocast, with the same random numbers."""
    plain = getattr(kept.module, "_orig_mod", kept.module)  # compiled again for one call, it would take long
    twin: nn.Module = copy.deepcopy(plain).to(dtype)
    for param, its in zip(kept.params, twin.parameters(), strict=True):
        its.data.copy_(param)
    for module in twin.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks):  # noqa: SLF001
            hooks.clear()  # a hook of the project's would be told of a call that it does not know

    def wide(leaf: object) -> object:
        return leaf.to(dtype) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf

    with torch.random.fork_rng(devices=[]), torch.autocast("cpu", enabled=False):
        torch.set_rng_state(kept.random)
        output = twin(*tree_map(wide, kept.args), **tree_map(wide, kept.kwargs))
    return twin, _tensors(output)


def _off(old: Tensor, new: Tensor) -> float:
    """Return how far an output computed again is from the one that was seen, relative to its size."""
    if not old.is_floating_point() or not old.numel():
        return 0.0
    wide = old.double()
    return float((wide - new.detach().double()).norm() / (wide.norm() + TINY))


def _kept(leaf: object) -> object:
    return leaf.detach().clone() if isinstance(leaf, Tensor) else leaf
