"""Tells who makes batches where no loader of torch does: an iterator, or a function of the project."""

import os
import sys
from collections.abc import Iterator
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor

from ..places import HERE, Places

DEEPEST = 200
WIDEST = 64
NOT_DATA = ("<genexpr>",)
TORCH = (str(Path(torch.__file__).parent) + os.sep, HERE)


class Feeding:
    """Which code loops over the steps, and which of what it calls hands it the batches.

    Batches come from what the loop calls directly: a generator, a `__next__`, or a function of the project one of
    whose returned tensors a model was called with. The last is found out in one step in which each return is looked at.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._loops: set[CodeType] = set()
        self._feeders: set[CodeType] = set()
        self._given: dict[int, tuple[CodeType, object]] = {}
        self._learning = False

    def looping(self, frame: FrameType | None) -> None:
        """Note that a model or an optimizer was called from here: no frame outwards makes batches."""
        while frame is not None:
            if not frame.f_code.co_filename.startswith(TORCH):  # which calls models, but also what makes batches
                self._loops.add(frame.f_code)
            frame = frame.f_back

    def learn(self) -> None:
        """Look at what functions of the project return, unless somebody else does."""
        if sys.getprofile() is None:
            self._learning = True
            sys.setprofile(self._seen)

    def learned(self) -> None:
        """Look no longer."""
        if self._learning:
            sys.setprofile(None)
            self._learning = False
            self._given.clear()

    def fed(self, given: object) -> None:
        """Note what a model was called with."""
        if self._learning:
            for pointer, _ in pointers(given):
                if pointer in self._given:
                    self._feeders.add(self._given[pointer][0])

    def makes_batches(self, frame: FrameType | None) -> bool:
        """Return whether the loop waits here for a batch."""
        called: FrameType | None = None
        for _ in range(DEEPEST):
            if frame is None or frame.f_code in self._loops:
                break
            if not frame.f_code.co_filename.startswith(HERE):
                called = frame
            frame = frame.f_back
        if called is None or frame is None:
            return False
        code = called.f_code
        if code in self._feeders or code.co_name == "__next__":
            return True
        return bool(code.co_flags & CO_GENERATOR) and code.co_name not in NOT_DATA

    def _seen(self, frame: FrameType, event: str, returned: object) -> None:
        if event == "return" and returned is not None and self._places.shown(frame.f_code.co_filename):
            for pointer, thing in pointers(returned):
                if frame.f_code not in self._loops:
                    self._given[pointer] = (frame.f_code, thing)  # which is held, so that no other gets its place


def pointers(value: Any, depth: int = 3) -> Iterator[tuple[int, object]]:  # noqa: ANN401
    """Yield where the data of tensors and arrays lie, which no model has made."""
    if isinstance(value, Tensor):
        if not value.requires_grad and value.layout is torch.strided:
            yield _pointer_of(value), value
    elif isinstance(value, dict) and depth:
        for each in list(value.values())[:WIDEST]:
            yield from pointers(each, depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for each in value[:WIDEST]:
            yield from pointers(each, depth - 1)
    elif type(value).__module__ == "numpy" and hasattr(value, "__array_interface__"):
        yield value.__array_interface__["data"][0], value


def _pointer_of(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except RuntimeError:  # a tensor without a storage of its own
        return 0
