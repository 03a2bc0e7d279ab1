"""What this process holds: by the system's word, by Python's, by devices', and in live tensors and their graphs."""

import ctypes
import os
import resource
import sys
import tracemalloc
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import _lru_cache_wrapper
from gc import collect, freeze, get_objects
from typing import Any

from .asking import torch_of_project


def trim() -> None:
    """Give back to the system what the C library holds for later, where it is glibc."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def private_bytes() -> int | None:
    """Return the bytes that this process has written, those that its forks share too, or `None` where nothing says."""
    with suppress(OSError), open("/proc/self/smaps_rollup", encoding="ascii") as file:  # noqa: PTH123
        sizes = [int(line.split()[1]) for line in file if line.startswith(("Anonymous:", "Pss_Shmem:", "Swap:"))]
        if sizes:
            return 1024 * sum(sizes)
    with suppress(ImportError):
        import psutil

        with suppress(psutil.Error):
            return int(psutil.Process().memory_full_info().uss)
    return None


def _field(name: str) -> int:
    with suppress(OSError, ValueError, IndexError), open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:")), 0)
    return 0


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    return _field("VmRSS") or peak()


def peak() -> int:
    """Return the most that it held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _field("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    """Begin to look for the peak from here, where the system lets us."""
    with suppress(OSError):
        file = os.open("/proc/self/clear_refs", os.O_WRONLY)
        os.write(file, b"5")
        os.close(file)


def device_bytes() -> dict[str, int]:
    """Return what the allocator of each accelerator in use has given out."""
    found: dict[str, int] = {}
    if (torch := torch_of_project()) is None:
        return found
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available() and module.is_initialized():
            found |= {f"{name}:{i}": int(module.memory_allocated(i)) for i in range(module.device_count())}
    if torch.backends.mps.is_available():
        found["mps"] = int(torch.mps.current_allocated_memory())
    return found


def tensors_among(objects: Iterable[object]) -> list[Any]:
    """Return the tensors among some objects, without asking them."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return [] if kind is None else [each for each in objects if issubclass(type(each), kind)]


def storage_of(tensor: Any) -> list[tuple[int, int]]:  # noqa: ANN401
    """Return the storages of a tensor as identity and bytes; none for one that has none, such as a fake one."""
    with suppress(Exception):  # a subclass without a storage, or one that was freed
        parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)  # noqa: SLF001
        storages = [part.untyped_storage() for part in parts if part.device.type != "meta"]
        return [(int(storage._cdata), int(storage.nbytes())) for storage in storages]  # noqa: SLF001
    return []


def _nodes(tensors: Iterable[Any]) -> int:
    """Return how many nodes the graphs have that tensors lead back to."""
    found, left = set[Any](), list[Any]()
    for tensor in tensors:
        with suppress(Exception):  # a tensor of a kind that has none: torch raises what it likes
            left.append(tensor.grad_fn)
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left += [before for before, _ in node.next_functions]
    return len(found)


def _held_by_torch(tensors: list[Any]) -> dict[str, int]:
    """Return the bytes in the storages of live tensors and the number of nodes, or nothing without torch."""
    if (torch := torch_of_project()) is None:
        return {}
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # no subclass is asked
        held = dict(pair for tensor in tensors for pair in storage_of(tensor))
        return {"tensors": sum(held.values()), "graph": _nodes(tensors)}


def bound_of(each: object) -> int | None:
    """Return how many entries a cache or queue may hold, or `None` where it is none or has no bound."""
    if type(each) is deque:
        return each.maxlen
    return each.cache_info().maxsize if type(each) is _lru_cache_wrapper else None


MOST_NAMED = 5
LATE = 2 / 3  # of the epochs


class Rungs:
    """Reads what is held: by devices, in tensors, in graphs, by Python, by the process."""

    def __init__(self) -> None:
        self._sentinel: object = None
        self._old: list[weakref.ref[object]] = []
        self._bounded: dict[int, tuple[int, int]] = {}  # of each cache or queue its size, and when it grew last
        self._epochs, self.troubles = 0, set[str]()

    def begin(self) -> None:
        """Begin to trace, and leave what is there out of each search: it does not grow, save for tensors and caches."""
        collect()
        kept = [*tensors_among(get_objects()), *(each for each in get_objects() if bound_of(each))]
        self._old = [weakref.ref(each) for each in kept]
        freeze()
        tracemalloc.start(1)
        self._sentinel = bytearray(64)

    def read(self) -> dict[str, int]:
        """Return what each rung shows, once garbage is collected and the C library has given back what it can."""
        collect()
        trim()
        found: dict[str, int] = {}
        if tracemalloc.get_object_traceback(self._sentinel) is None:
            self.troubles.add("the project stopped tracemalloc, or cleared its traces")
        else:
            found["python"] = tracemalloc.get_traced_memory()[0]
        if (private := private_bytes()) is not None:
            found["private"] = private
        self._epochs += 1
        for each in self._objects():
            if bound_of(each):
                size = len(each) if isinstance(each, deque) else each.cache_info().currsize  # type: ignore[attr-defined]
                before, grew = self._bounded.get(id(each), (0, 0))
                self._bounded[id(each)] = size, self._epochs if size > before else grew
        devices = {f"device {name}": size for name, size in device_bytes().items()}
        return {**devices, **_held_by_torch(tensors_among(self._objects())), **found}

    def filling(self) -> list[dict[str, object]]:
        """Return the caches and queues that grew to the last and are not full."""
        told: list[dict[str, object]] = []
        for each in self._objects():
            most, (size, grew) = bound_of(each), self._bounded.get(id(each), (0, 0))
            if most and size < most and grew > LATE * self._epochs:
                name = f"the cache of {getattr(each, '__module__', '')}.{getattr(each, '__qualname__', '?')}"
                name = f"a deque of at most {most}" if type(each) is deque else name
                told.append({"name": name, "size": size, "most": most})
        return told[:MOST_NAMED]

    def _objects(self) -> Iterator[object]:
        yield from (each for ref in self._old if (each := ref()) is not None)
        yield from get_objects()
