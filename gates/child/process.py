"""Run a command of the tested project in its own process, bounded in time and output, leaving nobody behind."""

import os
import re
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from gates.child.guardian import MARK, kill_all, stop_if_interrupted, uninterrupted
from gates.child.noting import begun, noting_env
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Model

if TYPE_CHECKING:
    from gates.child.forks import Fork

T = TypeVar("T")
R = TypeVar("R")
Env = Mapping[str, str]
KEPT = 1024 * 1024
GRACE_S = 2.0
# prefixes: options and traces of another test run; and -O, under which no assertion is executed
DROPPED = ("PYTEST_", "COV_", "COVERAGE_", "PYTHONOPTIMIZE")
NAMES_ERROR = re.compile(r"(?:[\w ./-]+: )?error: |ERROR: |[\w.]*(?:Error|Exception)(?:: |$)")
TOOK = re.compile(r" in \d+\.\d+s(?: \([\d:]+\))?(?=[ =]*$)")  # at the end of what pytest says last
OOM_KILLS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))


class Stream(Model):
    """What a process wrote to one stream: its whole size, and the part that was kept."""

    bytes: int
    tail: str


class ProcessRun(Model):
    """How a process ended. `exit_code` is `None` when a signal or the time limit ended it.

    `peak_memory_bytes` is the most that one process of its family held, and at least what this one held at its start.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    signal: str | None
    timed_out: bool
    timeout_s: float
    duration_s: float
    stdout: Stream
    stderr: Stream
    peak_memory_bytes: int | None = None
    out_of_memory: bool = False

    @property
    def ended(self) -> str:
        """Return the end in words."""
        if self.timed_out:
            return f"stopped at the time limit of {self.timeout_s:g} s"
        if self.signal:
            return f"killed by {self.signal}{', out of memory' if self.out_of_memory else ''}"
        return f"exit code {self.exit_code}"

    @property
    def last_words(self) -> str:
        """Return the last line that names an error, as advice often comes after it, or else the last, without times."""
        for stream in (self.stderr, self.stdout):
            text = stream.tail.rpartition("Traceback (most recent call last):")[2]  # of chained ones the last
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                return TOOK.sub("", ([*filter(NAMES_ERROR.match, lines)] or lines)[-1])[:300]
        return "it wrote nothing"

    def as_command(self, purpose: str, argv: tuple[str, ...] = ()) -> CommandRecord:
        """Return the record of the command; `argv` is how it is shown."""
        return CommandRecord(purpose=purpose, argv=argv or self.argv, ended=self.ended, duration_s=self.duration_s)


def run(
    argv: Sequence[str], *, cwd: Path, timeout_s: float, log: Path, env: Env | None = None, start: "Start | None" = None
) -> ProcessRun:
    """Run a command to its end; both streams are kept, bounded, beside `log`.

    What it started is gone when this returns or raises, but for what clears its environment and leaves its group.
    """
    with running(argv, cwd=cwd, log=log, env=env, start=start) as started:
        started.wait(timeout_s)
    return started.result()


@contextmanager
def running(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path,
    env: Env | None = None,
    pass_fds: Sequence[int] = (),
    start: "Start | None" = None,
) -> Iterator["Running"]:
    """Start a command, or raise `EvidenceUnavailable`; when the context is left, all that it started is gone."""
    started = None
    try:
        with uninterrupted():  # between the child's start and our knowing of it, nothing may come
            try:
                started = Running(argv, cwd, log, env or {}, pass_fds, start or Started)
            except OSError as error:
                raise EvidenceUnavailable(f"{argv[0]!r} cannot be started: {error.strerror or error}") from error
        yield started
    finally:
        with uninterrupted():
            if started:
                started.end()


class Started(subprocess.Popen[bytes]):
    """A process that this one has started."""

    def ended(self) -> tuple[int, int, int]:
        """Return its id, status and peak memory, zeros while it runs; raise where somebody else has waited for it."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        return pid, status, usage.ru_maxrss


Start = Callable[..., "Started | Fork"]  # what takes the arguments of `Started`


class Running:
    """A command in a session of its own, with a mark in its environment that all that it starts inherits."""

    def __init__(self, argv: Sequence[str], cwd: Path, log: Path, env: Env, fds: Sequence[int], start: Start) -> None:
        self._argv, self._mark, self._killed = tuple(argv), secrets.token_hex(16), _oom_kills()
        self._began, self._limit_s, self._duration_s = time.monotonic(), 0.0, 0.0
        self._peak: int | None = None
        self.timed_out = False
        marked = {MARK: f"{os.environ.get(MARK, '')}:{self._mark}"}
        beside = Path(argv[0]).parent
        if (beside.parent / "pyvenv.cfg").is_file():  # what the environment holds comes first, as where it is activated
            marked["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", os.defpath)])
        self._child = start(
            self._argv,
            cwd=cwd,
            env={**environment(), **noting_env(env), **marked},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=fds,
        )
        self.pid = self._child.pid
        begun(self.pid)
        pipes = ((self._child.stdout, "stdout"), (self._child.stderr, "stderr"))
        self._streams = [_Reader(pipe, log.with_suffix(f".{name}.txt")) for pipe, name in pipes]

    @property
    def code(self) -> int | None:
        """Return its exit code, or the negative number of the signal that ended it."""
        return self._child.returncode

    def wait(self, timeout_s: float) -> None:
        """Wait for its end, so long at most."""
        self._limit_s = timeout_s
        self._peak = _reaped(self._child, timeout_s, meanwhile=stop_if_interrupted)
        self._duration_s, self.timed_out = time.monotonic() - self._began, self._child.returncode is None

    def end(self) -> None:
        """Stop it if it still runs, then all that it left behind."""
        if self._child.poll() is None:
            _kill_group(self.pid, signal.SIGTERM)
            self._peak = _reaped(self._child, GRACE_S)
        _kill_group(self.pid, signal.SIGKILL)  # also where the leader is gone: its group may live on
        self._peak = self._peak or _reaped(self._child, 60)
        kill_all(self._mark)
        for stream in self._streams:
            stream.close()

    def result(self) -> ProcessRun:
        """Return how it ended, once it has."""
        code = None if self.timed_out else self._child.returncode
        by = f"signal {-code}" if code is not None and code < 0 else None
        with suppress(ValueError):  # one without a name
            by = by and signal.Signals(-(code or 0)).name
        return ProcessRun(
            argv=self._argv,
            exit_code=None if by else code,
            signal=by,
            timed_out=self.timed_out,
            timeout_s=self._limit_s,
            duration_s=round(self._duration_s, 3),
            stdout=self._streams[0].result(),
            stderr=self._streams[1].result(),
            peak_memory_bytes=self._peak,
            out_of_memory=_oom_kills() > self._killed,
        )


def _reaped(child: "Started | Fork", limit_s: float, meanwhile: Callable[[], None] = lambda: None) -> int | None:
    """Wait for the end of a child, so long at most; return its peak memory in bytes, or `None` where it runs on."""
    limit, delay, ends = time.monotonic() + limit_s, 0.0005, list[int]()
    with suppress(AttributeError, OSError):
        ends = [os.pidfd_open(child.pid)]
    try:
        while child.returncode is None and (left := limit - time.monotonic()) > 0:
            meanwhile()
            try:
                pid, status, peak = child.ended()
            except ChildProcessError:  # somebody else has waited for it, as who kills it does: that is no good end
                child.returncode = -signal.SIGKILL
                return None
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return peak * (1 if sys.platform == "darwin" else 1024)
            delay = min(delay * 2, left, 0.05)
            select.select(ends, [], [], delay)
        return None
    finally:
        for end in ends:
            os.close(end)


def _oom_kills() -> int:
    """Return how many processes of our memory group the kernel has killed for want of memory, as far as it says."""
    for path in OOM_KILLS:
        with suppress(OSError, ValueError, StopIteration):
            words = (line.split() for line in path.read_text(encoding="ascii").splitlines())
            return next(int(count) for name, count in words if name == "oom_kill")
    return 0


def joined_paths(first: str) -> str:
    """Return PYTHONPATH with a folder put before what is there."""
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([first, before]) if before else first


class _Reader:
    """Empties a pipe in a thread, so that no amount of output stops or fills anything; keeps the end."""

    def __init__(self, pipe: IO[bytes] | None, path: Path) -> None:
        assert pipe is not None
        self._pipe, self._path = pipe, path
        self._tail, self._size = bytearray(), 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):  # the pipe is closed under us when somebody holds it open
            while chunk := os.read(self._pipe.fileno(), 65536):
                self._size += len(chunk)
                self._tail += chunk
                del self._tail[:-KEPT]

    def close(self) -> None:
        self._thread.join(GRACE_S)
        self._pipe.close()  # where somebody still holds its other end, the thread ends with its next read
        left_out = self._size - len(self._tail)
        gap = f"[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        with suppress(FileNotFoundError):  # the child removed the folder
            self._path.write_bytes(gap + self._tail)

    def result(self) -> Stream:
        return Stream(bytes=self._size, tail=self._tail[-8192:].decode("utf-8", errors="backslashreplace"))


def environment() -> dict[str, str]:
    """Return the environment of a child: ours, less what would change a test run from outside the task."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def side_by_side(what: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """Return what comes of each part, in their order; as many are run at a time as there are processors."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(what, parts))


def _kill_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
