"""Training loops with one thing each that a step need not wait for; the line that may be named for it is marked."""

import time
from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

STEPS = 24


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))


def pairs() -> tuple[Tensor, Tensor]:
    return torch.randn(32, 16), torch.randn(32, 1)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor) -> Tensor:
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach()


def reads_each_step() -> float:
    model, total = net(), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = step(model, optimizer, *pairs())
        total += loss.item()  # <- here
    return total


def branches_on_a_tensor() -> int:
    model, bad = net(), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = step(model, optimizer, *pairs())
        if torch.isnan(loss):  # <- here
            bad += 1
    return bad


class Meter:
    """Logs to a list, far from the loop."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def update(self, value: Tensor) -> None:
        self.values.append(float(value))  # <- here


def reads_in_a_meter() -> Meter:
    model, meter = net(), Meter()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        meter.update(step(model, optimizer, *pairs()))
    return meter


def reads_in_turn() -> list[float]:
    model, seen = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(STEPS):
        loss = step(model, optimizer, *pairs())
        if i % 2:
            seen.append(loss.item())  # <- here
        else:
            seen.append(float(loss))  # <- here
    return seen


def empties_the_cache() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        step(model, optimizer, *pairs())
        torch.cuda.empty_cache()  # <- here


class Slow(Dataset[tuple[Tensor, Tensor]]):
    """Takes its time for each sample."""

    def __len__(self) -> int:
        return 8 * STEPS

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        time.sleep(0.002)  # <- without workers
        return torch.randn(16), torch.randn(1)


def slow_dataset(workers: int = 0) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in DataLoader(Slow(), batch_size=8, num_workers=workers):  # <- with workers
        step(model, optimizer, inputs, targets)


def batches() -> Iterator[tuple[Tensor, Tensor]]:
    for _ in range(STEPS):
        time.sleep(0.01)  # <- generator
        yield pairs()


def slow_generator() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches():
        step(model, optimizer, inputs, targets)


def get_batch() -> tuple[Tensor, Tensor]:
    inputs, targets = pairs()
    time.sleep(0.01)  # <- function
    return inputs, targets


def slow_function() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        step(model, optimizer, *get_batch())


def everything() -> float:
    """Waits for batches, reads, empties and waits for the device, each on a line of its own, for ever."""
    model, total = net(), 0.0
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        inputs, targets = get_batch()
        loss = step(model, optimizer, inputs, targets)
        total += loss.item()  # <- reads
        torch.cuda.empty_cache()  # <- empties
        with suppress(AssertionError, RuntimeError):  # where there is no accelerator
            torch.cuda.synchronize()  # <- waits


def too_few() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(5):
        step(model, optimizer, *pairs())


def breaks() -> None:
    too_few()
    raise RuntimeError("no more")  # <- breaks
