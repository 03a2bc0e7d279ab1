"""Sound training steps, each of which looks at first like one of the faults."""

# mypy: disable-error-code="no-untyped-call"

import threading
from typing import Any

import torch
from parts import STEPS, adam, batch, gradient_scaler, half, half_loss_of, loss_of, net, plain_steps, scaled_steps
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.utils.checkpoint import checkpoint


def recipe() -> list[dict[str, float]]:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    records = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = half_loss_of(model)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        records.append({"loss": loss.item(), "loss_scale": scaler.get_scale()})
        scaler.step(optimizer)
        scaler.update()
    return records


def late_norm() -> list[float]:
    model = net()
    optimizer, norms = adam(model), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        norms.append(float(clip_grad_norm_(model.parameters(), float("inf"))))
    return norms


def accumulated() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    for index in range(2 * STEPS):
        scaler.scale(half_loss_of(model) / 2).backward()
        if index % 2:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def two_optimizers_one_scaler() -> None:
    maker, judge, scaler = nn.Linear(4, 8), net(), gradient_scaler()
    of_maker, of_judge = adam(maker), adam(judge)
    for _ in range(STEPS):
        real, noise = batch()[0], torch.randn(32, 4)
        of_judge.zero_grad()
        with half():
            loss = (
                nn.functional.softplus(-judge(real)).mean()
                + nn.functional.softplus(judge(maker(noise).detach())).mean()
            )
        scaler.scale(loss).backward()
        scaler.unscale_(of_judge)
        clip_grad_norm_(judge.parameters(), 1.0)
        scaler.step(of_judge)
        of_maker.zero_grad()
        with half():
            loss = nn.functional.softplus(-judge(maker(noise))).mean()
        scaler.scale(loss).backward()
        scaler.step(of_maker)
        scaler.update()


def other_optimizer_first() -> None:
    judge, maker, scaler = net(), nn.Linear(4, 8), gradient_scaler()
    of_judge, of_maker = adam(judge), adam(maker)
    for _ in range(STEPS):
        of_judge.zero_grad()
        scaler.scale(half_loss_of(judge)).backward()
        scaler.step(of_judge)
        of_maker.zero_grad()
        with half():
            loss = nn.functional.softplus(-judge(maker(torch.randn(32, 4)))).mean()
        scaler.scale(loss).backward()
        scaler.step(of_maker)
        scaler.update()


async def awaited() -> None:
    float32()


def skipped_by_hand() -> None:
    for model, optimizer, scaler in scaled_steps():
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        if torch.isfinite(clip_grad_norm_(model.parameters(), 1.0)):
            scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def schedule_waits() -> None:
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    for _ in range(STEPS):
        before = scaler.get_scale()
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if scaler.get_scale() >= before:
            schedule.step()


def closure() -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    for _ in range(2):
        inputs, targets = batch()

        def loss_again(inputs: Tensor = inputs, targets: Tensor = targets) -> Tensor:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            return loss

        optimizer.step(loss_again)


class Checkpointed(nn.Module):
    """Computes its inner part twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = net(), nn.Linear(1, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.head(checkpoint(self.inner, inputs.requires_grad_(), use_reentrant=True))
        return found


def checkpointed() -> None:
    _train(Checkpointed())


def compiled_whole() -> None:
    _train(torch.compile(net(), backend="eager", fullgraph=True))


class WithLoss(nn.Module):
    """Returns its loss beside what that is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.drop = net(), nn.Dropout(0.2)

    def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.inner(self.drop(inputs))
        return {"loss": nn.functional.mse_loss(logits, labels), "logits": logits}


def loss_inside() -> None:
    model, scaler = WithLoss(), gradient_scaler()
    optimizer = adam(model)
    for _ in range(STEPS):
        inputs, targets = batch()
        with half():
            loss = model(inputs=inputs, labels=targets)["loss"]
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def float32() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def cleared_by_hand() -> None:
    for model, optimizer in plain_steps():
        half_loss_of(model, torch.bfloat16).backward()
        optimizer.step()
        for param in model.parameters():
            param.grad = None


def noisy_gradients() -> None:
    for model, optimizer in plain_steps():
        optimizer.zero_grad()
        loss_of(model).backward()
        for param in model.parameters():
            assert param.grad is not None
            param.grad += torch.randn_like(param) * 0.1
        optimizer.step()


def scaler_turned_off() -> None:
    model, scaler = net(), torch.amp.GradScaler("cpu", enabled=False)
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def scaled_by_hand() -> None:
    for model, optimizer in plain_steps():
        optimizer.zero_grad()
        (half_loss_of(model) * 512.0).backward()
        for param in model.parameters():
            assert param.grad is not None
            param.grad /= 512.0
        optimizer.step()


class Stepper:
    """Hides the scaler, as many training scripts do."""

    def __init__(self) -> None:
        self._scaler = gradient_scaler()

    def __call__(self, loss: Tensor, optimizer: torch.optim.Optimizer, model: nn.Module, *, update: bool) -> None:
        self._scaler.scale(loss).backward()
        if update:
            self._scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            self._scaler.step(optimizer)
            self._scaler.update()


def hidden_scaler() -> None:
    model, stepper = net(), Stepper()
    optimizer = adam(model)
    for index in range(2 * STEPS):
        stepper(half_loss_of(model), optimizer, model, update=index % 2 == 1)
        if index % 2:
            optimizer.zero_grad()


class OwnScaler(torch.amp.GradScaler):
    """Overrides what it is recorded by."""

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        super().unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> float | None:
        return super().step(optimizer, *args, **kwargs)


def own_scaler() -> None:
    model, scaler = net(), OwnScaler("cpu", init_scale=64.0)
    optimizer = adam(model)
    for _ in range(STEPS):
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        clip_grad_value_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def overflows_by_itself() -> None:
    model, scaler = net(), torch.amp.GradScaler("cpu", init_scale=2.0**20)
    optimizer = adam(model)
    for _ in range(2 * STEPS):
        scaler.scale(half_loss_of(model)).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def _train(model: Any) -> None:
    scaler = gradient_scaler()
    optimizer = adam(model)
    for _ in range(STEPS):
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def unscaled_by_hand() -> None:
    """Clips the gradients between a division and a multiplication by the scale."""
    for model, optimizer, scaler in scaled_steps():
        scaler.scale(half_loss_of(model)).backward()
        grads = [param.grad for param in model.parameters() if param.grad is not None]
        torch._foreach_div_(grads, scaler.get_scale())
        clip_grad_norm_(model.parameters(), 1.0)
        torch._foreach_mul_(grads, scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def _scaled(model: nn.Module, scaler: torch.amp.GradScaler, steps: int = STEPS) -> None:
    optimizer = adam(model)
    for _ in range(steps):
        loss = half_loss_of(model)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def three_optimizers_one_scaler() -> None:
    """Updates the scaler once, after the last of three steps, each after a backward pass through all three models."""
    models, scaler = [nn.Linear(4, 4), nn.Linear(4, 8), net()], gradient_scaler()
    optimizers = [adam(model) for model in models]
    for _ in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
            with half():
                loss = nn.Sequential(*models)(torch.randn(32, 4)).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
        scaler.update()


def in_two_threads() -> None:
    threads = [threading.Thread(target=_scaled, args=(net(), gradient_scaler(), 4 * STEPS)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def taken_up_again() -> None:
    for _ in range(2):
        _scaled(net(), gradient_scaler())


def of_many_steps() -> None:
    _scaled(net(), gradient_scaler(), 60)


def given_after_clearing() -> None:
    """Keeps the gradients of a backward pass, clears them and puts them back, scaled."""
    for model, optimizer in plain_steps():
        optimizer.zero_grad()
        loss_of(model).backward()
        kept = [param.grad.clone() for param in model.parameters() if param.grad is not None]
        optimizer.zero_grad()
        for param, grad in zip(model.parameters(), kept, strict=True):
            param.grad = grad / 2
        optimizer.step()


def given_by_hand() -> None:
    """Puts gradients in the place of those of the step before, which another backward pass had made."""
    for model, optimizer in plain_steps():
        params = list(model.parameters())
        for param, grad in zip(params, torch.autograd.grad(loss_of(model), params), strict=True):
            param.grad = grad
        optimizer.step()


class Lookahead(torch.optim.Optimizer):
    """Steps by another optimizer with the same parameters, and is no optimizer by its constructor."""

    def __init__(self, base: torch.optim.Optimizer) -> None:
        self.base, self.count = base, 0
        self.defaults, self.param_groups, self.state = base.defaults, base.param_groups, base.state
        self.slow = [param.detach().clone() for param in base.param_groups[0]["params"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.base.zero_grad(set_to_none=set_to_none)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self.base.step(closure)
        self.count += 1
        if self.count % 2 == 0:
            for param, slow in zip(self.param_groups[0]["params"], self.slow, strict=True):
                param.copy_(slow.lerp_(param, 0.5))


class Moved(torch.optim.Optimizer):
    """Steps by itself, unseen by any hook."""

    def __init__(self, model: nn.Module) -> None:
        self.defaults, self.state, self.param_groups = {}, {}, [{"params": list(model.parameters()), "lr": 0.1}]  # type: ignore[assignment]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for param in self.param_groups[0]["params"]:
            param.grad = None

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for param in self.param_groups[0]["params"]:
            param.data -= 0.1 * param.grad


def _wrapped(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    scaler = gradient_scaler()
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(half_loss_of(model)).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def wrapped_optimizer() -> None:
    model = net()
    _wrapped(model, Lookahead(adam(model)))


def unhooked_optimizer() -> None:
    model = net()
    _wrapped(model, Moved(model))


def gradients_differentiated() -> None:
    for model, optimizer, scaler in scaled_steps():
        optimizer.zero_grad()
        loss = half_loss_of(model)
        grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        scaler.scale(loss + torch.stack([grad.square().sum() for grad in grads]).sum()).backward()
        scaler.step(optimizer)
        scaler.update()


def sharpness_aware() -> None:
    for model, optimizer in plain_steps():
        torch.manual_seed(0)
        loss_of(model).backward()
        before = [param.detach().clone() for param in model.parameters()]
        for param in model.parameters():
            assert param.grad is not None
            param.data += 0.5 * param.grad
        optimizer.zero_grad()
        torch.manual_seed(0)
        loss_of(model).backward()
        with torch.no_grad():
            for param, old in zip(model.parameters(), before, strict=True):
                param.copy_(old)
            optimizer.step()
        optimizer.zero_grad()
