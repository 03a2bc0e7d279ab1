"""Tests of the summary that the benchmark prints."""

from amp_core.benchmark.summary import summarise
from amp_core.device import DeviceFacts
from amp_core.samples import Direction, Metric, Samples


def summary_of(**metrics: Metric) -> list[str]:
    return summarise(Samples(DeviceFacts("cpu", "a CPU", ()), {}, {"baseline": "fp32 here"}, "", metrics)).splitlines()


def test_times_are_given_as_the_baselines_quotient_with_its_interval() -> None:
    metric = Metric("s", Direction.LOWER, paired=True, arms={"fp32": (2.0,) * 6, "bf16": (1.0,) * 5 + (2.0,)})
    assert summary_of(step_time_s=metric) == [
        "a CPU (cpu), baseline fp32 here",
        "step_time_s [ms]",
        "  fp32                   2000",
        "  bf16                   1000  fp32 / bf16 2.000 [1.000, 2.000]",
    ]


def test_rates_are_given_as_a_quotient_by_the_baseline() -> None:
    metric = Metric("1/s", Direction.HIGHER, paired=True, arms={"fp32": (2.0,) * 6, "bf16": (5.0,) * 6})
    assert summary_of(samples_per_s=metric)[-1] == "  bf16                      5  bf16 / fp32 2.500 [2.500, 2.500]"


def test_accuracies_are_given_as_a_difference() -> None:
    metric = Metric("1", Direction.HIGHER, paired=True, arms={"fp32": (0.5,) * 6, "bf16": (0.25,) * 6})
    assert summary_of(val_accuracy=metric)[-1] == "  bf16                   0.25  bf16 - fp32 -0.25 [-0.25, -0.25]"


def test_too_few_samples_are_compared_without_an_interval() -> None:
    metric = Metric("B", Direction.LOWER, paired=True, arms={"fp32": (2.0**21,), "bf16": (2.0**20,)})
    assert summary_of(saved=metric)[1:] == [
        "saved [MiB]",
        "  fp32                      2",
        "  bf16                      1  fp32 / bf16 2.000",
    ]
