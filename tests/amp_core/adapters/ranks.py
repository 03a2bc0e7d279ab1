"""What two real processes check together, and a run of which one rank fails; as torchrun starts them."""

import math
import os
import runpy
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn import functional
from torch.utils.data import TensorDataset

from amp_core import checkpoint
from amp_core.data import Stream, loader
from amp_core.ema import Ema
from amp_core.loop import Checkpoints, FitResult, Plan, fit
from amp_core.parallel import Rank, mean_over_ranks, on_any_rank, total_over_ranks, without_sync, world, wrap
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler
from amp_core.schedule import Schedule
from amp_core.shards import gathered
from amp_core.step import Batch, TrainStep
from amp_core.tracking import Tracker

Bucket: Any = distributed.GradBucket  # type: ignore[attr-defined]  # DDP asks for this very annotation
WAYS, CPU = ("ddp", "fsdp2"), torch.device("cpu")


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
    return TrainStep(model, optimizer, precision_for("fp32", "cpu"), loss_fn, **options)


def flat(values: Any) -> Tensor:
    return torch.cat([value.detach().flatten() for value in gathered(list(values))])


def same_everywhere(value: Tensor) -> bool:
    """Say whether a tensor has the same bits on both ranks."""
    first = value.clone()
    distributed.broadcast(first, 0)
    differs = torch.tensor(float(not torch.equal(first, value)))
    return on_any_rank(differs).item() == 0.0


def distance(one: TrainStep, other: TrainStep) -> float:
    return (flat(one.params) - flat(other.params)).abs().max().item()


def replicas_start_from_the_first_ranks_weights(rank: Rank, _: Path, how: str) -> None:
    step = a_step(how, "fp32", seed=rank.index)
    assert same_everywhere(flat(step.params))
    assert distance(step, a_step(None, "fp32")) == 0.0


def an_overflow_on_one_rank_skips_the_step_on_both(rank: Rank, _: Path, how: str) -> None:
    for name in ("fp16", "bf16", "fp32"):
        step = a_step(how, name)
        for index in range(4):
            batch = a_batch(10 * index + rank.index)
            before = flat(step.params)
            result = step(overflowing(batch) if index == 2 and rank.index == 1 else batch)
            if index == 2:
                assert torch.equal(before, flat(step.params))
                assert result.found_inf.item() == 1.0
        state = step.read()
        assert step.ema is not None
        values = torch.cat([flat(step.params), flat(step.ema.averages), step.scaler.loss_scale[None], step.lr[None]])
        assert same_everywhere(values)
        assert type(result.grad_norm) is Tensor
        assert state.applied < 4
        assert state.scale == (2.0 ** (12 + state.applied) if name == "fp16" else 1.0)
        assert math.isclose(step.lr.item(), 0.02 * 0.9**state.applied, rel_tol=1e-6)


def a_window_of_four_is_one_big_batch(rank: Rank, _: Path, how: str) -> None:
    step, alone = a_linear_step(how, max_grad_norm=0.5), a_linear_step(None, max_grad_norm=0.5)
    for update in range(3):
        batches = [a_batch(100 * update + index) for index in range(8)]
        mine = step(*batches[4 * rank.index : 4 * rank.index + 4])
        union = alone(tuple(torch.cat(column) for column in zip(*batches, strict=True)))
        assert abs(mine.grad_norm.item() - union.grad_norm.item()) < 1e-6
    assert distance(step, alone) < 1e-6
    assert abs((mean_over_ranks(mine.loss) - union.loss).item()) < 1e-6


def gradients_are_exchanged_once_a_window(rank: Rank, _: Path, how: str) -> None:
    model = wrap(a_model(), how, blocks=(Block,))
    with without_sync(model):
        loss_fn(model, a_batch(rank.index)).backward()  # type: ignore[no-untyped-call]  # torch declares no types
    if how == "ddp":
        assert not same_everywhere(flat(param.grad for param in model.parameters()))
    else:
        assert all(param.grad is None for param in model.parameters())
    loss_fn(model, a_batch(rank.index)).backward()  # type: ignore[no-untyped-call]  # the same
    sent = flat(param.grad for param in model.parameters())
    alone = a_model()
    for each in range(2):
        (loss_fn(alone, a_batch(each))).backward()  # type: ignore[no-untyped-call]  # the same
    assert same_everywhere(sent)
    if isinstance(
        model, nn.parallel.DistributedDataParallel
    ):  # the step itself: one exchange with the last of three batches
        exchanged: list[int] = []
        step = TrainStep(model, torch.optim.AdamW(model.parameters(), fused=True), "bf16", loss_fn)

        def exchange(group: Any, bucket: Bucket) -> torch.futures.Future[Tensor]:
            exchanged.append(bucket.index())
            return allreduce_hook(group, bucket)

        model.register_comm_hook(distributed.group.WORLD, exchange)
        step(*(a_batch(seed) for seed in range(3)))
        assert exchanged == [0]
    assert (sent - flat(param.grad for param in alone.parameters())).abs().max().item() < 1e-6


def ragged_windows_weighed_by_size_are_the_mean_over_the_union(rank: Rank, _: Path, how: str) -> None:
    sizes = {"ddp": ((2, 3, 1), (5,)), "fsdp2": ((2, 1), (5, 4))}[how]  # fsdp2 gathers in each forward pass
    windows = [[a_batch(7 * index + size, size) for size in each] for index, each in enumerate(sizes)]
    step = a_linear_step(how, weigh=lambda batch: len(batch[0]))
    unweighed, alone = a_linear_step(how), a_linear_step(None)
    for _update in range(3):
        mine = step(*windows[rank.index])
        unweighed(*windows[rank.index])
        union = alone(tuple(torch.cat(column) for column in zip(*windows[0], *windows[1], strict=True)))
    assert distance(step, alone) < 1e-6
    assert abs((mean_over_ranks(mine.loss) - union.loss).item()) < 1e-6
    assert distance(unweighed, alone) > 1e-4


def the_first_rank_saves_what_all_can_load_and_so_can_a_single_process(rank: Rank, folder: Path, how: str) -> None:
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
    assert step.ema and fresh.ema
    assert torch.equal(flat(step.params), flat(fresh.params))
    assert torch.equal(flat(step.ema.averages), flat(fresh.ema.averages))
    assert torch.equal(at_save, flat(alone.params))
    assert step.scaler.state_dict() == fresh.scaler.state_dict()
    assert list(saved["model"]) == list(a_model().state_dict())
    assert all(value.numel() > 0 for value in saved["optimizers"][0]["state"][0].values())


def a_killed_fit_goes_on_bit_for_bit(rank: Rank, folder: Path, how: str) -> None:
    """Train with dropout; stop after half, as if killed, and go on in a new loop from the first rank's checkpoint."""

    def run(into: str, steps: int, *, resume: bool = False, sharded: bool = False) -> tuple[TrainStep, FitResult]:
        step = a_step(how, "fp16")
        step.loss_fn = lambda model, batch: loss_fn(lambda inputs: model(functional.dropout(inputs, 0.3)), batch)
        torch.manual_seed(100 + rank.index)
        data = TensorDataset(*a_batch(0, size=48))
        batches = loader(data, batch_size=4, device=rank.device, seed=0, rank=rank.index, world=rank.size)
        stream = Stream(batches, rank.device)
        with Tracker(4, []) as tracker:
            result = fit(
                step, stream, tracker, Plan(steps, accumulate=2), resume=resume,
                checkpoints=Checkpoints(folder / how / into, every=5, sharded=sharded),
            )  # fmt: skip
        distributed.barrier()  # the first rank has written
        return step, result

    through, _ = run("through", 10)
    run("killed", 5)
    resumed, result = run("killed", 10, resume=True)
    assert distance(through, resumed) == 0.0
    assert result.state.applied == 10
    files = sorted(path.name for path in (folder / how / "through").iterdir())
    assert files == ["step-00000005.pt", "step-00000010.pt"]
    assert not same_everywhere(torch.rand(()))  # each rank goes on with its own generator
    with patch("amp_core.step.gathered", side_effect=AssertionError("a rank gathers the whole")):
        run("sharded", 5, sharded=True)
        resumed, _ = run("sharded", 10, resume=True, sharded=True)
    assert distance(through, resumed) == 0.0
    alone = a_step(None, "fp16", seed=9)
    latest = Checkpoints(folder / how / "sharded", every=1).latest()
    assert latest and latest.name == "step-00000010.shards"
    alone.load_state_dict(Checkpoints(latest.parent, every=1).load(latest, alone)["step"])
    assert distance(through, alone) == 0.0


def ranks_without_an_exchange_skip_together_if_they_agree(rank: Rank) -> None:
    for across, skipped in ((on_any_rank, [1, 1]), (None, [0, 1])):
        step = a_step(None, "fp16", scaler=LossScaler("cpu", dynamic=True, across=across))
        step(overflowing(a_batch(0)) if rank.index else a_batch(0))
        assert step.read().skipped == skipped[rank.index]


def totals_are_those_of_the_ranks_that_share_a_model(rank: Rank) -> None:
    mine = torch.tensor(float(rank.index + 1))
    for model, total in (
        (wrap(a_model(), "ddp", find_unused_parameters=True), (3.0, 2)),
        (wrap(a_model(), "fsdp2", reshard_after_forward=False), (3.0, 2)),
        (a_model(), (mine, 1)),
    ):
        assert total_over_ranks(model, mine) == total


def lightning_trains_replicas_as_the_train_step_does(rank: Rank) -> None:
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
    silent = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    options: dict[str, Any] = dict.fromkeys(silent, False)
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
    assert same_everywhere(values)
    assert (plugin.read().applied, plugin.read().skipped) == (3, 1)
    assert torch.equal(flat(module.model.parameters()), flat(step.params))


FOR_EACH_WAY = (
    replicas_start_from_the_first_ranks_weights,
    an_overflow_on_one_rank_skips_the_step_on_both,
    a_window_of_four_is_one_big_batch,
    gradients_are_exchanged_once_a_window,
    ragged_windows_weighed_by_size_are_the_mean_over_the_union,
    the_first_rank_saves_what_all_can_load_and_so_can_a_single_process,
    a_killed_fit_goes_on_bit_for_bit,
)
MEANS = FOR_EACH_WAY[2:5]
"""What FSDP2 of torch 2.8 cannot: between CPUs it adds gradients up."""
ONCE = (
    ranks_without_an_exchange_skip_together_if_they_agree,
    totals_are_those_of_the_ranks_that_share_a_model,
    lightning_trains_replicas_as_the_train_step_does,
)


def main(folder: Path, recipe: Path) -> None:
    """Check everything; then run the recipe on both ranks; then fail on the second, as the first waits for it."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=r"SGD is not fused|TypedStorage is deprecated")  # one of torch 2.8
    torch.set_num_threads(1)
    os.chdir(folder)
    with world("cpu", timeout_s=60.0) as rank:
        place = int(os.environ["RANK"])
        assert (rank.index, rank.local, rank.size, rank.device, rank.first) == (place, place, 2, CPU, place == 0)
        for check in ONCE:
            check(rank)
        for each in FOR_EACH_WAY:
            for how in WAYS[: 1 if each in MEANS and torch.__version__ < "2.13" else None]:
                each(rank, folder, how)
        if rank.first:
            (folder / "all held").touch()
        with patch("amp_core.parallel.world", lambda **_: nullcontext(rank)):  # gloo may not meet twice in a process
            runpy.run_path(str(recipe))
        if rank.index == 1:
            raise ValueError("a batch that nobody can read")
        distributed.barrier()
