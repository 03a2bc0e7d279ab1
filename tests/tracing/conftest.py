"""Tracing of a small project."""

from collections.abc import Callable
from pathlib import Path

import pytest
from building import written
from click.testing import CliRunner, Result
from to_trace import FILES

from gates.cli import cli


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Write a project with some files changed, trace it, and return what the command said."""

    def run(changes: dict[str, str | bytes] | None = None, *words: str) -> Result:
        monkeypatch.chdir(written(tmp_path / "project", {**FILES, **(changes or {})}))
        return CliRunner().invoke(cli, ["trace", *words])

    return run
