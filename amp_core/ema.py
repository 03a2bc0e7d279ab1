"""An exponential moving average of parameters and buffers, which follows the steps that were really applied."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


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
        self._narrow = any(own.dtype != wide.dtype for own, wide in zip(self.params, self.averages, strict=True))

    def update(self, found_inf: Tensor) -> None:
        """Move the averages towards the parameters; by nothing where `found_inf`, a scalar, is 1."""
        if self._share[0] != self.decay:
            self._share = (self.decay, torch.full_like(found_inf, 1.0 - self.decay))
        with torch.no_grad():
            weight = torch.sub(self._share[1], found_inf, alpha=1.0 - self.decay)  # exactly nothing of a bad step
            params = [_wide(param) for param in self.params] if self._narrow else self.params
            torch._foreach_lerp_(self.averages, params, [weight] * len(params))

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Put the averages in the place of the parameters for a block, such as an evaluation; blocks may nest."""
        if not self.swapped:
            self._live = [param.detach().clone() for param in self.params]
            self._put(self.averages)
        self.swapped += 1
        try:
            yield
        finally:
            self.swapped -= 1
            if not self.swapped:
                self._put(self._live)
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
        for average, value in zip(self.averages, state_dict["averages"], strict=True):
            average.copy_(value)

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again at the parameters as they are."""
        for param, average in zip(self.params, self.averages, strict=True):
            average.copy_(param)

    @torch.no_grad()
    def _put(self, values: list[Tensor]) -> None:
        for param, value in zip(self.params, values, strict=True):
            param.copy_(value)


def _wide(param: Tensor) -> Tensor:
    return param.detach().to(torch.promote_types(param.dtype, torch.float32), copy=True)
