"""Asks for devices that are not there, or that are hidden while a step is recorded: what torch answers is told."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast

from .calls import around
from .observing import Observer, Scene, dtype_name


class Hidden(Observer):
    """Tells each ask once a test, in torch's own words, and whether such an answer ended the run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._asked: set[tuple[str, str]] = set()
        self._refusal: BaseException | None = None
        around(scene, autocast, "__init__", self._autocast)
        around(scene, GradScaler, "__init__", self._scaler)
        torch.cuda._lazy_init = self._refusing(torch.cuda._lazy_init)  # noqa: SLF001  # all ways to CUDA lead here

    def ended_by(self, error: BaseException) -> None:
        """Tell that the run ended because a device was not there."""
        if error is self._refusal:
            self._scene.journal.tell("hidden", what=f"{error}".partition("\n")[0], ends=True)

    def over(self) -> None:
        """Tell the next test's asks again."""
        self._asked.clear()

    def _autocast(
        self,
        _context: autocast,
        device_type: str,
        dtype: torch.dtype | None = None,
        enabled: object = True,
        cache_enabled: object = None,  # noqa: ARG002  # as torch calls it
    ) -> None:
        if enabled:
            wanted = dtype or torch.get_autocast_dtype(device_type)
            self._tell(device_type, "autocast", lambda: autocast(device_type, dtype), dtype=dtype_name(wanted))

    def _scaler(self, _scaler: GradScaler, device: str = "cuda", *args: object, **kwargs: object) -> None:
        if kwargs.get("enabled", args[4] if len(args) > 4 else True):
            self._tell(device, "scaler", lambda: GradScaler(device))

    def _tell(self, device: str, kind: str, ask: Callable[[], object], **facts: object) -> None:
        module: Any = getattr(torch, device.partition(":")[0], None)
        absent = hasattr(module, "is_available") and not module.is_available()
        if not absent or (device, kind) in self._asked:
            return
        self._asked.add((device, kind))
        self._scene.here.paused = True
        try:
            with warnings.catch_warnings(record=True) as answers:
                warnings.simplefilter("always")
                ask()
        finally:
            self._scene.here.paused = False
        for answer in answers[:1]:
            self._scene.journal.tell("hidden", what=str(answer.message), **facts)

    def _refusing(self, original: Callable[[], None]) -> Callable[[], None]:
        @functools.wraps(original)
        def begin() -> None:
            try:
                original()
            except Exception as error:
                self._refusal = error
                raise

        return begin
