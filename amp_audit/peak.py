"""Peak memory of a training step, predicted: nothing is computed, and no accelerator is needed."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode

from amp_audit.ledger import Ledger, Peak
from amp_audit.operators import Op, Operators
from amp_audit.policy import cuda_autocast

BLOCK = 512  # bytes: the CUDA caching allocator rounds every size up to a multiple (kMinBlockSize)
Step = Callable[[], object]


class Unpredictable(ValueError):
    """The step's shapes depend on values, or it uses parameters that were made outside."""


def predict_peak(make_step: Callable[[], Step], *, steps: int = 2, like_cuda: bool = False) -> Peak:
    """Return the predicted peak of the bytes of all tensors over some training steps: an estimate, no measurement.

    `make_step()` builds model, optimizer and data, on the CPU, and returns the step; all of it runs on tensors without
    content; a number that it reads is 0, so that nothing overflows. The second step meets the optimizer's state, which
    the first one makes. `like_cuda` applies CUDA's autocast policy. Not in it: what kernels use inside, such as
    workspaces, and fragments between blocks.

    Raises:
        Unpredictable: shapes in the step depend on values, or it trains a model that was made before the call.
    """
    ledger, fake = Ledger(block=BLOCK), FakeTensorMode(allow_non_fake_inputs=True)

    def see(op: Op) -> None:
        for each in op.inputs:
            if each.requires_grad and not isinstance(each, FakeTensor):
                raise Unpredictable("expected make_step to build the model, found parameters that were made before")
        for each in (*op.inputs, *op.outputs):
            if each.layout is torch.strided:
                ledger.note(each, op.name)
        fake.fake_tensor_converter.meta_converter.tensor_memo.clear()  # its weak references make model.to(...) fail

    policy = cuda_autocast() if like_cuda else nullcontext()
    try:
        with policy, fake, _Zeros(), Operators(see):  # type: ignore[no-untyped-call]  # torch declares no types
            step = make_step()
            for _ in range(steps):
                step()
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise Unpredictable(f"the step depends on values ({error.func}), and there are none in a prediction") from error
    return ledger.peak()


class _Zeros(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types for its subclass hook
    """Answers a read of an unknown value with 0; constants, such as an optimizer's step counter, are known."""

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401  the same as in Operators
        types: Sequence[type],
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        try:
            return func(*args, **(kwargs or {}))
        except DataDependentOutputException:
            if func is not torch.ops.aten._local_scalar_dense.default:  # noqa: SLF001  what .item() comes to
                raise
            kind = float if args[0].is_floating_point() else bool if args[0].dtype is torch.bool else int
            return kind(0)
