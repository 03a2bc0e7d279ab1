"""A program read from disk: each file once, what cannot be read named and never taken for clean."""

import os
from collections.abc import Mapping
from pathlib import Path

from gates.code.syntax import Unparsed, parse
from gates.scan.program.module import Module, name_of, package_of
from gates.scan.program.project import Project

MAX_BYTES = 2 * 1024 * 1024


def content(path: Path) -> bytes | str:
    """Return the bytes of a file, or as text the reason why there are none."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116  # called for every file
        return path.read_bytes() if size <= MAX_BYTES else f"{size} bytes, more than {MAX_BYTES}: not read"
    except OSError as error:
        return error.strerror or str(error)


def project_of(contents: Mapping[str, bytes | str]) -> Project:
    """Parse files by their paths relative to the root of the project; text in place of bytes is why there are none."""
    modules: dict[str, Module] = {}
    unparsed = []
    for path, raw in contents.items():
        if isinstance(raw, str):
            unparsed.append(f"{path}:1: {raw}")
            continue
        try:
            modules[path] = module_of(path, raw)
        except Unparsed as error:
            unparsed.append(str(error))
    return Project(modules, modules.get, unparsed)


def module_of(path: str, raw: bytes) -> Module:
    """Parse one file; raise `Unparsed` with the place and the reason."""
    package = package_of(path)
    source = parse(raw, path, package)
    plain = raw.isascii() and b"coding" not in raw[:200]
    return Module(path, name_of(path), package, source, walruses=not plain or b":=" in raw)
