"""What is read from a page, and above all what is not: a statement that is not understood is no claim."""

import pytest

from gates.claims.claim import Claim
from gates.claims.reading import MAX_CLAIMS, read


def said(page: str) -> list[dict[str, object]]:
    """What the claims of a page say, without what is left at its default."""
    return [{**claim.said.model_dump(exclude_defaults=True), "kind": claim.said.kind} for claim in read(page, "r.md")]


def claims(page: str) -> list[Claim]:
    return list(read(page, "r.md"))


COUNTS = {
    "16 passed, 3 skipped, 2 warnings in 2.01s": ({"passed": 16, "skipped": 3}, None),
    "**Results**: 16 passed, 3 skipped": ({"passed": 16, "skipped": 3}, None),
    "16/19 tests passing (3 skipped due to no CUDA)": ({"passed": 16, "skipped": 3}, 19),
    "16 of 19 tests passed": ({"passed": 16}, 19),
    "2 failed, 1 error and 3 xfailed in the tests": ({"failed": 2, "error": 1, "xfailed": 3}, None),
    "- **Passed**: 16": ({"passed": 16}, None),
    "- Passed: 16/19": ({"passed": 16}, 19),
    "| Failed | 0 |": ({"failed": 0}, None),
    "- Total tests: 19": ({"total": 19}, None),
}


@pytest.mark.parametrize(("line", "expected"), COUNTS.items(), ids=COUNTS)
def test_counts_of_tests(line: str, expected: tuple[dict[str, int], int | None]) -> None:
    counts, total = expected
    whole = {} if total is None else {"total": total}
    assert said(f"# Report\n\n## Test Results\n\n{line}\n") == [{"kind": "tests", "counts": counts, **whole}]


def test_counts_of_an_execution_report_need_no_word_about_tests() -> None:
    page = "# Execution Verification Report\n\n## Results\n\n"
    assert [one["counts"] for one in said(f"{page}16 passed, 3 skipped\n")] == [{"passed": 16, "skipped": 3}]
    assert said(f"{page}9 passed\n") == said("# Checks\n\n16 passed, 3 skipped\n") == []


def test_counts_belong_to_the_one_file_that_their_section_names() -> None:
    page = "# Report\n## Test Suite: tests/test_a.py\n**Results**: 3 passed\n## Tests\n4 passed\n"
    scopes = [claim.said.scope for claim in claims(page) if claim.said.kind == "tests"]
    assert scopes == ["tests/test_a.py", ""]


NUMBERS = {
    "Speedup: **1.72x**": ("ratio", 1.72),
    "an overall speedup of 1.72x": ("ratio", 1.72),
    "It is 1.72x faster.": ("ratio", 1.72),
    "Memory reduction: 42%": ("reduction", 0.42),
    "42 % less memory": ("reduction", 0.42),
    "Peak memory usage reduced by 42%": ("reduction", 0.42),
    "Accuracy difference: 0.004": ("difference", 0.004),
    "Accuracy drop of 0.4%": ("difference", 0.004),
    "Step time: 12.5 ms": ("value", 12.5),
}


@pytest.mark.parametrize(("line", "expected"), NUMBERS.items(), ids=NUMBERS)
def test_numbers_that_only_a_measurement_gives(line: str, expected: tuple[str, float]) -> None:
    (found,) = (claim.said for claim in claims(line))
    assert found.kind == "number"
    assert found.what == expected[0]
    assert found.low < expected[1] < found.high
    assert not found.guessed


def test_projection_is_marked_and_so_is_a_part() -> None:
    (whole, part) = (claim.said for claim in claims("Projected speedup: 1.72x\n\n~22% speedup from prefetching\n"))
    assert whole.kind == part.kind == "number"
    assert (whole.guessed, whole.part) == (True, False)
    assert (part.guessed, part.part) == (False, True)
    assert part.low < 1.2 < 1.22 < part.high


PLACES = {
    "`a/b.py:30`": ("a/b.py", ((30, 30),), {}),
    "a/b.py:30-35, 40": ("a/b.py", ((30, 35), (40, 40)), {}),
    "**File**: `b.py`\n**Lines**: 3-4": ("b.py", ((3, 4),), {}),
    "`run_all()` (b.py:3-9) does it": ("b.py", ((3, 9),), {"symbol": "run_all"}),
    "run_all() handles this (b.py:3-9)": ("b.py", ((3, 9),), {"symbol": "run_all"}),
    "b.py:3-9 (run_all): called": ("b.py", ((3, 9),), {"hint": "run_all"}),
    "`x = run(1)` (b.py:3)": ("b.py", ((3, 3),), {"quote": ("x = run(1)",)}),
    "`b.py:3` - `x = run(1)`": ("b.py", ((3, 3),), {"quote": ("x = run(1)",)}),
    "#### 1. b.py\nIt is not lost (line 3: `x = run(1)`)": ("b.py", ((3, 3),), {"quote": ("x = run(1)",)}),
    "`b.py:3` uses `x = run(1)` instead": ("b.py", ((3, 3),), {}),
    "There is no `x = run(1)` (b.py:3)": ("b.py", ((3, 3),), {}),
    "**Now** (b.py:3-9):\n```python\nx = run(1)\n```": ("b.py", ((3, 9),), {"quote": ("x = run(1)",)}),
    "**Fix** (b.py:3-9):\n```python\nx = run(1)\n```": ("b.py", ((3, 9),), {}),
    "`b.py:3` - `python -m run`": ("b.py", ((3, 3),), {}),
}


@pytest.mark.parametrize(("page", "expected"), PLACES.items(), ids=range(len(PLACES)))
def test_references_to_lines(page: str, expected: tuple[str, tuple[tuple[int, int], ...], dict[str, object]]) -> None:
    (found,) = (claim.said for claim in claims(page))
    assert found.kind == "place"
    said_there = {key: getattr(found, key) for key in ("quote", "symbol", "hint") if getattr(found, key)}
    assert (found.path, found.lines, said_there) == expected


NOISE = [
    "The target is a speedup of 1.5-2x.",
    "Required: speedup of 1.5x.",
    "## Target Requirements\n- Speedup: 1.5x",
    "### 1. Response Time: 1.5-2x speedup target",
    "- Speedup: >= 1.5x",
    "- Memory reduction maintained at 40%+",
    "Meets all performance targets (1.5x speedup, 40% memory)",
    "Verify that all tests pass.",
    "Once 16 passed, we merge.",
    'False "tests pass" claim',
    "The tests should pass: expected 16 passed",
    "3 checks passed, 2 failed, 1 unknown.",
    "# Tests\n7 failed, 0 unknown, 5 passed, 1 not applicable.",
    "# Tests\n1 of the 2 passed tests of AC1 executed its code.",
    "## Before\n## Previous tests\n12 passed",
    "See https://example.org/a/b.py:30 and /x:3.",
    "Ratio 16:9 at 10:30, version 1.2.3, 2025-11-16T16:34:05Z",
    "Node.js lines 5-6",
    "(line 115) of nothing that was named",
    "about 20 lines 3 times",
    "1/2 of the 3/4",
    "```\nall tests passed, 3 passed\nfoo.py:3\nSpeedup: 9x\n```",
    "Release notes (2024)\n\n- one\n",
    "Results (3)\n\nprose, no list\n",
    "Changes (3)\n\n- one\n- ... and 2 more\n",
    "| Name | Share |\n|---|---|\n| a | 10% |\n| b | 20% |\n| Total | 25% |",
    "| Name | Mean |\n|---|---|\n| a | 1 |\n| b | 2 |\n| Total | 9 |",
    "| Check | Weight | Score |\n|---|---|---|\n| a | 1 | 5 |\n| b | 2 | 6 |\n| Total | 3 | 17 |",
    "**Decision**: PASS (after the fix)",
    "Recommendation: PASS if the tests are mended",
    "Coverage: ≥ 80%",
]


@pytest.mark.parametrize("page", NOISE)
def test_what_is_no_claim_is_left_alone(page: str) -> None:
    assert said(page) == []


def test_every_claim_carries_its_line_and_the_very_text() -> None:
    page = "# Tests\n\n* **Results**: `3 passed`   \n"
    (claim,) = claims(page)
    assert (str(claim.at), claim.text) == ("r.md:3", "* **Results**: `3 passed`")


def test_what_others_claimed_is_not_claimed_again() -> None:
    page = "# Claims Verification\n### 1. [HIGH] CL001 - `a.md:3`\n- 9 passed in the tests\n"
    assert said(f"{page}## Claims of a.md\n3 tests passed\n") == []
    assert said("# Audit of a.md\n\n## Contradicted\n\n3 tests passed\n") == []


def test_there_is_an_end_to_claims() -> None:
    assert len(claims("`a.py:3`\n" * (MAX_CLAIMS + 100))) == MAX_CLAIMS
