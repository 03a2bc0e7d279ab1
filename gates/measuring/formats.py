"""The files of other benchmark tools: by benchmark, one number for a run of the tool, in seconds."""

import json
import math
import statistics
from collections.abc import Iterator
from typing import Any

from gates.samples import BadSamples
from gates.terminal import printable

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
    try:
        found = dict(_pytest_benchmark(told) if form == "pytest-benchmark" else _pyperf(told))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadSamples(f"not a file of {form} ({type(error).__name__}: {error})") from error
    if not found:
        raise BadSamples(ABSENT)
    for name, value in found.items():
        if not math.isfinite(value) or value <= 0:
            raise BadSamples(f"{name} took {value:g} s, expected above 0")
    return found


def _pytest_benchmark(told: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for benchmark in told["benchmarks"]:
        stats = benchmark["stats"]
        values = stats.get("data")
        middle = statistics.median(_numbers(values)) if isinstance(values, list) and values else stats["median"]
        yield str(benchmark["name"]), float(middle)


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
    wrong = next((value for value in values if not math.isfinite(value) or value <= 0), None)
    if wrong is not None:
        raise BadSamples(f"holds a time of {wrong:g} s, expected above 0")
    return [float(value) for value in values]
