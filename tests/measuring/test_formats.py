"""The files of other benchmark tools, good and broken."""

import json
from typing import Any

import pytest

from gates.measuring.samples import BadSamples, read_times


def a_pytest_benchmark(*data: float, name: str = "test_sum") -> dict[str, Any]:
    return {"benchmarks": [{"name": name, "stats": {"median": 9.0, "data": list(data)}}]}


def a_pyperf(*runs: list[float], **facts: Any) -> dict[str, Any]:
    return {"version": "1.0", "metadata": {"name": "sum", "unit": "second", **facts},
            "benchmarks": [{"runs": [{"values": values} for values in runs]}]}  # fmt: skip


def test_of_each_benchmark_the_median_of_all_its_rounds_or_processes_is_read() -> None:
    perf = a_pyperf([1.0, 1.0, 1.0], [3.0, 3.0], [2.0])
    perf["benchmarks"].append({"metadata": {"name": "product"}, "runs": [{"warmups": [[1, 0.5]]}, {"values": [4.0]}]})
    assert read_times(json.dumps(perf), "pyperf") == {"sum": 2.0, "product": 4.0}
    assert read_times(json.dumps(a_pytest_benchmark(1.0, 2.0, 9.0)), "pytest-benchmark") == {"test_sum": 2.0}
    assert read_times(json.dumps(a_pytest_benchmark()), "pytest-benchmark") == {"test_sum": 9.0}  # without its rounds


@pytest.mark.parametrize("form", ["pytest-benchmark", "pyperf"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON"), ("{", "not valid JSON"), ("[]", "not a file of"), ("{}", "not a file of"),
        ('{"benchmarks": []}', "no benchmark"), ('{"benchmarks": 3}', "not a file of"),
        ('{"benchmarks": [1]}', "not a"), ('{"benchmarks": NaN}', "expected finite numbers"),
        ("[" * 100_000, "nested beyond"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_says_so(text: str, said: str, form: str) -> None:
    with pytest.raises(BadSamples, match=said):
        read_times(text, form)


@pytest.mark.parametrize("value", ["0", "-1", "1e999", '"1"', '"fast"', "true", "null", "1e12", "1" + "0" * 400])
def test_a_time_that_is_none_is_refused(value: str) -> None:
    for told, form in ((a_pytest_benchmark(77.0), "pytest-benchmark"), (a_pyperf([77.0]), "pyperf")):
        with pytest.raises(BadSamples, match=r"time|finite"):
            read_times(json.dumps(told).replace("77.0", value), form)


@pytest.mark.parametrize("value", ['"fast"', "true", "null", "-1", "[]", "1" + "0" * 400])
def test_a_median_that_is_no_time_is_refused(value: str) -> None:
    with pytest.raises(BadSamples, match="time"):
        read_times(json.dumps(a_pytest_benchmark()).replace("9.0", value), "pytest-benchmark")


def test_benchmarks_of_one_name_in_two_files_are_told_apart_by_their_files() -> None:
    told = {"benchmarks": [
        {"name": "test_sum", "fullname": f"tests/test_{file}.py::test_sum", "stats": {"data": [time]}}
        for file, time in (("a", 1.0), ("b", 9.0))
    ]}  # fmt: skip
    seen = read_times(json.dumps(told), "pytest-benchmark")
    assert seen == {"tests/test_a.py::test_sum": 1.0, "tests/test_b.py::test_sum": 9.0}


def test_what_a_file_lacks_or_has_twice_is_named() -> None:
    twice = {"benchmarks": [*a_pytest_benchmark(1.0)["benchmarks"], *a_pytest_benchmark(9.0)["benchmarks"]]}
    nameless = {"benchmarks": [{"runs": [{"values": [1.0]}]}]}
    for told, form, said in (
        (twice, "pytest-benchmark", "two benchmarks called 'test_sum'"),
        (nameless, "pyperf", r"not a file of pyperf \(KeyError\('name'\)\)"),
        (a_pyperf([1.0], unit="byte"), "pyperf", "no benchmark"),
    ):
        with pytest.raises(BadSamples, match=said):
            read_times(json.dumps(told), form)
