"""The canonical recipe in torch alone; the LR scheduler steps after each optimizer step, as torch's recipes have it."""

from torch import nn

from amp_core.benchmark.workload import step_by_hand
from benchmarks.conformance.case import NotApplicableError
from benchmarks.conformance.job import Window
from benchmarks.conformance.stepwise import PlainLoop, Stepwise


class ByHand(PlainLoop):
    """Takes its steps with `step_by_hand`; a skip is a scale that fell, which is how the documentation sees one."""

    def step(self, window: Window) -> None:
        """Take one step by the recipe."""
        if self.job.weigh is not None:
            raise NotApplicableError("the recipe weighs micro-batches alike; other weights are its user's arithmetic")
        if len(self.optimizers) > 1:
            super().step(window)
            return
        scale = self.scaler.get_scale() if self.job.observed else 0.0
        step_by_hand(
            self.model,
            self.optimizers[0],
            self.scaler,
            window,
            self.job.loss_fn,
            device_type="cpu",
            dtype=self.job.dtype,
            max_grad_norm=self.job.clip,
        )
        self.skipped = self.job.observed and self.scaler.get_scale() < scale
        for scheduler in self.schedulers:
            scheduler.step()


class Unwrapped(ByHand):
    """Trains each rank on its own: the broken side of the cases of several ranks."""

    def wrap(self, model: nn.Module) -> nn.Module:
        """Leave the model as it is."""
        return model


SUBJECT = Stepwise("by_hand", ByHand)
UNWRAPPED = Stepwise("broken", Unwrapped)
