"""Time a training step of each library beside the same operations by hand, on a model so small that the rest shows.

`python benchmarks/step_overhead.py` writes benchmarks/results/step_overhead.md. All arms train the same model on the same
batches with fused AdamW, on one CPU thread, in turn and in alternating order. The CPU's clock counts; the wall's is
printed beside it.
"""

import argparse
import gc
import itertools
import logging
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from amp_core import precision_for
from amp_core.benchmark.interval import around_median, ratio
from amp_core.by_hand import make_scaler, step_by_hand
from amp_core.step import Batch, TrainStep

RESULTS = Path(__file__).parent / "results" / "step_overhead.md"
NAMES = {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}
BAR = 1.04
STEPS = 100
ROUNDS = 40


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
    return (model(batch[0]).float() - batch[1]).square().mean()


def by_hand(setting: Setting) -> Segment:
    """Time the recipe in torch alone."""
    model, optimizer = model_and_optimizer()
    scaler = make_scaler("cpu", setting.dtype)

    def step(batch: Batch) -> None:
        step_by_hand(
            model,
            optimizer,
            scaler,
            (batch,),
            loss_fn,
            device_type="cpu",
            dtype=setting.dtype,
            max_grad_norm=setting.clip,
        )

    return timed(step)


def amp_core(setting: Setting) -> Segment:
    """Time TrainStep."""
    model, optimizer = model_and_optimizer()
    precision = precision_for(setting.precision, "cpu")
    step = TrainStep(model, optimizer, precision, loss_fn, max_grad_norm=setting.clip)
    return timed(step)


def accelerate(setting: Setting) -> Segment:
    """Time Accelerate's loop; in fp16 torch's CPU scaler stands where a GPU's would."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001  a singleton; each arm has its own
    GradientState._reset_state()  # noqa: SLF001
    accelerator = Accelerator(
        cpu=True, mixed_precision="no" if setting.precision == "fp32" else setting.precision
    )
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


def lightning(setting: Setting) -> Segment:
    """Time the Trainer's loop: each segment is a fit of its own, timed from its sixth step on."""
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.plugins import MixedPrecision

    class Module(LightningModule):  # type: ignore[misc]  # lightning is optional, so its types are not at hand
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.made = model_and_optimizer()

        def training_step(self, batch: Any, _: int) -> Any:
            return loss_fn(self.inner, batch)

        def configure_optimizers(self) -> Any:
            return self.made

    class Watch(Callback):  # type: ignore[misc]  # the same
        def on_train_batch_start(self, *arguments: Any) -> None:
            if arguments[-1] == 5:
                self.begun = now()

        def on_train_end(self, *_: Any) -> None:
            self.ended = now()

    module = Module()

    def segment(steps: int) -> Elapsed:
        watch = Watch()
        trainer = Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=1,
            gradient_clip_val=setting.clip,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[watch],
            **_lightning_options(setting, MixedPrecision),
        )
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
    "amp_core": amp_core,
    "accelerate": accelerate,
    "fabric": fabric,
    "lightning": lightning,
}
NEEDS = {"accelerate": "accelerate", "fabric": "lightning", "lightning": "lightning"}


def measure(setting: Setting, *, rounds: int, steps: int) -> tuple[dict[str, list[Elapsed]], dict[str, str]]:
    """Return the times by arm, one a round, and why an arm has none."""
    segments: dict[str, Segment] = {}
    without: dict[str, str] = {}
    for name, build in ARMS.items():
        if name in NEEDS and find_spec(NEEDS[name]) is None:
            without[name] = "not installed"
            continue
        try:
            segments[name] = build(setting)
            segments[name](max(5, steps // 5))
        except (NotImplementedError, RuntimeError) as error:
            segments.pop(name, None)
            without[name] = f"refused: {error}".partition("\n")[0]
    samples: dict[str, list[Elapsed]] = {name: [] for name in segments}
    gc.collect()
    gc.disable()
    for index in range(rounds):
        for name in list(segments)[:: 1 if index % 2 == 0 else -1]:
            samples[name].append(segments[name](steps))
    gc.enable()
    return samples, without


def rows(setting: Setting, samples: dict[str, list[Elapsed]], without: dict[str, str]) -> list[str]:
    """Return the table's lines for one setting."""
    lines = []
    hand = samples["by hand"]
    for name in ARMS:
        if name in without:
            lines.append(f"| {setting} | {name} | | | | {without[name].replace('|', '/')} |")
            continue
        mine = samples[name]
        cpu = around_median([each.cpu_s * 1e6 for each in mine])
        by_cpu = ratio([each.cpu_s for each in mine], [each.cpu_s for each in hand])
        by_wall = ratio([each.wall_s for each in mine], [each.wall_s for each in hand])
        extra = around_median([(a.cpu_s - b.cpu_s) * 1e6 for a, b in zip(mine, hand, strict=True)])
        own = name == "by hand"
        lines.append(
            f"| {setting} | {name} | {cpu:.0f} | {'' if own else f'{by_cpu:.3f}'} | {'' if own else f'{by_wall:.3f}'} |"
            f" {'' if own else f'{extra:+.0f} us'} |"
        )
    return lines


HEAD = (
    "| setting | arm | CPU us a step | ratio by CPU time | ratio by wall time | CPU time above by hand |",
    "|---|---|---|---|---|---|",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; return 1 if amp_core is above the bar beyond doubt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps a segment")
    parser.add_argument("--precisions", default="fp32,bf16,fp16")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    above = []
    lines = [*HEAD]
    print("\n".join(HEAD))
    for name, clip in itertools.product(arguments.precisions.split(","), (1.0, None)):
        setting = Setting(name, clip)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' own
            samples, without = measure(setting, rounds=arguments.rounds, steps=arguments.steps)
        found = rows(setting, samples, without)
        print("\n".join(found), flush=True)
        lines += found
        ours = ratio([each.cpu_s for each in samples["amp_core"]], [each.cpu_s for each in samples["by hand"]])
        above += [f"{setting}: {ours:.3f}"] if ours.low > BAR else []
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(report(lines, arguments.rounds, arguments.steps), encoding="utf-8")
    print(f"wrote {arguments.out}")
    if above:
        print(f"amp_core is above {BAR}: {'; '.join(above)}", file=sys.stderr)
    return int(bool(above))


def report(lines: list[str], rounds: int, steps: int) -> str:
    """Return the whole file."""
    from importlib.metadata import version

    installed = [f"{name} {version(name)}" for name in ("torch", "accelerate", "lightning") if find_spec(name)]
    return "\n".join(
        [
            "# Overhead of a training step",
            "",
            f"Written by `python benchmarks/step_overhead.py` on {platform.machine()}, Python {platform.python_version()},"
            f" {', '.join(installed)}.",
            "",
            f"An MLP of 2 916 parameters, batch of 8, fused AdamW, one thread; {rounds} rounds of {steps} steps, all arms in"
            " each round, their order reversed every other round. Medians with sign-test intervals at 95 %; ratios are to"
            ' "by hand" in the same round, and "by hand, again" shows the noise. By hand computes no gradient norm'
            " where nothing is clipped; amp_core does, as its guard against non-finite gradients needs it.",
            "",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
