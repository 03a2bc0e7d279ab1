"""The tests' models are tiny: one CPU thread is as fast as many, and does not suffer on a shared machine."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch._dynamo  # else each fork in which code is stubbed out would load it with its first optimizer

torch.set_num_threads(1)
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a Python example of a page as a script; `example` is its name, where the page has names."""

    def written(page: str, index: int = 0, example: str = "") -> Path:
        mark = f"<!-- example: {example} -->\n" if example else ""
        text = (DOCS / page).read_text(encoding="utf-8")
        script = tmp_path / "train.py"
        code = re.findall(rf"^{mark}```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[index]
        script.write_text(code, encoding="utf-8")
        return script

    return written


@pytest.fixture
def run(
    recipe: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Return what runs an example in an empty folder, warnings being errors, and returns the lines that it prints."""
    monkeypatch.chdir(tmp_path)

    def printed(page: str, index: int = 0, example: str = "") -> list[str]:
        runpy.run_path(str(recipe(page, index, example)), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return printed
