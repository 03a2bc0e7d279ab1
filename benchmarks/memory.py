"""Peak memory of a GPT-2 training step in float32, under autocast and lean: predicted, and measured where possible.

Without an accelerator the GPT-2 figures are predictions. How good such predictions are is measured here, too: beside
the growth of this machine's resident memory, for a model that a CPU can train. Writes benchmarks/results/memory.md.
"""

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from amp_audit import predict_peak
from amp_core.device import inspect
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import precision_for
from amp_core.samples import write_text
from amp_core.step import TrainStep

OUT = Path(__file__).parent / "results" / "memory.md"
GPT2 = GPTConfig(vocab_size=50304, context=1024, layers=12, heads=12, width=768, tied=True)
MIDDLE = GPTConfig(vocab_size=8192, context=256, layers=6, heads=6, width=384, tied=True)
MIDDLE_BATCH = 16
STEPS = 3
GIB, MIB = 2.0**30, 2.0**20
PROMPT_RETURN = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Arm:
    """A precision, and whether the model is lean."""

    precision: str
    lean: bool

    def __str__(self) -> str:
        return f"{self.precision}{' lean' if self.lean else ''}"


PLAIN, FP32_LEAN, BF16, BF16_LEAN = Arm("fp32", False), Arm("fp32", True), Arm("bf16", False), Arm("bf16", True)
ARMS = (PLAIN, BF16, BF16_LEAN, FP32_LEAN)


def main() -> None:
    """Print the tables and write them; with --measure also measure on the CUDA device, in fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure on the CUDA device, beside the predictions")
    parser.add_argument("--one", nargs=3, metavar=("DEVICE", "ARM", "BATCH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        device, arm, batch = arguments.one
        print(measured_here(device, next(each for each in ARMS if str(each) == arm), int(batch)))
        return
    text = "\n".join(report(measure=arguments.measure)) + "\n"
    write_text(OUT, text)
    print(text)


def report(*, measure: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    device = inspect(torch.device("cuda" if measure else "cpu"))
    yield "# Peak memory of a training step"
    yield ""
    command = f"python benchmarks/memory.py{' --measure' * measure}"
    yield f"Written by `{command}`, torch {torch.__version__}, {device.name}."
    yield ""
    yield "## GPT-2 124M, sequences of 1024 tokens, AdamW"
    yield ""
    yield "Predicted from the tensors that a step makes, under CUDA's autocast policy; an estimate, not a measurement."
    if not measure:
        yield "No GPU was at hand: nothing in this table is measured."
    for batch in (8, 32):
        yield ""
        yield from gpt2_table(batch, measure=measure)
    yield ""
    yield "## Prediction beside the growth of resident memory"
    yield ""
    yield f"{MIDDLE}, batch {MIDDLE_BATCH}, {STEPS} steps on the CPU, each arm in a process of its own."
    yield ""
    yield from resident_table()


def gpt2_table(batch: int, *, measure: bool) -> Iterator[str]:
    """Yield a table of the arms' peaks at one batch size, and the saving at equal means."""
    peaks = {arm: predict_peak(make_step(GPT2, arm, batch, "cpu"), like_cuda=True).bytes for arm in ARMS}
    measured = {arm: one("cuda", arm, batch) for arm in ARMS} if measure else {}
    yield f"| B={batch} | predicted GiB | over plain fp32 |{' measured GiB | over plain fp32 |' if measure else ''}"
    yield "|---|---|---|" + "---|---|" * measure
    for arm in ARMS:
        more = f" {measured[arm] / GIB:.2f} | {measured[arm] / measured[PLAIN] - 1:+.1%} |" if measure else ""
        yield f"| {arm} | {peaks[arm] / GIB:.2f} | {peaks[arm] / peaks[PLAIN] - 1:+.1%} |{more}"
    yield ""
    yield f"Like for like, bf16 lean over fp32 lean: {peaks[BF16_LEAN] / peaks[FP32_LEAN] - 1:+.1%} (predicted)."


def resident_table() -> Iterator[str]:
    """Yield a table of predicted peaks and measured growths of resident memory, on the CPU."""
    yield "| | predicted MiB | grown MiB | prediction is off by |"
    yield "|---|---|---|---|"
    for arm in ARMS:
        predicted = predict_peak(make_step(MIDDLE, arm, MIDDLE_BATCH, "cpu")).bytes
        grown = one("cpu", arm, MIDDLE_BATCH)
        yield f"| {arm} | {predicted / MIB:.0f} | {grown / MIB:.0f} | {predicted / grown - 1:+.1%} |"


def make_step(shape: GPTConfig, arm: Arm, batch_size: int, device: str) -> Callable[[], Callable[[], object]]:
    """Return what builds the model and its optimizer, and returns the training step."""

    def make() -> Callable[[], object]:
        model = GPT(replace(shape, lean=arm.lean)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        step = TrainStep(model, optimizer, precision_for(arm.precision, device), next_token_loss)
        batch = (torch.zeros(batch_size, shape.context + 1, dtype=torch.int64, device=device),)
        return lambda: step(batch)

    return make


def one(device: str, arm: Arm, batch: int) -> float:
    """Return the bytes that an arm takes, measured in a fresh process that gives freed memory back at once."""
    command = [sys.executable, __file__, "--one", device, str(arm), str(batch)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | PROMPT_RETURN)
    return float(done.stdout)


def measured_here(device: str, arm: Arm, batch: int) -> float:
    """Return the bytes that this process comes to hold at most, for an arm: of the device, or of resident memory."""
    if device == "cuda":
        take(make_step(GPT2, arm, batch, device)(), STEPS)
        return float(torch.cuda.max_memory_allocated())
    take(make_step(replace(MIDDLE, layers=1), arm, 1, device)(), 1)  # what libraries load and keep is not the step's
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # forgets the high-water mark
    take(make_step(MIDDLE, arm, batch, device)(), STEPS)
    return resident("VmHWM") - before


def take(step: Callable[[], object], steps: int) -> None:
    """Take some steps."""
    for _ in range(steps):
        step()


def resident(field: str) -> float:
    """Return a field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024.0 * float(next(line.split()[1] for line in lines if line.startswith(field + ":")))


if __name__ == "__main__":
    main()
