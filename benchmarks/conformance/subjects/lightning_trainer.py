"""Lightning's Trainer with automatic optimization.

On a CPU the Trainer turns "16-mixed" into bfloat16. Where a job gives a scaler, its own MixedPrecision plugin is made
for float16 with torch's CPU scaler, which its constructor accepts.
"""

# ruff: noqa: ANN401  Lightning's hooks take what it hands them

from functools import cache
from typing import Any

from torch.optim.lr_scheduler import LambdaLR

from benchmarks.conformance.case import NotApplicableError, window_size
from benchmarks.conformance.job import Job, Seen, Trace, copies
from benchmarks.conformance.subjects.lightning_fabric import NAMES, quiet


class InTrainer:
    """Fits a LightningModule that does what the job says; a callback looks after each optimizer step."""

    name = "lightning"

    def train(self, job: Job) -> Trace:
        """Do the job with a Trainer of its own."""
        if job.weigh is not None:
            raise NotApplicableError("micro-batches weigh alike; other weights are the user's arithmetic")
        if job.sharded:
            raise NotApplicableError("its FSDP2 strategy is not asked on a CPU")
        module_class, watch_class = _classes()
        module, watch = module_class(job), watch_class(job)
        if len(job.optimizers(job.model())) > 1:
            raise NotApplicableError("automatic optimization takes one optimizer; several are its user's own loop")
        trainer = a_trainer(job, window_size(job), [watch])
        resume = None if job.resume_from is None else str(job.resume_from / "checkpoint.ckpt")
        trainer.fit(job.dressed(module), job.loader(), ckpt_path=resume)
        if job.save_to is not None:
            trainer.save_checkpoint(job.save_to / "checkpoint.ckpt")
        return Trace(watch.start, tuple(watch.steps) or (watch.see(trainer, module),))


def a_trainer(job: Job, size: int, callbacks: list[Any]) -> Any:
    """Return a quiet Trainer on the CPU that writes nothing by itself."""
    from lightning.pytorch import Trainer
    from lightning.pytorch.plugins import MixedPrecision

    quiet()
    options: dict[str, Any] = {"precision": NAMES[job.precision]}
    if job.precision == "fp16" and job.scaler_given:
        options = {"plugins": MixedPrecision("16-mixed", "cpu", job.scaler())}
    return Trainer(
        accelerator="cpu",
        devices=job.ranks,
        strategy="ddp" if job.ranks > 1 else "auto",
        use_distributed_sampler=False,
        max_epochs=job.epochs + (job.resume_from is not None),
        accumulate_grad_batches=size,
        gradient_clip_val=job.clip,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        **options,
    )


@cache
def _classes() -> tuple[Any, Any]:
    """Return the module and the callback; made here, so that lightning is imported only when it is run."""
    from lightning.pytorch import Callback, LightningModule

    class Module(LightningModule):
        def __init__(self, job: Job) -> None:
            super().__init__()
            self.job = job
            self.plain = job.model()

        def training_step(self, batch: Any, _: int) -> Any:
            return self.job.loss_fn(self.plain, tuple(batch))

        def configure_optimizers(self) -> Any:
            (optimizer,) = self.job.optimizers(self.plain)
            scheduler = LambdaLR(optimizer, self.job.factor or (lambda _: 1.0))
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    class Watch(Callback):
        def __init__(self, job: Job) -> None:
            self.job = job
            self.ends = _window_ends(job)
            self.steps: list[Seen] = []

        def on_train_start(self, trainer: Any, module: Any) -> None:
            self.start = self.see(trainer, module)

        def on_train_batch_end(self, trainer: Any, module: Any, _: Any, __: Any, index: int) -> None:
            if index in self.ends:
                if self.job.observed:
                    self.steps.append(self.see(trainer, module))
                self.job.between()

        def see(self, trainer: Any, module: Any) -> Seen:
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            scale = 1.0 if scaler is None else float(scaler.get_scale())
            return Seen(copies(module.plain), float(trainer.optimizers[0].param_groups[0]["lr"]), scale, None)

    return Module, Watch


def _window_ends(job: Job) -> set[int]:
    ends, last = set(), -1
    for window in job.windows:
        last += len(window)
        ends.add(last)
    return ends


SUBJECT = InTrainer()
