"""Levels at several looks: the error of all looks together, computed in another way."""

import pytest

from gates.measuring.interval import Design, alpha_of, looks_until, rank

LOOKS = looks_until(256)
FIRST = 0.8  # of the error is that of the first attempt


def rank_at(n: int, most: int, alpha: float) -> int:
    return rank(n, Design(most).level(n, alpha / FIRST))[0]


def test_ranks_of_the_usual_looks_are_written_down() -> None:
    assert [rank_at(n, 256, 0.05) for n in LOOKS] == [3, 9, 22, 49, 107]
    assert [rank_at(n, 256, 0.01) for n in LOOKS] == [2, 7, 20, 47, 103]


@pytest.mark.parametrize(
    ("alpha", "most"),
    [(0.05, 64), (0.01, 64), (0.2, 64), (0.05, 40), (0.05, 128), (0.05, 256), (0.01, 256), (0.05, 384), (0.05, 1536)],
)
def test_all_looks_together_are_wrong_no_more_often_than_stated(alpha: float, most: int) -> None:
    assert 0.3 * alpha / 2 < below_somewhere({n: rank_at(n, most, alpha) for n in looks_until(most)}) <= alpha / 2


def below_somewhere(ranks: dict[int, int]) -> float:
    """The exact chance that fewer than k of n signs are positive at some look, path by path."""
    alive, wrong = {0: 1.0}, 0.0
    for n in range(1, max(ranks) + 1):
        stepped: dict[int, float] = {}
        for count, chance in alive.items():
            for up in (0, 1):
                stepped[count + up] = stepped.get(count + up, 0.0) + chance / 2
        wrong += sum(chance for count, chance in stepped.items() if count < ranks.get(n, 0))
        alive = {count: chance for count, chance in stepped.items() if count >= ranks.get(n, 0)}
    return wrong


def test_an_end_before_the_first_look_is_the_only_one() -> None:
    assert [rank_at(n, 256, 0.05) for n in (6, 15, 16)] == [1, 4, 3]


def test_attempts_share_the_error() -> None:
    shares = [alpha_of(attempt, 0.05) for attempt in range(1, 2000)]
    assert shares == sorted(shares, reverse=True)
    assert 0.049 < sum(shares) <= 0.05


@pytest.mark.parametrize(
    ("most", "looks"),
    [(6, (6,)), (31, (31,)), (40, (20, 40)), (64, (16, 32, 64)), (256, LOOKS), (1536, (96, 192, 384, 768, 1536))],
)
def test_looks_end_with_the_last_pair(most: int, looks: tuple[int, ...]) -> None:
    assert looks_until(most) == looks
