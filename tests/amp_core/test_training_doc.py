"""The examples of the training core's page run as they stand."""

import re
from collections.abc import Callable
from pathlib import Path


def test_the_loop_trains_saves_and_resumes(run: Callable[..., list[str]]) -> None:
    first = run("training.md", example="loop")
    assert re.match(r"60 ScaleState\(scale=\S+, applied=\d+, skipped=\d\) \(\(20, ", first[0])
    assert len(Path("steps.jsonl").read_text(encoding="utf-8").splitlines()) == 60 + 3  # steps, and validations
    assert run("training.md", example="loop") == first  # nothing was left to do


def test_the_probes_find_nothing_wrong_with_the_step(run: Callable[..., list[str]]) -> None:
    printed = run("training.md", example="audit")
    assert (printed[0], printed[-1]) == ("0", "()")
