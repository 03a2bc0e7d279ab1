"""Says which stored bytecode is not what its source compiles to; run by its path, by the project's interpreter.

It reads folders of bytecode from its input and prints the files that cannot be relied on. What this
interpreter would not load, because it is of another version or older than its source, is passed over. Bytecode from a
stranger may end this process: a last word, `done`, says that it did not.
"""

import ast
import importlib.util
import marshal
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

TAG = f".{sys.implementation.cache_tag}"
HEAD = 16


def main() -> None:
    """Answer for the folders of the input."""
    for folder in filter(None, sys.stdin.buffer.read().split(b"\0")):
        for path in _doubtful(Path(os.fsdecode(folder))):
            sys.stdout.buffer.write(os.fsencode(path) + b"\0")
    sys.stdout.buffer.write(b"done")


def _doubtful(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        stem, tag, rest = path.name.rpartition(TAG)
        source = folder.parent / f"{stem}.py"
        if tag and path.suffix == ".pyc" and source.is_file() and not _is_of(source, path, rest):
            yield path


def _is_of(source: Path, path: Path, kind: str) -> bool:
    text, data = source.read_bytes(), path.read_bytes()
    if not _would_be_loaded(source, text, data):
        return True
    try:
        return _same(marshal.loads(data[HEAD:]), _compiled(str(source), text, kind))  # noqa: S302  # nothing of it runs
    except Exception:  # noqa: BLE001  # whatever is wrong with it, it is not what its source compiles to
        return False


def _would_be_loaded(source: Path, text: bytes, data: bytes) -> bool:
    if data[:4] != importlib.util.MAGIC_NUMBER or len(data) < HEAD:
        return False
    flags, *words = struct.unpack("<LLL", data[4:HEAD])
    if flags == 0:
        at = source.stat()
        return words == [int(at.st_mtime) & 0xFFFFFFFF, at.st_size & 0xFFFFFFFF]
    return not flags & 2 or data[8:HEAD] == importlib.util.source_hash(text)


def _compiled(source: str, text: bytes, kind: str) -> object:
    if "-pytest-" in kind:
        return _rewritten(source, text)
    level = kind.removeprefix(".opt-").removesuffix(".pyc") if kind.startswith(".opt-") else "0"
    return compile(text, source, "exec", dont_inherit=True, optimize=int(level))


def _rewritten(source: str, text: bytes) -> object:
    """Return what pytest makes of a test file, as it does where no plugin asks to hear of assertions that pass."""
    from _pytest.assertion.rewrite import rewrite_asserts

    tree = ast.parse(text, filename=source)
    rewrite_asserts(tree, text, source, None)
    return compile(tree, source, "exec", dont_inherit=True)


def _same(one: object, other: object) -> bool:
    """Return whether two pieces of code do the same at the same lines, wherever their file lay."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType) or one != other:
        return False
    lines = [[*code.co_lines()] for code in (one, other)]
    inner = [[part for part in code.co_consts if isinstance(part, CodeType)] for code in (one, other)]
    pairs = zip(*inner, strict=True)
    return lines[0] == lines[1] and one.co_flags == other.co_flags and all(_same(a, b) for a, b in pairs)


if __name__ == "__main__":
    main()
