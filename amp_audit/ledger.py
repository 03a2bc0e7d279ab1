"""Bytes of the tensors that were alive, over time."""

import weakref
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor


@dataclass(frozen=True)
class Peak:
    """The most bytes that were alive at once, by dtype, most first; `op` reached it, where that is known."""

    bytes: int
    by_dtype: tuple[tuple[torch.dtype, int], ...]
    op: str | None = None


@dataclass(frozen=True)
class Change:
    """A storage that came (bytes above 0) or went (below 0)."""

    storage: int
    dtype: torch.dtype
    bytes: int
    op: str | None


class Ledger:
    """Notes when the storages of tensors come and go; tensors that share a storage count once.

    Sizes are rounded up to whole blocks of `block` bytes. A storage has the dtype of the first tensor seen on it.
    """

    def __init__(self, *, block: int = 1) -> None:
        self._block = block
        self._changes: list[Change] = []
        self._alive: dict[int, tuple[int, weakref.ref[torch.UntypedStorage]]] = {}

    def note(self, tensor: Tensor, op: str | None = None) -> int:
        """Note a tensor, if its storage is new, and return its storage's number."""
        storage = tensor.untyped_storage()
        key = storage._cdata  # noqa: SLF001  the storage's identity, whatever Python object stands for it
        if key not in self._alive:
            size = -(-storage.nbytes() // self._block) * self._block
            change = Change(len(self._changes), tensor.dtype, size, op)
            self._changes.append(change)
            self._alive[key] = change.storage, weakref.ref(storage, partial(self._release, key, change))
        return self._alive[key][0]

    def peak(self, without: Collection[int] = ()) -> Peak:
        """Return the peak, without the storages of these numbers."""
        live: Counter[torch.dtype] = Counter()
        total, best = 0, Peak(0, ())
        for change in self._changes:
            if change.storage in without:
                continue
            total += change.bytes
            live[change.dtype] += change.bytes
            if total > best.bytes:
                best = Peak(total, tuple((dtype, size) for dtype, size in live.most_common() if size), change.op)
        return best

    def _release(self, key: int, change: Change, _: object) -> None:
        del self._alive[key]
        self._changes.append(Change(change.storage, change.dtype, -change.bytes, change.op))
