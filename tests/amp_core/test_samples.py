"""Tests of the samples file."""

import json
import math
from pathlib import Path

import pytest

from amp_core.device import DeviceFacts
from amp_core.samples import Direction, Metric, Samples, refuse_unwritable, write


def some_samples() -> Samples:
    metric = Metric("s", Direction.LOWER, paired=True, arms={"fp32": (0.5, 0.25), "bf16": (1.0, 2.0)})
    return Samples(
        device=DeviceFacts("cpu", "a CPU", ("avx2",)),
        environment={"python": "3.11.7"},
        settings={"rounds": "2"},
        timing="By hand.",
        metrics={"step_time_s": metric},
    )


def test_the_file_has_exactly_the_agreed_keys(tmp_path: Path) -> None:
    write(tmp_path / "samples.json", some_samples())
    arms = {"fp32": [0.5, 0.25], "bf16": [1.0, 2.0]}
    assert json.loads((tmp_path / "samples.json").read_text(encoding="utf-8")) == {
        "schema": "gates.samples/1",
        "device": {"type": "cpu", "name": "a CPU", "capabilities": ["avx2"]},
        "environment": {"python": "3.11.7"},
        "settings": {"rounds": "2"},
        "timing": "By hand.",
        "metrics": {"step_time_s": {"unit": "s", "direction": "lower", "paired": True, "arms": arms}},
    }


def test_writing_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.write_text("old", encoding="utf-8")
    with path.open(encoding="utf-8") as reader:
        write(path, some_samples())
        assert reader.read() == "old"  # who reads meanwhile sees the old file whole
    assert path.read_text(encoding="utf-8").startswith("{")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"fp32": (1.0, 1.0), "bf16": (1.0, math.nan)}, r"^arm 'bf16' needs finite samples, found nan at 1$"),
        ({"fp32": (1.0, 1.0), "bf16": (1.0, -math.inf)}, r"^arm 'bf16' needs finite samples, found -inf at 1$"),
        ({}, "needs at least one"),
        ({"fp32": ()}, "needs at least one"),
        ({"fp32": (1.0,), "bf16": (1.0, 2.0)}, "need equally many"),
    ],
)
def test_arms_that_cannot_be_compared_are_refused(arms: dict[str, tuple[float, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Metric("s", Direction.LOWER, paired=True, arms=arms)


def test_an_unwritable_place_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder '.*absent', create it first$"):
        refuse_unwritable(tmp_path / "absent" / "samples.json")
    with pytest.raises(ValueError, match="it is a folder, expected a file"):
        refuse_unwritable(tmp_path)
    with pytest.raises(ValueError, match="File name too long"):
        refuse_unwritable(tmp_path / ("x" * 300))
    refuse_unwritable(tmp_path / "samples.json")
    assert list(tmp_path.iterdir()) == []
