"""What a backward pass will lead to, read from the graph: whose scale, which parameters, products in which dtypes."""

from collections import Counter
from collections.abc import Iterable, MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.amp import GradScaler

from .observing import SCALED_BY, Reached, dtype_name

MOST_NODES = 50_000
PRODUCTS = ("Addmm", "Mm", "Bmm", "Baddbmm", "Addbmm", "Mv", "Addmv", "Dot", "Addr", "Linear", "Conv", "MkldnnConv",
            "MkldnnLinear", "MkldnnRnn", "ScaledDotProduct", "SlowConv", "ThnnConv", "Einsum")  # fmt: skip


def read_graph(roots: Iterable[Tensor], scalers: MutableMapping[int, GradScaler]) -> Reached:
    """Walk the graph from the tensors that a backward pass begins at."""
    stack: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen: set[object] = set()
    found, params = Counter[str](), list[Tensor]()
    scaler: GradScaler | None = None
    whole = True
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        scaler = scaler or scalers.get(node.metadata.get(SCALED_BY, 0))
        name = node.name()
        if hasattr(node, "variable"):
            params.append(node.variable)
        elif name.startswith(PRODUCTS) and node._input_metadata:  # noqa: SLF001  # the one place that has the dtype
            found[dtype_name(node._input_metadata[0].dtype)] += 1  # noqa: SLF001
        whole = whole and not isinstance(node, torch.autograd.function.BackwardCFunction)
        stack += [following for following, _ in node.next_functions if following is not None]
    return Reached(scaler, tuple(params), dict(found), whole and not stack)
