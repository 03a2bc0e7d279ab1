"""Which line of the project made a storage: every operation of torch is looked at while it is done."""

import importlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from .tensors import is_tensor, storage_of

if TYPE_CHECKING:
    from ..places import Places
    from .locating import Line

DEEPEST = 400


class Making:
    """Keeps, for each storage, the innermost line of the project when it was made."""

    def __init__(self, places: "Places") -> None:
        self._places = places
        self.lines: dict[int, Line | None] = {}

    def begin(self) -> None:
        """Look at each operation from now on, in this thread."""
        mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

        def look(_mode: object, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            return self.seen(func, args, kwargs or {})

        def no(_kind: type) -> bool:
            return False  # to skip it, torch would import all of dynamo first, traced: minutes

        kind: Any = type("Look", (mode,), {"__torch_dispatch__": look, "_should_skip_dynamo": classmethod(no)})
        kind().__enter__()

    def seen(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """Do an operation; note the storages that it returns and was not given."""
        given = {key for tensor in _tensors((args, kwargs)) for key, _ in storage_of(tensor)}
        result = func(*args, **kwargs)
        new = {key for tensor in _tensors(result) for key, _ in storage_of(tensor)} - given
        if new:
            line = self._place()
            self.lines.update(dict.fromkeys(new, line))
        return result

    def _place(self) -> "Line | None":
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  # as logging does
        for _ in range(DEEPEST):
            if frame is None:
                break
            shown = self._places.shown(frame.f_code.co_filename)
            if shown is not None:
                return shown, frame.f_lineno
            frame = frame.f_back
        return None


def _tensors(value: Any) -> Iterator[Any]:  # noqa: ANN401
    if is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
