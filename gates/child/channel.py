"""A pipe on which a child tells what happens in it; drained into a file, whatever becomes of the child."""

import fcntl
import json
import os
import re
import secrets
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

MAX_BYTES = 256 * 1024 * 1024
ROOM = 1 << 20
LOOK_S = 0.02
STACKS_S = 0.8
WRITER = re.compile(rb"^(\d+)[.+]", re.MULTILINE)


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
