"""Tests of the scripts whose results are committed: each runs as it stands, in its smallest form."""

import json
import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "benchmarks"


def run_script(name: str, *arguments: str) -> int | str | None:
    """Run a script in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(SCRIPTS / name), run_name="__main__")
    return left.value.code


def test_the_accuracy_script_compares_each_precision_with_fp32_and_meets_its_bars(tmp_path: Path) -> None:
    assert run_script("accuracy.py", "--tiny", "--out", str(tmp_path / "accuracy.md")) == 0
    text = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    assert "**All bars are met.**" in text
    for start in ("| bf16 | val_accuracy |", "| fp16 | val_accuracy |", "| bf16 | val_loss |", "| fp16 | val_loss |"):
        (row,) = (line for line in text.splitlines() if line.startswith(start))
        assert row.endswith("| met |")


def test_the_bf16_script_names_the_instructions_and_gives_a_ratio(tmp_path: Path) -> None:
    assert run_script("cpu_bf16.py", "--tiny", "--out", str(tmp_path / "cpu_bf16.md")) == 0
    text = (tmp_path / "cpu_bf16.md").read_text(encoding="utf-8")
    assert "This CPU's instructions for bf16: " in text
    assert "| 32 | 1 | " in text


def test_the_gpt2_script_runs_whole_on_a_tiny_model_and_claims_nothing(tmp_path: Path) -> None:
    assert run_script("gpt2_cuda.py", "--device", "cpu", "--tiny", "--out", str(tmp_path)) == 0
    text = (tmp_path / "gpt2_cpu.md").read_text(encoding="utf-8")
    assert text.startswith("# A tiny model, to see that the script works: no result\n")
    assert "41 steps under `amp_audit.host_reads`, 4 overflows forced" in text
    assert ": held." in text
    metrics = json.loads((tmp_path / "gpt2_cpu.json").read_text(encoding="utf-8"))["metrics"]
    assert "peak_memory_bytes" not in metrics
    assert list(metrics["step_time_s"]["arms"]) == ["fp32", "tf32", "bf16", "bf16_lean", "fp16", "fp16_lean"]
    assert {len(times) for times in metrics["step_time_s"]["arms"].values()} == {6}


def test_gpt2_itself_is_refused_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_script("gpt2_cuda.py", "--device", "cpu", "--out", str(tmp_path)) == 2
    refusal = "error: GPT-2 takes hours on a CPU: add --tiny, or use --device cuda\n"
    assert capsys.readouterr() == ("", refusal)
    assert list(tmp_path.iterdir()) == []
