"""A sink that writes TensorBoard's event files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from amp_core.tracking.records import Flush, report


class TensorBoardSink:
    """Writes scalars for TensorBoard; if it is absent, that is said once, and nothing is written.

    A resumed run that writes into the folder of the one before hides the steps that it takes again.
    """

    name = "tensorboard"

    def __init__(self, folder: Path | str) -> None:
        self._folder = folder
        self._open: Any = None  # tensorboard is optional and imported here only, so its types are not at hand
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter

            self._open = SummaryWriter
        except ImportError as error:
            report(self.name, "start", error)

    def write(self, flush: Flush) -> None:
        """Write each step's scalars."""
        self._add(flush.metrics())

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers as scalars of the step."""
        self._add([(step, numbers)])

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()

    def _add(self, scalars: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        if self._open is None:
            return
        for step, values in scalars:
            if self._writer is None:
                self._writer = self._open(str(self._folder), purge_step=step)
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)
        self._writer.flush()
