"""What two real processes check together; torchrun starts it, rank 0 writes what came of each check."""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from amp_core import checkpoint
from amp_core.data import Stream, loader
from amp_core.ema import Ema
from amp_core.loop import Checkpoints, FitResult, Plan, fit
from amp_core.parallel import Rank, gathered, mean_over_ranks, on_any_rank, total_over_ranks, without_sync, world, wrap
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler
from amp_core.schedule import Schedule
from amp_core.step import Batch, TrainStep
from amp_core.tracking import Tracker

WAYS = ("ddp", "fsdp2")


class Block(nn.Module):
    """A layer that is gathered on its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 12)

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = hidden + torch.tanh(self.layer(hidden))
        return out


def a_model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 12), Block(), Block(), nn.Linear(12, 3))


def a_batch(seed: int, size: int = 4) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, 5, generator=generator), torch.randn(size, 3, generator=generator)


def overflowing(batch: Batch) -> Batch:
    return batch[0], batch[1] * torch.inf


def loss_fn(model: Callable[[Tensor], Tensor], batch: Batch) -> Tensor:
    loss: Tensor = (model(batch[0]).float() - batch[1]).square().mean()
    return loss


def a_step(how: str | None, name: str, *, seed: int = 0, **options: Any) -> TrainStep:
    """Return a step with all that there is: fused AdamW, clipping, a schedule and averages."""
    model = a_model(seed) if how is None else wrap(a_model(seed), how, blocks=(Block,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, fused=True)
    schedule = Schedule(optimizer, lambda applied: 0.9**applied, steps=20, device="cpu")
    ema = Ema(model.parameters(), 0.5)
    return TrainStep(model, optimizer, precision_for(name, "cpu"), loss_fn, schedule=schedule, ema=ema, **options)


def a_linear_step(how: str | None, **options: Any) -> TrainStep:
    """Return a step whose update is proportional to the gradient, so that rounding stays small."""
    model = a_model() if how is None else wrap(a_model(), how, blocks=(Block,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # torch has no fused SGD for sharded parameters
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="SGD is not fused")
        return TrainStep(model, optimizer, precision_for("fp32", "cpu"), loss_fn, **options)


def whole(values: Any) -> list[Tensor]:
    return [value.detach().clone() for value in gathered(list(values))]


def flat(values: Any) -> Tensor:
    return torch.cat([value.flatten() for value in whole(values)])


def same_everywhere(value: Tensor) -> bool:
    """Say whether a tensor has the same bits on both ranks."""
    first = value.clone()
    distributed.broadcast(first, 0)
    differs = torch.tensor(float(not torch.equal(first, value)))
    return on_any_rank(differs).item() == 0.0


def distance(one: TrainStep, other: TrainStep) -> float:
    return (flat(one.params) - flat(other.params)).abs().max().item()


def replicas_start_from_the_first_ranks_weights(rank: Rank, _: Path, how: str) -> object:
    step = a_step(how, "fp32", seed=rank.index)
    return {"same": same_everywhere(flat(step.params)), "distance": distance(step, a_step(None, "fp32"))}


def an_overflow_on_one_rank(rank: Rank, _: Path, how: str) -> object:
    found = {}
    for name in ("fp16", "bf16", "fp32"):
        step = a_step(how, name)
        for index in range(4):
            batch = a_batch(10 * index + rank.index)
            before = flat(step.params)
            result = step(overflowing(batch) if index == 2 and rank.index == 1 else batch)
            if index == 2:
                skipped = torch.equal(before, flat(step.params)) and result.found_inf.item() == 1.0
        state, lr = step.read(), step.lr.item()
        assert step.ema is not None
        values = torch.cat([flat(step.params), flat(step.ema.averages), step.scaler.loss_scale[None], step.lr[None]])
        found[name] = {
            "skipped": skipped, "same": same_everywhere(values), "scale": state.scale,
            "applied": state.applied, "lr": lr, "norm_is_plain": type(result.grad_norm) is Tensor,
        }  # fmt: skip
    return found


def a_window_of_four_is_one_big_batch(rank: Rank, _: Path, how: str) -> object:
    step, alone = a_linear_step(how, max_grad_norm=0.5), a_linear_step(None, max_grad_norm=0.5)
    norms = []
    for update in range(3):
        batches = [a_batch(100 * update + index) for index in range(8)]
        mine = step(*batches[4 * rank.index : 4 * rank.index + 4])
        union = alone(tuple(torch.cat(column) for column in zip(*batches, strict=True)))
        norms.append(abs(mine.grad_norm.item() - union.grad_norm.item()))
    loss = mean_over_ranks(mine.loss) - union.loss
    return {"distance": distance(step, alone), "norm": max(norms), "loss": abs(loss.item())}


def gradients_are_exchanged_once_a_window(rank: Rank, _: Path, how: str) -> object:
    model = wrap(a_model(), how, blocks=(Block,))
    with without_sync(model):
        loss_fn(model, a_batch(rank.index)).backward()  # type: ignore[no-untyped-call]  # torch declares no types
    held_back = how == "fsdp2" or not same_everywhere(flat(param.grad for param in model.parameters()))
    held_back = held_back and (how == "ddp" or all(param.grad is None for param in model.parameters()))
    loss_fn(model, a_batch(rank.index)).backward()  # type: ignore[no-untyped-call]  # the same
    sent = flat(param.grad for param in model.parameters())
    alone = a_model()
    for each in range(2):
        (loss_fn(alone, a_batch(each))).backward()  # type: ignore[no-untyped-call]  # the same
    error = (sent - flat(param.grad for param in alone.parameters())).abs().max().item()
    return {"held_back": held_back, "same": same_everywhere(sent), "error": error}


def ragged_windows_weighed_by_size_are_the_mean_over_the_union(rank: Rank, _: Path, how: str) -> object:
    sizes = {"ddp": ((2, 3, 1), (5,)), "fsdp2": ((2, 1), (5, 4))}[how]  # fsdp2 gathers in each forward pass
    windows = [[a_batch(7 * index + size, size) for size in each] for index, each in enumerate(sizes)]
    step = a_linear_step(how, weigh=lambda batch: len(batch[0]))
    alone = a_linear_step(None)
    for _update in range(3):
        mine = step(*windows[rank.index])
        union = alone(tuple(torch.cat(column) for column in zip(*windows[0], *windows[1], strict=True)))
    loss = mean_over_ranks(mine.loss) - union.loss
    found = {"distance": distance(step, alone), "loss": abs(loss.item())}
    unweighed = a_linear_step(how)
    for _update in range(3):
        unweighed(*windows[rank.index])
    return found | {"unweighed": distance(unweighed, alone)}


def the_first_rank_saves_and_all_load(rank: Rank, folder: Path, how: str) -> object:
    step, path = a_step(how, "fp16"), folder / f"{how}.pt"
    batches = [a_batch(10 * index + rank.index) for index in range(6)]
    for batch in batches[:3]:
        step(batch)
    state = step.state_dict()
    if rank.first:
        checkpoint.save(path, {"step": state})
    distributed.barrier()
    at_save = flat(step.params)
    for batch in batches[3:]:
        step(batch)
    saved = checkpoint.load(path)["step"]
    fresh, alone = a_step(how, "fp16", seed=5), a_step(None, "fp16", seed=6)
    fresh.load_state_dict(saved)
    alone.load_state_dict(saved)
    for batch in batches[3:]:
        fresh(batch)
    assert step.ema is not None
    assert fresh.ema is not None
    return {
        "resumed": torch.equal(flat(step.params), flat(fresh.params)),
        "averages": torch.equal(flat(step.ema.averages), flat(fresh.ema.averages)),
        "alone": torch.equal(at_save, flat(alone.params)),
        "scaler": step.scaler.state_dict() == fresh.scaler.state_dict(),
        "names": list(saved["model"]) == list(a_model().state_dict()),
        "moments": all(value.numel() > 0 for value in saved["optimizers"][0]["state"][0].values()),
    }


def a_killed_fit_goes_on_bit_for_bit(rank: Rank, folder: Path, how: str) -> object:
    """Train with dropout; stop after half, as if killed, and go on in a new loop from the first rank's checkpoint."""

    def run(into: str, steps: int, *, resume: bool = False) -> tuple[TrainStep, FitResult]:
        step = a_step(how, "fp16")
        step.loss_fn = lambda model, batch: loss_fn(lambda inputs: model(functional.dropout(inputs, 0.3)), batch)
        torch.manual_seed(100 + rank.index)
        data = TensorDataset(*a_batch(0, size=48))
        stream = Stream(
            loader(data, batch_size=4, device=rank.device, seed=0, rank=rank.index, world=rank.size), rank.device
        )
        with Tracker(4, []) as tracker:
            result = fit(
                step, stream, tracker, Plan(steps, accumulate=2), resume=resume,
                checkpoints=Checkpoints(folder / how / into, every=5),
            )  # fmt: skip
        distributed.barrier()  # the first rank has written
        return step, result

    through, _ = run("through", 10)
    run("killed", 5)
    resumed, result = run("killed", 10, resume=True)
    drawn = torch.rand(())  # each rank goes on with its own generator
    return {
        "distance": distance(through, resumed),
        "applied": result.state.applied,
        "files": sorted(path.name for path in (folder / how / "through").iterdir()),
        "own generators": not same_everywhere(drawn),
    }


def ranks_without_an_exchange_skip_together_if_they_agree(rank: Rank) -> object:
    found = {}
    for key, across in (("agreed", on_any_rank), ("alone", None)):
        step = a_step(None, "fp16", scaler=LossScaler("cpu", dynamic=True, across=across))
        step(overflowing(a_batch(0)) if rank.index else a_batch(0))
        found[key] = [int(count) for count in everywhere(step.scaler.skipped)]
    return found


def everywhere(value: Tensor) -> Tensor:
    parts = [torch.zeros_like(value) for _ in range(2)]
    distributed.all_gather(parts, value)
    return torch.stack(parts)


def totals_are_those_of_the_ranks_that_share_a_model(rank: Rank) -> object:
    mine = torch.tensor(float(rank.index + 1))
    models = {how: wrap(a_model(), how) for how in WAYS} | {"plain": a_model()}
    return {
        key: [total_over_ranks(model, mine)[0].item(), total_over_ranks(model, mine)[1]]
        for key, model in models.items()
    }


def lightning_trains_replicas(rank: Rank) -> object:
    from lightning.pytorch import LightningModule, Trainer

    from amp_core.lightning import AmpPrecision

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = a_model()

        def training_step(self, batch: Any, _: int) -> Tensor:
            return loss_fn(self.model, batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=0.02, fused=True)

    module, plugin = Module(), AmpPrecision("fp16")
    options: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    trainer = Trainer(
        accelerator="cpu", devices=2, strategy="ddp", plugins=[plugin], max_epochs=1, accumulate_grad_batches=2,
        gradient_clip_val=0.5, use_distributed_sampler=False, **options,
    )  # fmt: skip
    data: Any = [a_batch(10 * index + rank.index) for index in range(8)]
    data[3] = overflowing(data[3]) if rank.index == 1 else data[3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's own advice on loaders
        trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=None))
    values = torch.cat([flat(module.model.parameters()), plugin.scaler.loss_scale[None]])
    step = a_step("ddp", "fp16", max_grad_norm=0.5)
    step.schedule = None
    step.optimizer.param_groups[0]["lr"] = 0.02
    for start in range(0, 8, 2):
        step(*data[start : start + 2])
    state = plugin.read()
    return {
        "same": same_everywhere(values), "applied": state.applied, "skipped": state.skipped,
        "as_step": torch.equal(flat(module.model.parameters()), flat(step.params)),
    }  # fmt: skip


FOR_EACH_WAY = (
    replicas_start_from_the_first_ranks_weights,
    an_overflow_on_one_rank,
    a_window_of_four_is_one_big_batch,
    gradients_are_exchanged_once_a_window,
    ragged_windows_weighed_by_size_are_the_mean_over_the_union,
    the_first_rank_saves_and_all_load,
    a_killed_fit_goes_on_bit_for_bit,
)
ONCE = (
    ranks_without_an_exchange_skip_together_if_they_agree,
    totals_are_those_of_the_ranks_that_share_a_model,
    lightning_trains_replicas,
)


def main(out: Path) -> None:
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    with world("cpu", timeout_s=60.0) as rank:
        results: dict[str, object] = {check.__name__: check(rank) for check in ONCE}
        for check in FOR_EACH_WAY:
            results[check.__name__] = {how: check(rank, out.parent, how) for how in WAYS}
        place = [rank.index, rank.local, rank.size, str(rank.device), rank.first]
        results["world"] = gathered_places = [None, None]
        distributed.all_gather_object(gathered_places, place)
        if rank.first:
            out.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
