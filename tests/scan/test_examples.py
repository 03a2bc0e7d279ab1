# ruff: noqa: E501  # each rule is one line
"""The examples of a project's rules: a rule that does not keep them is refused."""

from pathlib import Path

import pytest
from building import written

from gates.errors import UsageError
from gates.scan import checking
from gates.scan.loading import load_rules, own_rules

WORDS = "problem: p\nimpact: i\nfix: f\nseverity: high\n"
GOOD, BAD = "good: x = 1\n", 'bad: "print(3)  # <- here"\n'


def refused(root: Path, body: str) -> str:
    written(root, {"gates-rules/mine.yaml": f"id: mine\n{WORDS}{body}"})
    with pytest.raises(UsageError) as caught:
        own_rules(root / "gates-rules", root)
    with pytest.raises(UsageError, match=r"mine\.yaml"):
        load_rules(root / "gates-rules", root)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"pattern: prnt($X)\n{GOOD}{BAD}", "8:6: the bad example 1 is not found by the rule (line 1)"),
        (f"pattern: print($X)\ngood: [x = 1, print(2)]\n{BAD}", "7:15: the good example 2 is found at its line 1"),
        (f"pattern: print($X)\n{GOOD}bad: print(3)", "8:6: the bad example 1 marks no line; write '# <- here' at"),
        (f"pattern: print($X)\n{GOOD}bad: |\n  print(3)  # <- here\n  print(4)\n", "8:6: the bad example 1 is found at its line 2, which is not"),
        (f"pattern: print($X)\n{GOOD}bad: |\n  print(3)  # <- here\n  f(4)  # <- here\n", "8:6: the bad example 1 is not found at its line 2, which"),
        (f"pattern: print($X)\ngood: print(\n{BAD}", "7:7: the good example 1 is not decided: 1:6: "),
        ("events: {a: m.a(...), b: m.b(...)}\nnever: b a\n" + GOOD + 'bad: "m.a(); m.b()  # <- here"\n', "9:6: the bad example 1 is not found"),
        (f"pattern: print($X)\nwhere: {{$X: {{regex: (a+)+c}}}}\ngood: print({'a' * 40})\n{BAD}", "8:7: the good example 1 is not decided: it came to no end"),
    ],
)  # fmt: skip
def test_rule_that_does_not_keep_its_examples_is_refused(
    tmp_path: Path, body: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "LIMIT_S", 0.3)
    assert refused(tmp_path, body).startswith(f"gates-rules/mine.yaml:{message}")


def test_severity_that_there_is_not_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    written(tmp_path, {"gates-rules/mine.yaml": f"id: mine\n{WORDS.replace('high', 'huge')}pattern: f()\n{GOOD}{BAD}"})
    with pytest.raises(UsageError, match="expected 'critical', 'high', 'medium' or 'low', found 'huge'"):
        own_rules(tmp_path / "gates-rules", tmp_path)


def test_rule_that_keeps_its_examples_and_one_without_any_are_taken(tmp_path: Path) -> None:
    written(tmp_path, {
        "gates-rules/mine.yaml": f"id: mine\n{WORDS}pattern: print($X)\nwhere: {{$X: {{regex: '^[0-9]'}}}}\n{GOOD}{BAD}",
        "gates-rules/other.yaml": f"id: other\n{WORDS}pattern: f()\ngood: []\nbad: []\n",
    })  # fmt: skip
    own_rules(tmp_path / "gates-rules", tmp_path)
    assert {"mine", "other"} <= load_rules(tmp_path / "gates-rules", tmp_path).keys()


def test_orders_speak_of_functions_of_python_by_their_plain_names(tmp_path: Path) -> None:
    body = "events: {take: open(...), give: $F.close()}\nnever: take (not give)* take\n"
    good = 'good: |\n  f = open("a")\n  f.close()\n  g = open("a")\n'
    bad = 'bad: |\n  f = open("a")\n  g = open("a")  # <- here\n'
    written(tmp_path, {"gates-rules/mine.yaml": f"id: mine\n{WORDS}{body}{good}{bad}"})
    assert "mine" in load_rules(tmp_path / "gates-rules", tmp_path)
