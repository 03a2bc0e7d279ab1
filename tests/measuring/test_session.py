"""The procedure of a measurement: turns, restarts, copies, looks and budgets."""

import os
from collections import Counter
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from arming import STEPS, a_folder, a_plan

from gates.child.noting import Noted, noting
from gates.measuring import session
from gates.measuring.bench import ArmFailed
from gates.measuring.samples import Samples
from gates.measuring.session import Session, _Running, is_copy_due, measure, turn
from gates.measuring.taken import Taken

TWO = {"fp32": {"call": "steps:work", "args": [8000]}, "amp": {"call": "steps:work", "args": [1000]}}
EVEN = {name: {"run": ["python", "even.py", seconds]} for name, seconds in (("fp32", "0.0004"), ("amp", "0.0002"))}

THREE = {**EVEN, "tf32": {"run": ["python", "even.py", "0.008"]}}  # two such steps take less than a segment of 30 ms


def taken_of(tmp_path: Path, arms: dict[str, Any], *, stop: int = 0, **changes: Any) -> tuple[Samples, Taken]:
    (tmp_path / "log").mkdir()
    plan = a_plan(a_folder(tmp_path / "p", w="", slow=""), arms, **changes)
    return measure(plan, tmp_path / "log", lambda _samples, taken: taken.pairs >= stop > 0)


def test_arms_are_paired_and_processes_restarted(tmp_path: Path) -> None:
    samples, taken = taken_of(tmp_path, TWO, pairs=12, restarts=3, same_result=True)
    times = samples.metrics["step_time_s"]
    assert {len(values) for values in times.arms.values()} == {12}
    assert times.paired
    assert taken.restarts == (1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)
    assert len(taken.copies) == 2
    assert len(samples.metrics["process_peak_bytes"].arms["fp32"]) == 3
    assert (taken.ended, taken.pairs, taken.baseline, taken.same_result) == ("all pairs", 12, "fp32", True)
    assert min(times.arms["fp32"]) > 2 * min(times.arms["amp"])


LOGS = "import fcntl, subprocess, threading\nopen(__file__ + '.log', 'a').write('x')\nTEXT = open(__file__).read()\n"
ALONE = {
    "threading.Thread(target=threading.Event().wait, daemon=True).start()\n": 2 + 3 * 4,  # each arm for itself, too
    "CHILD = subprocess.Popen(['sleep', '60'])\n": 2 + 3,
    "fcntl.flock(LOCK := open(__file__ + '.lock', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n": 2 + 3,  # one at a time
}


@pytest.mark.parametrize(("more", "imports"), [("", 4), *ALONE.items()])
def test_starts_import_at_the_same_time_unless_it_leaves_something_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, imports: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    root = a_folder(tmp_path)
    (root / "steps.py").write_text(LOGS + more + STEPS, encoding="utf-8")
    _, taken = measure(a_plan(root, TWO, pairs=6, restarts=3), tmp_path, lambda _samples, _taken: False)
    assert (taken.ended, taken.restarts) == ("all pairs", (1, 1, 2, 2, 3, 3))
    assert (root / "steps.py.log").read_text() == "x" * imports


def test_a_measurement_rests_on_the_same_whether_its_starts_import_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, seen = a_folder(tmp_path), list[object]()
    (root / "steps.py").write_text(LOGS + STEPS, encoding="utf-8")
    for cpus in (1, 2):
        monkeypatch.setattr(os, "cpu_count", partial(int, cpus))
        (folder := tmp_path / f"{cpus}").mkdir()
        with noting(folder) as notes:
            measure(a_plan(root, TWO, pairs=6, restarts=3), tmp_path, lambda _samples, _taken: False)
        noted, steps = Noted.of(notes, ()), str(root / "steps.py")
        seen.append((noted.doubt, noted.read, {"raises", "work"} & {*noted.idle[steps]}))
    assert seen == [("", (steps,), {"raises"})] * 2


def looked(tmp_path: Path, arms: dict[str, Any], last: int, **changes: Any) -> tuple[Taken, list[tuple[int, int]]]:
    """Measure until so many pairs; return how, and at each look the pairs and the starts whose memory counts."""
    seen: list[tuple[int, int]] = []
    (tmp_path / "log").mkdir()

    def settled(samples: Samples, taken: Taken) -> bool:
        seen.append((taken.pairs, len(next(iter(samples.metrics["process_peak_bytes"].arms.values())))))
        return taken.pairs == last

    return measure(a_plan(a_folder(tmp_path / "p"), arms, **changes), tmp_path / "log", settled)[1], seen


def test_it_stops_at_the_look_that_decides_and_looks_nowhere_else(tmp_path: Path) -> None:
    arms = {name: {"call": "steps:naps", "args": [time]} for name, time in (("slow", 12), ("quick", 1))}
    taken, seen = looked(tmp_path, arms, 32, restarts=2)
    assert seen == [(16, 1), (32, 2)]
    assert (taken.ended, taken.pairs, taken.split) == ("decided", 32, 1)


def test_pairs_of_short_steps_are_split_and_as_far_apart_in_time_as_others(tmp_path: Path) -> None:
    taken, seen = looked(tmp_path, EVEN, 192, segment_s=0.006)
    assert seen == [(96, 4), (192, 7)]  # the memory of a start counts at the look that ends it
    assert (taken.split, taken.most, taken.starts) == (6, 1536, 7)
    assert len(taken.copies) == 2 * 12


def test_one_arm_has_no_other_to_take_turns_with_and_its_pairs_stay_whole(tmp_path: Path) -> None:
    _, taken = taken_of(tmp_path, {"a": EVEN["amp"]}, pairs=32, restarts=2)
    assert (taken.split, taken.pairs, len(taken.copies)) == (1, 32, 4)


@pytest.mark.parametrize(("arms", "split"), [(EVEN, 6), (THREE, 2)], ids=["two", "three"])
def test_arms_are_split_and_end_with_their_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arms: dict[str, Any], split: int
) -> None:
    clock = SimpleNamespace(monotonic=count(0.0, 0.05).__next__)  # it goes on whenever the measurement looks at it
    monkeypatch.setattr(session, "time", clock)
    samples, taken = taken_of(tmp_path, arms, segment_s=0.030, budget_s=8.0, restarts=2)
    assert (taken.split, taken.ended) == (split, "budget")
    assert 6 <= taken.pairs < taken.most
    assert {len(values) for values in samples.metrics["step_time_s"].arms.values()} == {taken.pairs}


@pytest.mark.parametrize("starts", [2, 3])
def test_a_dear_start_is_made_where_it_fits_until_there_are_enough_to_differ(starts: int, tmp_path: Path) -> None:
    session = Session(a_plan(a_folder(tmp_path), TWO, budget_s=8e4, restarts=4), tmp_path)
    session._running = running = _Running(starts, left=0, round_s=1.0)
    session._starting_s = starts * 6.4e4
    session._end_block_where_due()
    assert running.left == (0 if starts < 3 else session._most)  # it goes on where there were enough


def test_a_budget_for_less_than_an_interval_is_refused_at_once(tmp_path: Path) -> None:
    slow = {"run": ["python", "slow.py"]}
    with pytest.raises(ArmFailed, match=r"6 pairs take about \d+ s, the budget is 0.8 s; raise budget_s"):
        taken_of(tmp_path, {"a": slow, "b": slow}, budget_s=0.8, restarts=1)


def test_commands_are_timed_in_turn_each_in_its_own_process(tmp_path: Path) -> None:
    arms = {"a": {"time": ["python", "-c", "pass"]}, "b": {"time": ["python", "-c", "import time; time.sleep(0.05)"]}}
    samples, taken = taken_of(tmp_path, arms, pairs=6)
    times = samples.metrics["run_time_s"].arms
    assert min(times["b"]) > 0.05
    assert len(times["a"]) == 6
    assert set(samples.metrics) == {"run_time_s", "run_cpu_time_s", "peak_memory_bytes"}
    assert taken.restarts == ()


def test_peak_memory_is_that_of_the_steps(tmp_path: Path) -> None:
    arms = {"a": {"call": "steps:holds", "args": [8]}, "b": {"call": "steps:holds", "args": [32]}}
    samples, _ = taken_of(tmp_path, arms, pairs=6, restarts=3)
    peaks = samples.metrics["peak_memory_bytes"].arms
    assert len(peaks["a"]) == 3
    assert min(peaks["b"]) > (30 << 20)
    assert max(peaks["a"]) < (20 << 20)


def test_a_command_that_fails_says_what_it_wrote_last(tmp_path: Path) -> None:
    arms = {"app": {"time": ["python", "-c", "import sys; sys.exit('no such table: users')"]}}
    with pytest.raises(ArmFailed) as failed:
        taken_of(tmp_path, arms, pairs=6)
    assert str(failed.value) == "app ended with exit code 1 (the last line written is 'no such table: users')"


def test_a_device_that_is_gone_at_the_next_start_leaves_no_samples(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    root = a_folder(tmp_path / "p", w="")
    code = (root / "w.py").read_text(encoding="utf-8")
    code = code.replace("        break", "        open('gone', 'w').close()\n        break", 1)
    code = code.replace("out = ", "gone = os.path.exists('gone')\nout = ", 1)
    code = code.replace('"type": "cpu"', '"type": "cpu" if gone else "cuda"')
    (root / "w.py").write_text(code, encoding="utf-8")
    arms = {name: {"run": ["python", "w.py"]} for name in ("a", "b")}
    with pytest.raises(ArmFailed, match=r"different devices: a on cpu \(a cpu\), the first on cuda \(a cpu\)$"):
        measure(a_plan(root, arms, pairs=12, restarts=3), tmp_path / "log", lambda _samples, _taken: False)


AB, ABC = ("a", "b"), ("a", "b", "c")


def test_two_arms_go_forwards_and_backwards() -> None:
    assert [turn(AB, number) for number in range(4)] == [AB, AB[::-1]] * 2


def test_of_three_arms_none_has_a_place_of_its_own() -> None:
    turns = [turn(ABC, number) for number in range(6)]
    assert len(set(turns)) == 6
    for place in range(3):
        assert Counter(order[place] for order in turns) == Counter(dict.fromkeys(ABC, 2))
    assert Counter(before[-1] == after[0] for before, after in pairwise([*turns, turns[0]]))[True] == 3


@pytest.mark.parametrize(
    ("arms", "split", "pairs"), [(2, 1, (6, 14, 22)), (3, 1, (6, 14, 22)), (2, 6, (6, 22)), (1, 1, (6, 22))]
)
def test_copies_take_their_turns_after_the_sixth_pair_and_then_now_and_then(
    arms: int, split: int, pairs: tuple[int, ...]
) -> None:
    assert tuple(n for n in range(1, 25) if is_copy_due(n, arms, split)) == pairs
