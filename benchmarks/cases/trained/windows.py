"""Training steps whose windows of several losses are asked to be the mean of these; `sums` name those that are none."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable

import torch
from torch import Tensor, nn

WINDOW = 4


def _windows(weighed: Callable[[Tensor], Tensor], backwards: int = 1) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(WINDOW):
            loss = weighed(nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1)))
            for left in reversed(range(backwards)):
                loss.backward(retain_graph=left > 0)
        optimizer.step()


def mean() -> None:
    _windows(lambda loss: loss / WINDOW)


def sums() -> None:
    _windows(lambda loss: loss * 1.0)


def sums_twice() -> None:
    _windows(lambda loss: loss / WINDOW, backwards=2)


class Holding(torch.optim.Optimizer):
    """Takes each second step alone, and keeps the gradients until then."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer, self.turn = optimizer, 0

    @property
    def param_groups(self) -> list[dict[str, object]]:  # type: ignore[override]  # torch has an attribute
        return self.optimizer.param_groups

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # as torch's
        self.turn += 1
        if self.turn % 2 == 0:
            self.optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self.turn % 2 == 0:
            self.optimizer.zero_grad()


def _held(weighed: Callable[[Tensor], Tensor]) -> None:
    model = nn.Linear(4, 1)
    optimizer = Holding(torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(6):
        weighed(nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))).backward()
        optimizer.step()
        optimizer.zero_grad()


def held_mean() -> None:
    _held(lambda loss: loss / 2)


def held_sums() -> None:
    _held(lambda loss: loss * 1.0)
