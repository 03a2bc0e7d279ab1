"""Training steps with one fault each; `# <- ASPECT` marks the line that must be found, and as what."""

# mypy: disable-error-code="no-untyped-call"

import torch
from parts import STEPS, adam, batch, gradient_scaler, half, half_loss_of, loss_of, net, plain_steps, scaled_steps
from torch import nn
from torch.nn.utils import clip_grad_norm_


def clip_before_unscale() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        clip_grad_norm_(model.parameters(), 1.0)  # <- order gradients
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()


def unscale_twice() -> None:
    for model, optimizer, scaler in scaled_steps():
        for _ in range(2):
            scaler.scale(half_loss_of(model)).backward()
            scaler.unscale_(optimizer)  # <- run order
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def cleared_before_step() -> None:
    for model, optimizer in plain_steps():
        loss_of(model).backward()
        optimizer.zero_grad()  # <- order
        optimizer.step()


def cleared_before_scaled_step() -> None:
    for model, optimizer, scaler in scaled_steps():
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        optimizer.zero_grad(set_to_none=False)  # <- order
        scaler.step(optimizer)
        scaler.update()


def part_cleared_before_step() -> None:
    for model, optimizer in plain_steps():
        loss_of(model).backward()
        next(model.children()).zero_grad()  # <- order
        optimizer.step()
        optimizer.zero_grad()


def plain_step() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()  # <- order overflow
        scaler.update()


def never_unscaled() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        optimizer.step()  # <- order gradients overflow


def scaled_twice() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(scaler.scale(half_loss_of(model))).backward()
        scaler.step(optimizer)  # <- gradients
        scaler.update()


def no_update() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    optimizer.zero_grad()
    scaler.scale(half_loss_of(model)).backward()
    scaler.step(optimizer)  # <- order overflow


def scaled_loss_unused() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        loss = half_loss_of(model)
        scaler.scale(loss)
        loss.backward()
        scaler.step(optimizer)  # <- order gradients
        scaler.update()


def never_cleared() -> None:
    for model, optimizer, scaler in scaled_steps():
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)  # <- order
        scaler.update()


def outside_autocast() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()  # <- precision
        scaler.step(optimizer)
        scaler.update()


def half_without_scaler() -> None:
    for model, optimizer in plain_steps():
        optimizer.zero_grad()
        half_loss_of(model).backward()  # <- precision
        optimizer.step()


def half_parameters() -> None:
    model = net().bfloat16()
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        half_loss_of(model, torch.bfloat16).backward()
        optimizer.step()  # <- parameters


def half_parameters_scaled() -> None:
    model, scaler = net().half(), gradient_scaler()
    optimizer = adam(model)
    optimizer.zero_grad()
    scaler.scale(half_loss_of(model)).backward()
    scaler.step(optimizer)  # <- run
    scaler.update()


class Tracker:
    """Logs to nobody."""

    def log(self, values: dict[str, float]) -> None:
        assert values["norm"] < float("inf"), "cannot draw this"  # <-- tracker_crashes


def tracker_crashes() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer, tracker = adam(model), Tracker()
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        norm = clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        tracker.log({"norm": float(norm)})


def skip_without_update() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)  # <- overflow
        norm = clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            scaler.step(optimizer)
            scaler.update()


def scaler_made_anew() -> None:
    for model, optimizer, _ in scaled_steps():
        scaler = gradient_scaler()
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)  # <- overflow
        scaler.update()


def guard_inverted() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        norm = clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            scaler.step(optimizer)
        else:
            optimizer.step()  # <- overflow
        scaler.update()


def scale_held() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)  # <- overflow
        scaler.update(1024.0)


def error_if_nonfinite() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # <- overflow
        scaler.step(optimizer)
        scaler.update()


def overflow_swallowed() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        for param in model.parameters():
            assert param.grad is not None
            param.grad.nan_to_num_(0, 0, 0)
        scaler.step(optimizer)  # <- overflow
        scaler.update()


def overflow_hooked() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    for param in model.parameters():
        param.register_hook(lambda grad: torch.nan_to_num(grad, 0, 0, 0))
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)  # <- overflow
        scaler.update()


def gradients_dropped() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        next(model.parameters()).grad = None
        scaler.step(optimizer)  # <- gradients
        scaler.update()


class Momentum(torch.optim.Optimizer):
    """An optimizer that counts its steps before it looks at its gradients."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), {"lr": 0.1})
        self.calls = 0
        self._step_supports_amp_scaling = True

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        bad = bool(self.found_inf.item())  # type: ignore[attr-defined]
        for param in self.param_groups[0]["params"]:
            state = self.state[param]
            state["seen"] = state.get("seen", torch.zeros(())) + 1
            if not bad:
                param.sub_(param.grad / self.grad_scale, alpha=0.1)  # type: ignore[attr-defined]


def moments_move() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = Momentum(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)  # <- overflow
        scaler.update()


def schedule_runs_ahead() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)  # <- schedule
        scaler.update()
        schedule.step()


def scaled_bfloat16() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        with half(torch.bfloat16):
            loss = loss_of(model)
            scaler.scale(loss).backward()  # <- precision
        scaler.step(optimizer)
        scaler.update()


def divided_by_the_next_scale() -> None:
    model, scale = net(), 4.0
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (half_loss_of(model) * scale).backward()
        scale *= 2
        for param in model.parameters():
            assert param.grad is not None
            param.grad /= scale
        optimizer.step()  # <- gradients


def scaled_norm_logged() -> list[dict[str, float]]:
    model, scaler, log = net(), gradient_scaler(), []
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        grads = [param.grad for param in model.parameters() if param.grad is not None]
        log.append({"norm": nn.utils.get_total_norm(grads).item()})
        scaler.step(optimizer)  # <- gradients
        scaler.update()
    return log


def statistics_spoiled() -> None:
    model, scaler = nn.Sequential(net()[0], nn.BatchNorm1d(16), nn.Linear(16, 1)), gradient_scaler()
    optimizer = adam(model)
    for index in range(STEPS):
        optimizer.zero_grad()
        inputs, targets = batch()
        with half():
            loss = nn.functional.mse_loss(model(inputs * 10.0 ** (6 * (index == 1))), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # <- parameters
        scaler.update()


def half_window() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    for index in range(STEPS * 3 - 1):
        scaler.scale(half_loss_of(model) / 4).backward()  # <- gradients
        if index % 4 == 3 or index == STEPS * 3 - 2:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def schedule_first() -> None:
    model = net()
    optimizer = adam(model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(STEPS):
        schedule.step()  # <- order
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
