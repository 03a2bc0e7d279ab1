"""Tells what an interpreter has: versions of what the gates use, and the devices that torch sees; stands alone."""

import importlib
import importlib.metadata
import json
import platform
import sys
import time
from contextlib import suppress

PACKAGES = ("pytest", "pytest-json-report", "coverage", "torch", "numpy", "hypothesis")


def main() -> None:
    """Write one line of JSON."""
    told: dict[str, object] = {"python": platform.python_version(), "implementation": sys.implementation.name}
    versions = {}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    told["versions"] = versions
    clocks = {name: time.get_clock_info(name) for name in ("perf_counter", "process_time")}
    told["clocks"] = {name: [clock.implementation, clock.resolution] for name, clock in clocks.items()}
    told["devices"] = ["cpu"]
    if "torch" in versions:
        try:
            torch = importlib.import_module("torch")
            found = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            told["devices"] = ["cpu", *(f"{'rocm' if torch.version.hip else 'cuda'}: {name}" for name in found)]
            told["threads"] = torch.get_num_threads()
        except Exception as error:  # noqa: BLE001  # a broken install is what this is to tell
            told["torch_problem"] = f"{type(error).__name__}: {str(error)[:200]}"
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
