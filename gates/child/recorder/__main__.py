"""Calls one training step of the tested project with everything around it recorded.

    python -m gates_probe.recorder QUESTION

The journal ends with what came of the call.
"""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor

from ..asking import Teller, named, program
from .calls import Calls, Forwards
from .effects import ByHand, Clearing, Given, Hidden, Spoiled
from .observing import Journal, Scene, returned_by, safely
from .overflow import Overflow
from .reference import Reference
from .steps import Steps

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


@program
def main(asked: dict[str, Any], tell: Teller) -> None:
    """Record the call that was asked for."""
    scene = Scene(Journal(tell, asked["root"]))
    hidden = Hidden(scene)
    Calls(scene), Steps(scene), Forwards(scene)
    trackers = Trackers(scene)
    scene.journal.watched = trackers.look
    scene.observers += [Clearing(scene), ByHand(scene), Given(scene), Spoiled(scene)]
    scene.observers.append(Overflow(scene, **asked["overflow"]) if asked["overflow"] else Reference(scene))
    try:
        returned = returned_by(lambda: named(asked["call"])[1](*asked["args"]))
    except BaseException as error:
        hidden.ended_by(error)
        raise
    safely(scene.journal, "what was returned", lambda: trackers.returned(returned), None)
    scene.let_know(lambda each: each.ended())
