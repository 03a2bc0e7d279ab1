"""With `amp_core.fit`."""

from pathlib import Path

import torch

import amp_core as amp
from benchmarks.char_level import task


def train(folder: Path, steps: int) -> None:
    """Train, or go on."""
    amp.seed_all(0)
    model = task.a_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.LR, fused=True)
    schedule = amp.Schedule(optimizer, amp.warmup_cosine(task.STEPS, warmup=task.WARMUP), steps=task.STEPS)
    ema = amp.Ema(model.parameters(), task.DECAY)
    step = amp.TrainStep(model, optimizer, "bf16", task.loss_fn, max_grad_norm=task.CLIP, schedule=schedule, ema=ema)
    stream = amp.Stream(amp.loader(task.TRAIN, batch_size=task.BATCH, device="cpu", seed=0), "cpu")
    held_out = amp.loader(task.VAL, batch_size=task.BATCH, device="cpu")
    plan = amp.Plan(steps, accumulate=task.ACCUMULATE, validate_every=task.EVERY)
    checkpoints = amp.Checkpoints(folder, every=task.EVERY)
    with amp.Tracker(10, [amp.TensorBoardSink(folder)]) as tracker:
        amp.fit(
            step, stream, tracker, plan, checkpoints=checkpoints, resume=True,
            validate=lambda: torch.stack([task.loss_fn(model, batch) for batch in held_out]).mean().item(),
        )  # fmt: skip
