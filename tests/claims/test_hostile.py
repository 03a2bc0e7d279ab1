"""Reports are hostile text: the time for much of anything grows with it alone, and nothing breaks the reader."""

import random
from pathlib import Path

import pytest
from building import growth
from reporting import audited

from gates.claims import find_quote

SIZE = 50_000
LIMIT = 24  # between 8 and 64
PATTERNS = ["1", "`a`(", "a/", "1/2 (", "speedup 1x ", "lines 1-2, ", "Test::test_", "1 passed ", "a.py:1,", "x.py ",
            "- a: 1/2\n", "1 + 1 ", "## lines 5 `x.py`\n", "Things (5)\n- a\n", "`x.py:5`:\n```\ncode\n```\n",
            "| a | 1 |\n"]  # fmt: skip
PARTS = ["`", "a.py:3", "\n", " ", "1/2", "(50%)", "|", "passed", "16 ", "#", "- ", "**", "```", "Score: ", "x", "\x00"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_much_of_one_thing_is_read_in_time(pattern: str, tmp_path: Path) -> None:
    line = pattern * (100 // len(pattern)) + "\n" if "\n" not in pattern else pattern
    assert growth(lambda size: audited(line * (size // len(line)), tmp_path), SIZE) < LIMIT


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_read_without_an_error(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    page = "".join(chance.choice(PARTS) for _ in range(3000))
    for claim in audited(page, tmp_path):
        assert page.splitlines()[claim.at - 1].strip().startswith(claim.text[:20])


def test_quote_that_nearly_fits_everywhere_is_looked_for_in_time() -> None:
    quote, repeated = ("aa", "...", "aab", "...", "aa"), ("xx = 1",) * 50 + ("y = 2",)
    assert growth(lambda size: find_quote(["a" * 50] * size, quote), 40_000) < LIMIT
    assert growth(lambda size: find_quote([*["xx = 1"] * size, "y = 2"], repeated), 100_000) < LIMIT


def test_there_is_an_end_to_claims(tmp_path: Path) -> None:
    assert len(audited("`a.py:3`\n" * 6000, tmp_path)) == 5000
