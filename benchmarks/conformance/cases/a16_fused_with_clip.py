"""A16: a fused optimizer together with clipping."""

from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, fused_adamw, plain_adamw, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Clip in fp16 with a fused AdamW, and with one that is not."""
    plain = subject.train(Job(windows=windows(4), clip=0.1, optimizers=plain_adamw))
    try:
        fused = subject.train(Job(windows=windows(4), clip=0.1, optimizers=fused_adamw))
    except (RuntimeError, NotImplementedError) as error:
        return verdict(False, described(error))
    gap = fused.last.moved_from(plain.last)
    return verdict(gap < 1e-5, f"difference to the unfused optimizer after four steps {gap:.2g}")


class DoesNotClip(PlainLoop):
    """Leaves clipping out with a fused optimizer."""

    def clip(self) -> None:
        """Clip only where the optimizer is not fused."""
        if not getattr(self.optimizers[0], "_step_supports_amp_scaling", False):
            super().clip()


CASE = Case(
    hazard="A16",
    question="Can a fused optimizer's gradients be clipped in fp16?",
    conforming="it trains, as the unfused optimizer does",
    references=("PL #15501", "PL #15555", "PL #21435"),
    judge=judge,
    broken=broken(DoesNotClip),
)
