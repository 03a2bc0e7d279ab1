"""The recipes' code blocks run as they stand; test_parallel.py runs the one of several processes on two ranks."""

import re
import runpy
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accelerate.state import AcceleratorState, GradientState, PartialState

RECIPES = Path(__file__).resolve().parents[3] / "docs" / "recipes"


def block(name: str, index: int = 0) -> str:
    """Return a code block of a recipe."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (RECIPES / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    found: str = blocks[index]
    return found


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[str], list[str]]]:
    """Return what runs a block as a script in a folder of its own and returns the lines that it prints."""
    monkeypatch.chdir(tmp_path)

    def run_block(code: str) -> list[str]:
        Path("train.py").write_text(code, encoding="utf-8")
        runpy.run_path("train.py", run_name="__main__")
        return capsys.readouterr().out.splitlines()

    states = (AcceleratorState, GradientState, PartialState)  # one for the process
    for state in states:
        state._reset_state()
    yield run_block
    for state in states:
        state._reset_state()


def steps(state: str) -> int:
    """Return the steps of a printed ScaleState; fp16 may have found its scale by a few skips."""
    found = re.fullmatch(r"ScaleState\(scale=(\S+), applied=(\d+), skipped=(\d+)\)", state)
    assert found, state
    scale, applied, skipped = map(float, found.groups())
    assert scale == 2.0 ** (16 - skipped)
    assert skipped < 4
    return int(applied + skipped)


def test_accelerate_launches_and_the_train_step_steps(run: Callable[[str], list[str]]) -> None:
    printed = run(block("accelerate.md"))
    assert printed[0].startswith("bf16 because bf16 was requested by name")
    assert printed[1:] == [
        "loss scale 1.0 steps ScaleState(scale=1.0, applied=4, skipped=0)",
        "host reads 0",
        "problems ()",
    ]


def test_accelerates_own_loop_runs_with_this_scaler(run: Callable[[str], list[str]]) -> None:
    printed = run(block("accelerate.md", 1))
    assert printed[0].startswith("fp16 because fp16 was requested by name")
    assert steps(printed[1]) == 4
    assert printed[2:] == [
        "host reads 0",
        "problems ()",
        "skipped True",
    ]


def test_lightning_trains_with_the_plugin_and_logs_with_the_callback(run: Callable[[str], list[str]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's own
        printed = run(block("lightning.md"))
    assert printed[-2].startswith("fp16 because fp16 was requested by name")
    assert steps(printed[-1]) == 5 * 3
    header, *rows = Path("logs/metrics.csv").read_text(encoding="utf-8").splitlines()
    assert "amp/loss_scale" in header
    assert len(rows) == 3


def test_the_script_for_several_ranks_trains_alone_too(run: Callable[[str], list[str]]) -> None:
    (alone,) = run(block("distributed.md"))
    assert re.fullmatch(r"rank 0 of 1: loss \d\.\d{4}, 10 steps applied", alone)
    assert Path("last.pt").stat().st_size > 10_000
