"""With `amp_core.TrainStep`, in a loop of one's own."""

from pathlib import Path

import torch

import amp_core as amp
from amp_core import checkpoint
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
    best = float("inf")
    with amp.Tracker(10, [amp.TensorBoardSink(folder)]) as tracker:
        parts = {"step": step, "stream": stream, "tracker": tracker}
        if (folder / "last.pt").exists():
            state = checkpoint.load(folder / "last.pt")
            for name, part in parts.items():
                part.load_state_dict(state[name])
            amp.restore_random_state(state["random"])
            best = state["best"]
        while tracker.step < steps:
            tracker.add(step(*(next(stream) for _ in range(task.ACCUMULATE))))
            if tracker.step % task.EVERY == 0:
                with amp.evaluating(step):
                    loss = torch.stack([task.loss_fn(model, batch) for batch in held_out]).mean().item()
                tracker.log(**{"val/loss": loss})
                better, best = loss < best, min(loss, best)
                state = {name: part.state_dict() for name, part in parts.items()}
                state |= {"random": amp.random_state(), "best": best}
                for name in ("last.pt", "best.pt")[: 1 + better]:
                    checkpoint.save(folder / name, state)
