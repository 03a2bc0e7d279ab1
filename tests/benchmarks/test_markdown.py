"""Tests of what is common to the committed results."""

import torch

from amp_core.benchmark.suite import environment
from amp_core.device import DeviceFacts
from benchmarks.markdown import describe_load, describe_machine


def test_the_machine_is_one_line_that_names_device_and_software() -> None:
    line = describe_machine(DeviceFacts("cpu", "a CPU", ("avx2", "bf16")))
    assert line.startswith(f"a CPU (cpu; avx2, bf16), torch {torch.__version__}, CUDA ")
    assert "\n" not in line
    assert "(cpu; no capability known)" in describe_machine(DeviceFacts("cpu", "a CPU", ()))
    assert describe_load().startswith("Load average ")
    assert environment()["threads"] == str(torch.get_num_threads())
