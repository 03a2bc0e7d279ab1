"""An exponential moving average of parameters and buffers, which follows the steps that were really applied."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from amp_core.parallel import is_sharded


class Ema:
    """Keeps `average = decay * average + (1 - decay) * parameter` for each parameter, once per applied step.

    The averages start at the parameters' values and have their dtypes (at least float32) and devices. A skipped step
    leaves them as they are, to the bit, and nothing is read back to the host. Buffers may be averaged, too, such as
    BatchNorm's statistics: pass `[*model.parameters(), *model.buffers()]`. Counters among them are left out.

    Raises:
        ValueError: the decay is not between 0 and 1, or there is no parameter.
    """

    def __init__(self, params: Iterable[Tensor], decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must be at least 0 and below 1, found {decay!r}")
        self.params: tuple[Tensor, ...] = ()
        self.averages: list[Tensor] = []
        self.follow(params)
        if not self.averages:
            raise ValueError("there is no parameter to average: pass model.parameters()")
        self.decay = decay
        self._share = (math.nan, self.averages[0])  # a decay, and 1 - decay as a scalar on the device
        self.swapped = 0  # how many blocks have the averages in the parameters' place
        self._live: list[Tensor] = []  # the parameters' own values meanwhile

    def follow(self, params: Iterable[Tensor]) -> None:
        """Average more parameters, from the values that they have."""
        more = tuple(param for param in params if param.is_floating_point() or param.is_complex())
        self.params += more
        self.averages += [_wide(param) for param in more]
        pairs = zip(self.params, self.averages, strict=True)
        self._plain = not any(own.dtype != wide.dtype or is_sharded(own) for own, wide in pairs)

    def update(self, found_inf: Tensor) -> None:
        """Move the averages towards the parameters; by nothing where `found_inf`, a scalar, is 1."""
        if self._share[0] != self.decay:
            self._share = (self.decay, torch.full_like(found_inf, 1.0 - self.decay))
        with torch.no_grad():
            weight = torch.sub(self._share[1], found_inf, alpha=1.0 - self.decay)  # exactly nothing of a bad step
            averages, params = self.averages, self.params
            if not self._plain:
                params = tuple(_own(p.detach().to(a.dtype)) for p, a in zip(params, averages, strict=True))
                averages = [_own(average) for average in averages]
            torch._foreach_lerp_(averages, params, [weight] * len(params))

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Put the averages in the place of the parameters for a block, such as an evaluation; blocks may nest."""
        if not self.swapped:
            self._live = [param.detach().clone() for param in self.params]
            _copy(self.params, self.averages)
        self.swapped += 1
        try:
            yield
        finally:
            self.swapped -= 1
            if not self.swapped:
                _copy(self.params, self._live)
                self._live = []

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the averages, in the parameters' order."""
        return {"averages": self.averages}

    def refuse_foreign(self, state_dict: Mapping[str, list[Tensor]]) -> None:
        """Raise ValueError unless these are averages of such parameters."""
        found = [tuple(average.shape) for average in state_dict.get("averages", ())]
        expected = [tuple(average.shape) for average in self.averages]
        if found != expected:
            raise ValueError(
                f"the averages are of another model: expected {len(expected)} tensors of this model's shapes,"
                f" found {len(found)}"
            )

    def load_state_dict(self, state_dict: Mapping[str, list[Tensor]]) -> None:
        """Load averages.

        Raises:
            ValueError: they are of other parameters; nothing is changed then.
        """
        self.refuse_foreign(state_dict)
        _copy(self.averages, state_dict["averages"])

    def restart(self) -> None:
        """Begin again at the parameters as they are."""
        _copy(self.averages, self.params)


@torch.no_grad()
def _copy(into: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    for each, value in zip(into, values, strict=True):
        each.copy_(value)


def _own(tensor: Tensor) -> Tensor:
    """Return this rank's part of a sharded tensor, not a copy: torch 2.8 averages no others."""
    part: Tensor = tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]  # a DTensor's
    return part


def _wide(param: Tensor) -> Tensor:
    return param.detach().to(torch.promote_types(param.dtype, torch.float32), copy=True)
