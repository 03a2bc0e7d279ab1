"""Workers, run for real: what they tell is checked, and whatever they do ends in a reason."""

import copy
import os
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import psutil
import pytest
from arming import a_folder, started
from building import PATIENCE_S

from gates.child import guardian
from gates.child.arms import digest
from gates.child.guardian import Interrupted
from gates.measuring.bench import ArmFailed, Bench, Lines, Worker


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "log").mkdir()
    with Bench(tmp_path / "log") as open_bench:
        yield open_bench
        open_bench.end()  # at once


def a_worker(bench: Bench, tmp_path: Path, call: str, *args: object) -> Worker:
    return bench.start("amp", started(a_folder(tmp_path / "p"), call=f"steps:{call}", args=list(args)))


def test_a_step_is_timed_where_it_runs(bench: Bench, tmp_path: Path) -> None:
    worker = a_worker(bench, tmp_path, "work", 20_000)
    hello = worker.hello()
    ran = worker.run(10)
    assert (hello.device.type, hello.threads) == ("cpu", 1)
    assert ran.ran == 10
    assert ran.first_s is not None and ran.cpu_s is not None
    assert worker.run(10).digest == ran.digest != ""
    ended = worker.stop()
    assert ended and ended.ended == 0


THREADED = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n"


@pytest.mark.parametrize(("case", "is_shared"), [("", True), ("of another module", False), ("with a thread", False)])
def test_what_arms_need_is_imported_once_where_a_fork_loses_nothing(
    bench: Bench, tmp_path: Path, case: str, is_shared: bool
) -> None:
    root = a_folder(tmp_path / "p")
    steps = (root / "steps.py").read_text()
    (root / "others.py").write_text(steps)
    (root / "steps.py").write_text(f"{THREADED if case == 'with a thread' else ''}{steps}")
    second = "others" if case == "of another module" else "steps"
    calls = {"one": "steps:tells", "other": f"{second}:tells"}
    workers = bench.start_all({name: started(root, call=call) for name, call in calls.items()})
    for worker in workers.values():
        worker.hello()
    assert (len({worker.run(1).digest for worker in workers.values()}) == 1) is is_shared
    ends = [worker.stop() for worker in workers.values()]
    assert [end.ended for end in ends if end] == [0, 0]
    assert all(end.peak_memory_bytes > 1_000_000 for end in ends if end)


ENDS = """
import atexit, gc, pathlib
kept, looked = type("Slow", (), {"__del__": lambda _: pathlib.Path("taken apart").touch()})(), gc.isenabled()
def make():
    atexit.register(pathlib.Path("tidied").touch)
    return gc.get_freeze_count if gc.isenabled() and not looked else int
"""


def test_an_arm_looks_for_no_garbage_in_what_it_shares_and_is_not_taken_apart(bench: Bench, tmp_path: Path) -> None:
    root = a_folder(tmp_path / "p")
    (root / "ends.py").write_text(ENDS)
    for worker in bench.start_all({name: started(root, call="ends:make") for name in ("one", "other")}).values():
        worker.hello()
        assert worker.run(1).digest not in {digest(0), ""}
        assert worker.stop()
    assert [(root / name).exists() for name in ("tidied", "taken apart")] == [True, False]


@pytest.mark.parametrize(
    ("call", "said"), [("dies", "dies ended with exit code 9"), ("raises", "raises: ValueError: no step today")]
)
def test_an_arm_that_shares_its_imports_ends_alone(bench: Bench, tmp_path: Path, call: str, said: str) -> None:
    root = a_folder(tmp_path / "p")
    workers = bench.start_all({name: started(root, call=f"steps:{name}") for name in ("work", call)})
    with pytest.raises(ArmFailed, match=said):
        workers[call].hello()
    workers["work"].hello()
    assert workers["work"].run(3).ran == 3


def test_what_a_step_prints_is_no_answer(bench: Bench, tmp_path: Path) -> None:
    worker = a_worker(bench, tmp_path, "work", 100, '{"hello": "gates.worker/9"}\n', 10_000)
    assert worker.hello().hello == "gates.worker/1"
    assert worker.run(1).ran == 1


@pytest.mark.parametrize(
    ("call", "args", "said"),
    [
        ("raises", (), "ValueError: no step today"),
        ("absent", (), "steps has no 'absent'"),
        ("no_step", (), "it returned int, expected the step"),
        ("coroutine", (), "returned a coroutine that nobody runs"),
        ("out_of_memory", (), "MemoryError: cannot allocate 8 GiB"),
        ("dies", (), "ended with exit code 9"),
        ("dies", (3,), "ended with exit code 9"),
        ("dies", (3, 0), "ended with exit code 0"),
    ],
)
def test_an_arm_that_cannot_be_measured_says_why(
    bench: Bench, tmp_path: Path, call: str, args: tuple[object, ...], said: str
) -> None:
    worker = a_worker(bench, tmp_path, call, *args)
    with pytest.raises(ArmFailed, match=said):
        worker.hello()
        worker.run(5)


@pytest.mark.parametrize("name", ["map", "iterator", "lazy", "future", "function", "part", "pooled"])
def test_a_step_that_returns_work_which_nobody_does_is_refused(bench: Bench, tmp_path: Path, name: str) -> None:
    with pytest.raises(ArmFailed, match=r"that (nobody runs|is not done); return what comes of it"):
        a_worker(bench, tmp_path, "gives", name).hello()


@pytest.mark.parametrize("name", ["list", "dict", "text", "pair", "buffer", "range", "class", "nothing"])
def test_a_step_may_return_whatever_is_there_or_nothing(bench: Bench, tmp_path: Path, name: str) -> None:
    worker = a_worker(bench, tmp_path, "gives", name)
    worker.hello()
    ran = worker.run(2)
    assert (ran.ran, ran.digest == "") == (2, name in {"nothing", "buffer"})


def test_an_arm_that_hangs_is_given_up_and_killed(bench: Bench, tmp_path: Path) -> None:
    before, worker = {*psutil.Process().children()}, a_worker(bench, tmp_path, "hangs")
    with pytest.raises(ArmFailed, match=r"did not answer within 0\.3 s"):
        worker.hello(timeout_s=0.3)
    (child,) = {*psutil.Process().children()} - before
    bench.end()
    assert not child.is_running()


ANSWERS = [
    ("told['wall_s'] = float('nan')", "answered wall_s = 'NaN'"),
    ("told['wall_s'] = -1", "answered wall_s = -1"),
    ("told['wall_s'] = 0", "answered wall_s = 0"),
    ("told['wall_s'] = 1e300 * 1e10", "answered wall_s = 'Infinity'"),
    ("told['cpu_s'] = 0", "answered cpu_s = 0"),
    (
        "print(json.dumps({**told, 'cpu_s': 0}).replace('_s\": 0}', '_s\": 1e999}'), file=out, flush=True)",
        "cpu_s = inf",
    ),
    ("told['wall_s'] = 5", "says that 5 s passed, our clock says"),
    ("told['device_s'] = 5", "our clock says"),
    ("told['ran'] += 1", "took 4 steps, asked for 3"),
    ("told = 'a word'", "answered"),
    ("told = {'surprise': 1}", "answered"),
    ("out.write('{' * 100000)", "answered"),
    ("out.write('no json')", "expected a line of JSON"),
    ("told = {'error': 'CUDA error: device lost'}", "CUDA error: device lost"),
    ("sys.exit(3)", "ended with exit code 3"),
    ("os.kill(os.getpid(), 9)", "ended with signal 9"),
    ("told['items'] = 0", "answered items = 0"),
]


@pytest.mark.parametrize(("change", "said"), ANSWERS)
def test_an_answer_that_no_clock_gives_is_not_believed(bench: Bench, tmp_path: Path, change: str, said: str) -> None:
    worker = bench.start("amp", started(a_folder(tmp_path / "p", w=change), run=["python", "w.py"]))
    worker.hello()
    with pytest.raises(ArmFailed, match=said):
        worker.run(3)


@pytest.mark.parametrize(
    ("answers", "said"), [("", "took 3 steps, asked for 4"), ("while True: ", "our clock says")], ids=["once", "flood"]
)
def test_a_worker_that_speaks_unasked_is_not_believed(bench: Bench, tmp_path: Path, answers: str, said: str) -> None:
    root = a_folder(tmp_path / "p", w=f"{answers}print(json.dumps(told), file=out, flush=True)")
    worker = bench.start("amp", started(root, run=["python", "w.py"]))
    worker.hello()
    with pytest.raises(ArmFailed, match=f"spoke without being asked|{said}"):
        for steps in range(3, 53):
            time.sleep(0.1)  # long enough for a line to come before it is asked for
            worker.run(steps)


def test_another_protocol_is_refused(bench: Bench, tmp_path: Path) -> None:
    root = a_folder(tmp_path / "p", w="")
    (root / "w.py").write_text((root / "w.py").read_text().replace("worker/1", "worker/2"))
    with pytest.raises(ArmFailed, match=r"speaks 'gates\.worker/2'"):
        bench.start("amp", started(root, run=["python", "w.py"])).hello()


def test_a_command_that_is_not_there_cannot_be_started(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(ArmFailed, match="cannot be started: No such file"):
        bench.start("amp", started(a_folder(tmp_path / "p"), run=["no-such-command"])).hello()


def test_a_command_is_timed_from_start_to_end(bench: Bench, tmp_path: Path) -> None:
    root = a_folder(tmp_path / "p")
    slept = bench.time("a", started(root, time=["python", "-c", "import time; time.sleep(0.2)"]), timeout_s=PATIENCE_S)
    held = bench.time("b", started(root, time=["python", "-c", "x = bytearray(60 << 20)"]), timeout_s=PATIENCE_S)
    assert slept.wall_s > 0.2
    assert slept.wall_s - slept.cpu_s > 0.1
    assert held.peak_memory_bytes > slept.peak_memory_bytes + (50 << 20)


def test_a_command_that_fails_or_hangs_has_no_time(bench: Bench, tmp_path: Path) -> None:
    root = a_folder(tmp_path / "p")
    with pytest.raises(ArmFailed, match="ended with exit code 3"):
        bench.time("a", started(root, time=["python", "-c", "raise SystemExit(3)"]), timeout_s=PATIENCE_S)
    with pytest.raises(ArmFailed, match=r"did not end within 0\.2 s"):
        bench.time("a", started(root, time=["python", "-c", "import time; time.sleep(60)"]), timeout_s=0.2)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    root = a_folder(tmp_path / "p", w="import subprocess; subprocess.Popen(['sleep', '77'], start_new_session=True)")
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with Bench(tmp_path / "log") as bench:
        worker = bench.start("amp", started(root, run=["python", "w.py"]))
        worker.hello()
        worker.run(1)
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "77"]]


@pytest.mark.parametrize("peak", ["1e999", "-1", "0", "NaN", '"much"'])
def test_a_peak_of_memory_that_is_none_is_refused(bench: Bench, tmp_path: Path, peak: str) -> None:
    root = a_folder(tmp_path / "p", w="")
    code = (root / "w.py").read_text(encoding="utf-8")
    told = f'{{"collected": true, "peak_memory_bytes": {peak}}}'
    (root / "w.py").write_text(code.replace('{"collected": true}', told), encoding="utf-8")
    worker = bench.start("amp", started(root, run=["python", "w.py"]))
    worker.hello()
    with pytest.raises(ArmFailed, match="answered peak_memory_bytes"):
        worker.collect()


class Result:
    def __init__(self, loss: float) -> None:
        self.loss = loss


def nested(end: int) -> list[object]:
    found: list[object] = [end]
    for _ in range(9):
        found = [found]
    return found


UNLIKE: dict[str, tuple[object, object]] = {
    "sets": ({1}, {2}),
    "records": (Result(1.0), Result(2.0)),
    "ends of long lists": ([0] * 9000 + [1], [0] * 9000 + [2]),
    "deep lists": (nested(1), nested(2)),
    "decimals": (Decimal("0.1"), Decimal("0.2")),
    "paths": (Path("a"), Path("b")),
    "keys": ({1: 0}, {2: 0}),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_results_that_differ_anywhere_have_other_digests(case: str) -> None:
    one, other = UNLIKE[case]
    assert digest(one) == digest(copy.deepcopy(one)) != ""
    assert digest(one) != digest(other)


def test_result_that_says_no_more_than_where_it_lies_has_no_digest() -> None:
    assert digest([object()]) == ""


def test_arrays_are_compared_to_their_last_element() -> None:
    one, other = np.zeros(9001), np.zeros(9001)
    assert digest(one) == digest(other)
    other[-1] = 1
    assert digest(one) != digest(other)


def test_an_interrupt_is_heard_while_an_arm_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = os.eventfd(0)
    threading.Timer(0.1, lambda: monkeypatch.setattr(guardian, "_come", [2])).start()
    with pytest.raises(Interrupted):
        Lines(heard).next(time.monotonic() + PATIENCE_S)
    os.close(heard)
