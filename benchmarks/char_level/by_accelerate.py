"""With Accelerate, whose `accumulate` steps at the end of each epoch, too; its states are pickles."""

import math
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader

from benchmarks.char_level import task


def factor(step: int) -> float:
    """Return the factor of a warm-up and a cosine."""
    if step < task.WARMUP:
        return (step + 1) / task.WARMUP
    done = min(1.0, (step - task.WARMUP) / (task.STEPS - task.WARMUP))
    return 0.1 + 0.9 * 0.5 * (1.0 + math.cos(math.pi * done))


class Place:
    """How far training has come."""

    taken, epoch, batch, best = 0, 0, 0, float("inf")

    def state_dict(self) -> dict[str, Any]:
        """Return it."""
        return {"taken": self.taken, "epoch": self.epoch, "batch": self.batch, "best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take it back."""
        vars(self).update(state)


def train(folder: Path, steps: int) -> None:
    """Train, or go on."""
    tools = Accelerator(
        cpu=True, mixed_precision="bf16", gradient_accumulation_steps=task.ACCUMULATE, log_with="tensorboard",
        project_dir=str(folder), step_scheduler_with_optimizer=False,
    )  # fmt: skip
    tools.init_trackers("char_level")
    torch.manual_seed(0)
    model = task.a_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.LR, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    model, optimizer, schedule = tools.prepare(model, optimizer, schedule)
    average = AveragedModel(tools.unwrap_model(model), multi_avg_fn=get_ema_multi_avg_fn(task.DECAY))
    average.update_parameters(tools.unwrap_model(model))
    place = Place()
    tools.register_for_checkpointing(average, place)
    if (folder / "last").exists():
        tools.load_state(str(folder / "last"))
    held_out = DataLoader(task.VAL, batch_size=task.BATCH)
    while place.taken < steps:
        order = torch.Generator().manual_seed(place.epoch)
        loader = DataLoader(task.TRAIN, batch_size=task.BATCH, shuffle=True, drop_last=True, generator=order)
        for index, batch in enumerate(loader):
            if index < place.batch:
                continue
            place.batch = index + 1
            with tools.accumulate(model):
                with tools.autocast():
                    loss = task.loss_fn(model, batch)
                tools.backward(loss)
                if tools.sync_gradients:
                    norm = tools.clip_grad_norm_(model.parameters(), task.CLIP)
                optimizer.step()
                optimizer.zero_grad()
            if not tools.sync_gradients:
                continue
            schedule.step()
            average.update_parameters(tools.unwrap_model(model))
            place.taken += 1
            lr = schedule.get_last_lr()[0]
            tools.log({"train/loss": loss.item(), "train/grad_norm": norm.item(), "train/lr": lr}, step=place.taken)
            if place.taken % task.EVERY == 0:
                average.eval()
                with torch.no_grad(), tools.autocast():
                    found = torch.stack([task.loss_fn(average, batch) for batch in held_out]).mean().item()
                tools.log({"val/loss": found}, step=place.taken)
                better, place.best = found < place.best, min(found, place.best)
                for name in ("last", "best")[: 1 + better]:
                    tools.save_state(str(folder / name))
            if place.taken == steps:
                break
        else:
            place.epoch, place.batch = place.epoch + 1, 0
    tools.end_training()
