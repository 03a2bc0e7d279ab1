# ruff: noqa: E501  # each rule is one line
"""Rules that come to no end: said in one line, never clean, and the others go on."""

from pathlib import Path

import pytest
from building import written
from scanning import a_rule

from gates.scan import endless, expressions
from gates.scan.checking import Checked, check
from gates.scan.endless import Endless
from gates.scan.expressions import Doubted, is_found

NUMBERS = ", ".join(["1"] * 200)
DEEP = f"{'g(' * 40}1{')' * 40}"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "LIMIT_S", 0.2)
    monkeypatch.setattr(endless, "BASE", 30_000)
    monkeypatch.setattr(expressions, "_endless", {})


def nested(depth: int) -> str:
    return "{pattern: g(...), has: " * depth + "zip($X)" + "}" * depth


def checked(root: Path, *bodies: str) -> Checked:
    rules = [a_rule(root, body, name) for body, name in zip(bodies, ("mine", "other"), strict=False)]
    return check(rules, [root / "m.py"], root)


@pytest.mark.parametrize(
    ("body", "place", "code"),
    [
        ("pattern: p($X)\nwhere: {$X: {regex: (a+)+c}}", "9:21", f"p({'a' * 40})"),
        ("pattern: p($X)\nwhere: {$X: {not: {regex: (a+)+c}}}", "9:27", f"p({'a' * 40})"),
        ("events: {a: {any: m.go(...), when: (a+)+c}}\nnever: a a", "8:36", f"def f():\n    if {'a' * 40}:\n        m.go()\n        m.go()"),
        ("events: {a: m.go($X)}\nwhere: {$X: {regex: (a+)+c}}\nnever: a a", "9:21", f"m.go({'a' * 40})"),
        ("pattern: p($$$, 1, $$$, 1, $$$, 1, $$$, 1, $$$, 2)", "8:10", f"p({NUMBERS})"),
        ("pattern: '[$$$, $X, $$$, $X, $$$, $Y, $$$, $Y, $$$, 2]'", "8:10", f"p([{NUMBERS}])"),
        ("pattern: |\n  p()\n  ...\n  q()\n  ...\n  q()\n  ...\n  q()\n  ...\n  zip()", "8:10", "p()\n" + "q()\n" * 200 + "x = zip()"),
        (f"pattern: p(...)\nhas: {nested(12)}", "8:10", f"p({DEEP}, zip())"),
    ],
)  # fmt: skip
def test_endless_rule_is_told_with_its_place_and_never_clean(tmp_path: Path, body: str, place: str, code: str) -> None:
    written(tmp_path, {"m.py": f"import m\n{code}\nprint(1)\n"})
    found = checked(tmp_path, body, "pattern: print(...)")
    assert found.problems.keys() == {"mine"}
    assert found.problems["mine"].startswith(f"mine.yaml:{place}: ")
    assert " came to no end in m.py: stopped after " in found.problems["mine"]
    assert "\n" not in found.problems["mine"]
    assert (found.sites["mine"], len(found.sites["other"])) == ([], 1)


def test_searches_are_those_of_python_and_go_on_after_an_endless_one_or_a_killed_process() -> None:
    assert is_found(Doubted("a.c"), "xabcx", None)
    assert not is_found(Doubted("^b"), "ab\nb", None)
    assert is_found(Doubted(r"^\w$"), "\ud800e"[1:], None)
    with pytest.raises(Endless):
        is_found(Doubted("(a+)+c"), "a" * 40, None)
    assert is_found(Doubted("a.d"), "a\u20acd", None)
    expressions._running[0]._child.kill()
    assert is_found(Doubted("a.e"), "a\ud800e", None)
