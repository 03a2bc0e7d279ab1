"""The examples of the training core's page run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def run(example: str, folder: Path) -> list[str]:
    """Run an example as a script of its own, warnings being errors; return the lines it prints."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"<!-- example: {example} -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found, f"no example {example!r}"
    (folder / "example.py").write_text(found[1], encoding="utf-8")
    command = [sys.executable, "-W", "error", "example.py"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_loop_trains_saves_and_resumes(tmp_path: Path) -> None:
    first = run("loop", tmp_path)
    assert re.match(r"60 ScaleState\(scale=\S+, applied=\d+, skipped=\d\) \(\(20, ", first[0])
    assert len((tmp_path / "steps.jsonl").read_text(encoding="utf-8").splitlines()) == 60
    assert run("loop", tmp_path) == first  # nothing was left to do


def test_the_probes_find_nothing_wrong_with_the_step(tmp_path: Path) -> None:
    printed = run("audit", tmp_path)
    assert (printed[0], printed[-1]) == ("0", "()")
