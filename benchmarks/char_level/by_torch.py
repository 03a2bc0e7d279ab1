"""With torch alone."""

import math
from pathlib import Path
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter

from benchmarks.char_level import task


def factor(step: int) -> float:
    """Return the factor of a warm-up and a cosine."""
    if step < task.WARMUP:
        return (step + 1) / task.WARMUP
    done = min(1.0, (step - task.WARMUP) / (task.STEPS - task.WARMUP))
    return 0.1 + 0.9 * 0.5 * (1.0 + math.cos(math.pi * done))


def train(folder: Path, steps: int) -> None:  # noqa: C901  as it is written by hand
    """Train, or go on."""
    torch.manual_seed(0)
    model = task.a_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.LR, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(task.DECAY), use_buffers=False)
    average.update_parameters(model)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "schedule": schedule, "average": average}
    taken, epoch, batch_index, best = 0, 0, 0, float("inf")
    if (folder / "last.pt").exists():
        state = torch.load(folder / "last.pt", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        taken, epoch, batch_index, best = state["place"]
        torch.set_rng_state(state["random"])
    writer = SummaryWriter(str(folder), purge_step=taken)
    held_out = DataLoader(task.VAL, batch_size=task.BATCH)
    while taken < steps:
        order = torch.Generator().manual_seed(epoch)
        loader = DataLoader(task.TRAIN, batch_size=task.BATCH, shuffle=True, drop_last=True, generator=order)
        for index, batch in enumerate(loader):
            if index < batch_index:
                continue
            batch_index = index + 1
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = task.loss_fn(model, batch)
            (loss / task.ACCUMULATE).backward()
            if (epoch * len(loader) + batch_index) % task.ACCUMULATE:
                continue
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), task.CLIP)
            if norm.isfinite():
                optimizer.step()
                schedule.step()
                average.update_parameters(model)
            optimizer.zero_grad()
            taken += 1
            writer.add_scalar("train/loss", loss.item(), taken)
            writer.add_scalar("train/grad_norm", norm.item(), taken)
            writer.add_scalar("train/lr", schedule.get_last_lr()[0], taken)
            if taken % task.EVERY == 0:
                average.eval()
                with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                    found = torch.stack([task.loss_fn(average, batch) for batch in held_out]).mean().item()
                writer.add_scalar("val/loss", found, taken)
                better, best = found < best, min(found, best)
                state = {name: part.state_dict() for name, part in parts.items()}
                state |= {"place": (taken, epoch, batch_index, best), "random": torch.get_rng_state()}
                for name in ("last.pt", "best.pt")[: 1 + better]:
                    torch.save(state, folder / f".{name}")
                    (folder / f".{name}").replace(folder / name)
            if taken == steps:
                break
        else:
            epoch, batch_index = epoch + 1, 0
    writer.close()
