"""amp_core's TrainStep, with its own schedule, scaler and checkpoints."""

from pathlib import Path

from amp_core import checkpoint, parallel
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler
from amp_core.schedule import Schedule
from amp_core.step import StepResult, TrainStep
from benchmarks.conformance.job import Job, Seen, Window, copies
from benchmarks.conformance.stepwise import Stepwise

SCHEDULED = 1000  # steps that a schedule's table holds: more than any job takes, resumed or not


class Core:
    """Takes its steps with TrainStep, and reads the scaler where it is looked at, as a tracker's flush does."""

    def __init__(self, job: Job) -> None:
        precision = precision_for(job.precision, "cpu")
        model = job.model()
        if job.ranks > 1:
            model = parallel.wrap(model, "fsdp2" if job.sharded else "ddp")
        optimizers = job.optimizers(model)
        self.model = job.dressed(model)
        schedule = None if job.factor is None else Schedule(optimizers, job.factor, steps=SCHEDULED, device="cpu")
        self.scaler = LossScaler(
            "cpu", dynamic=precision.needs_scaler, init_scale=job.init_scale, growth_interval=job.growth_interval
        )
        self.step_once = TrainStep(
            self.model,
            optimizers,
            precision,
            job.loss_fn,
            max_grad_norm=job.clip,
            schedule=schedule,
            scaler=self.scaler if job.scaler_given else None,
            weigh=job.weigh,
        )
        self.last: StepResult | None = None

    def step(self, window: Window) -> None:
        """Take one step."""
        self.last = self.step_once(*window)

    def see(self) -> Seen:
        """Look at the model, the learning rate, the scale, and the step's word on the skip."""
        scale = self.step_once.read().scale
        skipped = self.last is not None and bool(self.last.found_inf)
        return Seen(copies(self.model), float(self.step_once.lr), scale, skipped)

    def save(self, folder: Path) -> None:
        """Write a checkpoint."""
        checkpoint.save(folder / "checkpoint.pt", self.step_once.state_dict())

    def load(self, folder: Path) -> None:
        """Go on from it."""
        self.step_once.load_state_dict(checkpoint.load(folder / "checkpoint.pt"))


SUBJECT = Stepwise("amp_core", Core)
