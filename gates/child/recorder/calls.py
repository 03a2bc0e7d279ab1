"""The wrappers around the calls of torch and of trackers: each behaves as before, and tells of itself."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.autocast_mode import autocast
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .observing import Outermost, Scene, has_gradient, held

Call = Callable[..., Any]
Own = tuple[str, int]  # the name of a call and the object that it is on, or 0


def _listed(given: object) -> object:
    """Return what can be gone through once as what can be gone through again."""
    return list(given) if isinstance(given, Iterator) else given


def around(
    scene: Scene, owner: object, name: str, before: Call | None, after: Call | None = None, *, key: Own | None = None
) -> None:
    """Put a call between `before(*args)` and `after(result, *args)`; what it calls on the same object is its own."""
    original: Call = vars(owner)[name]

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        own = key or (name, id(args[0]) if args and isinstance(owner, type) else 0)
        if scene.here.paused or own in scene.here.active:
            return original(*args, **kwargs)
        scene.here.active.add(own)
        args = tuple(map(_listed, args))
        kwargs = {word: _listed(value) for word, value in kwargs.items()}
        try:
            if before is not None:
                scene.safely(name, lambda: before(*args, **kwargs))
            result = original(*args, **kwargs)
            if after is not None:
                scene.safely(name, lambda: after(result, *args, **kwargs))
            return result
        finally:
            scene.here.active.discard(own)

    setattr(owner, name, wrapped)


def around_all(scene: Scene, root: Any, put: Mapping[str, tuple[Call | None, Call | None]]) -> None:  # noqa: ANN401
    """Put the same around the methods of a class, of those that inherit from it, and of those that will."""
    covered: set[type] = set()

    def cover(kind: type[Any]) -> None:
        if kind not in covered:
            covered.add(kind)
            for name in put.keys() & vars(kind).keys():
                around(scene, kind, name, *put[name])
            for below in kind.__subclasses__():
                cover(below)

    def inherits(kind: type[Any], /, **kwargs: object) -> None:
        super(root, kind).__init_subclass__(**kwargs)
        cover(kind)

    cover(root)
    root.__init_subclass__ = classmethod(inherits)


class Calls:
    """Wraps the calls around a step: of outermost modules, clipping, clearing, schedules, autocast."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._clips()
        around(scene, nn.Module, "zero_grad", None, self._cleared)
        around_all(scene, Optimizer, {"zero_grad": (None, self._cleared), "__init__": (None, self._made)})
        around_all(scene, LRScheduler, {"step": (self._advance, None), "__init__": (None, None)})
        around(scene, autocast, "__enter__", functools.partial(self._tell, "autocast_enter"))
        around(scene, autocast, "__exit__", functools.partial(self._tell, "autocast_exit"))
        Outermost(self._before, self._after)

    def _looks(self) -> bool:
        """Return whether a call of a module builds a graph of the project's."""
        here = self._scene.here
        return not here.paused and torch.is_grad_enabled() and ("backward", 0) not in here.active

    def _before(self, module: nn.Module) -> None:
        if self._looks():
            self._scene.tell("forward")
            self._scene.let_know("before_call", module)

    def _after(self, module: nn.Module, *told: object) -> None:
        if self._looks():
            self._scene.let_know("after_call", module, *told)

    def _clips(self) -> None:
        """Wrap each clip in both places where it can be had, as one and the same function."""
        for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_"):
            if hasattr(nn.utils, name):
                around(self._scene, nn.utils, name, self._clipping, key=("clip", 0))
                if hasattr(nn.utils.clip_grad, name):
                    setattr(nn.utils.clip_grad, name, getattr(nn.utils, name))

    def _clipping(self, parameters: Tensor | list[Tensor], *_args: object, **_kwargs: object) -> None:
        params = [parameters] if isinstance(parameters, Tensor) else parameters
        self._scene.let_know("before_clip", params)
        self._scene.tell("clip", *self._scene.holding(params))

    def _made(self, _result: object, optimizer: Optimizer, *_args: object, **_kwargs: object) -> None:
        if hasattr(optimizer, "param_groups"):
            self._scene.known(optimizer)

    def _cleared(self, _result: object, thing: Optimizer | nn.Module, *_args: object, **_kwargs: object) -> None:
        """Tell of gradients that are gone; one that wraps an optimizer may keep them until its window is over."""
        scene = self._scene
        if any(map(has_gradient, held(thing) if isinstance(thing, Optimizer) else thing.parameters())):
            return
        optimizers = [scene.known(thing)] if isinstance(thing, Optimizer) else scene.holding(thing.parameters())
        scene.tell("zero_grad", *optimizers)
        scene.let_know("cleared", optimizers)

    def _advance(self, scheduler: LRScheduler, *_args: object, **_kwargs: object) -> None:
        if ("__init__", id(scheduler)) not in self._scene.here.active:  # its constructor takes a first step
            optimizer = getattr(scheduler, "optimizer", None)
            known = [self._scene.known(optimizer)] if isinstance(optimizer, Optimizer) else []
            self._scene.tell("scheduler", *known)
            for each in known:
                self._scene.let_know("scheduled", each)

    def _tell(self, word: str, context: autocast, *_args: object) -> None:
        if context._enabled:  # noqa: SLF001  # torch has no other way to ask; one that is turned off is none
            self._scene.tell(word)


MOST_KEYS = 64


class Trackers:
    """Looks, whenever something is told, for trackers that were imported meanwhile, and listens to them."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._heard = scene, set[str]()

    def look(self) -> None:
        """Listen to the trackers that are there by now."""
        for name, entry, methods in TRACKERS:
            module: Any = sys.modules.get(name)
            kind = getattr(module, entry, None)
            if kind is not None and name not in self._heard:
                self._heard.add(name)
                for method, read in methods.items():
                    around(self._scene, kind, method, functools.partial(self._tell, name.rpartition(".")[2], read))
                if getattr(module, "run", None) is not None:  # W&B's own function is what its run's was at `init`
                    module.log = module.run.log

    def _tell(self, to: str, read: Call, _self: object, *args: object, **kwargs: object) -> None:
        if values := numbers(read(*args, **kwargs)):
            self._scene.tell("log", to=to, values=values)

    def returned(self, value: object) -> None:
        """Take what a training step returned as records, where it is made of them."""
        for each in value if isinstance(value, list | tuple) and not hasattr(value, "_fields") else [value]:
            if values := numbers({"returned": each} if isinstance(each, int | float) else each):
                self._scene.tell("log", to="return", values=values)


WRITES: dict[str, Call] = {
    "add_scalar": lambda tag, value=None, *_, **named: {tag: named.get("scalar_value", value)},
    "add_scalars": lambda _tag, values=None, *_, **named: named.get("tag_scalar_dict", values),
}
TRACKERS: tuple[tuple[str, str, dict[str, Call]], ...] = (
    ("wandb", "Run", {"log": lambda data=None, *_, **__: data}),
    ("torch.utils.tensorboard", "SummaryWriter", WRITES),
)


def numbers(data: object) -> dict[str, float]:
    """Return the numbers of a record, by name."""
    found: dict[str, float] = {}
    for name, value in _items(data):
        if isinstance(value, Tensor) and value.numel() == 1:
            value = value.detach().item()  # noqa: PLW2901
        if isinstance(value, int | float) and not isinstance(value, bool) and len(found) < MOST_KEYS:
            found[str(name)[:100]] = float(value)
    return found


def _items(data: object) -> Iterable[tuple[object, object]]:
    if isinstance(data, Mapping):
        return data.items()
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return [(each.name, getattr(data, each.name)) for each in dataclasses.fields(data)]
    return list(data._asdict().items()) if hasattr(data, "_asdict") else []
