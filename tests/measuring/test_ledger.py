"""The attempts ledger: what was tried stays known, and what was changed is noticed."""

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from taking import an_attempt

from gates.measuring.taken import Attempt, Ledger, Recalled, key_of, pooled


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


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


def kept(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "state").rglob("*.jsonl")
    return path


def test_attempts_of_one_key_are_recalled_in_order(tmp_path: Path) -> None:
    book = ledger(tmp_path, 1, 2)
    book.append(attempt(3, key="other"))
    assert book.recall("k").attempts == (attempt(1), attempt(2))
    assert book.recall("k").problem == ""
    assert book.recall("none").attempts == ()
    assert (own(tmp_path).parent / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("gone", [own, kept])
def test_a_copy_that_is_gone_is_written_again_from_the_other(tmp_path: Path, gone: Callable[[Path], Path]) -> None:
    book = ledger(tmp_path, 1, 2)
    gone(tmp_path).unlink()
    assert [a.metrics["step_time_s"].arms["old"][0] for a in book.recall("k").attempts] == [1, 2]
    book.append(attempt(3))
    assert len(gone(tmp_path).read_text().splitlines()) == 3
    assert book.recall("k") == Ledger(tmp_path / "p").recall("k")
    assert book.recall("k").problem == ""


def test_two_that_run_at_once_in_copies_of_a_project_contradict_nothing(tmp_path: Path) -> None:
    book = ledger(tmp_path, 1)
    own(tmp_path).unlink()  # as one that has not yet seen what the other one wrote
    book.append(attempt(2))
    lines = own(tmp_path).read_text().splitlines(keepends=True)
    own(tmp_path).unlink()
    (tmp_path / "other").mkdir()
    Ledger(tmp_path / "other").append(attempt(3))
    assert len(lines) == 2
    for number, root in enumerate(("p", "other", "p"), 4):
        Ledger(tmp_path / root).append(attempt(number))
    found = [Ledger(tmp_path / root).recall("k") for root in ("p", "other")]
    assert [one.problem for one in found] == ["", ""]
    assert len(found[0].attempts) == len(found[1].attempts) == 6


def test_removing_the_last_lines_hides_nothing(tmp_path: Path) -> None:
    book = ledger(tmp_path, 1, 2, 3)
    lines = own(tmp_path).read_text().splitlines(keepends=True)
    own(tmp_path).write_text(lines[0])
    assert len(book.recall("k").attempts) == 3


LINES: dict[str, Callable[[list[str]], list[str]]] = {
    "first removed": lambda lines: lines[1:],
    "middle removed": lambda lines: [lines[0], lines[2]],
    "swapped": lambda lines: [lines[1], lines[0], lines[2]],
    "doubled": lambda lines: [lines[0], *lines],
    "with a hash, as once": lambda lines: [json.dumps({"hash": "x", "attempt": json.loads(line)}) for line in lines],
}


@pytest.mark.parametrize("change", LINES.values(), ids=LINES)
def test_lines_that_are_gone_or_moved_in_one_copy_change_nothing(
    tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    book = ledger(tmp_path, 1, 2, 3)
    own(tmp_path).write_text("\n".join(change(own(tmp_path).read_text().splitlines())) + "\n")
    assert book.recall("k") == Recalled(attempts=(attempt(1), attempt(2), attempt(3)))


def test_edited_line_is_one_attempt_more(tmp_path: Path) -> None:
    book = ledger(tmp_path, 1, 2)
    own(tmp_path).write_text(own(tmp_path).read_text().replace('"pairs":6', '"pairs":7'))
    assert len(book.recall("k").attempts) == 4


TAMPERED: dict[str, Callable[[list[str]], list[str]]] = {
    "garbage": lambda lines: [*lines, "garbage\n"],
    "cut short": lambda lines: [*lines[:2], lines[2][:40]],
    "nested": lambda lines: ["[" * 100_000 + "\n", *lines],
    "forged": lambda lines: [*lines, json.dumps({"attempt": {}}) + "\n"],
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_line_that_is_none_is_noticed_and_the_other_copy_still_speaks(
    tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    book = ledger(tmp_path, 1, 2, 3)
    own(tmp_path).write_text("".join(change(own(tmp_path).read_text().splitlines(keepends=True))))
    recalled = book.recall("k")
    assert str(own(tmp_path)) in recalled.problem
    assert len(recalled.attempts) == 3
    before = own(tmp_path).read_bytes()
    book.append(attempt(4))
    assert own(tmp_path).read_bytes() == before
    assert len(book.recall("k").attempts) == 4


def _append(root: str, number: int) -> None:
    Ledger(Path(root)).append(attempt(number, key=f"k{number}"))


def test_two_runs_at_once_both_stand_in_it(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    spawn = multiprocessing.get_context("fork")
    runs = [spawn.Process(target=_append, args=(str(tmp_path / "p"), i)) for i in range(1, 5)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    book = Ledger(tmp_path / "p")
    assert [(len(book.recall(f"k{i}").attempts), book.recall(f"k{i}").problem) for i in range(1, 5)] == [(1, "")] * 4


def test_a_ledger_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p").write_text("a file")
    assert ledger_at(tmp_path).append(attempt(1)) == ""  # the other copy has it
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "cannot be written" in ledger_at(tmp_path).append(attempt(1))


def ledger_at(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "p")


def test_keys_tell_apart_what_is_not_the_same_question() -> None:
    assert len({key_of("a", "b"), key_of("ab", ""), key_of("b", "a"), key_of("a", "c")}) == 4


def test_only_attempts_on_a_fit_machine_with_the_same_arms_are_pooled() -> None:
    now = attempt(9).metrics["step_time_s"]
    other = an_attempt(metrics={})
    metric, used = pooled("step_time_s", now, [attempt(1), an_attempt(unfit=("crowded",)), other])
    assert metric.arms["old"] == (1.0,) * 6 + (9.0,) * 6
    assert used == (attempt(1),)


@pytest.mark.parametrize(
    "make", [lambda p: p.symlink_to("/dev/zero"), os.mkfifo, Path.mkdir], ids=["device", "pipe", "folder"]
)
def test_what_is_no_file_is_neither_read_nor_written(tmp_path: Path, make: Callable[[Path], object]) -> None:
    book = ledger(tmp_path, 1)
    own(tmp_path).unlink()
    make(own(tmp_path))
    assert f"{own(tmp_path)} is no plain file" in book.recall("k").problem
    assert book.append(attempt(2)) == ""
    assert [a.metrics["step_time_s"].arms["old"][0] for a in book.recall("k").attempts] == [1, 2]
