"""Every operator that runs, below autograd and autocast, shown to a function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Op:
    """One call of an operator, such as "aten::mm", and what it returned."""

    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    out: object

    @property
    def inputs(self) -> list[Tensor]:
        """Return the tensors it took, also those in lists."""
        return _tensors((self.args, self.kwargs))

    @property
    def outputs(self) -> list[Tensor]:
        """Return the tensors it gave."""
        return _tensors(self.out)


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types for its subclass hook
    """A context in which `see` is shown each operator after it ran, in the backward pass, too; it changes nothing."""

    def __init__(self, see: Callable[[Op], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # nor for this
        self._see = see

    def __torch_dispatch__(  # what an operator takes and gives has no common type
        self,
        func: Any,  # noqa: ANN401
        types: Sequence[type],
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Run the operator, and show it."""
        out = func(*args, **(kwargs or {}))
        self._see(Op(func.name(), args, kwargs or {}, out))
        return out


def _tensors(tree: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
