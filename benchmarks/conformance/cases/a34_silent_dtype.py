"""A34: the precision that was asked for is silently replaced by another."""

import torch
from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, described, hushed, verdict
from benchmarks.conformance.job import Job, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Ask for fp16 on this CPU by name alone, and look at what a linear layer computes in."""
    seen: set[torch.dtype] = set()

    def watched(model: nn.Module, batch: Batch) -> Tensor:
        layer = next(module for module in model.modules() if isinstance(module, nn.Linear))
        handle = layer.register_forward_hook(lambda _, __, output: seen.add(output.dtype))
        try:
            return squared_error(model, batch)
        finally:
            handle.remove()

    try:
        with hushed() as warned:
            subject.train(Job(windows=windows(1), loss_fn=watched, scaler_given=False))
    except (ValueError, RuntimeError) as error:
        return verdict(True, f"refused: {described(error)}")
    told = [str(warning.message) for warning in warned if "16" in str(warning.message)]
    ran = ", ".join(sorted(str(dtype) for dtype in seen))
    return verdict(seen == {torch.float16} or bool(told), f"fp16 asked, {ran} ran; " + (told or ["nothing said"])[0])


class Replaces(PlainLoop):
    """Runs in bfloat16 whatever is asked."""

    def backward(self, batch: Batch, share: float) -> None:
        """Autocast to bfloat16."""
        with torch.amp.autocast("cpu", dtype=torch.bfloat16):
            loss = self.job.loss_fn(self.model, batch)
        self.scaler.scale(loss * share).backward()  # type: ignore[no-untyped-call]  # torch declares no types for it


CASE = Case(
    hazard="A34",
    question="Does fp16, asked for by name on a CPU, run, or is the change said aloud?",
    conforming="a linear layer computes in float16, or there is a warning or an error",
    references=("Acc #1693", "measured"),
    judge=judge,
    broken=broken(Replaces),
)
