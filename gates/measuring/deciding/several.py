"""Several criteria in one task: what failing one of them may mean when many could fail by chance.

A pass needs all of them, so each may be tested at the full level (an intersection-union test). One failure blocks, so
failures share the error by Holm's step-down procedure. Those that passed are left out of the family: who is on the good
side by a whole interval cannot fail by chance. That they are picked by the same samples is paid for by the share of the
error that a pass leaves (Zhao, Small and Su, JASA 114, 2019, on conservative nulls).
"""

from collections.abc import Callable, Sequence

from gates.model import Outcome

Judged = Callable[[float], Outcome]


def correct(criteria: Sequence[Judged], alpha: float) -> list[Outcome]:
    """Return the outcome of each criterion, judged by its interval at an error that several of them share."""
    plain = [judged(alpha) for judged in criteria]
    family = [i for i, outcome in enumerate(plain) if outcome is not Outcome.PASSED]
    if len(family) < len(plain):
        alpha *= 1 - alpha / 2
    failed: set[int] = set()
    while True:
        share = alpha / max(len(family) - len(failed), 1)
        more = {i for i in family if i not in failed and criteria[i](share) is Outcome.FAILED}
        if not more:
            break
        failed |= more
    return [
        Outcome.UNKNOWN if outcome is Outcome.FAILED and i not in failed else outcome for i, outcome in enumerate(plain)
    ]
