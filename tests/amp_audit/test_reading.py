"""Tests of the count of host reads."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from amp_audit import HostRead, host_reads, reading
from amp_audit.operators import Op

VALUE = torch.tensor([1.0, 0.0, 2.0])


def condition(tensor: Tensor) -> str:
    return "yes" if tensor[0] else "no"


READS = [
    (lambda value: value[0].item(), "aten::_local_scalar_dense"),
    (lambda value: float(value[0]), "aten::_local_scalar_dense"),
    (condition, "aten::_local_scalar_dense"),
    (lambda value: value.tolist(), "Tensor.tolist"),
    (lambda value: value.cpu(), "Tensor.cpu"),
    (lambda value: value.numpy(), "Tensor.numpy"),
    (lambda value: value.nonzero(), "aten::nonzero"),
    (lambda value: value[value > 0], "aten::index.Tensor"),
    (lambda value: value.masked_select(value > 0), "aten::masked_select"),
    (lambda value: assign(value, value[:2]), "aten::index_put_"),
    (lambda value: value.unique(), "aten::_unique2"),
    (lambda value: torch.equal(value, value), "aten::equal"),
    (
        lambda value: torch.nn.utils.clip_grad_norm_(a_gradient(), 1.0, error_if_nonfinite=True),
        "aten::_local_scalar_dense",
    ),
]


@pytest.mark.parametrize(("read", "call"), READS)
def test_each_way_to_read_counts_once(read: Callable[[Tensor], Any], call: str) -> None:
    assert [(each.call, each.count) for each in host_reads(lambda: read(VALUE)).reads] == [(call, 1)]


def assign(tensor: Tensor, value: Tensor | float) -> None:
    tensor.clone()[tensor > 0] = value


def a_gradient() -> Tensor:
    parameter = torch.ones(2, requires_grad=True)
    parameter.grad = torch.ones(2)
    return parameter


def test_what_stays_on_the_device_is_no_read() -> None:
    def compute() -> None:
        value = VALUE.clone().requires_grad_()
        total = (value * 2.0)[torch.tensor([0, 2])].sum().to(torch.float64)
        torch.where(value > 0, value, 0.0).sum().backward()  # type: ignore[no-untyped-call]
        VALUE.to("cpu", non_blocking=True)
        assign(VALUE, 3.0)
        total.detach().isfinite().logical_not()

    assert host_reads(compute).reads == ()


def test_reads_are_told_apart_by_the_users_line() -> None:
    def step() -> None:
        for _ in range(3):
            VALUE.sum().item()
        VALUE.max().item()

    line = step.__code__.co_firstlineno
    found = host_reads(step)
    assert [(each.where.rpartition("/")[2], each.count) for each in found.reads] == [
        (f"test_reading.py:{line + 2}", 3),
        (f"test_reading.py:{line + 3}", 1),
    ]
    assert found.count == 4


def test_a_read_in_the_backward_pass_is_seen_where_the_pass_was_started() -> None:
    class Peeking(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Tensor) -> Tensor:
            return value * 2.0

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * grad.sum().item()

    value = torch.ones((), requires_grad=True)
    (read,) = host_reads(lambda: Peeking.apply(value).backward()).reads  # type: ignore[no-untyped-call]
    assert (read.call, read.count) == ("aten::_local_scalar_dense", 1)
    assert "test_reading.py:" in read.where


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_our_step_with_a_fused_optimizer_reads_nothing(precision: str, lean: bool, make_loop: Any) -> None:
    loop = make_loop(precision, lean=lean)
    assert host_reads(loop).count == 0  # the first step, too
    assert host_reads(loop).count == 0


@pytest.mark.parametrize("scheduled", [False, True])
def test_an_unfused_optimizer_costs_reads_but_its_step_counters_none(scheduled: bool, make_loop: Any) -> None:
    """One for the scaler's decision; and with a learning rate on the device, one for each parameter."""
    loop = make_loop("fp16", fused=False, scheduled=scheduled)
    loop()
    (read,) = host_reads(loop).reads
    assert (read.call, read.count) == ("aten::_local_scalar_dense", 1 + scheduled * len(list(loop.model.parameters())))
    assert "amp_core/" in read.where


def test_on_an_accelerator_reads_of_cpu_tensors_do_not_count() -> None:
    """The meta device stands for one: its tensors are not on the CPU either."""

    def step() -> None:
        torch.ones(2, device="meta") + 1.0
        VALUE.sum().item()

    found = host_reads(step)
    assert (found.reads, found.device_type) == ((), "meta")
    assert host_reads(lambda: VALUE.sum().item()).device_type == "cpu"


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "waits"),
    [
        ("aten::_to_copy", ("cuda",), {}, True),
        ("aten::_to_copy", ("cuda",), {"non_blocking": True}, False),
        ("aten::_to_copy", ("cpu",), {}, False),
        ("aten::copy_", ("cpu", "cuda"), {}, True),
        ("aten::copy_", ("cpu", "cuda", True), {}, False),
    ],
)
def test_a_copy_from_an_accelerator_waits_unless_told_otherwise(name: str, args: Any, kwargs: Any, waits: bool) -> None:
    """Without an accelerator, something that only has a device stands for its tensor."""
    stand_ins = [SimpleNamespace(device=torch.device(each)) if isinstance(each, str) else each for each in args]
    assert reading._waits(Op(name, stand_ins, kwargs, VALUE)) is waits


def test_a_step_that_raises_leaves_no_mode_behind() -> None:
    def step() -> None:
        VALUE.sum().item()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        host_reads(step)
    assert _get_current_dispatch_mode_stack() == []
    assert torch.overrides._get_current_function_mode_stack() == []  # type: ignore[no-untyped-call]


def test_a_path_below_this_folder_is_relative(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.chdir(request.path.parent)
    read = lambda: VALUE.sum().item()  # noqa: E731  its line is wanted
    where = f"test_reading.py:{read.__code__.co_firstlineno}"
    assert host_reads(read).reads == (HostRead("aten::_local_scalar_dense", where, 1),)
