"""How many examples a property of Hypothesis was tried with, where nothing but a setting kept it from more."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PHASES = ("reuse-phase", "generate-phase")


@contextmanager
def examples_of(function: object, told: dict[str, object]) -> Iterator[None]:
    """Note in `told` the `examples` that a test tried; nothing of what is no property, or has no more of them."""
    collector = getattr(sys.modules.get("hypothesis.statistics"), "collector", None)
    if collector is None or not getattr(function, "is_hypothesis_test", False):
        yield
        return
    before = collector.value

    def take(statistics: dict[str, Any]) -> None:
        cases = [case for phase in PHASES for case in statistics.get(phase, {}).get("test-cases", ())]
        if "max_examples" in str(statistics.get("stopped-because", "")):
            valid = sum(case.get("status") == "valid" for case in cases)
            told["examples"] = valid + len(_explicit(function))
        if before is not None:
            before(statistics)

    with collector.with_value(take):
        yield


def _explicit(function: object) -> tuple[object, ...]:
    """Return the examples that a test states itself, which are tried beside."""
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    found = (getattr(one, "hypothesis_explicit_examples", ()) for one in (function, inner))
    return max(map(tuple, found), key=len)
