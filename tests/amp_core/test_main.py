"""Tests of the command that trains the smoke model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from amp_core.__main__ import main

SHORT = ["--device", "cpu", "--steps", "3"]


def test_the_summary_names_precision_reason_loss_accuracy_and_scale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--precision", "fp16"]) == 0
    out, err = capsys.readouterr()
    assert [line[:12].strip() for line in out.splitlines()] == [
        "device", "precision", "train loss", "val loss", "val accuracy", "loss scale", "steps",
    ]  # fmt: skip
    assert "fp16 (fp16 was requested by name)" in out
    assert "loss scale    65536\n" in out
    assert "3 applied, 0 skipped" in out
    assert err == ""


@pytest.mark.criterion("T035/AC8")
def test_use_amp_on_a_cpu_finishes_in_fp32_with_one_warning_line() -> None:
    command = [sys.executable, "-m", "amp_core", *SHORT, "--use-amp"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: use_amp=True, but device 'cpu' is no accelerator: training falls back to fp32")
    assert "precision     fp32 (use_amp=True, but device 'cpu'" in done.stdout
    assert "3 applied" in done.stdout


@pytest.mark.criterion("T035/AC7")
def test_amp_can_be_turned_off_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--no-use-amp", "--precision", "fp16"]) == 0
    assert "fp32 (AMP is turned off by use_amp=False)" in capsys.readouterr().out


def test_the_json_result_has_every_step(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert main([*SHORT, "--precision", "bf16", "--json", str(path)]) == 0
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (result["precision"], result["applied_steps"], len(result["history"])) == ("bf16", 3, 3)
    assert result["history"][0]["loss_scale"] == 1.0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--precision", "fp61"], "error: unknown precision 'fp61' (did you mean 'fp16'?): expected one of fp32, "),
        (["--device", "gpu"], "error: unknown device 'gpu': expected one of cpu, "),
        (["--device", "cuda:97"], "error: device 'cuda:97' was requested, but "),
        (["--device", "cpu", "--steps", "0"], "error: steps must be at least 1, found 0"),
        (["--device", "cpu", "--steps", "x"], "error: argument --steps: invalid int value: 'x'"),
        (["--device", "cpu", "--json", "/nowhere/at/all.json"], "error: cannot write '/nowhere/at/all.json': "),
        (["--unknown"], "error: unrecognized arguments: --unknown"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(arguments)
    except SystemExit as caught:
        assert isinstance(caught.code, int)
        code = caught.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1
