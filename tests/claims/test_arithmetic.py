"""Sums, quotients and percentages are done again; what is no equation is left alone."""

from pathlib import Path

import pytest
from reporting import audited, not_understood

from gates.claims import Standing

SUMS = {
    "Score: 40 + 30 + 20 = 90/100.": True,
    "Score: 40 + 30 + 20 = 95/100.": False,
    "It took 3 s - 1 s = 2 s": True,
    "(12 + 3 * 4 = 24)": True,
    "12 + 3 * 4 = 60": False,
    "Speedup: 3.0 s / 2.0 s = 1.5x": True,
    "Speedup: 3.0 s / 2.0 s = 1.72x": False,
    "16/19 = 84%": True,
    "16/19 = 89%": False,
    "1/3 = 0.33": True,
    "50% / 2 = 25%": True,
    "6/8 (75%)": True,
    "6/8 (76%)": False,
    "2/3 (66%)": True,
    "8/2 = 5": False,
    "6 of 8 criteria (85%)": False,
    "1.5/8 (19%)": True,
    "1.5/8 (18%)": True,
    "2/3 (66.6%)": True,
    "66.67% (2/3)": True,
    "about 70% (2 of 3 rules)": False,
    "- Style: -10\n- Tests: -5\n\n**Score: 85/100**": True,
    "- Style: -10\n- Tests: -5\n\n**Score: 90/100**": False,
    "| A | N |\n|---|---|\n| a | 1 |\n| b | 2 |\n| Total | 3 |\n": True,
    "| A | N |\n|---|---|\n| a | 1 |\n| b | 2 |\n| Total | 4 |\n": False,
}
NONE = [
    "lines 5-9 = 5 lines of code",
    "x * 3 + 4 = 10",
    "40 points + 3 s = 9",
    "900 ms + 1.1 s = 2 s",
    "2 / 0 = 1",
    "1,500 + 500 = 2,000",
    "1,500 + 1 = 1501",
    "1/2 of the 3/4",
    "6/8 of the rules (60% of the lines)",
    "Ratio 16:9 at 10:30, version 1.2.3",
    "## Score Breakdown\n- Style: 80/100\n- Speed: 90/100\n\n**Overall Score: 85/100**",
    "## Score Breakdown\n- Style (40%): 8/10\n- Speed (60%): 9/10\n\n**Final Score: 86/100**",
    "## Score Breakdown\n- Style: 10/20\n- Tests: 10/20\n\n**Score: 20/100**",
    "## Metrics\n- Tests: 16/19\n- Criteria: 6/8\n\n**Score: 85/100**",
    "| Name | Share |\n|---|---|\n| a | 10% |\n| b | 20% |\n| Total | 25% |\n",
    "| Check | Weight | Score |\n|---|---|---|\n| a | 1 | 5 |\n| b | 2 | 6 |\n| Total | 3 | 17 |\n",
    "Rules (3)\n\n1. a\n2. b\n",
]


@pytest.mark.parametrize(("page", "good"), SUMS.items(), ids=range(len(SUMS)))
def test_what_a_page_computes_is_computed_again(page: str, good: bool, tmp_path: Path) -> None:
    assert [one.standing for one in audited(page, tmp_path)] == [Standing.CONFIRMED if good else Standing.CONTRADICTED]


@pytest.mark.parametrize("page", NONE, ids=range(len(NONE)))
def test_what_is_no_equation_is_not_understood(page: str, tmp_path: Path) -> None:
    assert audited(page, tmp_path) == []
    assert not_understood(page, tmp_path)
