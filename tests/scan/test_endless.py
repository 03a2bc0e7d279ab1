# ruff: noqa: E501  # each rule is one line
"""Rules that come to no end: said in one line, never clean, and the others go on."""

from pathlib import Path

import pytest
from building import written
from scanning import a_rule

from gates.scan import checking
from gates.scan.checking import Checked, check

NUMBERS = ", ".join(["1"] * 200)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "LIMIT_S", 0.3)


def checked(root: Path, *bodies: str) -> Checked:
    rules = [a_rule(root, body, name) for body, name in zip(bodies, ("mine", "other"), strict=False)]
    return check(rules, sorted(root.rglob("*.py")), root)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("pattern: p($X)\nwhere: {$X: {regex: (a+)+c}}", f"p({'a' * 40})"),
        ("events: {a: {any: m.go(...), when: (a+)+c}}\nnever: a a", f"def f():\n    if {'a' * 40}:\n        m.go()\n        m.go()"),
        ("pattern: p($$$, 1, $$$, 1, $$$, 1, $$$, 1, $$$, 2)", f"p({NUMBERS})"),
    ],
)  # fmt: skip
def test_endless_rule_is_told_with_its_file_and_never_clean(tmp_path: Path, body: str, code: str) -> None:
    written(tmp_path, {"pkg/a.py": f"import m\n{code}\nprint(1)\n", "n.py": f"import m\n{code}\nprint(1)\n"})
    found = checked(tmp_path, body, "pattern: print(...)")
    told = "mine.yaml: it came to no end: stopped after 0.3 s of processor time in {}"
    assert found.problems in [{"mine": told.format(folder)} for folder in (".", "pkg")]
    assert (found.sites["mine"], len(found.sites["other"])) == ([], 2)
