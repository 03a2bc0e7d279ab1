"""Tests of what importing amp_core loads."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from benchmarks import import_time

MODULES = ("parallel", "tracking", "data", "throughput", "benchmark.__main__")
OPTIONAL = {"lightning", "accelerate", "wandb", "tensorboard", "matplotlib", "torch.utils.tensorboard",
            "torch.utils.flop_counter", "torch.distributed.fsdp", "torch.distributed.tensor"}  # fmt: skip


def test_importing_amp_core_needs_and_loads_no_optional_library() -> None:
    wanted = ", ".join(["amp_core", *(f"amp_core.{name}" for name in MODULES)])
    code = f"import sys; sys.modules['resource'] = None; import {wanted}; print({OPTIONAL} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "set()\n"


def test_an_optional_library_that_is_loaded_is_noticed() -> None:
    assert importlib.util.find_spec("wandb") is not None
    assert "wandb" in import_time.loaded_by("wandb")


def test_the_benchmark_writes_both_ratios(tmp_path: Path) -> None:
    out = tmp_path / "import_time.md"
    argv = ["--rounds", "6", "--module", "asyncio", "--beside", "unittest", "--out", str(out)]
    assert import_time.main(argv) in (0, 1)  # which of two that load in no time is the faster does not matter here
    lines = out.read_text(encoding="utf-8").splitlines()
    assert "| clock | import unittest, ms | import asyncio, ms | ratio |" in lines
    assert [line.split("|")[1].strip() for line in lines if line.startswith("|")] == ["clock", "---", "CPU", "wall"]
    assert "Optional libraries that `import asyncio` loads: none." in lines
