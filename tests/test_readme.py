"""The README's own words: its commands exist, and its example of amp_core runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(marker: str) -> str:
    """The code block that follows a marker."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, marker
    return found[1]


def test_example_of_amp_core_runs_as_it_stands_and_is_short() -> None:
    code = block("example: amp_core")
    assert len(code.splitlines()) < 20
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bf16 because ")
    assert "step=49" in done.stdout


def test_each_command_is_one_line() -> None:
    for name in ("run", "test"):
        (line,) = block(f"command: {name}").splitlines()
        assert line.startswith("python3 -m venv .venv && ")


def test_every_command_and_option_of_the_table_exists() -> None:
    for command, options in re.findall(r"^\| `gates (\w+)([^`]*)`", README, re.MULTILINE):
        told = subprocess.run(
            [sys.executable, "-m", "gates", command, "--help"], capture_output=True, text=True, timeout=60
        )
        assert told.returncode == 0, command
        for option in re.findall(r"--[\w-]+", options):
            assert option in told.stdout, (command, option)
