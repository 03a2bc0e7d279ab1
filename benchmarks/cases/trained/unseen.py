"""Training steps of which one thing cannot be seen on a CPU: it is unknown, neither wrong nor right."""

# mypy: disable-error-code="no-untyped-call"

import torch
from parts import STEPS, adam, half, loss_of, net, scaled_steps


def autocast_of_cuda() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def scaler_of_cuda() -> None:
    model, scaler = net(), torch.amp.GradScaler("cuda")
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with half():
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def model_on_cuda() -> None:
    net().to("cuda")
