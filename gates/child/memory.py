"""What memory this process holds, and the most that it held, as the system tells."""

import os
import resource
import sys
from contextlib import suppress


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
