"""Text of the tested project is hostile: whatever it says, it stays text where it is rendered."""

import re
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gates.render.markdown import LIVE, block, cell, code, inline, markdown, prose, told
from gates.words import visible

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PIECES = ["|", "`", "``", "```", "\n", "<b>", "</td>", "<!--", "](x)", "[a](javascript:x)", "![i](x)", "**", "__", "_",
          "~~", "~~~", "\\", "\\|", "&lt;", "&#124;", "# ", "- ", "1. ", "> ", "---", "===", "\t", "\x00", "\x1b[2J",
          "\u202e", "\u2066", "\u200b", "\u2028", "\x85", "<script>alert(1)</script>", "http://x", "$x$", "a", " ", "é",
          "[x]: y", "[^1]", "@a", "#1", "\ud800", "\ufeff", ":---:", "+ ", "* ", "10) "]  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join)
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def inside(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in (token.children or [])]


def shown(tokens: list[Token]) -> str:
    """The text of a line in which nothing is markup, but what a page would link or call somebody by."""
    assert all(map(LIVE.fullmatch, [token.content for token in tokens if token.type not in {"text", "text_special"}]))
    return "".join(token.content for token in tokens)


@given(hostile)
@example("1. x")
@example("- - -")
@example("a ~~b~~ <c> [d](e) `f` **g** _h_ @a---@a")
def test_flowing_text_is_one_paragraph_of_itself(text: str) -> None:
    tokens = PARSER.parse(str(markdown(text)))
    plain = one_line(text)
    if plain:
        assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
        assert shown(inside(tokens)) == plain
    else:
        assert tokens == []


@given(hostile)
@example("run `gates run T1 --gate performance`, then `x`.")
@example("`1. a` \\`b` ``c`d`` `")
def test_advice_is_text_and_code_spans(text: str) -> None:
    tokens = inside(PARSER.parse(f"x {prose(text)} y"))
    assert {token.type for token in tokens} <= {"text", "text_special", "code_inline"}
    plain = "".join(token.content for token in tokens)
    assert re.sub("[ `]", "", plain) == re.sub("[ `]", "", f"x{one_line(text)}y")
    first = next(iter(PARSER.parse(str(prose(text)))), None)
    assert first is None or first.type == "paragraph_open"


def test_what_stands_between_backticks_of_an_advice_is_code() -> None:
    assert str(prose("Run `gates run T1`, *then* `a|b`.")) == "Run `gates run T1`, \\*then\\* \\`a\\|b\\`."


@given(hostile)
def test_text_in_a_line_stays_text(text: str) -> None:
    (line,) = [token for token in PARSER.parse(f"- **Problem**: x {inline(text)} y") if token.type == "inline"]
    assert " ".join(shown((line.children or [])[4:]).split()) == " ".join(f": x {one_line(text)} y".split())


@given(hostile, hostile)
def test_text_never_leaves_its_cell(first: str, second: str) -> None:
    tokens = PARSER.parse(f"| a | b |\n|---|---|\n| {inline(first)} | {cell(second)} |\n")
    types = [token.type for token in tokens]
    assert (types.count("tr_open"), types.count("td_open"), types[-1]) == (2, 2, "table_close")
    left, right = [token.children or [] for token in tokens if token.type == "inline"][2:]
    assert shown(left) == one_line(first)
    assert [token.type for token in right] == (["code_inline"] if one_line(second) else [])
    assert [token.content for token in right] == ([one_line(second)] if one_line(second) else [])


@given(hostile | st.from_regex(r"[\\w.<>*_\\[\\]()|`-]{1,12}", fullmatch=True), hostile)
@example("__init__", "x")
@example("a__b__", "_x_")
@example("->", ">x")
@example("a|b", "&amp;")
def test_a_name_in_a_cell_is_text_or_one_code_span(first: str, second: str) -> None:
    tokens = PARSER.parse(f"| a | b |\n|---|---|\n| {told(first)} | {told(second)} |\n")
    types = [token.type for token in tokens]
    assert (types.count("tr_open"), types.count("td_open"), types[-1]) == (2, 2, "table_close")
    for text, found in zip((first, second), [t.children or [] for t in tokens if t.type == "inline"][2:], strict=True):
        if [token.content for token in found] != [one_line(text)]:
            assert shown(found) == one_line(text)


def test_names_stay_readable_in_the_source_of_a_page() -> None:
    assert str(told("pkg.core:Connection.__init__")) == "`pkg.core:Connection.__init__`"
    assert str(told("pkg.core:double")) == "pkg.core:double"
    assert str(inline("1 -> 2, a & b, x_y, x__")) == "1 -> 2, a & b, x_y, x__"
    assert str(inline("__init__ <b> &lt;")) == "\\_\\_init__ &lt;b> &amp;lt;"
    assert str(markdown(">x")) == "\\>x"
    assert visible("a\u202eb\x1b[2J\u200b") == "a\\u202eb\\u001b[2J\\u200b"
    assert str(markdown(plain := "tests/test_core.py::test_double failed: 5 - 4 (at x_y.z); 40 %")) == plain


@given(hostile)
def test_code_span_cannot_be_closed(text: str) -> None:
    tokens = inside(PARSER.parse(f"x {code(text)} y"))
    spans = [token for token in tokens if token.type == "code_inline"]
    assert [token.content for token in spans] == ([one_line(text)] if one_line(text) else [])
    assert {token.type for token in tokens} <= {"text", "code_inline"}


@given(hostile)
def test_block_cannot_be_closed(text: str) -> None:
    tokens = PARSER.parse(f"{block(text)}\n\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == "".join(f"{visible(line)}\n" for line in text.splitlines())


@given(hostile)
def test_no_raw_angle_bracket_outside_of_code(text: str) -> None:
    for escaped in (markdown(text), inline(text)):
        assert "<" not in str(escaped)
        assert "\n" not in str(escaped)


@given(st.text() | hostile)
def test_nothing_hidden_is_left(text: str) -> None:
    for escaped in (markdown(text), inline(text), code(text), cell(text), visible(text)):
        assert not [c for c in str(escaped) if unicodedata.category(c) in HIDDEN]
    assert not [c for line in str(block(text)).split("\n") for c in line if unicodedata.category(c) in HIDDEN]


@given(st.integers(0, 3000))
def test_long_text_is_cut_and_says_so(n: int) -> None:
    cut = str(code("x" * n))
    assert len(cut) < 700
    assert ("characters more" in cut) == (n > 600)
