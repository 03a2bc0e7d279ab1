"""How pages, rules and messages are written: short sentences, and rules that fit a glance."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

import pytest
from building import ROOT

from gates.model import RuleText
from gates.pipeline import rule_texts
from gates.scan.loading import load_rules

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not {"decisions", "example.md"} & {*page.parts}),
]
MESSAGES = {"message", "remediation", "impact", "help", "title", "expected", "actual"}
MOST_WORDS = 25
MOST_OF_A_RULE = 40
MOST_LONG = 0.02


def prose(page: str) -> Iterator[str]:
    """The paragraphs, items and table cells of a page, without its code."""
    page = re.sub(r"^( *)```.*?^\1```", "", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"^    .*$", "", page, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>#|]|\d+\.) ?)", page):
        yield from re.split(r"(?<!\\)\|", block) if block.lstrip().startswith("|") else [block]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text: each ends with a full stop, a question mark or an exclamation mark."""
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "", text))
    yield from (part for part in re.split(r"(?<=[.!?])[)\"']*\s+", text.strip()) if part)


def words(text: str) -> list[str]:
    """The words of a text; signs between them are none."""
    return [word for word in text.split() if re.search(r"\w", word)]


def too_long(texts: Iterable[str]) -> tuple[list[str], int]:
    """The sentences of texts that are too long, and how many sentences there are."""
    every = [sentence for text in texts for sentence in sentences(text) if len(words(sentence)) > 2]
    return [" ".join(sentence.split()) for sentence in every if len(words(sentence)) > MOST_WORDS], len(every)


def written(value: ast.expr) -> str:
    """The text of a string, with one word for each value that is put into it."""
    parts = value.values if isinstance(value, ast.JoinedStr) else [value]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "value" for part in parts)


def messages() -> Iterator[str]:
    """The texts that findings and options are made with."""
    for file in (ROOT / "gates").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in MESSAGES:
                yield written(node.value)


def of_rules() -> Iterator[str]:
    """The texts of the gates' rules and of the code rules."""
    yield from (text for rule in rule_texts().values() for text in (rule.title, rule.meaning))
    yield from (text for rule in load_rules().values() for text in (rule.form.problem, rule.form.impact, rule.form.fix))


def of_pages() -> Iterator[str]:
    """The texts of README and documentation."""
    yield from (text for page in PAGES for text in prose(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("texts", [of_pages, of_rules, messages], ids=lambda texts: texts.__name__)
def test_few_sentences_are_long(texts: Callable[[], Iterator[str]]) -> None:
    long, total = too_long(texts())
    assert total > 50
    assert len(long) < MOST_LONG * total, long


@pytest.mark.parametrize("rule", rule_texts().values(), ids=lambda rule: rule.id)
def test_rule_fits_a_glance(rule: RuleText) -> None:
    assert len(words(f"{rule.title} {rule.meaning}")) <= MOST_OF_A_RULE


@pytest.mark.parametrize(
    ("text", "long"),
    [("word " * 25 + ".", 0), ("word " * 26 + ".", 1), ("word " * 13 + ": " + "word " * 13, 1), ("`a b c` " * 9, 0)],
)
def test_words_are_counted_to_the_end_of_a_sentence(text: str, long: int) -> None:
    assert len(too_long([text])[0]) == long
