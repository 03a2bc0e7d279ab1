"""The arms of the overhead benchmark: one training step of each library, on a model so small that the rest shows."""

# ruff: noqa: ANN401  Lightning's hooks take what it hands them

import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from amp_core import Ema, MemorySink, Schedule, Tracker, precision_for, warmup_cosine
from amp_core.benchmark.workload import make_scaler
from amp_core.step import Batch, TrainStep

LONG = 10_000  # steps of the schedule
EVERY = 10  # steps from one log to the next
DECAY = 0.999
BY_HAND_WHOLE, AMP_CORE_WHOLE = "by hand, whole stack", "amp_core, whole stack"
NAMES = {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}


@dataclass(frozen=True)
class Setting:
    """The precision that a step runs in, and whether its gradients are clipped."""

    precision: str
    clip: float | None

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that autocast computes in."""
        return precision_for(self.precision, "cpu").compute_dtype

    def __str__(self) -> str:
        return f"{self.precision}, {'unclipped' if self.clip is None else 'clipped'}"


@dataclass(frozen=True)
class Elapsed:
    """Seconds a step took: of this process's CPU time, and on the wall."""

    cpu_s: float
    wall_s: float


Segment = Callable[[int], Elapsed]  # takes so many steps, and tells the time of one


def model_and_optimizer() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return an MLP of 2 916 parameters and its fused AdamW, the same on every call."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def batches() -> list[Batch]:
    """Return sixteen batches: float32 inputs (8, 16) and targets (8, 4)."""
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 16, generator=generator), torch.randn(8, 4, generator=generator)) for _ in range(16)]


@dataclass(frozen=True)
class Repeated:
    """The batches over and over, `length` in all: the plainest loader there is (a Trainer takes a list for several)."""

    length: int

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Batch]:
        return itertools.islice(itertools.cycle(batches()), self.length)


def loss_fn(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean squared error in float32."""
    loss: Tensor = (model(batch[0]).float() - batch[1]).square().mean()
    return loss


def by_hand(setting: Setting) -> Segment:
    """Time the recipe in torch alone, as it is written for one batch."""
    model, optimizer = model_and_optimizer()
    dtype, clip = setting.dtype, setting.clip
    scaler = make_scaler("cpu", dtype)

    def step(batch: Batch) -> Tensor:
        with torch.amp.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            loss = loss_fn(model, batch)
        scaled = scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        scaler.unscale_(optimizer)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return timed(step)


def by_hand_guarded(setting: Setting) -> Segment:
    """Time the recipe with a guard in every precision: a step whose gradients' norm is not finite is skipped."""
    model, made = model_and_optimizer()
    optimizer: Any = made  # a fused optimizer takes `found_inf` as an attribute, which torch does not declare
    dtype, clip = setting.dtype, setting.clip
    scaler = make_scaler("cpu", dtype)

    def step(batch: Batch) -> None:
        with torch.amp.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            loss = loss_fn(model, batch)
        scaled = scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        scaler.unscale_(optimizer)
        grads = [param.grad for param in model.parameters() if param.grad is not None]
        norm = nn.utils.get_total_norm(grads)
        if clip is not None:
            nn.utils.clip_grads_with_norm_(model.parameters(), clip, norm)
        if scaler.is_enabled():
            scaler.step(optimizer)
        else:
            optimizer.grad_scale, optimizer.found_inf = None, torch.sub(norm, norm).ne_(0.0)
            optimizer.step()
            del optimizer.grad_scale, optimizer.found_inf
        scaler.update()
        optimizer.zero_grad(set_to_none=True)

    return timed(step)


def amp_core(setting: Setting) -> Segment:
    """Time TrainStep."""
    model, optimizer = model_and_optimizer()
    precision = precision_for(setting.precision, "cpu")
    step = TrainStep(model, optimizer, precision, loss_fn, max_grad_norm=setting.clip)
    return timed(step)


def by_hand_whole(setting: Setting) -> Segment:
    """Time the recipe with what a real training has around it: a schedule, averages, and a log every ten steps."""
    model, optimizer = model_and_optimizer()
    dtype, clip = setting.dtype, math.inf if setting.clip is None else setting.clip
    scaler = make_scaler("cpu", dtype)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_cosine(LONG, warmup=10))
    params = list(model.parameters())
    averages = [param.detach().clone() for param in params]
    pending: list[Tensor] = []
    rates: list[float] = []
    log: list[tuple[float, ...]] = []

    def step(batch: Batch) -> None:
        with torch.amp.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            loss = loss_fn(model, batch)
        scaled = scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        rates.append(scheduler.get_last_lr()[0])
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(averages, params, 1.0 - DECAY)
        pending.append(torch.stack((loss.detach(), norm)))
        if len(pending) == EVERY:
            log.extend((*numbers, rate) for numbers, rate in zip(torch.stack(pending).tolist(), rates, strict=True))
            pending.clear()
            rates.clear()

    return timed(step)


def amp_core_whole(setting: Setting) -> Segment:
    """Time TrainStep with a schedule, averages, and a tracker that flushes every ten steps."""
    model, optimizer = model_and_optimizer()
    schedule = Schedule(optimizer, warmup_cosine(LONG, warmup=10), steps=LONG)
    ema = Ema(model.parameters(), DECAY)
    clip = math.inf if setting.clip is None else setting.clip
    step = TrainStep(model, optimizer, setting.precision, loss_fn, max_grad_norm=clip, schedule=schedule, ema=ema)
    tracker = Tracker(EVERY, [MemorySink()])
    return timed(lambda batch: tracker.add(step(batch)))


def accelerate(setting: Setting) -> Segment:
    """Time Accelerate's loop; in fp16 torch's CPU scaler stands where a GPU's would."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001  a singleton; each arm has its own
    GradientState._reset_state()  # noqa: SLF001
    accelerator = Accelerator(cpu=True, mixed_precision="no" if setting.precision == "fp32" else setting.precision)
    if setting.precision == "fp16":
        accelerator.native_amp, accelerator.scaler = True, make_scaler("cpu", setting.dtype)
    model, optimizer = accelerator.prepare(*model_and_optimizer())

    def step(batch: Batch) -> None:
        with accelerator.autocast():
            loss = loss_fn(model, batch)
        accelerator.backward(loss)
        if setting.clip is not None:
            accelerator.clip_grad_norm_(model.parameters(), setting.clip)
        optimizer.step()
        optimizer.zero_grad()

    return timed(step)


def fabric(setting: Setting) -> Segment:
    """Time Fabric's loop."""
    from lightning.fabric import Fabric
    from lightning.fabric.plugins import MixedPrecision

    options = _lightning_options(setting, MixedPrecision)
    library = Fabric(accelerator="cpu", devices=1, **options)
    model, optimizer = library.setup(*model_and_optimizer())

    def step(batch: Batch) -> None:
        with library.autocast():
            loss = loss_fn(model, batch)
        library.backward(loss)
        if setting.clip is not None:
            library.clip_gradients(model, optimizer, max_norm=setting.clip, error_if_nonfinite=False)
        optimizer.step()
        optimizer.zero_grad()

    return timed(step)


LIGHTNING_OFF: dict[str, Any] = dict.fromkeys(
    ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
)


def lightning(setting: Setting) -> Segment:
    """Time the Trainer's loop: each segment is a fit of its own, timed from its sixth step on."""
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.plugins import MixedPrecision

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.made = model_and_optimizer()

        def training_step(self, batch: Any, _: int) -> Any:
            return loss_fn(self.inner, batch)

        def configure_optimizers(self) -> Any:
            return self.made

    class Watch(Callback):
        def on_train_batch_start(self, *arguments: Any) -> None:
            if arguments[-1] == 5:
                self.begun = now()

        def on_train_end(self, *_: Any) -> None:
            self.ended = now()

    module = Module()

    def segment(steps: int) -> Elapsed:
        watch = Watch()
        about = {"accelerator": "cpu", "devices": 1, "max_epochs": 1, "gradient_clip_val": setting.clip}
        trainer = Trainer(callbacks=[watch], **about, **LIGHTNING_OFF, **_lightning_options(setting, MixedPrecision))
        trainer.fit(module, Repeated(steps + 5))
        return per_step(watch.begun, watch.ended, steps)

    return segment


def _lightning_options(setting: Setting, plugin: Any) -> dict[str, Any]:
    for name in ("lightning.pytorch", "lightning.fabric", "lightning_utilities"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if setting.precision == "fp16":  # by name alone a CPU would get bfloat16
        return {"plugins": plugin("16-mixed", "cpu", make_scaler("cpu", setting.dtype))}
    return {"precision": NAMES[setting.precision]}


def timed(step: Callable[[Batch], object]) -> Segment:
    """Return a segment that takes its steps in a plain loop."""
    stored = batches()

    def segment(steps: int) -> Elapsed:
        order = list(itertools.islice(itertools.cycle(stored), steps))
        step(order[0])  # follows a switch of arms
        begun = now()
        for batch in order:
            step(batch)
        return per_step(begun, now(), steps)

    return segment


def now() -> tuple[float, float]:
    """Return this process's CPU seconds, and the wall's."""
    return time.process_time(), time.perf_counter()


def per_step(begun: tuple[float, float], ended: tuple[float, float], steps: int) -> Elapsed:
    """Return the seconds of one of `steps` steps."""
    return Elapsed((ended[0] - begun[0]) / steps, (ended[1] - begun[1]) / steps)


ARMS: dict[str, Callable[[Setting], Segment]] = {
    "by hand": by_hand,
    "by hand, again": by_hand,
    "by hand, guarded": by_hand_guarded,
    "amp_core": amp_core,
    "accelerate": accelerate,
    "fabric": fabric,
    "lightning": lightning,
    BY_HAND_WHOLE: by_hand_whole,
    AMP_CORE_WHOLE: amp_core_whole,
}
NEEDS = {"accelerate": "accelerate", "fabric": "lightning", "lightning": "lightning"}
