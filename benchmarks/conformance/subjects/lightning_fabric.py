"""Lightning Fabric: setup, backward, clip_gradients, step.

On a CPU Fabric turns "16-mixed" into bfloat16. Where a job gives a scaler, Fabric's own MixedPrecision plugin is made
for float16 with torch's CPU scaler, which its constructor accepts.
"""

import logging
from pathlib import Path
from typing import Any

from torch.optim.lr_scheduler import LambdaLR

from benchmarks.conformance.case import NotApplicableError
from benchmarks.conformance.job import Job, Seen, Window, copies
from benchmarks.conformance.stepwise import Stepwise

NAMES = {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}


class InFabric:
    """A Fabric with model and optimizers set up; the loop's arithmetic is its user's."""

    def __init__(self, job: Job) -> None:
        from lightning.fabric import Fabric
        from lightning.fabric.plugins import MixedPrecision

        quiet()
        options: dict[str, Any] = {"precision": NAMES[job.precision]}
        if job.precision == "fp16" and job.scaler_given:
            options = {"plugins": MixedPrecision("16-mixed", "cpu", job.scaler())}
        if job.sharded:
            raise NotApplicableError("its FSDP2 strategy is not asked on a CPU")
        self.job = job
        strategy = "ddp" if job.ranks > 1 else "auto"
        self.fabric = Fabric(accelerator="cpu", devices=job.ranks, strategy=strategy, **options)
        self.fabric.launch()
        self.plain = job.model()
        plain_optimizers = list(job.optimizers(self.plain))
        self.schedulers = [LambdaLR(each, job.factor or (lambda _: 1.0)) for each in plain_optimizers]
        self.model, *self.optimizers = self.fabric.setup(job.dressed(self.plain), *plain_optimizers)

    def step(self, window: Window) -> None:
        """Take one step; the scheduler follows it, as in Fabric's examples."""
        if self.job.weigh is not None:
            raise NotApplicableError("the loop's arithmetic is its user's")
        for batch in window:
            accumulating = self.job.ranks > 1 and batch is not window[-1]
            with self.fabric.no_backward_sync(self.model, enabled=accumulating):
                with self.fabric.autocast():
                    loss = self.job.loss_fn(self.model, batch)
                self.fabric.backward(loss * (1.0 / len(window)))
        for optimizer in self.optimizers:
            if self.job.clip is not None:
                self.fabric.clip_gradients(self.model, optimizer, max_norm=self.job.clip, error_if_nonfinite=False)
            optimizer.step()
            optimizer.zero_grad()
        for scheduler in self.schedulers:
            scheduler.step()

    def see(self) -> Seen:
        """Look at the model, the first learning rate and the scale; Fabric says nothing of a skip."""
        scaler = getattr(self.fabric.strategy.precision, "scaler", None)
        scale = 1.0 if scaler is None else float(scaler.get_scale())
        return Seen(copies(self.plain), float(self.optimizers[0].param_groups[0]["lr"]), scale, None)

    def save(self, folder: Path) -> None:
        """Write a checkpoint of what the documentation's example lists: model, optimizers, schedulers."""
        self.fabric.save(folder / "checkpoint.ckpt", self.state())

    def load(self, folder: Path) -> None:
        """Go on from it."""
        self.fabric.load(folder / "checkpoint.ckpt", self.state())

    def state(self) -> dict[str, object]:
        """Return the objects whose states are saved."""
        named: dict[str, object] = {"model": self.model}
        for kind, parts in (("optimizer", self.optimizers), ("scheduler", self.schedulers)):
            named |= {f"{kind}_{index}": part for index, part in enumerate(parts)}
        return named


def quiet() -> None:
    """Keep Lightning's notices off the terminal; call it after lightning is imported, which sets its own level."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning_utilities"):
        logging.getLogger(name).setLevel(logging.ERROR)


SUBJECT = Stepwise("fabric", InFabric)
