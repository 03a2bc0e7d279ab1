"""What a process holds, read while it shares its pages with others."""

import subprocess
import sys
from pathlib import Path

import pytest

import gates.child

ROOT = Path(gates.child.__file__).parents[2]
FORKED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from gates.child.memory import private_bytes as read
kept = bytearray(b"x" * (16 << 20))
waiting, end = os.pipe()
if os.fork() == 0:
    os.close(end)
    os.read(waiting, 1)
    os._exit(0)
before = read()
kept[::4096] = b"y" * len(kept[::4096])
written = read() - before
more = bytearray(b"x" * (8 << 20))
print(written, read() - before - written)
os.close(end)
os.wait()
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the system does not tell")
def test_pages_that_workers_were_forked_with_are_no_growth_when_they_are_written() -> None:
    argv = [sys.executable, "-c", FORKED, str(ROOT)]
    told = subprocess.run(argv, check=True, capture_output=True, text=True, encoding="utf-8", timeout=300)
    written, allocated = map(int, told.stdout.split())
    assert written < 1 << 20
    assert allocated > 7 << 20
