"""Tests of the scripts whose results are committed: the verdict on an accuracy, and GPT-2's in its smallest form."""

import json
from pathlib import Path

import pytest

from amp_core.benchmark.quality import Learned
from benchmarks import accuracy, gpt2_cuda


def learned(off: float) -> Learned:
    return Learned(0.5 + off, 2.0 + off, 0.06, 0.6, applied_steps=30, skipped_steps=0, loss_scale=1.0)


@pytest.mark.parametrize(("off", "code", "loss"), [(0.0004, 0, "met"), (0.002, 1, "not met")])
def test_the_accuracy_script_holds_each_precision_to_its_bars(
    off: float, code: int, loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {arm: [learned(off * (arm != "fp32"))] * 6 for arm in accuracy.ARMS}
    monkeypatch.setattr(accuracy, "train_arms", lambda *_: runs)
    assert accuracy.main(["--tiny", "--out", str(tmp_path / "accuracy.md")]) == code
    text = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    assert ("**All bars are met.**" in text) is (code == 0)
    words = {line.split(" | ")[1]: line.split(" | ")[-1] for line in text.splitlines() if " | val_" in line}
    assert words == {"val_accuracy": "met |", "val_loss": f"{loss} |"}


def test_the_gpt2_script_runs_whole_on_a_tiny_model_and_claims_nothing(tmp_path: Path) -> None:
    assert gpt2_cuda.main(["--device", "cpu", "--tiny", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "gpt2_cpu.md").read_text(encoding="utf-8")
    assert text.startswith("# A tiny model, to see that the script works: no result\n")
    assert "41 steps under `amp_audit.host_reads`, 4 overflows forced" in text
    assert ": held." in text
    metrics = json.loads((tmp_path / "gpt2_cpu.json").read_text(encoding="utf-8"))["metrics"]
    assert "peak_memory_bytes" not in metrics
    assert list(metrics["step_time_s"]["arms"]) == ["fp32", "tf32", "bf16", "bf16_lean", "fp16", "fp16_lean"]
    assert {len(times) for times in metrics["step_time_s"]["arms"].values()} == {6}


def test_gpt2_itself_is_refused_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpt2_cuda.main(["--device", "cpu", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr() == ("", "error: GPT-2 takes hours on a CPU: add --tiny, or use --device cuda\n")
    assert list(tmp_path.iterdir()) == []
