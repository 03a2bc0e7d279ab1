"""Verdicts on traces that were recorded once: two equal arms in turn, one of them slowed down exactly."""

from collections import Counter
from pathlib import Path

from benchmarks.deciding import live, rules
from benchmarks.deciding.load import load
from benchmarks.deciding.windows import BASELINE, CANDIDATE, Trace, Window, adaptive, question, windows
from gates.measuring import answers
from gates.measuring.interval import NotEnough, compare, estimate
from gates.measuring.session import measure
from gates.model import Outcome

WORDS = {Outcome.PASSED: rules.PASS, Outcome.FAILED: rules.BLOCK, Outcome.UNKNOWN: rules.OPEN}


def record(regime: str, pairs: int, folder: Path) -> Trace:
    """Record two equal arms under a load."""
    with load(regime):
        plan = live.plan_of(1.0, most=pairs, budget_s=600)
        samples, taken = measure(plan, folder, lambda _samples, _taken: False)
    return Trace(samples=samples, taken=taken)


def unguarded(window: Window, limit: float) -> tuple[Outcome, int]:
    """Decide by the interval alone, whatever the machine did."""
    asked = question(limit)
    for pairs in window.looks:
        outcome = compare(answers.estimated(asked, window.source(pairs)), *asked.bound)
        if outcome is not Outcome.UNKNOWN:
            return outcome, pairs
    return Outcome.UNKNOWN, window.looks[-1]


def fixed(window: Window, limit: float, pairs: int) -> Outcome:
    """Decide by the plain sign-test interval of so many pairs, looked at once."""
    asked, source = question(limit), window.source(pairs)
    try:
        return compare(estimate(asked, answers.samples_of(source).metrics["step_time_s"]), *asked.bound)
    except NotEnough:
        return Outcome.UNKNOWN


def peeking(window: Window, limit: float) -> tuple[Outcome, int]:
    """Decide by the plain interval after every pair, as one who does not know better."""
    for pairs in range(6, window.trace.most + 1):
        found = fixed(window, limit, pairs)
        if found is not Outcome.UNKNOWN:
            return found, pairs
    return Outcome.UNKNOWN, window.trace.most


def sequential(window: Window, rule: str, limit: float) -> str:
    """Decide by another tool's rule on samples of one arm taken after those of the other."""
    most = window.trace.most
    arms = answers.samples_of(window.source(most)).metrics["step_time_s"].arms
    return rules.SEQUENTIAL[rule](arms[BASELINE][: most // 2], arms[CANDIDATE][most // 2 :], limit)


def table(trace: Trace, factor: float, limit: float, count: int) -> dict[str, tuple[Counter[str], float]]:
    """Return by rule how often it came to which verdict, and the pairs that it used on average."""
    found: dict[str, tuple[Counter[str], float]] = {}
    drawn = list(windows(trace, count, factor))
    for name, decide in (("this gate", adaptive), ("this gate, no guards", unguarded), ("peeking", peeking)):
        ended = [decide(window, limit) for window in drawn]
        used = sum(pairs for _, pairs in ended) / trace.taken.split
        found[name] = Counter(WORDS[outcome] for outcome, _ in ended), used / count
    for pairs in (trace.most // 4, trace.most):
        found[f"fixed, {pairs} pairs"] = Counter(WORDS[fixed(window, limit, pairs)] for window in drawn), float(pairs)
    for rule in rules.SEQUENTIAL:
        found[rule] = Counter(sequential(window, rule, limit) for window in drawn), trace.most / 2
    return found
