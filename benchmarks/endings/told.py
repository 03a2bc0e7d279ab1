"""Endings that are written out as text files, as their authors would write them.

`=== name`, a line `right | stands | needs`, and for each file `--- path` and what is in it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.endings.ending import FILE, Ending, Right

HERE = Path(__file__).parent
PART = re.compile(r"^--- (.+)\n", re.MULTILINE)


def read(name: str) -> tuple[Ending, ...]:
    """Return the endings of a text file beside this one."""
    return tuple(_endings((HERE / name).read_text(encoding="utf-8")))


def _endings(text: str) -> Iterator[Ending]:
    for one in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        head, *parts = PART.split(one)
        name, told = head.strip().splitlines()
        right, stands, needs = (word.strip() for word in told.split("|"))
        files = {path: body.rstrip("\n") + "\n" for path, body in zip(parts[::2], parts[1::2], strict=True)}
        yield Ending(
            name,
            Right(right),
            files,
            stands=tuple(stands.split()) or (FILE,),
            needs=tuple(needs.split()),
            timeout_s=120,
        )
