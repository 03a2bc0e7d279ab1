"""Per-step numbers: kept on the device, copied to the host every few steps, handed to sinks."""

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import torch
from torch import Tensor

METRICS = {
    "loss": "train/loss",
    "grad_norm": "train/grad_norm",
    "lr": "train/lr",
    "loss_scale": "amp/loss_scale",
    "found_inf": "amp/found_inf",
}


@dataclass(frozen=True)
class StepRecord:
    """One optimizer step on the host, as StepResult has it on the device."""

    step: int
    loss: float
    grad_norm: float
    lr: float
    loss_scale: float
    found_inf: float

    def as_json(self) -> dict[str, float | None]:
        """Return the numbers by name; one that is not finite becomes None, as JSON has no word for it."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


class Sink(Protocol):
    """Somewhere that step records go."""

    def write(self, records: Sequence[StepRecord]) -> None:
        """Take the records of the steps since the last call, in order."""

    def close(self) -> None:
        """Finish; nothing is written afterwards."""


class Tracker:
    """Numbers the optimizer steps and keeps their scalars on the device; one copy flushes `every` steps at once."""

    def __init__(self, every: int, sinks: Sequence[Sink]) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1 step, found {every!r}")
        self.every = every
        self.sinks = tuple(sinks)
        self.step = 0
        self._pending: list[Tensor] = []

    def add(self, *, loss: Tensor, grad_norm: Tensor, lr: Tensor, loss_scale: Tensor, found_inf: Tensor) -> bool:
        """Keep the scalars of the next step, as they are now; return whether that flushed.

        All are scalars on one device. They are copied, so that tensors changed in place later do no harm.
        """
        self._pending.append(torch.stack([loss.float(), grad_norm, lr, loss_scale, found_inf]))
        self.step += 1
        if len(self._pending) < self.every:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Copy what is pending to the host, and hand it to every sink."""
        if not self._pending:
            return
        rows = torch.stack(self._pending).cpu().tolist()
        first = self.step - len(rows)
        self._pending.clear()
        records = [StepRecord(first + offset, *row) for offset, row in enumerate(rows)]
        for sink in self.sinks:
            sink.write(records)

    def close(self) -> None:
        """Flush, and close every sink."""
        try:
            self.flush()
        finally:
            for sink in self.sinks:
                sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemorySink:
    """Keeps the records in a list."""

    def __init__(self) -> None:
        self.records: list[StepRecord] = []

    def write(self, records: Sequence[StepRecord]) -> None:
        """Append the records."""
        self.records.extend(records)

    def close(self) -> None:
        """Keep what there is."""


class JsonlSink:
    """Writes one JSON object a step; a number that is not finite becomes null."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, records: Sequence[StepRecord]) -> None:
        """Write the records as lines, and flush them."""
        for record in records:
            self._file.write(json.dumps(record.as_json(), allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class WandbSink:
    """Logs to Weights & Biases; if wandb is absent or breaks, it says so once and stays silent from then on."""

    def __init__(self, project: str, mode: str = "offline", directory: Path | None = None) -> None:
        self._run: Any = None  # wandb is optional and imported here only, so its types are not at hand
        try:
            import wandb

            self._run = wandb.init(project=project, mode=mode, dir=directory)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001  a service of others may raise anything, and must not stop training
            self._give_up("start", error)

    def write(self, records: Sequence[StepRecord]) -> None:
        """Log each record under its own step."""
        if self._run is None:
            return
        try:
            for record in records:
                values = {METRICS[name]: value for name, value in asdict(record).items() if name in METRICS}
                self._run.log(values, step=record.step)
        except Exception as error:  # noqa: BLE001  the same
            self._give_up("log", error)

    def close(self) -> None:
        """Finish the run."""
        if self._run is None:
            return
        try:
            self._run.finish()
        except Exception as error:  # noqa: BLE001  the same
            self._give_up("finish", error)

    def _give_up(self, verb: str, error: Exception) -> None:
        self._run = None
        warnings.warn(
            f"wandb could not {verb} ({type(error).__name__}: {str(error).partition(chr(10))[0]}):"
            " training goes on without it",
            stacklevel=3,
        )
