"""Callables that leak about 1 MB an epoch, or graphs; a line that may be named for it is marked."""

import copy
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

MB = 1 << 20
KEPT: list[object] = []


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))


def batches(count: int = 4) -> Iterator[tuple[Tensor, Tensor]]:
    for _ in range(count):
        yield torch.randn(32, 16), torch.randn(32, 1)


def tensors_in_a_global() -> Callable[[], None]:
    def epoch() -> None:
        KEPT.append(torch.zeros(MB // 4))  # <- here

    return epoch


def losses_with_their_graphs() -> Callable[[], None]:
    model, losses = net(), list[Tensor]()

    def epoch() -> None:
        for inputs, targets in batches():
            loss = nn.functional.mse_loss(model(inputs), targets)  # <- here
            model.zero_grad()
            torch.autograd.backward(loss)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter, alpha=0.01)
            losses.append(loss)  # <- here

    return epoch


class Validating:
    """Keeps what it validates, with all that the graphs have saved."""

    def __init__(self) -> None:
        self.model = net()
        self.outputs: list[Tensor] = []

    def __call__(self) -> None:
        for _ in range(4):
            output = self.model(torch.randn(512, 16))  # <- here
            self.outputs.append(output)  # <- here


def validation_without_no_grad() -> Validating:
    return Validating()


def total_of_losses() -> Callable[[], None]:
    model, total = net(), torch.zeros(())

    def epoch() -> None:
        nonlocal total
        for inputs, targets in batches():
            loss = nn.functional.mse_loss(model(inputs), targets)  # <- here
            total = total + loss  # <- here

    return epoch


def hidden_state_never_detached() -> Callable[[], None]:
    cell = nn.GRUCell(16, 64)
    hidden = torch.zeros(32, 64)

    def epoch() -> None:
        nonlocal hidden
        for inputs, _ in batches():
            hidden = cell(inputs, hidden)  # <- here

    return epoch


class Activations:
    """Hooks that are put on anew in each epoch, and keep what they see."""

    def __init__(self) -> None:
        self.model = nn.Linear(256, 256)
        self.seen: list[Tensor] = []

    def epoch(self) -> None:
        with torch.no_grad():
            self.model.register_forward_hook(lambda _module, _args, output: self.seen.append(output))  # <- here
            self.model(torch.randn(512, 256))  # <- here


def hooks_put_on_again() -> Callable[[], None]:
    return Activations().epoch


def states_of_every_epoch() -> Callable[[], None]:
    model, states = nn.Linear(512, 512), dict[int, object]()

    def epoch() -> None:
        states[len(states)] = copy.deepcopy(model.state_dict())  # <- here

    return epoch


def epochs_called_by_name() -> None:
    """Leak by a module: the callable itself is the epoch."""
    model = net()
    for inputs, targets in batches():
        torch.autograd.backward(nn.functional.mse_loss(model(inputs), targets))
    KEPT.append((torch.ones(MB // 4), model))  # <- here


class Step(torch.autograd.Function):
    """Saves what it was given."""

    @staticmethod
    def forward(ctx: object, given: Tensor) -> Tensor:
        ctx.save_for_backward(given)  # type: ignore[attr-defined]
        return given.sum()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient


def graphs_of_a_function() -> Callable[[], None]:
    weight, kept = torch.ones(MB // 4, requires_grad=True), set()

    def epoch() -> None:
        kept.add(Step.apply(weight * 2))  # type: ignore[no-untyped-call]  # torch's own  # <- here

    return epoch
