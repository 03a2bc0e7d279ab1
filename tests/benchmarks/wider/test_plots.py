"""Tests of the figures: what they show, that they are the same each time, and that matplotlib is optional."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from amp_core.device import DeviceFacts
from amp_core.samples import Direction, Metric, Samples
from benchmarks.wider.__main__ import main
from benchmarks.wider.plots import draw

ARMS = ("fp32", "bf16", "bf16_by_hand")


def a_metric(unit: str, *arms: str, samples: int = 6, paired: bool = True) -> Metric:
    values = {arm: tuple(1.0 + 0.1 * i + 0.01 * n for n in range(samples)) for i, arm in enumerate(arms or ARMS)}
    return Metric(unit, Direction.LOWER, paired=paired, arms=values)


def some_samples(**metrics: Metric) -> Samples:
    return Samples(DeviceFacts("cpu", "a CPU", ()), {}, {"baseline": "fp32"}, "", metrics)


EVERYTHING = some_samples(
    step_time_s=a_metric("s"),
    step_cpu_time_s=a_metric("s"),
    peak_memory_bytes=a_metric("B"),
    predicted_peak_memory_bytes=a_metric("B", samples=1),
    val_loss=a_metric("nat", "fp32", "tf32", "bf16", "fp16"),
    inference_latency_s_batch_1=a_metric("s", "fp32", "bf16", paired=False),
    inference_latency_s_batch_8=a_metric("s", "fp32", "bf16", paired=False),
    scaling_step_time_s_batch_1=a_metric("s", "fp32", "bf16"),
    scaling_step_time_s_batch_16=a_metric("s", "bf16"),
    scaling_peak_memory_bytes_batch_1=a_metric("B", "fp32", samples=1),
)


def words(path: Path) -> str:
    return " ".join(element.text or "" for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text"))


def test_every_figure_names_its_axes_arms_and_device_and_the_same_samples_give_the_same_bytes(tmp_path: Path) -> None:
    drawn = draw(EVERYTHING, tmp_path)
    first = [path.read_bytes() for path in drawn]
    assert first == [path.read_bytes() for path in draw(EVERYTHING, tmp_path)]
    assert b"dc:date" not in b"".join(first)
    assert [path.name for path in drawn] == [
        "step_time.svg", "memory.svg", "quality.svg", "inference.svg", "scaling.svg",
    ]  # fmt: skip
    shown = {path.stem: words(path) for path in drawn}
    assert all("a CPU (cpu)" in text and "fp32" in text and "bf16" in text for text in shown.values())
    assert "step time, CPU clock [ms]" in shown["step_time"]
    assert "peak, predicted" in shown["memory"]
    assert "saved for backward" not in shown["memory"]
    assert "validation loss [nat]" in shown["quality"]
    assert "latency, p99 [ms]" in shown["inference"]
    assert "batch size [sequences]" in shown["scaling"]
    assert "sequence length [tokens]" not in shown["scaling"]


def test_without_matplotlib_nothing_is_measured_and_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["--device", "cpu", "--out", str(tmp_path / "s.json"), "--plots", str(tmp_path)]) == 2
    line = "error: --plots needs matplotlib: pip install 'amp-gates[plots]', or leave --plots out\n"
    assert capsys.readouterr() == ("", line)
    assert list(tmp_path.iterdir()) == []
