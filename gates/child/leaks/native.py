"""What the operating system and the C library say of a process's memory, as far as they do."""

import ctypes
import os
import sys

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
