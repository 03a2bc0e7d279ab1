"""A precision plugin for Lightning: its Trainer keeps the loop, this package's scaler decides each step."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.plugins.precision import Precision as LightningPrecision
from lightning.pytorch.utilities import GradClipAlgorithmType
from torch import Tensor, nn
from torch.optim import Optimizer

from amp_core.checkpoint import unwrapped
from amp_core.device import inspect
from amp_core.gradients import GradientNorms, measure_gradients
from amp_core.kept import Kept
from amp_core.precision import Resolved, precision_for, resolve
from amp_core.preconditions import refuse_closures, refuse_half_precision
from amp_core.scaler import LossScaler, ScaleState
from amp_core.schedule import Schedule

Name: TypeAlias = Literal["32-true", "bf16-mixed", "16-mixed"]
NAMES: dict[str, Name] = {"fp32": "32-true", "tf32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}


class AmpPrecision(LightningPrecision):
    """Trains a LightningModule as TrainStep does: `Trainer(plugins=[AmpPrecision("fp16")])`.

    Every precision skips a step whose gradients or their norm are not finite. Fused optimizers may be clipped, a
    shorter last accumulation window weighs its batches rightly, and no step reads anything back to the host
    (with a fused optimizer). The scaler is in Lightning's checkpoints; those of Lightning's own plugin are read too.

    `schedule` makes a Schedule of the optimizers, such as `lambda optimizers: Schedule(optimizers, factor, steps=...,
    device=...)`: unlike a scheduler from `configure_optimizers`, it follows the steps that were really applied.
    `scaler_options` go to LossScaler. Parameters stay in float32.

    Raises:
        ValueError: the precision is unknown; when training begins, for parameters in half precision or an optimizer
            that needs a closure.
    """

    def __init__(
        self,
        requested: str | None = None,
        *,
        use_amp: bool | None = None,
        schedule: Callable[[Sequence[Optimizer]], Schedule] | None = None,
        scaler_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.requested = None if requested is None else precision_for(requested, "cpu").name
        self.use_amp = use_amp
        self.make_schedule = schedule
        self.scaler_options = dict(scaler_options or {})
        self.schedule: Schedule | None = None
        self._resolved: Resolved | None = None
        self._scaler: LossScaler | None = None
        self._names: dict[int, str] = {}
        self._optimizers: list[Optimizer] = []
        self._micro_batches = 0
        self._unscaled: set[int] = set()  # the optimizers whose gradients were unscaled since the last update
        self._stepped = False
        self._norms: dict[int, GradientNorms] = {}  # by optimizer, of its last step
        self._products = ExitStack()

    @property
    def resolved(self) -> Resolved:
        """Return the effective precision and the reason for it; known once the Trainer has set up its model."""
        if self._resolved is None:
            raise ValueError("the precision is not known yet: expected a Trainer with this plugin to have begun")
        return self._resolved

    @property
    def scaler(self) -> LossScaler:
        """Return the loss scaler, which lives as long as the plugin; known once the Trainer has set up its model."""
        if self._scaler is None:
            raise ValueError("there is no scaler yet: expected a Trainer with this plugin to have begun")
        return self._scaler

    @property
    def grad_norm(self) -> Tensor:
        """Return the norm of the last step's true gradients, before clipping, a float32 scalar on the device."""
        norms = [each.total for each in self._norms.values()]
        return torch.stack(norms).norm() if norms else torch.zeros((), device=self.scaler.device)

    def connect(
        self, model: nn.Module, optimizers: list[Optimizer], lr_schedulers: list[Any]
    ) -> tuple[nn.Module, list[Optimizer], list[Any]]:
        """Resolve the precision on the model's device and make the scaler; Lightning calls it before it trains."""
        device = next((param.device for param in model.parameters()), torch.device("cpu"))
        self._resolve_on(device)
        self._names = {id(param): name for name, param in unwrapped(model).named_parameters()}
        if self._scaler is None or self._scaler.device != device:
            self._take_scaler(device)
        for optimizer in optimizers:
            refuse_half_precision(model, list(self.main_params(optimizer)), self.resolved.precision)
            refuse_closures(optimizer)
        if self.make_schedule is not None and optimizers and optimizers != self._optimizers:
            self.schedule = self.make_schedule(optimizers)
            self.schedule.advance(self.scaler.applied)
        self._optimizers = list(optimizers)
        self._kept = Kept(model, (), ())
        return model, optimizers, lr_schedulers

    @contextmanager
    def forward_context(self) -> Iterator[None]:
        """Autocast the forward passes of training and evaluation."""
        with self.resolved.precision.autocast():
            yield

    @contextmanager
    def train_step_context(self) -> Iterator[None]:
        """Keep the buffers that the first forward pass of a window writes, such as BatchNorm's statistics."""
        self.settle()
        if not self._micro_batches:
            self._kept.keep()
        with self.forward_context():
            yield

    def pre_backward(self, tensor: Tensor, module: LightningModule) -> Tensor:  # type: ignore[override]  # as upstream
        """Scale the loss."""
        self.settle()
        self._micro_batches += 1
        return super().pre_backward(self.scaler.scale(tensor), module)

    def optimizer_step(  # type: ignore[override]  # as upstream
        self,
        optimizer: Optimizer,
        model: LightningModule,
        closure: Callable[[], Any],
        **kwargs: Any,  # noqa: ANN401  what the optimizer takes
    ) -> Any:  # noqa: ANN401  what the closure returns
        """Finish a window: unscale, call the hooks, clip, then step or skip."""
        result = closure()
        micro_batches, self._micro_batches = self._micro_batches, 0
        if model.automatic_optimization and not micro_batches:
            return result  # training_step returned None for the whole window
        self._unscale(optimizer)
        if model.automatic_optimization:
            self._make_mean(optimizer, micro_batches, model.trainer.accumulate_grad_batches)
        self._after_closure(model, optimizer)  # the user's hooks, then clip_gradients
        if id(optimizer) not in self._norms:
            self._measure(optimizer)
        self.scaler.agree([optimizer], self._norms[id(optimizer)])
        if self.schedule is not None:
            self.schedule.bind(self._optimizers)  # a checkpoint that was loaded has put other rates in their place
        self.scaler.step(optimizer, **kwargs)
        self._stepped = True
        if model.automatic_optimization:
            self.settle()
        return result

    def clip_gradients(
        self,
        optimizer: Optimizer,
        clip_val: float = 0.0,
        gradient_clip_algorithm: GradClipAlgorithmType = GradClipAlgorithmType.NORM,
    ) -> None:
        """Clip the true gradients, also those of a fused optimizer, and before a step taken by hand."""
        optimizer = getattr(optimizer, "optimizer", optimizer)  # Lightning's wrapper, in manual optimization
        self._unscale(optimizer)
        norms = self._measure(optimizer)
        if clip_val > 0 and gradient_clip_algorithm == GradClipAlgorithmType.VALUE:
            self.clip_grad_by_value(optimizer, clip_val)
        elif clip_val > 0:
            nn.utils.clip_grads_with_norm_(norms.params, clip_val, norms.total)

    def settle(self) -> None:
        """Finish the steps since the last backward pass: adapt the scale, count, move the schedule on.

        In manual optimization several optimizers may step on one backward pass: all of them must see its scale.
        """
        if not self._stepped:
            return
        self.scaler.update()
        self._kept.put_back(self.scaler.found_inf)
        if self.schedule is not None:
            self.schedule.advance(self.scaler.applied)
        self._unscaled.clear()
        self._stepped = False

    def read(self) -> ScaleState:
        """Return the scaler's state on the host, in one copy.

        Raises:
            ScaleCollapsed: training makes no progress; the message names the first parameter to blame.
        """
        self.settle()
        return self.scaler.read(self._blame)

    def state_dict(self) -> dict[str, Any]:
        """Return the scaler's state, plain numbers, for Lightning's checkpoint."""
        self.settle()
        return self.scaler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the scaler's state, and move the schedule to its applied steps."""
        self.scaler.load_state_dict(state_dict)
        if self.schedule is not None:
            self.schedule.advance(self.scaler.applied)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the scale that Lightning's own plugin saved, where this one has saved none."""
        if type(self).__qualname__ not in checkpoint:
            self.load_state_dict(checkpoint.get("MixedPrecision", {}))

    def teardown(self) -> None:
        """Put back the process's matrix-product precision."""
        self._products.close()

    def _resolve_on(self, device: torch.device) -> None:
        first = self._resolved is None
        self._resolved = resolve(self.requested, self.use_amp, inspect(device))
        self.precision = NAMES[self._resolved.precision.name]
        if first:
            for message in self._resolved.warnings:
                warnings.warn(message, stacklevel=2)
        self._products.close()
        self._products.enter_context(self._resolved.precision.products())

    def _take_scaler(self, device: torch.device) -> None:
        kept = None if self._scaler is None else self._scaler.state_dict()
        self._scaler = LossScaler(device, dynamic=self.resolved.precision.needs_scaler, **self.scaler_options)
        self._scaler.load_state_dict(kept or {})

    def _unscale(self, optimizer: Optimizer) -> None:
        if id(optimizer) not in self._unscaled:
            self.scaler.unscale_(optimizer)
            self._unscaled.add(id(optimizer))
            self._norms.pop(id(optimizer), None)

    def _measure(self, optimizer: Optimizer) -> GradientNorms:
        norms = measure_gradients(list(self.main_params(optimizer)), self.scaler.device)
        self._norms[id(optimizer)] = norms
        return norms

    def _make_mean(self, optimizer: Optimizer, micro_batches: int, expected: int) -> None:
        """Weigh the gradients of a shorter window: Lightning divides each loss by the length of a full one."""
        grads = [param.grad for param in self.main_params(optimizer) if param.grad is not None]
        if micro_batches != expected and grads:
            torch._foreach_mul_(grads, expected / micro_batches)  # as torch's own optimizers do

    def _blame(self) -> str:
        for norms in self._norms.values():
            if not torch.isfinite(norms.total):
                return norms.first_non_finite(self._names)
        return "the last step's gradients were finite"
