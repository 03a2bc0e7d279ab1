"""The recipes' code blocks run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

RECIPES = Path(__file__).resolve().parents[3] / "docs" / "recipes"


def block(name: str, index: int = 0) -> str:
    """Return a code block of a recipe."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (RECIPES / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    found: str = blocks[index]
    return found


def run(code: str, folder: Path, *launcher: str, warnings: str = "error") -> list[str]:
    """Run a block as a script and return the lines that it prints."""
    script = folder / "train.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", warnings, *launcher, str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def steps(state: str) -> int:
    """Return the steps of a printed ScaleState; fp16 may have found its scale by a few skips."""
    found = re.fullmatch(r"ScaleState\(scale=(\S+), applied=(\d+), skipped=(\d+)\)", state)
    assert found, state
    scale, applied, skipped = map(float, found.groups())
    assert scale == 2.0 ** (16 - skipped)
    assert skipped < 4
    return int(applied + skipped)


def test_accelerate_launches_and_the_train_step_steps(tmp_path: Path) -> None:
    printed = run(block("accelerate.md"), tmp_path)
    assert printed[0].startswith("bf16 because bf16 was requested by name")
    assert printed[1:] == [
        "loss scale 1.0 steps ScaleState(scale=1.0, applied=4, skipped=0)",
        "host reads 0",
        "problems ()",
    ]


def test_accelerates_own_loop_runs_with_this_scaler(tmp_path: Path) -> None:
    printed = run(block("accelerate.md", 1), tmp_path)
    assert printed[0].startswith("fp16 because fp16 was requested by name")
    assert steps(printed[1]) == 4
    assert printed[2:] == ["host reads 0", "problems ()", "skipped True"]


def test_lightning_trains_with_the_plugin_and_logs_with_the_callback(tmp_path: Path) -> None:
    printed = run(block("lightning.md"), tmp_path, warnings="ignore")  # Lightning's own
    assert printed[-2].startswith("fp16 because fp16 was requested by name")
    assert steps(printed[-1]) == 5 * 3
    header, *rows = (tmp_path / "logs" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    assert "amp/loss_scale" in header
    assert len(rows) == 3


def test_the_same_script_trains_on_two_ranks_and_alone(tmp_path: Path) -> None:
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    (two,) = run(block("distributed.md"), tmp_path, *torchrun)
    assert re.fullmatch(r"rank 0 of 2: loss \d\.\d{4}, 10 steps applied", two)
    assert (tmp_path / "last.pt").stat().st_size > 10_000
    (alone,) = run(block("distributed.md"), tmp_path)
    assert re.fullmatch(r"rank 0 of 1: loss \d\.\d{4}, 10 steps applied", alone)
