"""The global random generators of Python, NumPy and torch: seeded, saved and put back together."""

import random
import sys
from collections.abc import Mapping
from typing import Any

import torch


def seed_all(seed: int) -> None:
    """Seed every global generator; NumPy's only if it is loaded, which then draws the same in every run."""
    random.seed(seed)
    torch.manual_seed(seed)  # every device's generator, too
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)  # NumPy takes 32 bits


def random_state() -> dict[str, Any]:
    """Return the states of all global generators, as tensors and plain values."""
    version, words, gauss = random.getstate()
    numpy = sys.modules.get("numpy")
    state: dict[str, Any] = {
        "python": [version, list(words), gauss],
        "torch": torch.get_rng_state(),
        **{name: backend.get_rng_state_all() for name, backend in _several().items()},
        "mps": torch.mps.get_rng_state() if torch.backends.mps.is_available() else None,
        "numpy": None,
    }
    if numpy is not None:
        name, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = [name, keys.tolist(), int(position), int(has_gauss), float(cached)]
    return state


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Put all global generators back; with another number of a kind of devices, those are left as they are."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(state["torch"].cpu())
    for name, backend in _several().items():
        if len(state.get(name, ())) == backend.device_count():
            backend.set_rng_state_all([each.cpu() for each in state[name]])
    if state.get("mps") is not None and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"].cpu())
    if state["numpy"] is not None:
        import numpy as np  # the run that saved it had it, and may draw from it

        name, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))


def _several() -> dict[str, Any]:
    """Return the kinds of accelerators that are here, of which a machine may have several, each with a generator."""
    return {name: each for name, each in (("cuda", torch.cuda), ("xpu", torch.xpu)) if each.is_available()}
