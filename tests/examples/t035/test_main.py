"""Tests of the command that trains the smoke model."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusing import refused

from amp_core import checkpoint
from examples.t035.__main__ import main

SHORT = ["--device", "cpu", "--steps", "3"]


def test_the_summary_names_precision_reason_loss_accuracy_and_scale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--precision", "fp16"]) == 0
    out, err = capsys.readouterr()
    assert [line[:12].strip() for line in out.splitlines()] == [
        "device", "precision", "computed in", "train loss", "val loss", "val accuracy", "loss scale", "steps", "digest",
    ]  # fmt: skip
    assert "computed in   float16\n" in out
    assert "fp16 (fp16 was requested by name" in out
    assert "loss scale    65536\n" in out
    assert "3 applied, 0 skipped" in out
    assert err == ""


@pytest.mark.criterion("T035/AC8")
@pytest.mark.filterwarnings("default:use_amp=True")  # as the command has it
def test_use_amp_on_a_cpu_finishes_in_fp32_with_one_warning_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--use-amp"]) == 0
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert line.startswith("warning: use_amp=True, but device 'cpu' is no accelerator: training falls back to fp32")
    assert "precision     fp32 (use_amp=True, but device 'cpu'" in out
    assert "3 applied" in out


def test_the_json_result_has_every_step(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert main([*SHORT, "--precision", "bf16", "--json", str(path)]) == 0
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (result["precision"], result["applied_steps"], len(result["history"])) == ("bf16", 3, 3)
    assert result["history"][0]["loss_scale"] == 1.0
    assert list(tmp_path.iterdir()) == [path]


def save_and(sign: signal.Signals) -> Callable[..., None]:
    """Return what writes a checkpoint, and then sends this process a signal."""

    def saved(*args: Any, save: Callable[..., None] = checkpoint.save) -> None:
        save(*args)
        os.kill(os.getpid(), sign)

    return saved


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # what is forked trains on one thread
def test_a_killed_run_is_resumed_to_the_digest_of_an_undisturbed_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--device", "cpu", "--precision", "fp16", "--steps", "8", "--accumulate", "2", "--ema-decay", "0.9"]
    saved = [*options, "--checkpoints", str(tmp_path), "--save-every", "3"]
    if not (pid := os.fork()):
        monkeypatch.setattr(checkpoint, "save", save_and(signal.SIGKILL))
        os._exit(main(saved))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert [path.name for path in tmp_path.glob("step-*.pt")] == ["step-00000003.pt"]
    digests = []
    for each in ([*saved, "--resume"], options):
        assert main(each) == 0
        out = capsys.readouterr().out
        assert "8 applied, 0 skipped" in out
        (digest,) = (line for line in out.splitlines() if line.startswith("digest"))
        digests.append(digest)
    assert digests[0] == digests[1]


def test_an_interrupt_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "save", save_and(signal.SIGINT))  # as Ctrl-C does
    assert main(["--device", "cpu", "--steps", "100000", "--checkpoints", str(tmp_path), "--save-every", "2"]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002.pt"]
    assert capsys.readouterr() == ("", f"error: interrupted: --resume goes on from {str(tmp_path)!r}\n")


def test_checkpoints_in_the_way_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [*SHORT, "--checkpoints", str(tmp_path), "--save-every", "1"]
    assert main(options) == 0
    capsys.readouterr()
    assert main(options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {str(tmp_path)!r} already holds step-00000003.pt: resume, or choose another folder\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "gpu"], "error: unknown device 'gpu': expected one of cpu, "),
        (["--device", "cuda:97"], "error: device 'cuda:97' was requested, but "),
        (["--device", "cpu", "--steps", "0"], "error: steps must be at least 1, found 0"),
        (["--device", "cpu", "--steps", "x"], "error: argument --steps: invalid int value: 'x'"),
        (["--device", "cpu", "--json", "/nowhere/at/all.json"], "error: cannot write '/nowhere/at/all.json': "),
        (["--device", "cpu", "--resume"], "error: --resume needs --checkpoints DIR: the folder to go on from"),
        (["--device", "cpu", "--save-every", "0"], "error: --save-every must be at least 1, found 0"),
        (["--device", "cpu", "--patience", "2"], "error: patience=2 needs validate_every: nothing would be waited for"),
        (["--unknown"], "error: unrecognized arguments: --unknown"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(main, arguments, capsys).startswith(message)
