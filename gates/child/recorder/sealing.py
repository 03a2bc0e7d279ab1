"""The pipe that the journal leaves the process on: each line has a seal, made with a secret and with the line before.

The secret comes over a pipe of its own that is read once, before the project is imported. What others write between the
lines, leave out, repeat or put in another order has no seal that fits; and what was told cannot be taken back.
"""

import fcntl
import hashlib
import hmac
import json
import os
import threading
from collections.abc import Callable

HIGH = 800  # file descriptors from here on: tests that close the low ones do not mean this one

# bound here, because the tested code may patch modules
_digest, _sha, _write, _fstat, _open, _pid = hmac.digest, hashlib.sha256, os.write, os.fstat, os.open, os.getpid
Send = Callable[[str], None]


def attached(numbers: str) -> Send:
    """Return how to send a line on the pipe; `numbers` are the descriptors of pipe, secret and a file for stacks."""
    pipe, secret, stacks = map(int, numbers.split(","))
    os.close(stacks)
    with os.fdopen(secret, "rb") as file:
        told = json.loads(file.read())
    return _sealed(_moved(pipe), told["nonce"].encode(), told["again"])


def _sealed(pipe: int, key: bytes, again: str) -> Send:
    """Return what sends a line with its seal; a process that is forked off says nothing."""
    own, inode, lock = _pid(), _fstat(pipe).st_ino, threading.RLock()
    last, number = b"", pipe

    def send(line: str) -> None:
        nonlocal last, number
        if _pid() != own:
            return
        with lock:
            text = line.encode("utf-8", "backslashreplace")
            last = _digest(key, last + text, _sha)
            whole = b"=" + last.hex().encode() + b" " + text + b"\n"
            number = _there(number, inode, again)
            while whole:
                whole = whole[_write(number, whole) :]

    return send


def _there(number: int, inode: int, again: str) -> int:
    """Return the pipe's descriptor, opened again where a test closed it."""
    try:
        if _fstat(number).st_ino == inode:
            return number
    except OSError:
        pass
    return _moved(_open(again, os.O_WRONLY))


def _moved(number: int) -> int:
    """Move a descriptor out of the way, where no program that is started inherits it."""
    try:
        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, HIGH)
    except OSError:  # a low limit of open files
        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(number)
    return moved
