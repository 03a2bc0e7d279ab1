"""Reports are hostile text: a megabyte of anything is read in seconds, and nothing in it breaks the reader."""

import random
import time

import pytest

from gates.claims.reading import read
from gates.claims.sources import find_quote

SIZE = 1_000_000
LIMIT_S = 12.0  # of CPU time; what is quadratic takes minutes
PATTERNS = ["1", "`a`(", "a/", "1/2 (", "speedup 1x ", "lines 1-2, ", "Test::test_", "1 passed ", "a.py:1,", "\\", "x.py ",
            "- a: 1/2\n", "## lines 5 `x.py`\n", "Things (5)\n- a\n", "`x.py:5`:\n```\ncode\n```\n", "| a | 1 |\n"]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_megabyte_of_one_thing_is_read_in_time(pattern: str) -> None:
    line = pattern * (SIZE // 1000 // len(pattern)) + "\n" if "\n" not in pattern else pattern
    page = line * (SIZE // len(line))
    before = time.process_time()
    read(page, "r.md")
    assert time.process_time() - before < LIMIT_S


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_read_without_an_error(seed: int) -> None:
    chance = random.Random(seed)
    parts = [
        "`",
        "a.py:3",
        "\n",
        " ",
        "1/2",
        "(50%)",
        "|",
        "passed",
        "16 ",
        "#",
        "- ",
        "**",
        "```",
        "Score: ",
        "x",
        "\x00",
        "\u202e",
        "Total",
    ]
    page = "".join(chance.choice(parts) for _ in range(3000))
    for claim in read(page, "r.md"):
        assert claim.at.line is not None
        assert claim.text


def test_quote_that_nearly_fits_everywhere_is_looked_for_in_time() -> None:
    before = time.process_time()
    find_quote(["a" * 50] * 40_000, ("aa", "aab", "aa"))
    find_quote(["xx = 1"] * 100_000, ("xx = 1",) * 50 + ("y = 2",))
    assert time.process_time() - before < LIMIT_S
