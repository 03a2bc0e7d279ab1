"""What `gates doctor` does: tell what this machine can and cannot verify."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from gates.child import process
from gates.child.asking import command
from gates.child.guardian import guarded_folder
from gates.errors import EvidenceUnavailable
from gates.measuring import machine
from gates.words import printable


def perform(python: str) -> Iterator[str]:
    """Look, and yield the lines of the page."""
    now = machine.observe()
    yield f"processor    {machine.processor().name}, {now.cores} of {psutil.cpu_count() or now.cores} cores may be used"
    yield f"quota        {now.quota if now.quota not in {'', '-1', 'max 100000'} else 'none that can be seen'}"
    yield f"memory       {psutil.virtual_memory().total / 1024**3:.0f} GiB"
    yield ""
    with guarded_folder() as folder:
        yield from _verifiable(python, _interpreter(python, folder))


def _interpreter(python: str, folder: Path) -> dict[str, Any]:
    """Return what the project's interpreter tells of itself, or why it does not."""
    argv = [python, "-W", "ignore", *command(python, "importing:about")[1:]]
    try:
        ended = process.run(argv, cwd=folder, timeout_s=120, log=folder / "probe")
        told = json.loads(printable(ended.stdout.tail.strip().splitlines()[-1]))
    except EvidenceUnavailable as error:
        return {"problem": str(error)}
    except (ValueError, IndexError):
        told = None
    return told if isinstance(told, dict) else {"problem": f"{python!r} ended with {ended.ended} and told nothing"}


def _verifiable(python: str, told: dict[str, Any]) -> Iterator[str]:
    if "problem" in told:
        yield f"interpreter  {told['problem']}: nothing of a project can be run"
        return
    versions, devices = told["versions"], told["devices"]
    yield f"interpreter  {python}, {told['implementation']} {told['python']}"
    yield f"versions     {', '.join(f'{name} {version}' for name, version in versions.items()) or 'none'}"
    if "torch_problem" in told:
        yield f"torch        cannot be imported: {told['torch_problem']}"
    clocks = (f"{name} {how} to {resolution:g} s" for name, (how, resolution) in told["clocks"].items())
    yield f"clocks       {', '.join(clocks)}"
    yield f"devices      {', '.join(devices)}"
    yield ""
    parts = [
        ("tests", "pytest" in versions, "pytest is not installed in this interpreter"),
        ("lines that tests execute", "coverage" in versions, "coverage is not installed in this interpreter"),
        ("training steps", "torch" in versions and "torch_problem" not in told, "there is no torch that works"),
        ("numbers on the cpu", True, ""),
    ]
    for device in ("cuda", "rocm"):
        there, why = any(name.startswith(device) for name in devices), f"this machine shows no {device} device"
        parts.append((f"numbers on {device}", there, f"{why}; measure on one that has it"))
    yield from (f"can verify   {what}" if there else f"cannot       {what}: {why}" for what, there, why in parts)
