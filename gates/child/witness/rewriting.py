"""Keeps the code of tests whose assertions pytest has rewritten, which takes longer than many tests do.

In a run pytest writes no bytecode itself: what lies in the project is as it was. The code is kept by the text of its
file and by all that rewrites it, and taken in copies of the project, too.
"""

import hashlib
import marshal
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from types import CodeType

import pytest
from _pytest.assertion import rewrite


def keep(folder: Path, copy: str = "") -> None:
    """Let pytest take what is kept in `.gates/rewritten`, and keep there what it rewrites of project and packages.

    In a `copy` of the project it takes what was kept of the project.
    """
    home = str(folder.parents[1])
    made: Callable[[Path, pytest.Config], tuple[object, CodeType]] | None = getattr(rewrite, "_rewrite_test", None)
    if made is None or not (copy or sys.dont_write_bytecode):
        return
    hashed = "bytes" in str(made.__annotations__.get("return"))  # before pytest 9.1 it tells the file by its times

    def rewritten(path: Path, config: pytest.Config) -> tuple[object, CodeType]:
        name = home + str(path).removeprefix(copy) if copy and str(path).startswith(copy + os.sep) else str(path)
        if not name.startswith((f"{home}{os.sep}", f"{sys.prefix}{os.sep}")):
            return made(path, config)
        text, hook = path.read_bytes(), config.getini("enable_assertion_pass_hook")
        about = MAGIC_NUMBER, sys.flags.optimize, pytest.__version__, name, hook, text
        key, own = _digest(*about).encode(), folder / _digest(name)
        with suppress(OSError, ValueError, EOFError, TypeError):
            known, _, code = own.read_bytes().partition(b"\n")
            if known == key:
                state = source_hash(text) if hashed else path.stat()
                return state, _placed(marshal.loads(code), str(path))  # noqa: S302  # as Python does with its own
        if copy:
            return made(path, config)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = made(path, config)
        if told:  # each run is to hear it, by its own filters
            return made(path, config)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".gitignore").write_text("*\n", encoding="ascii")  # of git
            draft = own.with_suffix(f".{os.getpid()}")
            draft.write_bytes(key + b"\n" + marshal.dumps(result[1]))
            draft.replace(own)
        return result

    vars(rewrite)["_rewrite_test"] = rewritten


def _placed(code: CodeType, path: str) -> CodeType:
    """Return code as if it had been compiled from a path."""
    if code.co_filename == path:
        return code
    constants = (_placed(each, path) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=path, co_consts=tuple(constants))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
