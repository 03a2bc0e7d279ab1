"""The attempts ledger: what was tried stays known, and what was changed is noticed."""

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
from building import PATIENCE_S
from taking import an_attempt

from gates.measuring.taken import Attempt, Ledger, pooled


def ledger(tmp_path: Path, *pairs: int) -> Ledger:
    (tmp_path / "p").mkdir(exist_ok=True)
    book = Ledger(tmp_path / "p")
    for number in pairs:
        book.append(attempt(number))
    return book


def attempt(number: int, key: str = "k") -> Attempt:
    return an_attempt(key=key, old=[float(number)] * 6, new=[1.0] * 6)


def own(tmp_path: Path) -> Path:
    return tmp_path / "p" / ".gates" / "attempts.jsonl"


def test_attempts_are_read_in_order(tmp_path: Path) -> None:
    book = ledger(tmp_path, 1, 2)
    book.append(attempt(3, key="other"))
    assert book.read() == ([attempt(1), attempt(2), attempt(3, key="other")], "")
    assert (own(tmp_path).parent / ".gitignore").read_text() == "*\n"


TAMPERED: dict[str, Callable[[list[str]], list[str]]] = {
    "garbage": lambda lines: [*lines, "garbage\n"],
    "cut short": lambda lines: [*lines[:2], lines[2][:40]],
    "nested": lambda lines: ["[" * 100_000 + "\n", *lines],
    "forged": lambda lines: [*lines, json.dumps({"attempt": {}}) + "\n"],
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_line_that_is_none_is_noticed(tmp_path: Path, change: Callable[[list[str]], list[str]]) -> None:
    book = ledger(tmp_path, 1, 2, 3)
    own(tmp_path).write_text("".join(change(own(tmp_path).read_text().splitlines(keepends=True))))
    assert str(own(tmp_path)) in book.read()[1]


def test_two_runs_at_once_both_stand_in_it(tmp_path: Path) -> None:
    spawn, told = multiprocessing.get_context("fork"), [attempt(i, key=f"k{i}") for i in range(1, 5)]
    runs = [spawn.Process(target=Ledger(tmp_path / "p").append, args=[each]) for each in told]
    for run in runs:
        run.start()
    for run in runs:
        run.join(PATIENCE_S)
    attempts, problem = Ledger(tmp_path / "p").read()
    assert (sorted(one.key for one in attempts), problem) == (["k1", "k2", "k3", "k4"], "")


def test_a_ledger_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file")
    assert "cannot be written" in Ledger(tmp_path / "p").append(attempt(1))


def test_only_attempts_on_a_fit_machine_with_the_same_arms_are_pooled() -> None:
    now = attempt(9).metrics["step_time_s"]
    metric, used = pooled("step_time_s", now, [attempt(1), an_attempt(unfit=("crowded",)), an_attempt(metrics={})])
    assert metric.arms["old"] == (1.0,) * 6 + (9.0,) * 6
    assert used == (attempt(1),)
