"""A callback for Lightning that logs what the scaler does, and stops training that makes no progress."""

import math
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from amp_core.lightning.plugin import AmpPrecision


class AmpCallback(Callback):
    """Logs what AmpPrecision's scaler does, every `log_every_n_steps` and at the end, with one copy to the host.

    The loggers get `amp/loss_scale`, `amp/applied_steps`, `amp/skipped_steps`, and `amp/scale_growth`: the doublings of
    the scale (halvings, where negative) since it was logged before. Training that makes no progress is stopped by
    ScaleCollapsed, with or without a logger.

    Raises:
        ValueError: when training begins, if the Trainer has no AmpPrecision.
    """

    def __init__(self) -> None:
        self._read_at = 0
        self._scale: float | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Take note of where the scale begins."""
        if not isinstance(trainer.precision_plugin, AmpPrecision):
            raise ValueError(  # noqa: TRY004  a setting of the Trainer, not a type in the code
                f"AmpCallback expected AmpPrecision, found {type(trainer.precision_plugin).__name__}:"
                " pass Trainer(plugins=[AmpPrecision(...)])"
            )
        self._scale = trainer.precision_plugin.read().scale
        self._read_at = trainer.global_step

    def on_train_batch_end(self, trainer: Trainer, *_: Any, **__: Any) -> None:  # noqa: ANN401  as upstream
        """Log where the Trainer logs."""
        every = trainer.log_every_n_steps  # type: ignore[attr-defined]  # Lightning sets it without declaring it
        if every and trainer.global_step % every == 0:
            self._log(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Log the last steps."""
        self._log(trainer)

    def _log(self, trainer: Trainer) -> None:
        step = trainer.global_step
        if step == self._read_at:
            return
        assert isinstance(trainer.precision_plugin, AmpPrecision)
        state = trainer.precision_plugin.read()
        metrics = {
            "amp/loss_scale": state.scale,
            "amp/applied_steps": state.applied,
            "amp/skipped_steps": state.skipped,
            "amp/scale_growth": math.log2(state.scale / self._scale) if self._scale else 0.0,
        }
        self._read_at, self._scale = step, state.scale
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=step - 1)  # Lightning counts a step's metrics from 0
