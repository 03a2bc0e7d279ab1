"""Keeps the code of tests whose assertions pytest has rewritten, which takes longer than many tests do.

In a run pytest writes no bytecode itself: what lies in the project is as it was. The code is kept by the text of its
file and by all that rewrites it.
"""

import hashlib
import marshal
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

import pytest
from _pytest.assertion import rewrite


def keep(folder: Path) -> None:
    """Let pytest take what is kept in `.gates/rewritten`, and keep there what it rewrites of project and packages."""
    lasting = f"{folder.parents[1]}{os.sep}", f"{sys.prefix}{os.sep}"
    made: Callable[[Path, pytest.Config], tuple[object, CodeType]] | None = getattr(rewrite, "_rewrite_test", None)
    if made is None or not sys.dont_write_bytecode:
        return

    def rewritten(path: Path, config: pytest.Config) -> tuple[object, CodeType]:
        if not str(path).startswith(lasting):
            return made(path, config)
        hook = config.getini("enable_assertion_pass_hook")
        about = (MAGIC_NUMBER, pytest.__version__, str(path), hook, path.read_bytes())
        key, own = _digest(*about).encode(), folder / _digest(str(path))
        with suppress(OSError, ValueError, EOFError, TypeError):
            known, _, code = own.read_bytes().partition(b"\n")
            if known == key:
                return None, marshal.loads(code)  # noqa: S302  # as Python does with its own
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


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
