"""A19: mixed precision that keeps more memory for the backward pass than float32 does."""

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.cases.a18_weight_cache import WithoutCache
from benchmarks.conformance.job import Job, a_batch, seeded
from benchmarks.conformance.stepwise import broken

ROWS = 64
WIDTH = 128


def a_stack() -> nn.Module:
    """Return a wide MLP one of whose layers is used in four places."""

    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(6, WIDTH), *[nn.Linear(WIDTH, WIDTH), nn.GELU()] * 4, nn.Linear(WIDTH, 2))

    return seeded(make)


def judge(subject: Subject) -> Result:
    """Sum the bytes that are kept for backward, parameters apart, in fp32 and in bf16."""
    kept = {name: _kept(subject, name) for name in ("fp32", "bf16")}
    ratio = kept["bf16"] / kept["fp32"]
    return verdict(ratio < 0.85, f"bf16 keeps {ratio:.2f} of the bytes that fp32 keeps ({kept['fp32']} B)")


def _kept(subject: Subject, precision: str) -> int:
    storages: dict[int, Tensor] = {}
    own: set[int] = set()

    def keep(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def watched(model: nn.Module, batch: Batch) -> Tensor:
        own.update(param.untyped_storage().data_ptr() for param in model.parameters())
        with saved_tensors_hooks(keep, lambda tensor: tensor):
            loss: Tensor = (model(batch[0]).float() - batch[1]).square().mean()
            return loss

    subject.train(Job(windows=((a_batch(rows=ROWS),),), precision=precision, model=a_stack, loss_fn=watched))
    return sum(tensor.untyped_storage().nbytes() for place, tensor in storages.items() if place not in own)


CASE = Case(
    hazard="A19",
    question="Does mixed precision keep less for the backward pass than float32?",
    conforming="bf16 keeps less than 0.85 of the bytes that fp32 keeps, parameters apart",
    references=("PyT #48049", "PyT #61173", "PyT #85698", "PyT #188955"),
    judge=judge,
    broken=broken(WithoutCache),
)
