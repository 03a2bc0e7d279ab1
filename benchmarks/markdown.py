"""Tables and the machine they were taken on, for results that are committed as Markdown."""

import os
import platform
from collections.abc import Sequence

from amp_core.benchmark.suite import environment
from amp_core.device import DeviceFacts


def describe_machine(facts: DeviceFacts) -> str:
    """Return a line on the device, what it computes natively, and the software."""
    found = environment()
    software = f"torch {found['torch']}, CUDA {found['cuda']}, Python {found['python']}"
    capabilities = ", ".join(facts.capabilities) or "no capability known"
    return f"{facts.name} ({facts.type}; {capabilities}), {software}, {platform.system()} {platform.machine()}."


def describe_load() -> str:
    """Return how busy the machine is: times that were taken beside much other work are not to be trusted."""
    return f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs when it ended."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; a row has as many cells as the header."""
    cells = [list(header), ["---"] * len(header), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
