"""A14: the loss scale halves down to zero, and training is dead for ever."""

from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import INF, Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

OVERFLOWS = 170  # a float32 scale of 65536 reaches 0 after 166 halvings


def judge(subject: Subject) -> Result:
    """Let 170 windows overflow in a row, then give good ones."""
    bad = dict.fromkeys(range(OVERFLOWS), INF)
    try:
        trace = subject.train(Job(windows=windows(OVERFLOWS + 2, bad=bad)))
    except RuntimeError as error:
        return verdict(type(error).__name__ == "ScaleCollapsed", f"stopped: {described(error)}")
    moved = trace.last.moved_from(trace.start)
    lowest = min(seen.scale for seen in trace.steps)
    return verdict(moved > 0, f"lowest scale {lowest:g}; parameters moved by {moved:.3g} in two good steps after it")


CASE = Case(
    hazard="A14",
    question="Does training survive, or stop aloud, when every step overflows?",
    conforming="it stops with an error that says so, or the next good step moves the parameters",
    references=("PyT #99640", "PyT #96755", "Chinese-LLaMA-Alpaca #534"),
    judge=judge,
    broken=broken(PlainLoop),
)
