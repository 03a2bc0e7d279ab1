"""The wrappers around the calls of torch and of trackers: each behaves as before, and tells of itself."""

import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.autocast_mode import autocast
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .observing import Scene, dtype_name, safely

Call = Callable[..., Any]
Before = Callable[..., None]
WRAPPERS = {"_FabricModule", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"}
RAISED = object()


def around(scene: Scene, owner: Any, name: str, before: Before, after: Before | None = None) -> None:  # noqa: ANN401
    """Put a call between `before(*args)` and `after(result, *args)`; what it calls on the same object is its own."""
    original: Call = vars(owner)[name]
    if getattr(original, "gates_wrapped", False):
        return
    word = f"{getattr(owner, '__name__', owner)}.{name}" if not isinstance(owner, type) else name

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        key = (word, id(args[0]) if args and isinstance(owner, type) else 0)
        if scene.paused or key in scene.active:
            return original(*args, **kwargs)
        scene.active.add(key)
        try:
            safely(scene.journal, word, lambda: before(*args, **kwargs), None)
            result = original(*args, **kwargs)
            if after is not None:
                safely(scene.journal, word, lambda: after(result, *args, **kwargs), None)
            return result
        finally:
            scene.active.discard(key)

    wrapped.gates_wrapped = True  # type: ignore[attr-defined]
    setattr(owner, name, wrapped)


def around_all(
    scene: Scene, root: type, names: Iterable[str], put: Callable[[type, str], None],
    born: Callable[[Any], None] | None = None,
) -> None:  # fmt: skip
    """Put the same around the methods of a class, of those that inherit from it, and of those that will.

    `born` is told of each new object.
    """

    def cover(kind: type) -> None:
        for each in kind.__mro__:
            for name in names:
                if issubclass(each, root) and name in vars(each):
                    put(each, name)

    def known(kind: type[Any]) -> None:
        cover(kind)
        for below in kind.__subclasses__():
            known(below)

    known(root)
    original: Call = root.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def begun(self: object, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        with suppress(TypeError):  # a class whose attributes cannot be set stays unseen
            cover(type(self))
        key = ("init", id(self))
        outer = key not in scene.active
        scene.active.add(key)
        try:
            original(self, *args, **kwargs)
        finally:
            if outer:
                scene.active.discard(key)
        if outer and born is not None:
            safely(scene.journal, "a new object", lambda: born(self), None)

    root.__init__ = begun  # type: ignore[misc]


class Calls:
    """Wraps the calls of optimizers' helpers: clipping, clearing, schedules, autocast."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._clips()
        self._clears()
        put = self._schedule
        around_all(scene, LRScheduler, ("step",), put)
        for kind in (autocast, *autocast.__subclasses__()):
            if "__enter__" in vars(kind):
                around(scene, kind, "__enter__", self._entered)
                around(scene, kind, "__exit__", self._left)

    def _clips(self) -> None:
        """Wrap each clip in both places where it can be had, as one and the same function."""
        for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_"):
            if hasattr(nn.utils, name):
                clip = self._clip(name, getattr(nn.utils, name))
                setattr(nn.utils, name, clip)
                if hasattr(nn.utils.clip_grad, name):
                    setattr(nn.utils.clip_grad, name, clip)

    def _clip(self, name: str, original: Call) -> Call:
        scene = self._scene

        @functools.wraps(original)
        def wrapped(parameters: Tensor | Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if scene.paused or ("clip", 0) in scene.active:
                return original(parameters, *args, **kwargs)
            given = parameters if isinstance(parameters, Tensor) else list(parameters)  # a generator is read only once
            scene.active.add(("clip", 0))
            try:
                safely(scene.journal, name, lambda: self._clipping(name, given), None)
                return original(given, *args, **kwargs)
            finally:
                scene.active.discard(("clip", 0))

        return wrapped

    def _clipping(self, name: str, given: Tensor | list[Tensor]) -> None:
        params = [given] if isinstance(given, Tensor) else given
        optimizers = [self._scene.number(each) for each in self._scene.holding(params)]
        self._scene.let_know("before_clip", params)
        self._scene.journal.tell("clip", call=name, optimizers=optimizers)

    def _clears(self) -> None:
        scene = self._scene

        def whose(thing: Optimizer | nn.Module) -> list[Optimizer]:
            return [scene.known(thing)] if isinstance(thing, Optimizer) else scene.holding(thing.parameters())

        def clear(thing: Optimizer | nn.Module, *_args: object, **_kwargs: object) -> None:
            optimizers = whose(thing)
            scene.journal.tell("zero_grad", optimizers=[scene.number(each) for each in optimizers])
            scene.let_know("cleared", optimizers)

        def gone(_result: object, thing: Optimizer | nn.Module, *_args: object, **_kwargs: object) -> None:
            optimizers = whose(thing)
            scene.let_know("gone", optimizers)

        around(scene, nn.Module, "zero_grad", clear, gone)
        put = lambda kind, name: around(scene, kind, name, clear, gone)  # noqa: E731
        around_all(scene, Optimizer, ("zero_grad",), put, scene.optimizers.append)

    def _schedule(self, kind: type, name: str) -> None:
        scene = self._scene

        def advance(scheduler: LRScheduler, *_args: object, **_kwargs: object) -> None:
            if ("init", id(scheduler)) not in scene.active:  # its constructor takes a first step
                optimizer = getattr(scheduler, "optimizer", None)
                known = [scene.known(optimizer)] if isinstance(optimizer, Optimizer) else []
                scene.journal.tell("scheduler", optimizers=[scene.number(each) for each in known])
                if known:
                    scene.let_know("scheduled", known[0])

        around(scene, kind, name, advance)

    def _entered(self, context: autocast, *_args: object) -> None:
        dtype = context.fast_dtype
        self._tell("autocast_enter", context, dtype=dtype_name(dtype) if dtype else None)

    def _left(self, context: autocast, *_args: object) -> None:
        self._tell("autocast_exit", context)

    def _tell(self, word: str, context: autocast, **facts: object) -> None:
        if context._enabled:  # noqa: SLF001  # torch has no other way to ask; one that is turned off is none
            self._scene.journal.tell(word, **facts)


class Forwards:
    """Tells the observers of each outermost call of a module that builds a graph."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._inside = threading.local()
        register_module_forward_pre_hook(self._before)
        register_module_forward_hook(self._after, with_kwargs=True, always_call=True)

    def _looks(self, module: nn.Module) -> bool:
        if torch.compiler.is_compiling():  # nothing of ours may come into a compiled graph
            return False
        if type(module).__name__ in WRAPPERS:  # what they wrap is the model
            return False
        return not self._scene.paused and torch.is_grad_enabled() and ("backward", 0) not in self._scene.active

    def _before(self, module: nn.Module, _args: object) -> None:
        if not self._looks(module):
            return
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        if self._inside.depth > 1:
            return
        self._inside.outermost = module
        scene = self._scene
        scene.journal.tell("forward")
        scene.let_know("before_call", module)

    def _after(
        self, module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], output: object = RAISED
    ) -> None:
        if not self._looks(module) or not getattr(self._inside, "depth", 0):
            return
        self._inside.depth -= 1
        if self._inside.depth or self._inside.outermost is not module or output is RAISED:
            return
        self._scene.let_know("after_call", module, args, kwargs, output)


MOST_KEYS = 64
MOST_RECORDS = 2000


class Trackers:
    """Looks, whenever something is told, for trackers that were imported meanwhile, and listens to them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._heard: set[str] = set()
        self._inside = False
        self._records = 0

    def look(self) -> None:
        """Listen to the trackers that are there by now."""
        for name, listen in (("wandb", self._wandb), ("torch.utils.tensorboard", self._tensorboard)):
            module = sys.modules.get(name)
            if module is not None and name not in self._heard and hasattr(module, ENTRY[name]):
                self._heard.add(name)
                safely(self._scene.journal, name, functools.partial(listen, module), None)

    def _wandb(self, wandb: Any) -> None:  # noqa: ANN401
        begin = wandb.init

        @functools.wraps(begin)
        def begun(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            run = begin(*args, **kwargs)
            safely(self._scene.journal, "wandb", lambda: self._run(wandb, run), None)
            return run

        wandb.init = begun
        if getattr(wandb, "run", None) is not None:
            self._run(wandb, wandb.run)

    def _run(self, wandb: Any, run: Any) -> None:  # noqa: ANN401
        current = getattr(wandb, "run", None) is run
        log = self._listening(run.log, lambda data, *_args, **_kwargs: data, "wandb")
        run.log = log
        if current:  # the module's own function is what the run's was at `init`
            wandb.log = log

    def _tensorboard(self, module: Any) -> None:  # noqa: ANN401
        writer = module.SummaryWriter
        pair = lambda _self, tag, value, *_args, **_kwargs: {tag: value}  # noqa: E731
        many = lambda _self, _tag, values, *_args, **_kwargs: values  # noqa: E731
        writer.add_scalar = self._listening(writer.add_scalar, pair, "tensorboard")
        writer.add_scalars = self._listening(writer.add_scalars, many, "tensorboard")

    def _listening(self, original: Callable[..., Any], read: Callable[..., object], to: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def logged(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if not self._inside:
                safely(self._scene.journal, to, lambda: self._tell(to, read(*args, **kwargs)), None)
            self._inside = True
            try:
                return original(*args, **kwargs)
            finally:
                self._inside = False

        return logged

    def _tell(self, to: str, data: object) -> None:
        values = numbers(data)
        if values and self._records < MOST_RECORDS:
            self._records += 1
            self._scene.journal.tell("log", to=to, values=values)

    def returned(self, value: object) -> None:
        """Take what a training step returned as records, where it is made of them."""
        many = value if isinstance(value, list | tuple) and not hasattr(value, "_fields") else [value]
        for each in many:
            self._tell("return", {"returned": each} if isinstance(each, int | float) else each)


ENTRY = {"wandb": "init", "torch.utils.tensorboard": "SummaryWriter"}


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
    if hasattr(data, "_asdict"):
        return list(data._asdict().items())
    return []
