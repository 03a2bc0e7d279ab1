"""The files of other benchmark tools: by benchmark, one number for a run of the tool, in seconds."""

import json
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gates.measuring.samples import BadSamples
from gates.terminal import printable

LONGEST_S = 1e9
ABSENT = "holds no benchmark; did the tool run any?"


def read_times(text: str, form: str) -> dict[str, float]:
    """Return the median seconds of each benchmark of a file; raise `BadSamples` with the reason where it is no such.

    All values of one run come from one machine state, and in pytest-benchmark from one process: together they are one
    sample, not many.
    """

    def refuse(token: str) -> float:
        raise BadSamples(f"holds {token}, expected finite numbers")

    try:
        told = json.loads(printable(text), parse_constant=refuse)
    except RecursionError as error:
        raise BadSamples("nested beyond all sense") from error
    except ValueError as error:
        raise BadSamples(f"not valid JSON ({error}); was it cut short?") from error
    found: dict[str, float] = {}
    try:
        for name, value in _pytest_benchmark(told) if form == "pytest-benchmark" else _pyperf(told):
            if name in found:
                raise BadSamples(f"holds two benchmarks called {name!r:.80}; rename one of them")
            found[name] = value
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadSamples(f"not a file of {form} ({_shown(error)})") from error
    if not found:
        raise BadSamples(ABSENT)
    return found


def _shown(error: Exception) -> str:
    """Return in words what a file lacks."""
    return f"there is no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())[:200]


def _pytest_benchmark(told: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield each benchmark by its name, or with its file where several have that name."""
    named = Counter(str(benchmark["name"]) for benchmark in told["benchmarks"])
    for benchmark in told["benchmarks"]:
        stats, name = benchmark["stats"], str(benchmark["name"])
        values = stats.get("data")
        own = name if named[name] == 1 else str(benchmark.get("fullname", name))
        yield own, statistics.median(_numbers(values if values else [stats["median"]]))


def _pyperf(told: dict[str, Any]) -> Iterator[tuple[str, float]]:
    benchmarks, common = told["benchmarks"], told.get("metadata", {})
    for benchmark in benchmarks:
        facts = {**common, **benchmark.get("metadata", {})}
        if facts.get("unit", "second") != "second":
            continue
        medians = [statistics.median(_numbers(run["values"])) for run in benchmark["runs"] if run.get("values")]
        if medians:
            yield str(facts["name"]), statistics.median(medians)


def _numbers(values: object) -> list[float]:
    if not isinstance(values, list) or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise BadSamples("holds a time that is no number")
    if max(values) > LONGEST_S:
        raise BadSamples(f"holds a time of more than {LONGEST_S:g} s")
    if min(values) <= 0:
        raise BadSamples(f"holds a time of {min(values):g} s, expected above 0")
    return [float(value) for value in values]
