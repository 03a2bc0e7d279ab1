"""Tests of the command: what it prints, what it writes, and how it refuses."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from refusing import refused

from amp_audit.__main__ import main

USERS_MODULE = """
import torch
from torch import nn

from amp_audit import Loop


def make_step():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(4, 8)).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def make_loop():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()

    return Loop(step, model, [optimizer])


def make_reading_step():
    value = torch.ones(3)
    return lambda: value[value > 0]


def make_broken_step():
    return lambda: torch.ones(2) @ torch.ones(3)


def make_nothing():
    pass


a_number = 3
"""


@pytest.fixture
def users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "users_module.py").write_text(USERS_MODULE, encoding="utf-8")
    (tmp_path / "broken_module.py").write_text("raise OSError('no data\\nat all')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("users_module", "broken_module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "users_module"


def test_the_table_says_what_was_found(users_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{users_module}:make_step"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[:4] == [
        "step             users_module:make_step, on cpu",
        "host reads       0 a step",
        "matrix products  forward: 1 in bfloat16",
        "matrix products  backward: 1 in bfloat16",
    ]
    assert lines[4] == "saved            192 B (float32 128 B, bfloat16 64 B)"
    assert lines[5].startswith("predicted peak   ")
    assert " KiB (float32 " in lines[5]
    assert lines[6].endswith("with the autocast of CUDA (estimates)")
    assert len(lines) == 7


def test_the_samples_file_holds_the_counts(users_module: str, tmp_path: Path) -> None:
    assert main([f"{users_module}:make_step", "--out", str(tmp_path / "samples.json")]) == 0
    samples = json.loads((tmp_path / "samples.json").read_text(encoding="utf-8"))
    assert samples["schema"] == "gates.samples/1"
    assert samples["device"]["type"] == "cpu"
    assert samples["settings"] == {"target": "users_module:make_step"}
    metrics = {name: metric["arms"] for name, metric in samples["metrics"].items()}
    peaks = metrics.pop("predicted_peak_bytes")
    assert metrics == {
        "host_reads_per_step": {"step": [0.0]},
        "matmuls_per_step": {"bfloat16": [2.0]},
        "saved_bytes": {"step": [4 * 8 * 2 + 4 * 8 * 4.0]},
    }
    assert all(value > 8 * 8 * 4 for (value,) in peaks.values())
    assert sorted(peaks) == ["here", "like_cuda"]


def test_reads_are_listed_and_what_cannot_be_predicted_says_why(
    users_module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{users_module}:make_reading_step"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "host reads       1 a step"
    assert lines[2].startswith("       1 x aten::index.Tensor at ")
    assert "users_module.py:" in lines[2]
    assert "predicting raised Unpredictable: the step depends on values" in lines[4]


def test_a_loop_is_given_an_overflow_too(users_module: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([f"{users_module}:make_loop", "--out", str(tmp_path / "samples.json")]) == 0
    assert "overflow         parameters moved" in capsys.readouterr().out
    metrics = json.loads((tmp_path / "samples.json").read_text(encoding="utf-8"))["metrics"]
    assert metrics["overflow_problems"]["arms"] == {"step": [1.0]}


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("users_module", 2, "expected MODULE:CALLABLE, such as 'train:make_step', found 'users_module'"),
        ("no_such_module:make", 2, "cannot import 'no_such_module': there is no module 'no_such_module'"),
        ("users_module:make", 2, "expected a callable named 'make' in 'users_module', found None"),
        ("users_module:a_number", 2, "expected a callable named 'a_number' in 'users_module', found 3"),
        ("users_module:make_nothing", 2, "expected users_module:make_nothing() to return a step"),
        ("users_module:make_broken_step", 1, "the step of users_module:make_broken_step raised RuntimeError: "),
        ("broken_module:make", 1, "importing broken_module raised OSError: no data"),
    ],
)
def test_what_cannot_be_audited_is_one_line(
    target: str, code: int, message: str, users_module: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = refused(main, [target, "--out", str(tmp_path / "samples.json")], capsys, code)
    assert said.startswith(f"error: {message}")
    assert not (tmp_path / "samples.json").exists()


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broken_module:make", "--out", "/nowhere/at/all.json"]) == 2
    assert capsys.readouterr().err.startswith("error: cannot write '/nowhere/at/all.json': there is no folder")


def test_the_command_runs(
    users_module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["amp_audit", f"{users_module}:make_nothing"])
    monkeypatch.delitem(sys.modules, "amp_audit.__main__")
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("amp_audit", run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: expected users_module:make_nothing() to return a step")
