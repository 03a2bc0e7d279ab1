"""The examples of the training core's page run as they stand."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Return what runs an example as a script, warnings being errors, and returns the lines that it prints."""
    monkeypatch.chdir(tmp_path)

    def run_example(example: str) -> list[str]:
        found = re.search(
            rf"<!-- example: {example} -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
        )
        assert found, f"no example {example!r}"
        Path("example.py").write_text(found[1], encoding="utf-8")
        runpy.run_path("example.py", run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run_example


def test_the_loop_trains_saves_and_resumes(run: Callable[[str], list[str]]) -> None:
    first = run("loop")
    assert re.match(r"60 ScaleState\(scale=\S+, applied=\d+, skipped=\d\) \(\(20, ", first[0])
    assert len(Path("steps.jsonl").read_text(encoding="utf-8").splitlines()) == 60
    assert run("loop") == first  # nothing was left to do


def test_the_probes_find_nothing_wrong_with_the_step(run: Callable[[str], list[str]]) -> None:
    printed = run("audit")
    assert (printed[0], printed[-1]) == ("0", "()")
