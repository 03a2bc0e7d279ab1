"""Peak memory of a training step, predicted: nothing is computed, and no accelerator is needed."""

from collections.abc import Callable
from contextlib import nullcontext

from torch import strided

from amp_core.audit.ledger import Ledger, Peak
from amp_core.audit.operators import Op, Operators
from amp_core.audit.policy import cuda_autocast

BLOCK = 512  # bytes: the CUDA caching allocator rounds every size up to a multiple (kMinBlockSize)
Step = Callable[[], object]


class Unpredictable(ValueError):
    """The step cannot run without values, or uses parameters that were made outside."""


def predict_peak(make_step: Callable[[], Step], *, steps: int = 2, like_cuda: bool = False) -> Peak:
    """Return the predicted peak of the bytes of all tensors over some training steps: an estimate, no measurement.

    `make_step()` builds model, optimizer and data, on the CPU, and returns the step; all of it runs on tensors without
    content. The second step meets the optimizer's state, which the first one makes. `like_cuda` applies CUDA's
    autocast policy. Not in it: what kernels use inside, such as workspaces, and fragments between blocks.

    Raises:
        Unpredictable: the step reads values, or trains a model that was made before the call.
    """
    from torch._subclasses.fake_tensor import (  # it takes a while to import
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeTensor,
        FakeTensorMode,
    )

    ledger, fake = Ledger(block=BLOCK), FakeTensorMode(allow_non_fake_inputs=True)

    def see(op: Op) -> None:
        for each in op.inputs:
            if each.requires_grad and not isinstance(each, FakeTensor):
                raise Unpredictable("expected make_step to build the model, found parameters that were made before")
        for each in (*op.inputs, *op.outputs):
            if each.layout is strided:
                ledger.note(each, op.name)
        fake.fake_tensor_converter.meta_converter.tensor_memo.clear()  # its weak references make model.to(...) fail

    policy = cuda_autocast() if like_cuda else nullcontext()
    try:
        with policy, fake, Operators(see):
            step = make_step()
            for _ in range(steps):
                step()
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise Unpredictable(f"the step reads a value ({error.func}), and there are none in a prediction") from error
    return ledger.peak()
