"""What the machine did while it measured: cores, quota, pressure, and whether work waited for a processor."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from gates.measuring.samples import Device
from gates.model import Model
from gates.project import revision

QUOTAS = (Path("/sys/fs/cgroup/cpu.max"), Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
THROTTLED = (Path("/sys/fs/cgroup/cpu.stat"), Path("/sys/fs/cgroup/cpu/cpu.stat"))
DRIVERS = {
    "cuda": (("nvidia-smi",), ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-gpu")),
    "rocm": (("rocm-smi", "amd-smi"), ("/dev/kfd", "/dev/dxg")),
}
HARMLESS = 0x1 | 0x2  # idle, and clocks that somebody has set: neither takes anything away while it works


class Machine(Model):
    """The machine at one moment; counters only grow, so that two moments tell what was between them."""

    cores: int
    quota: str = ""
    throttled_s: float | None = None


class Gpu(Model):
    """A GPU under load, as its driver tells: why its clock is held down, and what share of it runs."""

    throttled: str = ""
    clock_share: float | None = None
    others: int = 0


def observe() -> Machine:
    """Return the machine as it is now, as far as the system tells."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores=cores, quota=next(filter(None, map(_text, QUOTAS)), ""), throttled_s=_throttled())


def processor() -> Device:
    """Return the processor as the device of commands that nobody looks into."""
    return Device(type="cpu", name=revision.processor() or "unknown CPU")


def may_have(device: str) -> bool:
    """Return whether there may be a device of a kind here; only what Linux would show is known not to be there."""
    if sys.platform != "linux" or device not in DRIVERS:
        return True
    commands, files = DRIVERS[device]
    return any(map(shutil.which, commands)) or any(Path(file).exists() for file in files)


def name() -> str:
    """Return what tells this machine from others: its processor, its name and how many cores may be used."""
    return f"{revision.processor()}; {os.uname().nodename}, {observe().cores} cores"


def pressure() -> float | None:
    """Return the seconds since start-up in which something waited for a processor; `None` where nothing tells."""
    for line in _text(Path("/proc/pressure/cpu")).splitlines():
        if line.startswith("some"):
            with suppress(ValueError):
                return int(line.rpartition("total=")[2]) / 1e6
    return None


def gpu(ours: int) -> Gpu | None:
    """Return what the driver tells of the first GPU, on which `ours` processes work; `None` where nobody tells."""
    if not (facts := _asked("--query-gpu=clocks_throttle_reasons.active,clocks.sm,clocks.max.sm")):
        return None
    reasons, clock, most = (*(word.strip() for word in facts[0].split(",")), "", "", "")[:3]
    at_work = [line for line in _asked("--query-compute-apps=pid") if line.strip().isdecimal()]
    held, share = 0, None
    with suppress(ValueError):
        held = int(reasons, 0)
    with suppress(ValueError, ZeroDivisionError):
        share = float(clock.split()[0]) / float(most.split()[0])
    return Gpu(throttled=reasons if held & ~HARMLESS else "", clock_share=share, others=max(0, len(at_work) - ours))


def _asked(question: str) -> list[str]:
    with suppress(OSError, subprocess.TimeoutExpired):
        argv = ["nvidia-smi", question, "--format=csv,noheader", "-i", "0"]
        done = subprocess.run(argv, capture_output=True, check=False, timeout=20)
        return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []
    return []


def _throttled() -> float | None:
    for path in THROTTLED:
        told = dict(line.split(maxsplit=1) for line in _text(path).splitlines() if " " in line)
        for name, unit in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
            if told.get(name, "").isdecimal():
                return int(told[name]) / unit
    return None


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""
