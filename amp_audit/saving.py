"""What autograd keeps from the forward pass for the backward pass."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from amp_audit.ledger import Ledger, Peak
from amp_audit.operators import Op, Operators


def saved_bytes(fn: Callable[[], object]) -> Peak:
    """Call `fn` once, and return the most bytes that were saved for backward at once, by dtype.

    Parameters are left out, their 16-bit copies by autocast are not; what shares a storage counts once; what a custom
    function keeps on its context other than by `save_for_backward` is not seen.
    """
    ledger = Ledger()
    parameters: set[int] = set()

    def pack(tensor: Tensor) -> Tensor:
        ledger.note(tensor)
        return tensor

    def see(op: Op) -> None:
        parameters.update(ledger.note(each) for each in op.inputs if isinstance(each, nn.Parameter))

    with Operators(see), saved_tensors_hooks(pack, lambda tensor: tensor):
        fn()
    return ledger.peak(without=parameters)
