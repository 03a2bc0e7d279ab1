"""Tests of what importing amp_core loads."""

import subprocess
import sys

MODULES = ("parallel", "tracking", "data", "throughput", "benchmark.__main__")
OPTIONAL = {"lightning", "accelerate", "wandb", "tensorboard", "matplotlib", "torch.utils.tensorboard",
            "torch.utils.flop_counter", "torch.distributed.fsdp", "torch.distributed.tensor"}  # fmt: skip


def test_importing_amp_core_needs_and_loads_no_optional_library() -> None:
    wanted = ", ".join(["amp_core", *(f"amp_core.{name}" for name in MODULES)])
    code = f"import sys; sys.modules['resource'] = None; import {wanted}; print({OPTIONAL} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "set()\n"
