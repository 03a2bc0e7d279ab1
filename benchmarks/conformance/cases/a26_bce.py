"""A26: binary cross-entropy of probabilities, which autocast allows on a CPU and refuses on a GPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


class LossDtypes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types for it
    """Notes the dtypes in which binary cross-entropy is computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204  the same
        """Note, and go on."""
        if func is torch.ops.aten.binary_cross_entropy.default:
            self.dtypes.add(args[0].dtype)
        return func(*args, **(kwargs or {}))


def judge(subject: Subject) -> Result:
    """Train on probabilities in bf16: the loss is computed in float32, or refused."""
    try:
        with LossDtypes() as seen:
            subject.train(Job(windows=windows(1), precision="bf16", loss_fn=cross_entropy))
    except RuntimeError as error:
        return verdict("binary_cross_entropy" in str(error), f"refused: {described(error)}")
    names = ", ".join(sorted(str(dtype) for dtype in seen.dtypes))
    return verdict(seen.dtypes == {torch.float32}, f"computed in {names}")


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    """Return the binary cross-entropy of a sigmoid's probabilities."""
    return functional.binary_cross_entropy(model(batch[0]).sigmoid(), batch[1].sigmoid().to(model_dtype(model)))


def model_dtype(model: nn.Module) -> torch.dtype:
    """Return the dtype of a model's parameters."""
    return next(model.parameters()).dtype


class CastsAll(PlainLoop):
    """Computes all in bfloat16, with no autocast to know better."""

    def backward(self, batch: Batch, share: float) -> None:
        """Cast model and batch."""
        self.model.bfloat16()
        loss = self.job.loss_fn(self.model, tuple(tensor.bfloat16() for tensor in batch))
        (loss * share).backward()  # type: ignore[no-untyped-call]  # the same


CASE = Case(
    hazard="A26",
    question="Is binary cross-entropy of probabilities kept out of 16 bits?",
    conforming="float32 on a CPU; refused by autocast's own rule on a GPU",
    references=("torch's autocast policy",),
    judge=judge,
    broken=broken(CastsAll),
    unseen="the refusal under CUDA's autocast policy",
)
