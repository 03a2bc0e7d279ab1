"""`gates check`: the code rules over files and folders, without a task; what has not changed is not read again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from building import written
from click.testing import CliRunner, Result

from gates.cli import cli

BAD = """import torch


def train(model, optimizer, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = loss_fn(model(inputs), targets)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
"""
GOOD = BAD.replace("        scaler.unscale_(optimizer)\n", "").replace(
    "        torch.nn", "        scaler.unscale_(optimizer)\n        torch.nn"
)
OWN = """id: no-print
tags: [house]
severity: low
problem: It prints.
impact: It is loud.
fix: Log.
pattern: print(...)
good: "x = 1"
bad: "print(1)  # <- here"
"""


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Write files, check them, and return what the command said."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(files: dict[str, str | bytes], *words: str) -> Result:
        root = written(tmp_path / "project", {"pyproject.toml": "[tool.gates]\n", **files})
        monkeypatch.chdir(root)
        return CliRunner().invoke(cli, ["check", *words])

    return run


def test_a_broken_order_is_named_with_its_line_and_way(checked: Callable[..., Result]) -> None:
    result = checked({"train.py": BAD}, "--rule", "amp-clip-before-unscale")
    assert result.exit_code == 1
    assert "train.py:11: critical amp-clip-before-unscale: " in result.stdout
    assert "train.py:10 -> " in result.stdout


def test_sound_code_passes_every_rule(checked: Callable[..., Result]) -> None:
    result = checked({"train.py": GOOD}, "--rule", "order")
    assert (result.exit_code, "0 findings" in result.stdout) == (0, True)


def test_what_has_not_changed_is_not_read_again(checked: Callable[..., Result]) -> None:
    words = ("--rule", "amp-clip-before-unscale")
    first = checked({"train.py": BAD, "other.py": "x = 1\n"}, *words)
    assert " 0 read" not in first.stdout
    again = CliRunner().invoke(cli, ["check", *words])
    assert ("train.py:11" in again.stdout, " 0 read" in again.stdout) == (True, True)
    changed = checked({"train.py": GOOD}, *words)
    assert "0 findings" in changed.stdout
    assert "train.py:11" in checked({"train.py": BAD}, *words, "--fresh").stdout


def test_json_has_each_finding(checked: Callable[..., Result]) -> None:
    result = checked({"train.py": BAD}, "--rule", "amp-clip-before-unscale", "--format", "json")
    (found,) = json.loads(result.stdout)["findings"]
    assert (found["rule"], found["path"], found["line"]) == ("amp-clip-before-unscale", "train.py", 11)


def test_rules_of_the_project_and_low_ones_do_not_stop(checked: Callable[..., Result]) -> None:
    result = checked({"gates-rules/no-print.yaml": OWN, "a.py": "print(1)\n"}, "--rule", "house")
    assert (result.exit_code, "a.py:1: low no-print: It prints." in result.stdout) == (0, True)


def test_a_file_that_cannot_be_read_is_not_clean(checked: Callable[..., Result]) -> None:
    result = checked({"a.py": "import torch\ntorch.cuda.amp.autocast(\n"}, "--rule", "no-cuda-amp")
    assert (result.exit_code, "not checked" in result.stdout) == (3, True)


def test_wrong_use_is_said_in_one_line(checked: Callable[..., Result]) -> None:
    unknown = checked({"a.py": "x = 1\n"}, "--rule", "amp-clip-before-unscal")
    assert unknown.exception is not None
    assert "did you mean 'amp-clip-before-unscale'" in str(unknown.exception)
    assert "no Python file" in str(checked({"docs/a.md": "x"}, "docs").exception)
