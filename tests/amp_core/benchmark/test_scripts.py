"""Tests of the scripts whose results are committed: each runs as it stands, in its smallest form."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[3] / "benchmarks"


def run_script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-W", "error", str(SCRIPTS / name), *arguments]
    return subprocess.run(line, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)


def test_the_accuracy_script_compares_each_precision_with_fp32_and_meets_its_bars(tmp_path: Path) -> None:
    done = run_script("accuracy.py", "--tiny", "--out", str(tmp_path / "accuracy.md"))
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    assert "**All bars are met.**" in text
    for start in ("| bf16 | val_accuracy |", "| fp16 | val_accuracy |", "| bf16 | val_loss |", "| fp16 | val_loss |"):
        (row,) = (line for line in text.splitlines() if line.startswith(start))
        assert row.endswith("| met |")


def test_the_bf16_script_names_the_instructions_and_gives_a_ratio(tmp_path: Path) -> None:
    done = run_script("cpu_bf16.py", "--tiny", "--out", str(tmp_path / "cpu_bf16.md"))
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "cpu_bf16.md").read_text(encoding="utf-8")
    assert "This CPU's instructions for bf16: " in text
    assert "| 32 | 1 | " in text


def test_the_gpt2_script_runs_whole_on_a_tiny_model_and_claims_nothing(tmp_path: Path) -> None:
    done = run_script("gpt2_cuda.py", "--device", "cpu", "--tiny", "--out", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "gpt2_cpu.md").read_text(encoding="utf-8")
    assert text.startswith("# A tiny model, to see that the script works: no result\n")
    assert "41 steps under `amp_audit.host_reads`, 4 overflows forced" in text
    assert ": held." in text
    metrics = json.loads((tmp_path / "gpt2_cpu.json").read_text(encoding="utf-8"))["metrics"]
    assert "peak_memory_bytes" not in metrics
    assert list(metrics["step_time_s"]["arms"]) == ["fp32", "tf32", "bf16", "bf16_lean", "fp16", "fp16_lean"]
    assert {len(times) for times in metrics["step_time_s"]["arms"].values()} == {6}


def test_gpt2_itself_is_refused_on_a_cpu(tmp_path: Path) -> None:
    done = run_script("gpt2_cuda.py", "--device", "cpu", "--out", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: GPT-2 takes hours on a CPU: add --tiny, or use --device cuda\n"
    assert list(tmp_path.iterdir()) == []
