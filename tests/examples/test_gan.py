"""The recipe of a GAN trains."""

import json
from pathlib import Path

import pytest

from examples import gan


def test_the_generator_comes_near_the_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gan.main(["--precision", "fp16", "--steps", "120", "--log", str(tmp_path)])
    mean = json.loads(capsys.readouterr().out.split("made: mean ")[1].split(", standard")[0])
    assert mean == pytest.approx(gan.CENTRE.tolist(), abs=0.4)
    rows = [json.loads(row) for row in (tmp_path / "discriminator.jsonl").read_text(encoding="utf-8").splitlines()]
    assert max(row["accuracy"] for row in rows) > 0.7 > sum(row["accuracy"] for row in rows[-50:]) / 50
