"""Run a command of the tested project in its own process, bounded in time and output, leaving nobody behind.

It may tell what happens in it on a pipe, which is drained into a file, whatever becomes of it.
"""

import fcntl
import json
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
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

import psutil

from gates.child.guardian import MARK, stop_if_interrupted, uninterrupted
from gates.model import CommandRecord, Model

T = TypeVar("T")
R = TypeVar("R")
KEEP_HEAD = 1024 * 1024
KEEP_TAIL = 256 * 1024
GRACE_S = 2.0
# prefixes: options and traces of another test run; and -O, under which no assertion is executed
DROPPED = ("PYTEST_", "COV_", "COVERAGE_", "PYTHONOPTIMIZE")
MAX_BYTES = 256 * 1024 * 1024
ROOM = 1 << 20
LOOK_S = 0.02
STACKS_S = 0.8
WRITER = re.compile(rb"^(\d+)[.+]", re.MULTILINE)
OOM_KILLS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))


class Channel:
    """What a child is handed beside its arguments: a pipe to tell on, a secret to tell it with, a file for stacks.

    The secret is read from a pipe of its own, once; neither the environment nor the arguments of the child hold it.
    """

    def __init__(self, folder: Path, *, seed: str = "", taken: str = "") -> None:
        self.nonce = secrets.token_hex(16)
        self.told = folder / "witness.txt"
        self.stacks = folder / "stacks.txt"
        self._pipe, self._kept = os.pipe()
        self._closing = threading.Event()
        with suppress(OSError, AttributeError):  # only Linux, and only as far as it lets us
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, ROOM)
        secret, written = os.pipe()
        again = f"/proc/{os.getpid()}/fd/{self._pipe}"  # for a child that closes all that it has, and for its workers
        os.write(written, json.dumps({"nonce": self.nonce, "seed": seed, "again": again, "taken": taken}).encode())
        os.close(written)
        stacks = os.open(self.stacks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.theirs: tuple[int, ...] = (self._kept, secret, stacks)
        self.env = {"GATES_WITNESS": ",".join(map(str, self.theirs))}
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def started(self) -> None:
        """Give up what the child has now, and listen; the pipe stays open, so that the child may open it again."""
        self._give_up()
        self._thread.start()

    def ask_for_stacks(self, pid: int) -> None:
        """Have the processes of the child that tell on the pipe write down where they are."""
        with suppress(psutil.Error):
            family = {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}
            telling = {int(found) for found in WRITER.findall(self.told.read_bytes())}
            for member in family & telling if hasattr(signal, "SIGRTMAX") else ():
                with suppress(ProcessLookupError):
                    os.kill(member, signal.SIGRTMAX - 3)
            limit, size = time.monotonic() + STACKS_S, -1
            while time.monotonic() < limit and (size <= 0 or size != self.stacks.stat().st_size):
                size = self.stacks.stat().st_size
                time.sleep(0.05)

    def close(self) -> None:
        """Stop listening; everybody who could tell is gone."""
        self._give_up()
        self._closing.set()
        os.close(self._kept)
        if self._thread.ident is not None:
            self._thread.join(2.0)
        with suppress(OSError):
            os.close(self._pipe)

    def _give_up(self) -> None:
        for number in self.theirs[1:]:
            os.close(number)
        self.theirs = ()

    def _drain(self) -> None:
        size = 0
        with suppress(OSError), self.told.open("wb", buffering=0) as file:
            while chunk := os.read(self._pipe, ROOM):
                file.write(chunk[: MAX_BYTES - size])
                size = min(MAX_BYTES, size + len(chunk))
                if len(chunk) < ROOM // 4:
                    self._closing.wait(LOOK_S)  # a reader that waits in the pipe makes each line of a test dear


class Stream(Model):
    """What a process wrote to one stream: its whole size, and the part that was kept."""

    bytes: int
    tail: str


class ProcessRun(Model):
    """How a process ended. `exit_code` is `None` when a signal or the time limit ended it.

    `peak_memory_bytes` is the most that one process of its family held, as far as the family was waited for; what
    this process held when it started the child is its least value.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    signal: str | None
    timed_out: bool
    timeout_s: float
    duration_s: float
    stdout: Stream
    stderr: Stream
    orphans: int = 0
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
        """Return the last line that the process wrote to stderr, or else to stdout."""
        for stream in (self.stderr, self.stdout):
            lines = [line.strip() for line in stream.tail.splitlines() if line.strip()]
            if lines:
                return lines[-1][:300]
        return "it wrote nothing"

    def as_command(self, purpose: str, argv: tuple[str, ...] = ()) -> CommandRecord:
        """Return the record of the command; `argv` is how it is shown."""
        return CommandRecord(purpose=purpose, argv=argv or self.argv, ended=self.ended, duration_s=self.duration_s)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    log: Path,
    env: Mapping[str, str] | None = None,
    channel: Channel | None = None,
) -> ProcessRun:
    """Run a command to its end and return how it ended; both streams are kept, bounded, beside `log`.

    The process and everything that it starts are gone when this returns or raises, but for what clears its environment
    and leaves its group. Raises `OSError` where the command cannot be started.
    """
    mark, started, killed = secrets.token_hex(16), time.monotonic(), _oom_kills()
    child: subprocess.Popen[bytes] | None = None
    streams: list[_Reader] = []
    try:
        with uninterrupted():  # between the child's start and our knowing of it, nothing may come
            child = _start(argv, cwd, env or {}, channel, mark)
            streams = _readers(child, log)
        peak = _reaped(child, timeout_s, meanwhile=stop_if_interrupted)
        duration, timed_out = time.monotonic() - started, child.returncode is None
        if timed_out and channel:
            channel.ask_for_stacks(child.pid)
    finally:
        with uninterrupted():
            late, orphans = _sweep(child, mark) if child else (None, 0)
            if channel:
                channel.close()
            for stream in streams:
                stream.close()
    code = None if timed_out else child.returncode
    by = _signal_name(-code) if code is not None and code < 0 else None
    end = {"exit_code": None if by else code, "signal": by, "timed_out": timed_out, "timeout_s": timeout_s}
    wrote = {"stdout": streams[0].result(), "stderr": streams[1].result()}
    used = {"peak_memory_bytes": peak or late, "orphans": orphans, "out_of_memory": _oom_kills() > killed}
    return ProcessRun.model_validate({"argv": tuple(argv), "duration_s": round(duration, 3), **end, **wrote, **used})


def _readers(child: subprocess.Popen[bytes], log: Path) -> list["_Reader"]:
    pipes = ((child.stdout, "stdout"), (child.stderr, "stderr"))
    return [_Reader(pipe, log.with_suffix(f".{name}.txt")) for pipe, name in pipes]


def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], channel: Channel | None, mark: str
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, by a mark that all that it starts inherits."""
    marked = {MARK: f"{os.environ.get(MARK, '')}:{mark}"}
    beside = Path(argv[0]).parent
    if (beside.parent / "pyvenv.cfg").is_file():  # what the environment holds comes first, as where it is activated
        marked["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", os.defpath)])
    child = subprocess.Popen(
        list(argv),
        cwd=cwd,
        env={**environment(), **env, **(channel.env if channel else {}), **marked},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=channel.theirs if channel else (),
    )
    if channel:
        channel.started()
    return child


def _reaped(
    child: subprocess.Popen[bytes], timeout_s: float, meanwhile: Callable[[], None] = lambda: None
) -> int | None:
    """Wait for the end of a child, so long at most; return its peak memory in bytes, or `None` where it runs on."""
    limit, delay, ends = time.monotonic() + timeout_s, 0.0005, list[int]()
    with suppress(AttributeError, OSError):  # what can be read once it has ended, where the system has such a thing
        ends = [os.pidfd_open(child.pid)]
    try:
        while child.returncode is None and (left := limit - time.monotonic()) > 0:
            meanwhile()
            try:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it, as who kills it does: that is no good end
                child.returncode = -signal.SIGKILL
                return None
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
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
    """Empties a pipe in a thread, so that no amount of output stops or fills anything; keeps head and tail."""

    def __init__(self, pipe: IO[bytes] | None, path: Path) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._path = path
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):  # the pipe is closed under us when somebody holds it open
            while chunk := os.read(self._pipe.fileno(), 65536):
                self._size += len(chunk)
                room = KEEP_HEAD - len(self._head)
                self._head += chunk[: max(room, 0)]
                self._tail += chunk[max(room, 0) :]
                del self._tail[:-KEEP_TAIL]

    def close(self) -> None:
        """Wait for the end of the stream, briefly, and write what was kept."""
        self._thread.join(GRACE_S)
        self._pipe.close()  # where somebody still holds its other end, the thread ends with its next read
        left_out = self._size - len(self._head) - len(self._tail)
        gap = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out > 0 else b""
        with suppress(FileNotFoundError):  # the child removed the folder
            self._path.write_bytes(bytes(self._head) + gap + bytes(self._tail))

    def result(self) -> Stream:
        kept = bytes(self._tail[-8192:] if len(self._tail) >= 8192 else (self._head + self._tail)[-8192:])
        return Stream(bytes=self._size, tail=kept.decode("utf-8", errors="backslashreplace"))


def environment() -> dict[str, str]:
    """Return the environment of a child: ours, less what would change a test run from outside the task."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def _sweep(child: subprocess.Popen[bytes], mark: str) -> tuple[int | None, int]:
    """Stop the child if it still runs, then all that it left behind; return its peak memory and how many those were."""
    peak = None
    if child.poll() is None:
        _kill_group(child.pid, signal.SIGTERM)
        peak = _reaped(child, GRACE_S)
    # SIGKILL also where the leader is gone: its group may live on
    _kill_group(child.pid, signal.SIGKILL)
    peak = peak or _reaped(child, 60)
    left = [process for process in _marked(mark) if process.pid != child.pid]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=GRACE_S)
    return peak, len(left)


def side_by_side(what: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """Return what comes of each part, in their order; as many are run at a time as there are processors."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(what, parts))


def _kill_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _marked(mark: str) -> Iterator[psutil.Process]:
    """Return the processes that inherited the mark in their environment, those of a run inside this run too."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if mark in process.environ().get(MARK, "") and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
