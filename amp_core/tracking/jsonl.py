"""A sink that writes JSON lines, and goes on where a resumed run does."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from amp_core.tracking.records import Flush, finite


class JsonlSink:
    """Writes one JSON object a step, the last of a flush with its rates; a number that is not finite becomes null.

    The first flush decides what stays of a file that is there: the lines before its first step. So a resumed run
    goes on as if it had never stopped, and a new one begins anew. Lines are written whole or not at all.

    Raises:
        ValueError: no file can be written at the path, or one is there that holds something else.
    """

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        self.name = f"the JSON lines file {str(path)!r}"
        try:
            path.touch()
            self._file: BinaryIO = path.open("r+b", buffering=0)
        except OSError as error:
            raise ValueError(
                f"cannot write {str(path)!r}: {error.strerror}; pass a file in a folder that is there"
            ) from error
        self._end: int | None = None
        first = self._file.readline()
        if first and not first.startswith(b'{"step": '):
            self._file.close()
            raise ValueError(f"{str(path)!r} holds something else than steps, which would be lost: choose another file")

    def write(self, flush: Flush) -> None:
        """Write the steps as lines; if that fails, leave the lines before and close the file."""
        self._append(flush.steps[0].step, flush.rows())

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers as a line of their own; the same if that fails."""
        self._append(step, [{"step": step, **numbers}])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, first: int, rows: Iterable[Mapping[str, float | None]]) -> None:
        if self._end is None:
            self._end = _end_before(self._file, first)
        plain = [{name: finite(value) for name, value in row.items()} for row in rows]
        lines = "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in plain).encode()
        try:
            self._file.seek(self._end)
            self._file.truncate()
            _write_all(self._file, lines)
        except OSError:
            with self._file:
                self._file.truncate(self._end)
            raise
        self._end += len(lines)


def _write_all(file: BinaryIO, data: bytes) -> None:
    while data:
        data = data[file.write(data) :]  # an unbuffered file may take less than it is given


def _end_before(file: BinaryIO, step: int) -> int:
    """Return the length of the file's leading whole lines that are of steps before `step`."""
    file.seek(0)
    end = 0
    for line in file:
        if not line.endswith(b"\n") or not _is_before(line, step):
            break
        end += len(line)
    return end


def _is_before(line: bytes, step: int) -> bool:
    try:
        row = json.loads(line)
    except ValueError:
        return False
    return isinstance(row, dict) and isinstance(row.get("step"), int) and row["step"] < step
