"""A sink that logs to Weights & Biases."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amp_core.tracking.records import Flush, report


class WandbSink:
    """Logs to Weights & Biases; if wandb is absent or does not start, that is said once, and nothing is logged.

    `options` are further arguments of `wandb.init`, such as `name`, `config`, or `id` and `resume` to go on with a
    run; the service drops steps that it already has.
    """

    name = "wandb"

    def __init__(self, project: str, mode: str = "offline", directory: Path | None = None, **options: object) -> None:
        self._run: Any = None  # wandb is optional and imported here only, so its types are not at hand
        try:
            import wandb

            self._run = wandb.init(project=project, mode=mode, dir=directory, **options)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001  a service of others may raise anything, and must not stop training
            report(self.name, "start", error)

    def write(self, flush: Flush) -> None:
        """Log each step under its own number."""
        for step, values in flush.metrics():
            self.log(step, values)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log the numbers under the step's number."""
        if self._run is not None:
            self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish()
