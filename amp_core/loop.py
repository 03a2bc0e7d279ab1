"""A training loop: steps, evaluations, an early stop, checkpoints, and going on from one as if nothing had happened."""

import math
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from amp_core import checkpoint
from amp_core.checkpoint import CheckpointError
from amp_core.data import Stream, samples_in
from amp_core.evaluation import evaluating
from amp_core.parallel import from_every_rank, is_first, of_this_rank
from amp_core.randomness import random_state, restore_random_state
from amp_core.scaler import ScaleState
from amp_core.shards import REST, read_shards, save_shards
from amp_core.step import Batch, StepResult, TrainStep
from amp_core.tracking import Tracker

Validate: TypeAlias = Callable[[], float | Mapping[str, float]]


@dataclass(frozen=True)
class Plan:
    """How long to train and what happens on the way, counted in optimizer steps.

    Each step takes `accumulate` batches. After `patience` validations none of which is better by `min_delta` than the
    best one, training stops. Where a validation returns several metrics, the one named by `monitor` decides, the lowest
    or the `largest`. `tokens` says how many tokens a batch trains on, for the tracker's rates.

    Raises:
        ValueError: a number is out of range.
    """

    steps: int
    accumulate: int = 1
    validate_every: int | None = None
    patience: int | None = None
    min_delta: float = 0.0
    tokens: Callable[[Batch], int] | None = None
    monitor: str = "loss"
    largest: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "accumulate", "validate_every", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, found {value!r}")
        if self.patience is not None and self.validate_every is None:
            raise ValueError(f"patience={self.patience!r} needs validate_every: nothing would be waited for")


@dataclass
class Validations:
    """The validations so far as (step, metric), the best one as a loss, and how many since were no better."""

    seen: list[tuple[int, float]] = field(default_factory=list)
    best: float = math.inf
    stale: int = 0

    def note(self, step: int, found: Mapping[str, float], plan: Plan) -> bool:
        """Take a validation's metrics, and return whether it is the best; a number that is not finite is none.

        Raises:
            ValueError: the metric that decides is not there.
        """
        if plan.monitor not in found:
            raise ValueError(f"expected {plan.monitor!r} among a validation's metrics, found {sorted(found)}")
        value = found[plan.monitor]
        loss = -value if plan.largest else value
        self.seen.append((step, value))
        better = loss < self.best - plan.min_delta
        self.best = loss if better else self.best
        self.stale = 0 if better else self.stale + 1
        return better


@dataclass(frozen=True)
class FitResult:
    """What a run came to: the scaler's final state, the steps taken, and the validations as (step, loss)."""

    state: ScaleState
    steps: int
    stopped_early: bool
    validations: tuple[tuple[int, float], ...]


class Checkpoints:
    """A folder of checkpoints `step-00000042.pt`, of which the newest `keep` stay, and `best.pt`, by validation.

    `run` says what the run is, in plain values; going on from a checkpoint of another one is refused. If `sharded`,
    each is a folder `step-00000042.shards`, into which every rank of FSDP2 writes its own part: none gathers the whole.

    Raises:
        ValueError: a number is out of range, or `run` holds what a checkpoint cannot.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        every: int,
        keep: int = 2,
        run: Mapping[str, Any] | None = None,
        sharded: bool = False,
    ) -> None:
        for name, value in (("every", every), ("keep", keep)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, found {value!r}")
        self.folder = Path(folder)
        self.every = every
        self.keep = keep
        self.run = checkpoint.plain(dict(run or {}), "run")
        self.sharded = sharded
        self._end = "shards" if sharded else "pt"

    def latest(self) -> Path | None:
        """Return the newest checkpoint, or None."""
        return max(self._all(), default=None, key=_step_of)

    def save(self, step: int, state: Mapping[str, Any]) -> Path | None:
        """Write a checkpoint, and only then remove those that are too old; return its path, on the first rank alone."""
        path = self._write(self.folder / f"step-{step:08}.{self._end}", state)
        for old in sorted(self._all(), key=_step_of)[: -self.keep] if path else ():
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        return path

    @property
    def best(self) -> Path:
        """Return where the checkpoint of the best validation is, if there was one."""
        return self.folder / f"best.{self._end}"

    def save_best(self, state: Mapping[str, Any]) -> Path | None:
        """Write the checkpoint of the best validation so far; return its path, on the first rank alone."""
        return self._write(self.best, state)

    def load(self, path: Path, step: TrainStep) -> dict[str, Any]:
        """Read a checkpoint of this run; of a sharded one, this rank's part of the step's state.

        Raises:
            CheckpointError: it cannot be read, or is of another run; the message names the first difference.
        """
        try:
            state = checkpoint.load(path / REST if path.is_dir() else path)
        except CheckpointError as error:
            older = [other.name for other in sorted(self._all(), key=_step_of) if other != path]
            hint = f"; delete it, and {older[-1]} is resumed from" if older else ""
            raise CheckpointError(f"{error}{hint}") from error
        for name, value in self.run.items():
            found = state.get("run", {}).get(name)
            if found != value:
                raise CheckpointError(
                    f"checkpoint {str(path)!r} is of a run with {name}={found!r}, expected {value!r}:"
                    " resume with the same settings, or choose another folder"
                )
        return read_shards(path, state, step) if path.is_dir() else state

    def _write(self, path: Path, state: Mapping[str, Any]) -> Path | None:
        state = {"run": self.run, **state}
        if self.sharded:
            save_shards(path, state)
        elif is_first():
            checkpoint.save(path, state)
        return path if is_first() else None

    def _all(self) -> Iterator[Path]:
        return (path for path in self.folder.glob("step-*") if re.fullmatch(r"step-\d{8,}\.(pt|shards)", path.name))


def _step_of(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def ignore(*_: object) -> None:
    """Do nothing, where nobody gave a hook."""


def fit(
    step: TrainStep,
    stream: Stream,
    tracker: Tracker,
    plan: Plan,
    *,
    validate: Validate | None = None,
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    on_step: Callable[[int, StepResult], object] = ignore,
    on_validation: Callable[[int, Mapping[str, float]], object] = ignore,
    on_checkpoint: Callable[[Path], object] = ignore,
) -> FitResult:
    """Train as planned; with `resume`, from the newest checkpoint on, to the same bits as without the interruption.

    A checkpoint holds the model, optimizers, scaler, schedule, averages, random generators, the loader's position
    and the early stop's; the last step is saved, too. `validate()` returns a loss, or metrics by name; it runs in
    `evaluating(step)`, and every sink gets them as `val/loss` and so on, with the last step. The state of the best
    validation is `best.pt`; a run that stops early ends with it. `plan.steps` is the run's total. A collapse is seen at
    the tracker's next flush. Ranks that train together all call this; the first one writes, all resume from its folder.
    Their validations must agree (`amp_core.parallel.mean_over_ranks`), or they would stop at different steps.

    Hooks get the number of steps so far and the last one's result, or a validation's metrics; `on_checkpoint` gets the
    path of a checkpoint, on the rank that wrote it.

    Raises:
        ValueError: of `validate` and the plan's `validate_every` one is given without the other.
        ScaleCollapsed: training makes no progress.
        CheckpointError: a checkpoint cannot be resumed from, or one is there and `resume` was not asked for.
    """
    if (validate is None) != (plan.validate_every is None):
        raise ValueError("validate= and Plan(validate_every=...) need each other: pass both, or none of them")
    run = _Run(step, stream, tracker, plan, validate, checkpoints, on_step, on_validation, on_checkpoint)
    run.begin(resume=resume)
    while not run.ended:
        run.advance()
    return run.finish()


@dataclass
class _Run:
    """A run under way: what `fit` was given, and the validations so far."""

    step: TrainStep
    stream: Stream
    tracker: Tracker
    plan: Plan
    validate: Validate | None
    checkpoints: Checkpoints | None
    on_step: Callable[[int, StepResult], object]
    on_validation: Callable[[int, Mapping[str, float]], object]
    on_checkpoint: Callable[[Path], object]
    validations: Validations = field(default_factory=Validations)

    @property
    def ended(self) -> bool:
        plan, stale = self.plan, self.validations.stale
        return self.tracker.step >= plan.steps or (plan.patience is not None and stale >= plan.patience)

    def begin(self, *, resume: bool) -> None:
        latest = None if self.checkpoints is None else self.checkpoints.latest()
        if self.checkpoints is not None and latest is not None:
            if not resume:
                raise CheckpointError(
                    f"{str(self.checkpoints.folder)!r} already holds {latest.name}: resume, or choose another folder"
                )
            self._load(self.checkpoints.load(latest, self.step))
        if not self.step.model.training:
            self.step.model.train()

    def advance(self) -> None:
        """Take one optimizer step, and do what is due after it."""
        plan, tracker = self.plan, self.tracker
        window = [next(self.stream) for _ in range(plan.accumulate)]
        result = self.step(*window)
        tokens = 0 if plan.tokens is None else sum(map(plan.tokens, window))
        if tracker.add(result, samples=sum(map(samples_in, window)), tokens=tokens) or tracker.step == plan.steps:
            self.step.read()
        self.on_step(tracker.step, result)
        if self.validate is not None and plan.validate_every and tracker.step % plan.validate_every == 0:
            with tracker.paused():
                self._validate(self.validate)
        if self.checkpoints is not None and (self.ended or tracker.step % self.checkpoints.every == 0):
            with tracker.paused():  # which flushes: what a checkpoint has seen, the sinks have seen
                self._tell(self.checkpoints.save(tracker.step, self._state()))

    def finish(self) -> FitResult:
        stopped = self.tracker.step < self.plan.steps
        state = self.step.read()
        if stopped and self.checkpoints is not None and self.validations.best < math.inf:
            self.step.load_state_dict(self.checkpoints.load(self.checkpoints.best, self.step)["step"])
        return FitResult(state, self.tracker.step, stopped, tuple(self.validations.seen))

    def _validate(self, validate: Validate) -> None:
        with evaluating(self.step):
            found = validate()
        named = found if isinstance(found, Mapping) else {self.plan.monitor: found}
        metrics = {name: float(value) for name, value in named.items()}
        self.tracker.log(**{f"val/{name}": value for name, value in metrics.items()})
        better = self.validations.note(self.tracker.step, metrics, self.plan)
        self.on_validation(self.tracker.step, metrics)
        if better and self.checkpoints is not None:
            self._tell(self.checkpoints.save_best(self._state()))

    def _tell(self, path: Path | None) -> None:
        if path is not None:
            self.on_checkpoint(path)

    def _load(self, state: Mapping[str, Any]) -> None:
        old, new = state["step"]["precision"], self.step.precision.name
        if old != new:
            warnings.warn(f"going on in {new} from a checkpoint in {old}: the bits will differ", stacklevel=4)
        self.step.load_state_dict(state["step"])
        self.stream.load_state_dict(state["stream"])
        self.tracker.load_state_dict(state["tracker"])
        generators = of_this_rank(state["random"])
        if generators is not None:  # another number of ranks draws others anyway
            restore_random_state(generators)
        self.validations = Validations(**state["validations"])

    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step.state_dict(whole=self.checkpoints is None or not self.checkpoints.sharded),
            "stream": self.stream.state_dict(),
            "tracker": self.tracker.state_dict(),
            "validations": asdict(self.validations),
            "random": from_every_rank(random_state()),
        }
