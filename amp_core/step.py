"""One training step, the same lines for every precision."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from amp_core.checkpoint import refuse_other_model, unwrapped
from amp_core.ema import Ema
from amp_core.gradients import GradientNorms, by_group, measure_gradients
from amp_core.kept import Kept
from amp_core.observation import observed_dtypes, warn_unless_seen
from amp_core.optimizers import load_optimizers, refuse_other_optimizers
from amp_core.parallel import without_sync
from amp_core.precision import UNCHANGED, Precision, Resolved
from amp_core.preconditions import (
    all_optimizers,
    announce_host_read,
    as_loss_and_metrics,
    as_precision,
    as_schedule,
    refuse_closures,
    refuse_foreign,
    refuse_half_precision,
    refuse_limits,
    refuse_other_state,
    refuse_what_is_no_batch,
    trainable,
)
from amp_core.scaler import LossScaler, ScaleState, refuse_foreign_state
from amp_core.schedule import Schedule
from amp_core.shards import gathered, sharded
from amp_core.window import Batch as Batch
from amp_core.window import Weigh, mean_loss, mean_metrics, on_device, weights_of

LossFn: TypeAlias = Callable[[nn.Module, Batch], Tensor]
MetricsFn: TypeAlias = Callable[[nn.Module, Batch], Tensor | tuple[Tensor, Mapping[str, float | Tensor]]]


@dataclass(slots=True)  # not frozen: that would take a call for each field in each step
class StepResult:
    """What one step came to: scalars on the device, so that reading them is the caller's choice.

    `loss` and `metrics` are means over the window. `grad_norm` is that of the true gradients, before clipping. `lr`
    and `loss_scale` are those that the step used. `found_inf` is 1 if the step was skipped, else 0.
    """

    loss: Tensor
    grad_norm: Tensor
    lr: Tensor
    loss_scale: Tensor
    found_inf: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)


class TrainStep:
    """A training step: forward under autocast, scaled backward, unscale, clip, step or skip, update.

    `step(batch)` takes one optimizer step; `step(*window)` takes one over a window of micro-batches, whose gradients
    are accumulated. `loss_fn(model, batch)` returns a batch's mean loss, or that and a mapping of metrics, which stay
    on the device. The micro-batches of a window weigh the same, or as `weigh(batch)` says, such as by the number of
    their target tokens (over all ranks, in a distributed model); a shorter last window is right by itself. A window
    begins without gradients: what another step, or a `backward` of one's own, left in the model does not count.

    Several optimizers step together or not at all. With fused ones a step reads nothing back to the host.
    `schedule` is a Schedule, or one of torch's own schedulers for each optimizer, which is taken over: call it no more.
    `max_grad_norm` is one limit for all gradients, or a limit for each parameter group, whose norms are then metrics
    (`grad_norm/0`); None or infinity does not clip. `max_grad_value` clips each number instead. A step whose gradients
    are not finite is skipped, in every precision: it changes no parameter, moment, buffer, learning rate or average.

    The precision is one of `precision_for`, what `resolve` returned, or a name. Each step has a scaler of its own.

    Raises:
        ValueError: at construction, for an argument out of range, parameters in half precision (bfloat16 ones are fine
            in bf16), an optimizer that needs a closure, or one with nothing to train; in a call, for an empty window,
            or a loss that is no scalar.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        precision: Precision | Resolved | str,
        loss_fn: MetricsFn,
        *,
        max_grad_norm: float | Sequence[float | None] | None = 1.0,
        max_grad_value: float | None = None,
        schedule: Schedule | LRScheduler | Sequence[LRScheduler] | None = None,
        ema: Ema | None = None,
        scaler: LossScaler | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        self.optimizers = all_optimizers(optimizer)
        self.schedule = as_schedule(schedule)
        params = trainable(self.optimizers)
        refuse_foreign(model, self.optimizers, schedule=self.schedule, ema=ema, scaler=scaler)
        for each in self.optimizers:
            refuse_closures(each)
            announce_host_read(each)
        self.device = params[0].device
        self.model = model
        self.precision = as_precision(precision, self.device)
        self.precision.prepare(model)
        self.loss_fn = loss_fn
        limit = None if max_grad_norm == math.inf else max_grad_norm
        self.max_grad_norm = tuple(limit) if isinstance(limit, Sequence) else limit
        if max_grad_value is not None and (not max_grad_value > 0.0 or max_grad_norm is not None):
            raise ValueError(f"max_grad_value must be positive, with max_grad_norm=None, found {max_grad_value!r}")
        self.max_grad_value = max_grad_value
        self.ema = ema
        self.weigh = weigh
        self.scaler = scaler or LossScaler(self.device, dynamic=self.precision.needs_scaler)
        if self.precision.needs_scaler and not self.scaler.dynamic:
            raise ValueError("fp16 needs a scaler that scales: pass LossScaler(device, dynamic=True), or none")
        self._remember(self.params)
        self._half_taken = ""
        self._constant_lr = (math.nan, torch.zeros((), device=self.device))
        self._norms: GradientNorms | None = None
        self._has_run = False
        self.observed_dtypes: frozenset[torch.dtype] = frozenset()

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer, the first one of several."""
        return self.optimizers[0]

    @property
    def params(self) -> list[nn.Parameter]:
        """Return all parameters that the optimizers hold now, also those added or unfrozen since the construction."""
        optimizers = self.optimizers
        return [param for each in optimizers for group in each.param_groups for param in group["params"]]

    @property
    def lr(self) -> Tensor:
        """Return the learning rate of the first parameter group, a scalar on the device, for the next step."""
        rate = self.optimizers[0].param_groups[0]["lr"]
        if isinstance(rate, Tensor):
            return rate.to(self.device)
        if rate != self._constant_lr[0]:
            self._constant_lr = (rate, torch.full((), rate, device=self.device))
        return self._constant_lr[1]

    def __call__(self, *window: Batch) -> StepResult:
        """Take one optimizer step, or skip it, over a window of micro-batches.

        What it raises, such as out of memory, leaves no gradient behind: the next call begins anew. An error after
        parameters moved, as in the second of two optimizers, cannot be undone: further calls and `state_dict` are then
        refused until a state is loaded.
        """
        self._refuse_half_taken("the next step")
        params = self._follow_new_parameters()
        self._clear_gradients()  # of whoever else ran a backward pass through this model
        self._kept.keep()
        try:
            with self.precision.products():
                return self._take(window, params)
        except BaseException as error:
            if self._kept.moved():
                self._half_taken = type(error).__name__
            self._kept.put_back()
            self._abandon()
            raise

    def _take(self, window: Sequence[Batch], params: Sequence[nn.Parameter]) -> StepResult:
        loss, metrics = self._accumulate(window)
        lr = self._kept_lr()
        loss_scale = self.scaler.loss_scale.clone() if self.scaler.dynamic else self.scaler.loss_scale
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)  # clipping must see true gradients
        self._norms = norms = measure_gradients(params, self.device)
        parts = [norms]
        limits = self.max_grad_norm if isinstance(self.max_grad_norm, tuple) else (self.max_grad_norm,)
        if limits is self.max_grad_norm:
            parts = by_group(norms, self.optimizers)
            metrics |= {f"grad_norm/{index}": part.total for index, part in enumerate(parts)}
        for limit, part in zip(limits, parts, strict=True):
            if limit is not None and limit != math.inf:
                nn.utils.clip_grads_with_norm_(part.params, limit, part.total)
        if self.max_grad_value is not None:
            nn.utils.clip_grad_value_(norms.params, self.max_grad_value)
        self.scaler.agree(self.optimizers, norms)
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)  # skips by itself; a fused optimizer decides inside its kernel
        self.scaler.update()  # counters, floor and ceiling stay on the device
        self._kept.put_back(self.scaler.found_inf)
        if self.schedule is not None:
            self.schedule.advance(self.scaler.applied, self.scaler.attempts)  # a skipped step must not advance it
        if self.ema is not None:
            self.ema.update(self.scaler.found_inf)
        self._clear_gradients()
        return StepResult(loss, norms.total, lr, loss_scale, self.scaler.found_inf, metrics)

    def read(self) -> ScaleState:
        """Return the scaler's state on the host, in one copy.

        Raises:
            ScaleCollapsed: training makes no progress; the message names the first parameter to blame.
        """
        return self.scaler.read(self._blame)

    def with_averages(self) -> AbstractContextManager[None]:
        """Return a context in which the model has the EMA's averages, if there is one, such as for an evaluation."""
        return UNCHANGED if self.ema is None else self.ema.swapped_in()

    def state_dict(self, *, whole: bool = True) -> dict[str, Any]:
        """Return all that the next step depends on, as tensors and plain values: no pickled classes.

        It is the same for one process, DDP and FSDP2: each rank calls this, and one of them saves. Unless it is to be
        `whole`, FSDP2's ranks keep their shards, and nothing is exchanged.

        Raises:
            RuntimeError: the model holds its averages just now, or half a step.
        """
        self._refuse_half_taken("saving")
        state = {
            "precision": self.precision.name,
            "model": unwrapped(self.model).state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "optimizer_types": [type(optimizer).__name__ for optimizer in self.optimizers],
            "scaler": self.scaler.state_dict(),
            "ema": None if self.ema is None else self.ema.state_dict(),
        }
        found: dict[str, Any] = gathered(state) if whole else state
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, also one of another precision: a static scaler takes a dynamic one's counters.

        Raises:
            ValueError: it is the state of another model or other optimizers; nothing is changed then.
        """
        self.refuse_other(state)
        state = sharded(self, state)
        self._abandon()
        try:
            load_optimizers(self.optimizers, state["optimizers"])
        finally:
            if self.schedule is not None:
                self.schedule.bind(self.optimizers)  # the loaded rates are others, which the schedule would not move
        self._half_taken = ""
        if self.ema is not None and state["ema"] is not None:
            self.ema.load_state_dict(state["ema"])
        unwrapped(self.model).load_state_dict(state["model"])
        if self.ema is None and state["ema"] is not None:
            warnings.warn("the checkpoint has averages, this step keeps none: they are left out", stacklevel=2)
        if self.ema is not None and state["ema"] is None:
            self.ema.restart()
            warnings.warn("the checkpoint has no averages: they begin at its parameters", stacklevel=2)
        self.scaler.load_state_dict(state["scaler"])
        if self.schedule is not None:
            self.schedule.advance(self.scaler.applied, self.scaler.attempts)

    def refuse_other(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError unless a state is of this model, these optimizers and these averages."""
        refuse_other_state(state)
        refuse_other_model(unwrapped(self.model), state["model"])
        refuse_other_optimizers(self.optimizers, state)
        refuse_foreign_state(state["scaler"])
        self._follow_new_parameters()
        if self.ema is not None:
            self.ema.refuse_foreign(state["ema"] or self.ema.state_dict())

    def _follow_new_parameters(self) -> list[nn.Parameter]:
        """Return the parameters; average those that came to the optimizers since, and keep the buffers beside them."""
        params = self.params
        if [*map(id, params)] != self._ids:
            if self.ema is not None:
                known = {*self._ids, *map(id, self.ema.params)}
                self.ema.follow(param for param in params if id(param) not in known)
            self._remember(params)
        return params

    def _remember(self, params: Sequence[nn.Parameter]) -> None:
        refuse_limits(self.max_grad_norm, sum(len(each.param_groups) for each in self.optimizers))
        if self.schedule is not None:
            self.schedule.bind(self.optimizers)  # a group that it does not know would keep its rate
        refuse_half_precision(self.model, trainable(self.optimizers), self.precision)
        self._ids = [*map(id, params)]
        self._cleared = [*{id(param): param for param in (*self.model.parameters(), *params)}.values()]
        self._kept = Kept(self.model, params, self.optimizers)

    def _kept_lr(self) -> Tensor:
        """Return the learning rate of this step; a schedule, or the user, may change its tensor in place."""
        if self.schedule is not None:
            return self.schedule.lr.clone()
        rate = self.lr
        return rate if rate is self._constant_lr[1] else (rate if rate.ndim == 0 else rate.reshape(())).detach().clone()

    def _accumulate(self, window: Sequence[Batch]) -> tuple[Tensor, dict[str, Tensor]]:
        """Run forward and backward over a window; return its detached mean loss, and its mean metrics."""
        if not window:
            raise ValueError("a step needs at least one batch, found none: is the loader empty?")
        weights = weights_of(window, self.weigh, self.model, self.device)
        losses, metrics = [], []
        for index, (batch, weight) in enumerate(zip(window, weights, strict=True), 1):
            with UNCHANGED if index == len(window) else without_sync(self.model):
                loss, named = self._forward(batch)
                weighted = loss if weight is None else loss * weight
                self.scaler.scale(weighted).backward()
            losses.append(weighted.detach())
            metrics.append({name: on_device(value, self.device) for name, value in named.items()} if named else {})
        return mean_loss(losses, weights), mean_metrics(metrics, weights) if any(metrics) else {}

    def _forward(self, batch: Batch) -> tuple[Tensor, Mapping[str, float | Tensor]]:
        """Return a batch's loss and metrics, of the first one with a look at the dtypes that they are computed in."""
        refuse_what_is_no_batch(batch)
        if self._has_run:
            with self._autocast:  # type: ignore[has-type]  # made below
                return as_loss_and_metrics(self.loss_fn(self.model, batch))
        self._autocast = self.precision.autocast()  # to make one at each step takes longer than to enter it again
        with observed_dtypes(self.model) as dtypes, self._autocast:
            found = as_loss_and_metrics(self.loss_fn(self.model, batch))
        warn_unless_seen(dtypes, self.precision)
        self.observed_dtypes = frozenset(dtypes)
        self._has_run = True
        return found

    def _clear_gradients(self) -> None:
        """Clear all gradients of the model, and of what the optimizers hold besides."""
        for param in self._cleared:
            param.grad = None

    def _abandon(self) -> None:
        """Leave nothing of a step that was not finished."""
        self._clear_gradients()
        self.scaler.abandon()

    def _refuse_half_taken(self, before: str) -> None:
        if self._half_taken:
            raise RuntimeError(
                f"{self._half_taken} ended the last step after parameters had moved: load a state to go on from"
            )
        if self.ema is not None and self.ema.swapped:
            raise RuntimeError(f"the model holds its averages now: leave with_averages() before {before}")

    def _blame(self) -> str:
        if self._norms is None:
            return "no gradient was seen"
        return self._norms.first_non_finite({id(param): name for name, param in self.model.named_parameters()})
