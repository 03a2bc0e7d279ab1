"""Small real models that keep nothing; what they fill, they fill to its bound."""

import copy
import json
import tempfile
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

Epoch = Callable[[], object]


def batches(*shape: int, count: int = 4) -> Iterator[tuple[Tensor, Tensor]]:
    for _ in range(count):
        yield torch.randn(shape), torch.randn(shape[0], 1)


def mlp_with_amp() -> Epoch:
    """Train in float16 with a scaler, and keep each loss as a number."""
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cpu")
    history: list[dict[str, float]] = []

    def epoch() -> None:
        for inputs, targets in batches(32, 16):
            with torch.autocast("cpu", torch.float16):
                loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(scaler.scale(loss))
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            history.append({"loss": loss.item(), "scale": scaler.get_scale()})

    return epoch


class Averaged:
    """A convolutional network with a moving average of its weights, and the best state so far."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                                   nn.Flatten(), nn.Linear(8, 1))  # fmt: skip
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.best: dict[str, Tensor] = {}

    def epoch(self) -> float:
        for inputs, targets in batches(8, 3, 12, 12):
            self.optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(self.model(inputs), targets))
            self.optimizer.step()
            with torch.no_grad():
                for mean, now in zip(self.average.parameters(), self.model.parameters(), strict=True):
                    mean.lerp_(now, 0.01)
        self.best = copy.deepcopy(self.model.state_dict())
        with torch.no_grad():
            return float(self.average(torch.randn(8, 3, 12, 12)).mean())


def cnn_with_average() -> Epoch:
    return Averaged().epoch


def lstm() -> Epoch:
    """Carry a hidden state from batch to batch, detached."""
    net, head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()])
    hidden = (torch.zeros(1, 8, 32), torch.zeros(1, 8, 32))

    def epoch() -> float:
        nonlocal hidden
        for inputs, targets in batches(8, 5, 16):
            output, carried = net(inputs, hidden)
            hidden = (carried[0].detach(), carried[1].detach())
            loss = nn.functional.mse_loss(head(output[:, -1]), targets)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        return loss.item()

    return epoch


def transformer() -> Epoch:
    """Train in bfloat16 with checkpointed layers and a schedule; the last loss is kept with its graph."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    head = nn.Linear(16, 1)
    optimizer = torch.optim.AdamW([*layer.parameters(), *head.parameters()])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    last: dict[str, Tensor] = {}

    def epoch() -> None:
        for inputs, targets in batches(4, 6, 16):
            with torch.autocast("cpu", torch.bfloat16):
                output = head(checkpoint(layer, inputs, use_reentrant=False)[:, 0])
                loss = nn.functional.mse_loss(output.float(), targets)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            last["loss"] = loss
        schedule.step()

    return epoch


def loader_with_workers() -> Epoch:
    data = TensorDataset(torch.randn(32, 16), torch.randn(32, 1))
    loader, model = DataLoader(data, batch_size=8, shuffle=True, num_workers=1), nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def epoch() -> None:
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(inputs), targets))
            optimizer.step()

    return epoch


def tracked_in_json() -> Epoch:
    file = (Path(tempfile.mkdtemp()) / "log.jsonl").open("w", encoding="utf-8")
    model = nn.Linear(16, 1)

    def epoch() -> None:
        for step, (inputs, targets) in enumerate(batches(32, 16)):
            loss = nn.functional.mse_loss(model(inputs), targets)
            file.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")

    return epoch


def tracked_in_tensorboard() -> Epoch:
    from torch.utils.tensorboard import SummaryWriter

    writer, model, steps = SummaryWriter(tempfile.mkdtemp()), nn.Linear(16, 1), iter(range(1_000_000))

    def epoch() -> None:
        for inputs, targets in batches(32, 16):
            writer.add_scalar("loss", nn.functional.mse_loss(model(inputs), targets).item(), next(steps))
        writer.flush()

    return epoch


@lru_cache(maxsize=4096)
def tokens(word: str) -> tuple[int, ...]:
    return tuple(word.encode()) * 8


def cached_tokenizer() -> Epoch:
    """Tokenize words of a vocabulary that is seen little by little."""
    embed = nn.EmbeddingBag(256, 8)

    def epoch() -> None:
        words = [f"word{n}" for n in torch.randint(2000, (300,)).tolist()]
        embed(torch.tensor([tokens(word)[:32] for word in words]))

    return epoch


def cache_that_fills() -> Epoch:
    """Keep the last 40 blocks of 256 KB: full after 40 epochs."""
    blocks: OrderedDict[int, Tensor] = OrderedDict()
    count = iter(range(1_000_000))

    def epoch() -> None:
        blocks[next(count)] = torch.zeros(1 << 16)
        if len(blocks) > 40:
            blocks.popitem(last=False)

    return epoch


def replay_buffer() -> Epoch:
    """Fill a queue with a bound that is far away."""
    buffer: deque[Tensor] = deque(maxlen=15)
    model = nn.Linear(16, 16)

    def epoch() -> None:
        buffer.append(torch.randn(64, 1024))
        with torch.no_grad():
            model(torch.stack([each[:, :16] for each in buffer]))

    return epoch


def two_networks() -> Epoch:
    """Train one network against another."""
    maker, judge = nn.Linear(8, 16), nn.Linear(16, 1)
    optimizers = [torch.optim.Adam(each.parameters()) for each in (maker, judge)]

    def epoch() -> None:
        for _ in range(4):
            made = maker(torch.randn(16, 8))
            for optimizer, loss in zip(optimizers, (judge(made).mean(), -judge(made.detach()).mean()), strict=True):
                optimizer.zero_grad()
                torch.autograd.backward(loss, retain_graph=True)
                optimizer.step()

    return epoch


def made_anew() -> float:
    """Make everything anew in each epoch, cycles included."""
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    model.own = [model]  # type: ignore[assignment]
    optimizer = torch.optim.Adam(model.parameters())
    for inputs, targets in batches(32, 16):
        loss = nn.functional.mse_loss(model(inputs), targets)
        torch.autograd.backward(loss)
        optimizer.step()
    return loss.item()
