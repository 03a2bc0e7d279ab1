"""What observers of a training step are told, the state that they share, and the journal that they write."""

import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.compiler import is_compiling
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer

from ..asking import Places, Teller, as_location, ended

R = TypeVar("R")


def returned_by(run: Callable[[], object]) -> object:
    """Return what a call comes to; one that leaves with exit code 0, as a command does, has come to its end, too."""
    try:
        return ended(run())
    except SystemExit as leaving:
        if leaving.code not in {None, 0}:
            raise
        return None


WRAPPERS = {"_FabricModule", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"}
RAISED = object()


class Outermost:
    """Tells of each outermost call of a module, in each thread, before and after it."""

    def __init__(self, before: Callable[[nn.Module], None], after: Callable[..., None]) -> None:
        self._before, self._after = before, after
        self._inside = threading.local()
        register_module_forward_pre_hook(self._enter)
        register_module_forward_hook(self._leave, with_kwargs=True, always_call=True)

    def _enter(self, module: nn.Module, _args: object) -> None:
        if not is_compiling() and type(module).__name__ not in WRAPPERS:  # what they wrap is the model
            self._inside.depth = depth = getattr(self._inside, "depth", 0) + 1
            if depth == 1:
                self._before(module)

    def _leave(self, module: nn.Module, args: object, kwargs: object, output: object = RAISED) -> None:
        if not is_compiling() and type(module).__name__ not in WRAPPERS:
            self._inside.depth = depth = max(0, getattr(self._inside, "depth", 0) - 1)
            if not depth and output is not RAISED:
                self._after(module, args, kwargs, output)


SCALED_BY = "gates.scaled_by"


class Reached(NamedTuple):
    """What one backward call leads to: whose scale, the parameters, and the dtypes of the matrix products before it.

    The code multiplied the loss `by_hand` with a power of two, and with a `share` of 1; `again` is a scale it had.
    """

    scaler: GradScaler | None
    params: tuple[Tensor, ...]
    products: Mapping[str, int]
    whole: bool
    by_hand: float = 1.0
    share: float = 1.0
    again: float = 1.0


class Thread(threading.local):
    """What is under way in one thread; `differentiated` where gradients were themselves made part of a graph."""

    def __init__(self) -> None:
        self.active: set[tuple[str, int]] = set()
        self.paused = self.differentiated = False
        self.reached: Reached | None = None


class Scene:
    """What all observers know, and the journal; `here` is what is under way in the thread that asks.

    An observer has a method for each event that it wants. `before_call(module)` and `after_call(module, args, kwargs,
    output)` are of outermost modules, with gradients. Then come `before_backward(reached)`, `after_backward(reached)`,
    `before_clip(params)`. With `ready(optimizer)` the gradients are as the code wants them, `before_step(optimizer)` is
    a scaler's, too, `stepping(optimizer)` just before parameters change; `after_step(optimizer)` was taken or left out.
    `updated(scaler)` and `scheduled(optimizer)` follow. `cleared(optimizers)` may be of a part. `ended()` is last.
    """

    def __init__(self, tell: Teller, root: str) -> None:
        self._write, self._places = tell.note, Places(root)
        self._numbers: dict[int, tuple[str, int, object]] = {}
        self._threads = {threading.get_ident(): 0}
        self._troubles, self.scaling = set[str](), set[int]()
        self.watched: Callable[[], None] = lambda: None
        self.optimizers, self.observers = list[Optimizer](), list[object]()
        self.attempts, self.here = 0, Thread()

    def number_of(self, thing: object, kind: str) -> int:
        """Return the number of an object among those of its kind, from 1 on; it is kept, so that its id is its own."""
        number = 1 + sum(known == kind for known, *_ in self._numbers.values())
        return self._numbers.setdefault(id(thing), (kind, number, thing))[1]

    def tell(self, word: str, *optimizers: Optimizer, scaler: GradScaler | None = None, **facts: object) -> None:
        """Note an event about some optimizers and a scaler, with the innermost line of the project that led to it."""
        facts |= {"scaler": self.number_of(scaler, "scaler")} if scaler else {}
        facts |= {"optimizers": [self.number(each) for each in optimizers]} if optimizers else {}
        self.watched()
        thread = self._threads.setdefault(threading.get_ident(), len(self._threads))
        self._write({"word": word, "location": self.location(), "thread": thread, **facts})

    def location(self) -> dict[str, object] | None:
        """Return path and line of the innermost frame that lies in the project."""
        return as_location(self._places.of(sys._getframe(1)))  # noqa: SLF001  # as logging does

    def safely(self, what: str, look: Callable[[], R]) -> R | None:
        """Return what a look of the recorder comes to; its fault is noted once, and never becomes the project's."""
        try:
            return look()
        except Exception as error:  # noqa: BLE001  # see above
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{what}: {type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"
            if what not in self._troubles:
                self._troubles.add(what)
                self._write({"word": "trouble", "what": text[:500]})
            return None

    def let_know(self, event: str, *told: object) -> None:
        """Let observers know of an event; one that fails does not disturb the others, nor the project."""
        self.here.paused = True
        try:
            for each in self.observers:
                if look := getattr(each, event, None):
                    self.safely(type(each).__name__, partial(look, *told))
        finally:
            self.here.paused = False

    def known(self, optimizer: Optimizer) -> Optimizer:
        """Return the first optimizer with the same parameters: one that wraps another is the same for them."""
        first = next((each for each in self.optimizers if each is optimizer or _ids(each) == _ids(optimizer)), None)
        if first is None:
            self.optimizers.append(optimizer)
        return first or optimizer

    def number(self, optimizer: Optimizer) -> int:
        """Return the number of an optimizer."""
        return self.number_of(self.known(optimizer), "optimizer")

    def holding(self, params: Iterable[Tensor]) -> list[Optimizer]:
        """Return the optimizers that hold any of these parameters."""
        wanted = {id(param) for param in params}
        found = [self.known(each) for each in self.optimizers if any(id(param) in wanted for param in held(each))]
        return list({id(each): each for each in found}.values())

    def led_to(self, reached: Reached) -> list[Optimizer]:
        """Return the optimizers that a backward pass is for: all, where not all of its graph could be read."""
        return self.holding(reached.params) if reached.whole else self.optimizers

    def scale_of(self, scaler: GradScaler | None) -> float:
        """Return the loss scale that a scaler multiplies losses with, 1 where it does not."""
        return float(scaler.get_scale()) if scaler and scaler.is_enabled() and id(scaler) in self.scaling else 1.0


def held(optimizer: Optimizer) -> Iterator[Tensor]:
    """Yield the parameters that an optimizer holds."""
    return (param for group in optimizer.param_groups for param in group["params"])


def _ids(optimizer: Optimizer) -> set[int]:
    return {id(param) for param in held(optimizer)}


def copied(optimizer: Optimizer) -> list[tuple[Tensor, Tensor]]:
    """Return the parameters of an optimizer, each with a copy of what it is now."""
    return [(param, param.detach().clone()) for param in held(optimizer)]


def changed(before: Iterable[tuple[Tensor, Tensor]]) -> int:
    """Return how many parameters are not, bit by bit, what they were."""
    return sum(not same(param.detach(), copy) for param, copy in before)


def has_gradient(param: Tensor) -> bool:
    """Return whether a parameter has a gradient that is not zero."""
    return param.grad is not None and (param.grad.is_sparse or bool(param.grad.any()))


def has_finite_gradients(optimizer: Optimizer) -> bool:
    """Return whether all gradients of an optimizer are finite, or there are none."""
    return all(is_finite(grad) for grad in gradients(optimizer) if not grad.is_sparse)


def gradients(optimizer: Optimizer) -> list[Tensor]:
    """Return the gradients that the parameters of an optimizer have."""
    return [param.grad for param in held(optimizer) if param.grad is not None]


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite."""
    return bool(torch.isfinite(tensor.detach()).all())


def same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal, NaN with NaN."""
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and (torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all()))


def rates(optimizer: Optimizer) -> list[float]:
    """Return the learning rates of an optimizer's groups."""
    return [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name without the package."""
    return str(dtype).removeprefix("torch.")
