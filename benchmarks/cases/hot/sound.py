"""Ten training loops that read nothing at each step and wait for no batch: sound models, in as many styles."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import swa_utils
from torch.utils.data import DataLoader, Dataset, TensorDataset

STEPS = 30


def mlp() -> float:
    """Sums losses where they are, and reads them once in ten steps."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = TensorDataset(torch.randn(32 * STEPS, 64), torch.randint(10, (32 * STEPS,)))
    total, shown = torch.zeros(()), 0.0
    for i, (inputs, targets) in enumerate(DataLoader(data, batch_size=32, shuffle=True), 1):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.detach()
        if i % 10 == 0:
            shown = total.item() / i
    return shown


class Images(Dataset[tuple[Tensor, Tensor]]):
    """Images in memory, and labels of which each is read on the host."""

    def __init__(self) -> None:
        self.images, self.labels = torch.randn(16 * STEPS, 1, 16, 16), torch.randint(10, (16 * STEPS,))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:  # type: ignore[override]  # a collate makes it a tensor
        return self.images[index], int(self.labels[index])


def cnn() -> None:
    """A scaler, clipping, and a dataset that reads its own labels."""
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 196, 10))
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cpu")
    for images, labels in DataLoader(Images(), batch_size=16, shuffle=True):
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


class Tagger(nn.Module):
    """An LSTM over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm, self.out = nn.Embedding(100, 32), nn.LSTM(32, 32, batch_first=True), nn.Linear(32, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.lstm(self.embed(tokens))[0])  # type: ignore[no-any-return]  # torch's modules return Any


def lstm() -> None:
    """A schedule, and batches from a generator of the project."""
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(STEPS):
            lengths = torch.randint(8, 16, (16,))
            longest = int(lengths.max())  # of the batch, on the host
            yield torch.randint(100, (16, longest)), torch.randint(5, (16, longest))

    for tokens, tags in batches():
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tags.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def transformer() -> list[float]:
    """Gradients gathered over four batches, from a function; losses read after the loop."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.Sequential(nn.Embedding(64, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 64))
    optimizer, data, losses = torch.optim.AdamW(model.parameters()), torch.randint(64, (10_000,)), []

    def get_batch() -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(data) - 17, (8,)).tolist()
        return (torch.stack([data[i : i + 16] for i in starts]), torch.stack([data[i + 1 : i + 17] for i in starts]))

    for _ in range(STEPS):
        for _ in range(4):
            tokens, following = get_batch()
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten()) / 4
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def gan() -> None:
    """Two optimizers that step in turn."""
    maker, critic = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16)), nn.Linear(16, 1)
    made_by, judged_by = torch.optim.Adam(maker.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(STEPS):
        judged_by.zero_grad()
        (critic(maker(torch.randn(32, 8)).detach()).mean() - critic(torch.randn(32, 16)).mean()).backward()
        judged_by.step()
        made_by.zero_grad()
        (-critic(maker(torch.randn(32, 8))).mean()).backward()
        made_by.step()


def with_workers() -> None:
    """Two processes make batches ahead, and the model takes longer than they do."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(64 * STEPS, 64), torch.randn(64 * STEPS, 1))
    for inputs, targets in DataLoader(data, batch_size=64, num_workers=2):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def evaluates() -> list[float]:
    """Two epochs, each with an evaluation that reads as much as it likes."""
    model = nn.Sequential(nn.Linear(16, 128), nn.Tanh(), nn.Linear(128, 2))
    optimizer, accuracies = torch.optim.RMSprop(model.parameters()), []
    data = TensorDataset(torch.randn(512, 16), torch.randint(2, (512,)))
    for _ in range(2):
        model.train()
        for inputs, targets in DataLoader(data, batch_size=32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(data, batch_size=64))
        accuracies.append(right / len(data))
    return accuracies


def averaged() -> float:
    """An average of the weights, and the norm of the gradients kept where it is."""
    model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 1))
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))  # type: ignore[no-untyped-call]
    optimizer, norms = torch.optim.AdamW(model.parameters(), foreach=True), []
    for _ in range(STEPS):
        model(torch.randn(64, 32)).square().mean().backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        optimizer.step()
        average.update_parameters(model)
        optimizer.zero_grad()
    return float(torch.stack(norms).max())


def autoencoder() -> Iterator[Tensor]:
    """A generator that trains: what it yields are steps, not batches."""
    encoder, decoder = nn.Linear(64, 8), nn.Linear(8, 64)
    optimizer = torch.optim.Adagrad([*encoder.parameters(), *decoder.parameters()])
    for _ in range(STEPS):
        inputs = torch.rand(128, 64)
        loss = nn.functional.mse_loss(decoder(encoder(inputs)), inputs)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield loss.detach()


class Trainer:
    """A loop in pieces, as frameworks have it: hooks, callbacks, a log once in a while."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.1), nn.Linear(64, 4))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), weight_decay=0.1)
        self.log: list[dict[str, Any]] = []
        self.step = 0

    def training_step(self, batch: dict[str, Tensor]) -> Tensor:
        return nn.functional.cross_entropy(self.model(batch["inputs"]), batch["labels"])

    def fit(self) -> None:
        data: Any = [{"inputs": torch.randn(16), "labels": i % 4} for i in range(8 * STEPS)]
        for batch in DataLoader(data, batch_size=8):
            loss = self.training_step(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.on_step_end(loss.detach())

    def on_step_end(self, loss: Tensor) -> None:
        self.step += 1
        if self.step % 5 == 0:
            self.log.append({"step": self.step, "loss": float(loss)})


def framework() -> None:
    """Trains as a framework does."""
    Trainer().fit()
