"""A12: parameters in half precision, whose gradients a scaler cannot unscale."""

from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, a_model, plain_adamw, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Give it a model whose parameters are float16, and count the forward passes until it objects."""
    passes = []

    def counted(model: nn.Module, batch: Batch) -> Tensor:
        passes.append(1)
        return squared_error(model, batch)

    job = Job(windows=windows(2), model=lambda: a_model().half(), loss_fn=counted, optimizers=plain_adamw)
    try:
        subject.train(job)
    except Exception as error:  # noqa: BLE001  the message is what the case asks about
        named = "0.weight" in str(error)
        return verdict(not passes and named, f"after {len(passes)} forward passes: {described(error)}")
    return verdict(False, f"trained {len(passes)} steps on float16 parameters without a word")


CASE = Case(
    hazard="A12",
    question="Are half-precision parameters refused before training, by name?",
    conforming="an error before the first forward pass that names the parameter",
    references=("PyT #74739", "PL #5140", "bitsandbytes #945"),
    judge=judge,
    broken=broken(PlainLoop),
)
