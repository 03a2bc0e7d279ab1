"""What makes a step: scaled losses, backward passes, unscaling, optimizers that step or leave it out, updates."""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, cast
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from .calls import Call, around, around_all, nothing
from .observing import SCALED_BY, Reached, Scene, changed, copied, dtype_name, has_finite_gradients, held, rates, safely

MOST_NODES = 50_000
MATMULS = ("Addmm", "Mm", "Bmm", "Baddbmm", "Addbmm", "Mv", "Addmv", "Dot", "Addr", "Linear", "Einsum")
LAYERS = ("Conv", "MkldnnConv", "MkldnnLinear", "MkldnnRnn", "ScaledDotProduct", "SlowConv", "ThnnConv")
PRODUCTS = MATMULS + LAYERS


class Steps:
    """Wraps scalers and backward passes, and hooks into optimizers; `making` is told of a scaler before it is made."""

    def __init__(self, scene: Scene, making: Call) -> None:
        self._scene = scene
        self._scalers: WeakValueDictionary[int, GradScaler] = WeakValueDictionary()  # the journal holds on to them
        self._before_step: dict[int, list[tuple[Tensor, Tensor]]] = {}
        self._states: dict[int, dict[str, Any]] = {}
        self._windows: dict[int, int] = {}  # how often each scaler was updated
        around_all(
            scene,
            GradScaler,
            {
                "__init__": (making, self._born),
                "scale": (nothing, self._scaled),
                "unscale_": (self._unscale, None),
                "step": (self._step, self._stepped),
                "update": (self._update, self._updated),
            },
        )
        for owner in (Tensor, torch.autograd):  # a tensor's method calls autograd's function
            around(scene, owner, "backward", self._backward, self._backward_ended, key=("backward", 0))
        around(scene, torch.autograd, "grad", self._grad)
        register_optimizer_step_pre_hook(self._pre)
        register_optimizer_step_post_hook(self._post)

    def _born(self, _result: object, scaler: GradScaler, *_args: object, **_kwargs: object) -> None:
        self._number(scaler)

    def _number(self, scaler: GradScaler) -> int:
        number = self._scene.journal.number(scaler, "scaler")
        self._scalers[number] = scaler
        return number

    def _scaled(self, result: object, scaler: GradScaler, outputs: object) -> None:
        """Mark losses that were scaled, so that their backward pass is known."""
        if result is outputs or not scaler.is_enabled():
            return
        self._scene.scaling.add(id(scaler))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.grad_fn is not None:
                cast("dict[str, Any]", leaf.grad_fn.metadata)[SCALED_BY] = self._number(scaler)

    def _grad(self, *args: object, **kwargs: object) -> None:
        self._scene.here.differentiated |= bool(kwargs.get("create_graph", args[4] if len(args) > 4 else False))

    def _backward(self, tensors: object, *_args: object, **_kwargs: object) -> None:
        scene = self._scene
        scene.here.reached = None
        roots = [leaf for leaf in tree_leaves(tensors) if isinstance(leaf, Tensor)]
        reached = read_graph(roots, self._scalers)
        optimizers = scene.led_to(reached)
        scene.journal.tell(
            "scaled_backward" if reached.scaler else "backward",
            scaler=self._number(reached.scaler) if reached.scaler else None,
            optimizers=[scene.number(each) for each in optimizers],
            scale=scene.scale_of(reached.scaler),
            products=reached.products,
            whole=reached.whole,
            share=reached.share,
        )
        scene.let_know("before_backward", reached)
        scene.here.reached = reached

    def _backward_ended(self, *_args: object, **_kwargs: object) -> None:
        if reached := self._scene.here.reached:
            self._scene.let_know("after_backward", reached)

    def _unscale(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        if not any(word == "step" for word, _ in self._scene.here.active):  # a step unscales by itself what was not
            self._tell("unscale", scaler, optimizer)

    def _tell(self, word: str, scaler: GradScaler, optimizer: Optimizer | None = None, **facts: object) -> None:
        facts["scaling"], facts["enabled"] = id(scaler) in self._scene.scaling, scaler.is_enabled()
        if optimizer is not None:
            facts["optimizers"] = [self._scene.number(optimizer)]
        self._scene.journal.tell(word, scaler=self._number(scaler), **facts)

    def _step(self, scaler: GradScaler, optimizer: Optimizer, *_args: object, **_kwargs: object) -> None:
        optimizer = self._scene.known(optimizer)
        self._before_step[id(optimizer)] = copied(optimizer)
        self._states[id(optimizer)] = _state(self._scene, optimizer, scaler)
        self._scene.let_know("ready", optimizer)
        self._tell("step", scaler, optimizer)
        self._scene.let_know("before_step", optimizer)

    def _stepped(self, _result: object, scaler: GradScaler, optimizer: Optimizer, *_a: object, **_kw: object) -> None:
        """Take a step for left out where no parameter moved by gradients that are not finite."""
        optimizer = self._scene.known(optimizer)
        moved = changed(self._before_step.pop(id(optimizer), []))
        self._attempt(optimizer, scaler, skipped=not (moved or has_finite_gradients(optimizer)))

    def _attempt(self, optimizer: Optimizer, scaler: GradScaler | None, *, skipped: bool) -> None:
        scene, state = self._scene, self._states.pop(id(optimizer), {})
        number, by = scene.number(optimizer), self._number(scaler) if scaler else None
        window = None if by is None else self._windows.get(by, 0)
        scene.journal.tell("attempt", optimizer=number, scaler=by, window=window, skipped=skipped, **state)
        scene.let_know("after_step", optimizer)
        scene.attempts += 1

    def _update(self, scaler: GradScaler, *_args: object, **_kwargs: object) -> None:
        self._tell("update", scaler)

    def _updated(self, _result: object, scaler: GradScaler, *_args: object, **_kwargs: object) -> None:
        self._windows[self._number(scaler)] = self._windows.get(self._number(scaler), 0) + 1
        self._scene.let_know("updated", scaler)

    def _pre(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        return safely(self._scene.journal, "a step", lambda: self._begin(optimizer, args, kwargs), None)

    def _begin(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        """Note that an optimizer steps; return its arguments where they are to be others."""
        optimizer = self._scene.known(optimizer)
        if not self._within_scaler():
            self._states[id(optimizer)] = _state(self._scene, optimizer, None)
            self._scene.let_know("ready", optimizer)
            self._scene.let_know("before_step", optimizer)
        closure = kwargs.get("closure") or next(filter(callable, args[1:]), None)
        if closure is None:
            self._scene.let_know("stepping", optimizer)
            return None
        told = self._listening(closure, optimizer)
        swapped = {name: told if value is closure else value for name, value in kwargs.items()}
        return tuple(told if arg is closure else arg for arg in args), swapped

    def _listening(self, closure: Callable[[], Any], optimizer: Optimizer) -> Callable[[], Any]:
        """Return a closure after which the gradients are there."""

        @functools.wraps(closure)
        def told() -> Any:  # noqa: ANN401
            loss = closure()
            self._scene.let_know("stepping", optimizer)
            return loss

        return told

    def _post(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        safely(self._scene.journal, "an optimizer's step", lambda: self._end(optimizer), None)

    def _end(self, optimizer: Optimizer) -> None:
        optimizer = self._scene.known(optimizer)
        if self._within_scaler() or id(optimizer) not in self._states:
            return
        self._scene.journal.tell("plain_step", optimizers=[self._scene.number(optimizer)])
        self._attempt(optimizer, None, skipped=False)

    def _within_scaler(self) -> bool:
        return any(("step", id(scaler)) in self._scene.here.active for scaler in self._scalers.values())


def _state(scene: Scene, optimizer: Optimizer, scaler: GradScaler | None) -> dict[str, Any]:
    """Return what an optimizer is about to step with."""
    params = [param for param in held(optimizer) if param.requires_grad]
    return {
        "lr": rates(optimizer),
        "scale": scene.scale_of(scaler),
        "params": sorted({dtype_name(param.dtype) for param in params}),
    }


def read_graph(roots: Iterable[Tensor], scalers: MutableMapping[int, GradScaler]) -> Reached:
    """Walk the graph from the tensors that a backward pass begins at."""
    stack: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen: set[object] = set()
    found, params = Counter[str](), list[Tensor]()
    scaler: GradScaler | None = None
    whole = True
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        scaler = scaler or scalers.get(node.metadata.get(SCALED_BY, 0))
        name = node.name()
        if hasattr(node, "variable"):
            params.append(node.variable)
        elif name.startswith(PRODUCTS) and node._input_metadata:  # noqa: SLF001  # the one place that has the dtype
            found[dtype_name(node._input_metadata[0].dtype)] += 1  # noqa: SLF001
        whole = whole and not isinstance(node, torch.autograd.function.BackwardCFunction)
        stack += [following for following, _ in node.next_functions if following is not None]
    factors = [list(_factors(root.grad_fn)) for root in roots]
    by_hand = max((each[0][0] for each in factors if each and _is_scale(each[0][0])), default=1.0)
    share = min((math.prod(one for one, _ in each if one < 1) for each in factors), default=1.0)
    again = max((math.prod([one for one, tagged in each if tagged][1:]) for each in factors), default=1.0)
    return Reached(scaler, tuple(params), dict(found), whole and not stack, by_hand, share, again)


def _factors(node: Any) -> Iterator[tuple[float, bool]]:  # noqa: ANN401
    """Yield the numbers that a loss was multiplied with or divided by, the last one first, and whether by a scaler."""
    while node is not None and node.name() in {"MulBackward0", "DivBackward0"}:
        other = node._saved_other  # noqa: SLF001  # the one place that has the number
        if not isinstance(other, Tensor) or other.numel() != 1 or other.requires_grad or not float(other) > 0:
            return
        factor = float(other) if node.name() == "MulBackward0" else 1 / float(other)
        yield factor, SCALED_BY in node.metadata
        node = node.next_functions[0][0]


def _is_scale(factor: float) -> bool:
    """Whether a factor is a power of two above 1."""
    return factor >= 2 and math.log2(factor).is_integer()
