"""Hugging Face Accelerate: prepare, accumulate, backward, clip, step.

Accelerate has no fp16 on a CPU. Where a job gives a scaler, torch's CPU scaler is put in the place of the one that
Accelerate would make on a GPU, so that its own logic around the scaler is what runs.
"""

from torch.optim.lr_scheduler import LambdaLR

from amp_core.step import Batch
from benchmarks.conformance.case import NotApplicableError, window_size
from benchmarks.conformance.job import Job, Seen, Trace, copies


class HuggingFace:
    """Trains as the documentation's loop does: the end of the loader closes a partial window."""

    name = "accelerate"

    def train(self, job: Job) -> Trace:
        """Do the job with an Accelerator of its own."""
        size = window_size(job)
        if job.sharded:
            raise NotApplicableError("its FSDP2 set-up is not asked on a CPU")
        loop = Loop(job, size)
        if job.resume_from is not None:
            loop.accelerator.load_state(str(job.resume_from))
        start = loop.see()
        steps: list[Seen] = []
        for _ in range(job.epochs):
            loop.epoch(steps)
        if job.save_to is not None:
            loop.accelerator.save_state(str(job.save_to))
        return Trace(start, tuple(steps) or (loop.see(),))


class Loop:
    """An Accelerator with everything prepared."""

    def __init__(self, job: Job, size: int) -> None:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001  it is a singleton; each job has its own
        GradientState._reset_state()  # noqa: SLF001
        mode = "no" if job.precision == "fp32" else job.precision
        self.job = job
        compiler = "eager" if job.compiled else None
        self.accelerator = Accelerator(
            cpu=True, mixed_precision=mode, gradient_accumulation_steps=size, dynamo_backend=compiler
        )
        if job.precision == "fp16" and job.scaler_given:
            self.accelerator.native_amp = True
            self.accelerator.scaler = job.scaler()
        model = job.model()
        self.plain = model
        optimizers = list(job.optimizers(model))
        schedulers = [LambdaLR(optimizer, job.factor or (lambda _: 1.0)) for optimizer in optimizers]
        loader = job.loader()
        self.batches = (
            loader if job.ranks > 1 else self.accelerator.prepare(loader)
        )  # it would deal them out to the ranks
        self.model = self.accelerator.prepare(model)
        self.optimizers = [self.accelerator.prepare(optimizer) for optimizer in optimizers]
        self.schedulers = [self.accelerator.prepare(scheduler) for scheduler in schedulers]

    def epoch(self, steps: list[Seen]) -> None:
        """Go once through the loader."""
        for batch in self.batches:
            with self.accelerator.accumulate(self.model):
                with self.accelerator.autocast():
                    loss = self.job.loss_fn(self.model, tuple(batch))
                self.accelerator.backward(loss if self.job.weigh is None else loss * self.weight(tuple(batch)))
                if self.accelerator.sync_gradients and self.job.clip is not None:
                    self.accelerator.clip_grad_norm_(self.plain.parameters(), self.job.clip)
                for part in (*self.optimizers, *self.schedulers):
                    part.step()
                for optimizer in self.optimizers:
                    optimizer.zero_grad()
            if self.accelerator.sync_gradients:
                if self.job.observed:
                    steps.append(self.see())
                self.job.between()

    def weight(self, batch: Batch) -> float:
        """Return a batch's weight without Accelerate's division, as in its recipe for samples of variable size."""
        assert self.job.weigh is not None
        (window,) = self.job.windows
        return self.job.weigh(batch) * len(window) / sum(self.job.weigh(each) for each in window)

    def see(self) -> Seen:
        """Look at the model, the first learning rate, the scale, and Accelerate's word on the skip."""
        scaler = self.accelerator.scaler
        return Seen(
            copies(self.plain),
            float(self.optimizers[0].param_groups[0]["lr"]),
            1.0 if scaler is None else float(scaler.get_scale()),
            bool(self.accelerator.optimizer_step_was_skipped),
        )


SUBJECT = HuggingFace()
