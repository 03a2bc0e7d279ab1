"""`gates check`: the code rules over files and folders, without a task."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from building import written
from click.testing import CliRunner, Result

from gates.cli import cli
from gates.errors import UsageError

BAD = """import torch


def train(model, optimizer, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = loss_fn(model(inputs), targets)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
"""
GOOD = BAD.replace("        scaler.unscale_(optimizer)\n", "").replace(
    "        torch.nn", "        scaler.unscale_(optimizer)\n        torch.nn"
)
OWN = """id: no-print
tags: [house]
severity: low
problem: It prints.
impact: It is loud.
fix: Log.
pattern: print(...)
good: "x = 1"
bad: "print(1)  # <- here"
"""


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Write files, check them, and return what the command said."""

    def run(files: dict[str, str | bytes], *words: str) -> Result:
        monkeypatch.chdir(written(tmp_path / "project", {"pyproject.toml": "[tool.gates]\n", **files}))
        return CliRunner().invoke(cli, ["check", *words])

    return run


def test_a_broken_order_is_named_with_its_line_and_way(checked: Callable[..., Result]) -> None:
    result = checked({"train.py": BAD}, "--rule", "amp-clip-before-unscale")
    assert result.exit_code == 1
    assert "train.py:11: critical amp-clip-before-unscale: " in result.stdout
    assert "train.py:10 -> " in result.stdout


def test_sound_code_passes_every_rule(checked: Callable[..., Result]) -> None:
    result = checked({"train.py": GOOD}, "--rule", "order")
    assert (result.exit_code, "0 findings" in result.stdout) == (0, True)


def test_json_has_each_finding(checked: Callable[..., Result]) -> None:
    result = checked({"train.py": BAD}, "--rule", "amp-clip-before-unscale", "--format", "json")
    (found,) = json.loads(result.stdout)["findings"]
    assert (found["rule"], found["path"], found["line"]) == ("amp-clip-before-unscale", "train.py", 11)


def test_rules_of_the_project_and_low_ones_do_not_stop(checked: Callable[..., Result]) -> None:
    result = checked({"gates-rules/no-print.yaml": OWN, "a.py": "print(1)\n"}, "--rule", "house")
    assert (result.exit_code, "a.py:1: low no-print: It prints." in result.stdout) == (0, True)


UNREADABLE = {
    "no Python": (b"def f(:\n", "bad.py:1:7: invalid syntax"),
    "another form of text": (b"id: T1\ntitle: Round trips\n", "bad.py:2:14: invalid syntax"),
    "bytes": (b"X = 1\nname = 'M\xfcller'\n", "bad.py:2:10: it is not UTF-8"),
    "bytes of no encoding": (b"# coding: no-such-thing\n", "bad.py:1: unknown encoding: no-such-thing"),
    "too much of it": (b"x = 1\n" * 400_000, "bad.py:1: 2400000 bytes, more than 2097152: not read"),
}


@pytest.mark.parametrize("beside", [{}, {"ok.py": "X = 1\n"}, {"ok.py": GOOD}], ids=["alone", "plain", "training"])
@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_file_is_not_clean_either(checked: Callable[..., Result], case: str, beside: dict[str, str]) -> None:
    raw, said = UNREADABLE[case]
    result = checked({"bad.py": raw, **beside})
    assert (result.exit_code, result.stdout.splitlines()[0]) == (3, f"{said} (not checked)")
    assert ", 0 findings, 0 of them critical or high, 1 file not checked\n" in result.stdout


def test_folder_without_python_files_is_refused(checked: Callable[..., Result]) -> None:
    assert "no Python file" in str(checked({"docs/a.md": "x"}, "docs").exception)


FORK = "".join(f"    if x[{i}]:\n        con.execute('a')\n    else:\n        con.begin()\n" for i in range(25))
LONG = f"""id: long
severity: critical
problem: It is long.
impact: It is slow.
fix: Split it.
events: {{a: $C.execute(...), b: $C.begin(), c: $C.commit()}}
never: any* a {"(a|b|c) " * 60}
good: []
bad: []
"""


def test_function_that_was_not_decided_is_named_and_stops_nothing(checked: Callable[..., Result]) -> None:
    found = checked({"gates-rules/long.yaml": LONG, "a.py": f"def f(con, x):\n{FORK}"}, "--rule", "long")
    assert (found.exit_code, "a.py:1: not decided: " in found.stdout) == (0, True)
    assert ", 1 of 1 functions not decided\n" in found.stdout


def test_sarif_goes_out_with_the_way_to_each_finding_and_comes_in_beside_them(checked: Callable[..., Result]) -> None:
    out = checked({"train.py": BAD}, "--rule", "amp-clip-before-unscale", "--format", "sarif")
    (run,) = json.loads(out.stdout)["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"], result["properties"]) == (
        "amp-clip-before-unscale", "error", {"certain": True},
    )  # fmt: skip
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("train.py", 11)
    flow = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [each["location"]["physicalLocation"]["region"]["startLine"] for each in flow] == [10, 11]
    both = checked({"a.py": "x = 1\n", "others.sarif": out.stdout}, "--sarif", "others.sarif")
    assert both.stdout.startswith("train.py:11: error amp-clip-before-unscale (gates): ")


def test_file_that_is_no_sarif_is_refused_in_one_line(checked: Callable[..., Result]) -> None:
    refused = checked({"a.py": "x = 1\n", "bad.sarif": "[]"}, "--sarif", "bad.sarif")
    assert isinstance(refused.exception, UsageError)
    assert "bad.sarif: expected a SARIF 2.1.0 file with 'runs'" in str(refused.exception)
