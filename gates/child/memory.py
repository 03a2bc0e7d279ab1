"""What this process holds: by the system's and the C library's word, and in the storages of live tensors."""

import ctypes
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Heap(ctypes.Structure):
    """The numbers of `mallinfo2`, see malloc.h of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def _heap_reader() -> "tuple[object, object] | None":
    """Return glibc's functions that trim the heap and count it, where they are there and count."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        count, trim = library.mallinfo2, library.malloc_trim
    except (OSError, AttributeError):
        return None
    count.restype = _Heap
    trim.argtypes = [ctypes.c_size_t]
    return (trim, count) if count().uordblks else None  # another allocator may have taken its place


_READER = _heap_reader()


def trim() -> None:
    """Give back to the system what the C library holds for later."""
    if _READER:
        _READER[0](0)  # type: ignore[operator]  # a function of ctypes


def heap_bytes() -> "int | None":
    """Return the bytes that the C library has given out and not got back, or `None` where it does not say."""
    if not _READER:
        return None
    told = _READER[1]()  # type: ignore[operator]  # a function of ctypes
    return int(told.uordblks) + int(told.hblkhd)


def private_bytes() -> "int | None":
    """Return the bytes that this process has written, in memory or swapped out, or `None` where nothing says.

    Pages that it shares with workers that it forked are counted, too: else each would seem new when it is written to.
    """
    try:
        with open("/proc/self/smaps_rollup", encoding="ascii") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except OSError:
        return _private_elsewhere()
    kinds = ("Anonymous:", "Pss_Shmem:", "Swap:")
    if not any(line.startswith(kinds[0]) for line in lines):
        return _private_elsewhere()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(kinds))


def _private_elsewhere() -> "int | None":
    try:
        import psutil
    except ImportError:
        return None
    try:
        return int(psutil.Process(os.getpid()).memory_full_info().uss)
    except (psutil.Error, OSError, AttributeError):
        return None


def available_bytes() -> "int | None":
    """Return how much memory the machine, or the group of processes that this one is in, has left."""
    found = []
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            found += [1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:")]
        most, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
        found.append(most - used)
    except (OSError, ValueError):  # "max" is no number: there is no limit
        pass
    return min(found, default=None)


def _number(path: str) -> int:
    with open(path, encoding="ascii") as file:  # noqa: PTH123
        return int(file.read())


def _field(name: str) -> int:
    with suppress(OSError, ValueError, IndexError), open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
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


Node = Any


def torch_of_project() -> Any:  # noqa: ANN401
    """Return torch, where the project has imported all of it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "Tensor") and hasattr(torch, "autograd") else None


def tensors_among(objects: Iterable[object]) -> list[Any]:
    """Return the tensors among some objects, without asking them."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return [] if kind is None else [each for each in objects if issubclass(type(each), kind)]


class Graphs:
    """Walks the autograd graphs that live tensors hold, without unpacking what hooks have packed."""

    def __init__(self) -> None:
        self._names: dict[type, tuple[str, ...]] = {}

    def nodes(self, tensors: Iterable[Any]) -> dict[Node, None]:
        """Return each node that a tensor leads back to, once."""
        found: dict[Node, None] = {}
        left = [node for tensor in tensors for node in (_grad_fn(tensor),) if node is not None]
        while left:
            node = left.pop()
            if node not in found:
                found[node] = None
                left += [before for before, _ in node.next_functions if before is not None]
        return found

    def saved(self, nodes: Iterable[Node]) -> Iterator[tuple[Node, Any]]:
        """Yield the tensors that nodes have saved and not yet freed."""
        for node in nodes:
            for name in self._raw(type(node)):
                packed = getattr(node, name, None)
                for each in packed if isinstance(packed, (tuple, list)) else (packed,):
                    data = _data(each)
                    if data is not None and hasattr(data, "untyped_storage"):
                        yield node, data

    def _raw(self, kind: type) -> tuple[str, ...]:
        if kind not in self._names:
            self._names[kind] = tuple(name for name in dir(kind) if name.startswith("_raw_saved"))
        return self._names[kind]


def _data(packed: Any) -> Any:  # noqa: ANN401
    """Return what was saved; nothing where it was freed."""
    try:
        return getattr(packed, "data", None)
    except RuntimeError:
        return None


def _grad_fn(tensor: Any) -> Node:  # noqa: ANN401
    try:
        return tensor.grad_fn
    except Exception:  # noqa: BLE001  # a tensor of a kind that has none
        return None


def storage_of(tensor: Any) -> "list[tuple[int, int]]":  # noqa: ANN401
    """Return the storages of a tensor as identity and bytes; none for one that has none, such as a fake one."""
    try:
        parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)  # noqa: SLF001
        storages = [part.untyped_storage() for part in parts if part.device.type != "meta"]
        return [(int(storage._cdata), int(storage.nbytes())) for storage in storages]  # noqa: SLF001
    except Exception:  # noqa: BLE001  # a subclass without a storage, or one that was freed
        return []


class Tensors:
    """Counts, at each look, the bytes of distinct storages and the nodes of autograd graphs."""

    def __init__(self) -> None:
        self._graphs = Graphs()

    def read(self, tensors: list[Any]) -> "tuple[int, int] | None":
        """Return the bytes in the storages of live tensors and the number of nodes, or `None` without torch."""
        torch = torch_of_project()
        if torch is None:
            return None
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001  # no subclass is asked
            nodes = self._graphs.nodes(tensors)
            held = dict(pair for tensor in tensors for pair in storage_of(tensor))
            held.update(pair for tensor in tensors for pair in _of_gradient(tensor))
            held.update(pair for _, tensor in self._graphs.saved(nodes) for pair in storage_of(tensor))
        return sum(held.values()), len(nodes)


def _of_gradient(tensor: Any) -> "list[tuple[int, int]]":  # noqa: ANN401
    """Return the storages of a gradient that nobody has looked at yet: it is no object of Python before that."""
    try:
        gradient = tensor.grad if tensor.is_leaf else None
    except Exception:  # noqa: BLE001  # a tensor of a kind that has none
        return []
    return [] if gradient is None else storage_of(gradient)


def device_bytes() -> "dict[str, int]":
    """Return what the allocator of each accelerator in use has given out."""
    torch = torch_of_project()
    found: dict[str, int] = {}
    if torch is None:
        return {}
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available() and module.is_initialized():
            found |= {f"{name}:{i}": int(module.memory_allocated(i)) for i in range(module.device_count())}
    mps = getattr(torch, "mps", None)
    if mps is not None and torch.backends.mps.is_available():
        found["mps"] = int(mps.current_allocated_memory())
    return found
