"""The rehearsal: a few steps on the CPU, each of them recorded and logged."""

from pathlib import Path

import pytest

from examples.t035.rehearsal import rehearse


def test_rehearsal_returns_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    records = rehearse(steps=2, accumulate=1)
    assert [record.step for record in records] == [0, 1]
    assert {record.loss_scale for record in records} == {2.0**16}
