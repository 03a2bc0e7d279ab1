"""Orders of events: what matches, what is refused with its column, and that nothing takes long."""

import re

import pytest
from building import growth
from hypothesis import given
from hypothesis import strategies as st

from gates.scan.order import Order, OrderError

EVENTS = ("a", "b", "clip")


MATCHES = [
    ("a clip", "a clip", (0, 2)),
    ("a (not b)* clip", "a b clip a clip", (3, 5)),
    ("a (not b)* clip", "a b clip", None),
    ("a any clip", "a b clip", (0, 3)),
    ("(a | b)+ clip", "b a clip", (1, 3)),
    ("a? clip", "a clip", (1, 2)),
    ("a (not b)* turn (not b)* a", "a turn a", (0, 3)),
    ("start (not clip)* end", "start a end", (0, 3)),
    ("a (not turn)* clip", "a loop turn b turn b done clip", (0, 8)),
    ("a (not turn)* clip", "loop turn a turn clip done", None),
    ("a (not (turn | loop))* clip", "a loop turn clip", None),
    ("a (not turn)* clip", "a loop turn a turn clip", (0, 6)),
]


@pytest.mark.parametrize(("text", "word", "span"), MATCHES)
def test_search_finds_the_first_match_to_end_and_of_those_the_shortest(
    text: str, word: str, span: tuple[int, int] | None
) -> None:
    assert Order.parse(text, EVENTS).search(word.split()) == span


BROKEN = [
    ("", "found the end", 1),
    ("a |", "found the end", 4),
    ("(a", "never closed", 1),
    ("a)", "found ')'", 2),
    ("* a", "found '*'", 1),
    ("a $", "found '$'", 3),
    ("a clup", "no event 'clup'; did you mean 'clip'?", 3),
    ("a (not (b c))", "expected '|' or ')'", 11),
    ("(a*)* b?", "matches where there is no event", 1),
    ("(" * 60 + "a" + ")" * 60, "nested more than", 51),
    ("a " * 2000, "characters", 1),
]


@pytest.mark.parametrize(("text", "message", "column"), BROKEN)
def test_broken_order_is_refused_with_its_column(text: str, message: str, column: int) -> None:
    with pytest.raises(OrderError) as caught:
        Order.parse(text, EVENTS)
    assert message in str(caught.value)
    assert caught.value.column == column


def test_search_takes_time_that_grows_with_the_word_alone() -> None:
    order = Order.parse("((((a | b)*)*)*)* clip clip", EVENTS)
    assert order.search([*["a", "b"] * 5000, "clip"]) is None
    assert growth(lambda size: order.search([*["a", "b"] * size, "clip"]), 5000) < 24


_LEAF = st.sampled_from([("a", "a"), ("b", "b"), ("clip", "c"), ("not a", "[^a]"), ("any", ".")])
_EXPRESSIONS = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("*+?")).map(lambda x: (f"({x[0][0]}){x[1]}", f"(?:{x[0][1]}){x[1]}")),
        st.tuples(inner, inner).map(lambda x: (f"{x[0][0]} {x[1][0]}", x[0][1] + x[1][1])),
        st.tuples(inner, inner).map(lambda x: (f"({x[0][0]} | {x[1][0]})", f"(?:{x[0][1]}|{x[1][1]})")),
    ),
    max_leaves=6,
)


@given(_EXPRESSIONS, st.text("abc", max_size=7))
def test_order_agrees_with_a_regular_expression(expression: tuple[str, str], word: str) -> None:
    text, regex = expression
    if re.fullmatch(regex, ""):
        return
    found = Order.parse(text, EVENTS).search([{"c": "clip"}.get(letter, letter) for letter in word])
    spans = [(i, j) for j in range(1, len(word) + 1) for i in range(j) if re.fullmatch(regex, word[i:j])]
    ends = [j for _, j in spans]
    assert found == (max((i, j) for i, j in spans if j == min(ends)) if spans else None)
