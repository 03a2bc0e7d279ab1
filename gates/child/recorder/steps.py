"""What makes a step: scaled losses, backward passes, unscaling, optimizers that step or leave it out, updates."""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from .calls import around, around_all
from .observing import SCALED_BY, Reached, Scene, changed, copied, dtype_name, has_finite_gradients, held, rates

MOST_NODES = 50_000
MATMULS = ("Addmm", "Mm", "Bmm", "Baddbmm", "Addbmm", "Mv", "Addmv", "Dot", "Addr", "Linear", "Einsum")
LAYERS = ("Conv", "MkldnnConv", "MkldnnLinear", "MkldnnRnn", "ScaledDotProduct", "SlowConv", "ThnnConv")


class Steps:
    """Wraps scalers and backward passes, and hooks into optimizers."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._before_step: dict[int, list[tuple[Tensor, Tensor]]] = {}
        self._states: dict[int, dict[str, Any]] = {}
        self._windows: Counter[GradScaler] = Counter()  # how often each was updated
        scaling = {
            "scale": (None, self._scaled),
            "unscale_": (self._unscale, None),
            "step": (self._step, self._stepped),
            "update": (lambda scaler, *_, **__: self._tell("update", scaler), self._updated),
        }
        around_all(scene, GradScaler, scaling)
        for owner in (Tensor, torch.autograd):  # a tensor's method calls autograd's function
            around(scene, owner, "backward", self._backward, self._backward_ended, key=("backward", 0))
        around(scene, torch.autograd, "grad", self._grad)
        register_optimizer_step_pre_hook(lambda *told: scene.safely("a step", lambda: self._begin(*told)))
        register_optimizer_step_post_hook(lambda optimizer, *_: scene.safely("a step", lambda: self._end(optimizer)))

    def _scaled(self, result: object, scaler: GradScaler, outputs: object) -> None:
        """Mark losses that were scaled, so that their backward pass is known."""
        if result is outputs or not scaler.is_enabled():
            return
        self._scene.scaling.add(id(scaler))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.grad_fn is not None:
                cast("dict[str, Any]", leaf.grad_fn.metadata)[SCALED_BY] = scaler

    def _grad(self, *args: object, **kwargs: object) -> None:
        self._scene.here.differentiated |= bool(kwargs.get("create_graph", args[4] if len(args) > 4 else False))

    def _backward(self, tensors: object, *_args: object, **_kwargs: object) -> None:
        scene = self._scene
        scene.here.reached = None
        reached = read_graph([leaf for leaf in tree_leaves(tensors) if isinstance(leaf, Tensor)])
        facts = {"products": reached.products, "whole": reached.whole, "share": reached.share}
        word, scale = "scaled_backward" if reached.scaler else "backward", scene.scale_of(reached.scaler)
        scene.tell(word, *scene.led_to(reached), scaler=reached.scaler, scale=scale, **facts)
        scene.let_know("before_backward", reached)
        scene.here.reached = reached

    def _backward_ended(self, *_args: object, **_kwargs: object) -> None:
        if reached := self._scene.here.reached:
            self._scene.let_know("after_backward", reached)

    def _unscale(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        if not self._within_scaler():  # a step unscales by itself what was not
            self._tell("unscale", scaler, optimizer)

    def _tell(self, word: str, scaler: GradScaler, *optimizers: Optimizer) -> None:
        about = {"scaling": id(scaler) in self._scene.scaling, "enabled": scaler.is_enabled()}
        self._scene.tell(word, *optimizers, scaler=scaler, **about)

    def _step(self, scaler: GradScaler, optimizer: Optimizer, *_args: object, **_kwargs: object) -> None:
        optimizer = self._scene.known(optimizer)
        self._ready(optimizer, scaler)
        self._tell("step", scaler, optimizer)
        self._scene.let_know("before_step", optimizer)

    def _ready(self, optimizer: Optimizer, scaler: GradScaler | None) -> None:
        self._before_step[id(optimizer)] = copied(optimizer)
        params = sorted({dtype_name(param.dtype) for param in held(optimizer) if param.requires_grad})
        self._states[id(optimizer)] = {"lr": rates(optimizer), "scale": self._scene.scale_of(scaler), "params": params}
        self._scene.let_know("ready", optimizer)

    def _stepped(self, _result: object, scaler: GradScaler, optimizer: Optimizer, *_a: object, **_kw: object) -> None:
        self._attempt(self._scene.known(optimizer), scaler)

    def _attempt(self, optimizer: Optimizer, scaler: GradScaler | None) -> None:
        """Tell of a step; a scaler left it out where no parameter moved by gradients that are not finite."""
        scene, state = self._scene, self._states.pop(id(optimizer), {})
        number, window = scene.number(optimizer), self._windows[scaler] if scaler else None
        state["moved"] = bool(changed(self._before_step.pop(id(optimizer), [])))
        skipped = scaler is not None and not (state["moved"] or has_finite_gradients(optimizer))
        scene.tell("attempt", optimizer=number, scaler=scaler, window=window, skipped=skipped, **state)
        scene.let_know("after_step", optimizer)
        scene.attempts += 1

    def _updated(self, _result: object, scaler: GradScaler, *_args: object, **_kwargs: object) -> None:
        self._windows[scaler] += 1
        self._scene.let_know("updated", scaler)

    def _begin(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        """Note that an optimizer steps; return its arguments where they are to be others."""
        optimizer = self._scene.known(optimizer)
        if not self._within_scaler():
            self._ready(optimizer, None)
            self._scene.let_know("before_step", optimizer)
        if (closure := kwargs.get("closure") or next(filter(callable, args[1:]), None)) is None:
            self._scene.let_know("stepping", optimizer)
            return None

        @functools.wraps(closure)
        def told() -> Any:  # noqa: ANN401
            loss = closure()
            self._scene.let_know("stepping", optimizer)  # the gradients are there now
            return loss

        swapped = {name: told if value is closure else value for name, value in kwargs.items()}
        return tuple(told if arg is closure else arg for arg in args), swapped

    def _end(self, optimizer: Optimizer) -> None:
        optimizer = self._scene.known(optimizer)
        if self._within_scaler() or id(optimizer) not in self._states:
            return
        self._scene.tell("plain_step", optimizer)
        self._attempt(optimizer, None)

    def _within_scaler(self) -> bool:
        return any(word == "step" for word, _ in self._scene.here.active)


def read_graph(roots: Iterable[Tensor]) -> Reached:
    """Walk the graph from the tensors that a backward pass begins at."""
    stack: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen, found, params = set[object](), Counter[str](), list[Tensor]()
    scaler: GradScaler | None = None
    whole = True
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        scaler = scaler or node.metadata.get(SCALED_BY)
        name = node.name()
        if hasattr(node, "variable"):
            params.append(node.variable)
        elif name.startswith(MATMULS + LAYERS) and node._input_metadata:  # noqa: SLF001  # the one place that has the dtype
            found[dtype_name(node._input_metadata[0].dtype)] += 1  # noqa: SLF001
        whole = whole and not isinstance(node, torch.autograd.function.BackwardCFunction)
        stack += [following for following, _ in node.next_functions if following is not None]
    factors = [list(_factors(root.grad_fn)) for root in roots]
    first = [each[0][0] for each in factors if each]
    by_hand = max((one for one in first if one >= 2 and math.log2(one).is_integer()), default=1.0)
    share = min((math.prod(one for one, _ in each if one < 1) for each in factors), default=1.0)
    again = max((math.prod([one for one, tagged in each if tagged][1:]) for each in factors), default=1.0)
    return Reached(scaler, tuple(params), dict(found), whole and not stack, by_hand, share, again)


def _factors(node: Any) -> Iterator[tuple[float, bool]]:  # noqa: ANN401
    """Yield the numbers that a loss was multiplied with or divided by, the last one first, and whether by a scaler."""
    while node is not None and node.name() in {"MulBackward0", "DivBackward0"}:
        other = node._saved_other  # noqa: SLF001  # the one place that has the number
        if not isinstance(other, Tensor) or other.numel() != 1 or other.requires_grad or not float(other) > 0:
            return
        yield (float(other) if node.name() == "MulBackward0" else 1 / float(other)), SCALED_BY in node.metadata
        node = node.next_functions[0][0]
