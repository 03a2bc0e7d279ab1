"""Count the lines of each way, and see that each goes on from a stop: `python -m benchmarks.char_level`."""

import ast
import importlib
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from benchmarks.char_level import task

HERE = Path(__file__).parent
PAGE = HERE.parent / "results" / "char_level.md"
HEAD = """# One training, five ways

Written by `python -m benchmarks.char_level`. A small GPT over the letters of a text, bf16 on a CPU, with accumulation
over two batches, clipping, averages, a warm-up and a cosine, TensorBoard, validation on the averages, the best
checkpoint, and going on from the last one. Counted are lines as the formatter leaves them, and statements, both without
imports, docstrings and blank lines. The scripts lie in `benchmarks/char_level`; `task.py` (data, model, loss) belongs
to all of them and is not counted.

| way | lines | statements | goes on to the same bits |
|---|---|---|---|
"""
FOOT = """
The first two leave out a step whose gradients are not finite, and log gradient norm, loss scale and rates. The loops of
torch and Fabric leave it out by a host read in each step, that of Accelerate takes it. Accelerate's states are pickles.
"""
WAYS = ("by_fit", "by_step", "by_torch", "by_fabric", "by_accelerate")


def size(path: Path) -> tuple[int, int]:
    """Return a script's lines and statements, without imports, docstrings and blank lines."""
    tree, left = ast.parse(path.read_text(encoding="utf-8")), set[int]()
    for node in ast.walk(tree):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or docstring:
            left.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if line.strip()]
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno not in left]
    return len([number for number in lines if number not in left]), len(statements)


def weights(folder: Path) -> dict[str, Any]:
    """Return the model's weights at the end of a training."""
    if (folder / "last").is_dir():
        return dict(load_file(folder / "last" / "model.safetensors"))
    last = folder / "last.pt"
    state = torch.load(last if last.exists() else folder / f"step-{task.STEPS:08}.pt", weights_only=True)
    found: dict[str, Any] = state.get("step", state)["model"]
    return found


def goes_on(way: str) -> bool:
    """Say whether a training that stops and goes on ends with the bits of one that does not."""
    train = importlib.import_module(f"benchmarks.char_level.{way}").train
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
        train(Path(whole), task.STEPS)
        train(Path(broken), task.EVERY)
        train(Path(broken), task.STEPS)
        one, other = weights(Path(whole)), weights(Path(broken))
    return all(torch.equal(one[name], other[name]) for name in one)


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    rows = ""
    for way in WAYS:
        lines, statements = size(HERE / f"{way}.py")
        rows += f"| `{way}.py` | {lines} | {statements} | {'yes' if goes_on(way) else '**no**'} |\n"
    PAGE.write_text(HEAD + rows + FOOT, encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
