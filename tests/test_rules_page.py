"""The page of all rules is what the rules say; `pytest --update-golden` writes it anew."""

from collections.abc import Iterator

import pytest
from building import ROOT

from gates.pipeline import rule_texts
from gates.scan.loading import load_rules

PAGE = ROOT / "docs/rules.md"
GATES = {"EX": "Execution", "BL": "Business logic", "PF": "Performance", "GT": "The run as a whole"}


def lines() -> Iterator[str]:
    """The lines of the page."""
    yield "# Rules\n\nEvery finding names its rule. `gates explain RULE` says the same as this page.\n"
    for letters, title in GATES.items():
        yield f"\n## {title}\n\n| Rule | Holds when | Means |\n|---|---|---|\n"
        for rule in rule_texts().values():
            if rule.id.startswith(letters):
                yield f"| `{rule.id}` | {rule.title} | {rule.meaning} |\n"
    yield "\n## Code rules\n\n[Code rules](code-rules.md) are hints with a line. `gates explain RULE` shows examples.\n"
    yield "\n| Rule | Severity | Finds | Fix |\n|---|---|---|---|\n"
    for found in load_rules().values():
        yield f"| `{found.id}` | {found.form.severity} | {found.form.problem} | {found.form.fix} |\n"


def test_page_of_all_rules_is_up_to_date(request: pytest.FixtureRequest) -> None:
    text = "".join(lines())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
    assert text.count("\n| `") == len(rule_texts()) + len(load_rules())
