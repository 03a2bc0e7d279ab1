"""A46: a checkpoint of an optimizer that was not fused is loaded into one that is."""

import tempfile
from pathlib import Path

from benchmarks.conformance.case import Case, NotApplicableError, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, fused_adamw, plain_adamw, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

ALL = windows(6)
CLOSE = 1e-4


def judge(subject: Subject) -> Result:
    """Train three windows unfused, and three more fused."""
    whole = subject.train(Job(windows=ALL, optimizers=fused_adamw))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subject.train(Job(windows=ALL[:3], optimizers=plain_adamw, save_to=folder))
        try:
            resumed = subject.train(Job(windows=ALL[3:], optimizers=fused_adamw, resume_from=folder))
        except NotApplicableError:
            raise
        except Exception as error:  # noqa: BLE001  # of a library of others
            return verdict(False, f"fused, the resumed run ends: {described(error)}")
    gap = resumed.last.moved_from(whole.last)
    return verdict(gap < CLOSE, f"resumed fused, the parameters end {gap:.3g} from those of one run")


CASE = Case(
    hazard="A46",
    question="Does training go on when it is resumed with a fused optimizer?",
    conforming="it goes on with the optimizer that is there, to nearly the same parameters",
    references=("measured",),
    judge=judge,
    broken=broken(PlainLoop),
)
