"""Work that goes on beside a measurement."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STEADY = "while True: sum(range(10000))"
BURSTY = """
import random, time
while True:
    end = time.monotonic() + random.uniform(0.05, 1.0)
    while time.monotonic() < end: sum(range(10000))
    time.sleep(random.uniform(0.05, 1.0))
"""
LOADS = {"idle": (), "one": (STEADY,), "bursty": (BURSTY, BURSTY), "two": (STEADY, STEADY)}


@contextmanager
def load(name: str) -> Iterator[None]:
    """Keep the machine busy while the context lasts: with nothing, one or two processes, or with two in bursts."""
    burners = [subprocess.Popen([sys.executable, "-c", code]) for code in LOADS[name]]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
