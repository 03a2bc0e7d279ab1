"""What an ending is, and the project that it is written out as."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from building import written

from gates.model import Decision


class Right(StrEnum):
    """What is right to say of an ending; `not PASS` where a block and an open verdict are both honest."""

    PASS = "PASS"  # noqa: S105  # a verdict
    BLOCK = "BLOCK"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_PASS = "not PASS"  # noqa: S105  # a verdict

    def allows(self, said: Decision | None) -> bool:
        """Return whether a verdict is right; no verdict at all is no PASS."""
        if self is Right.NOT_PASS:
            return said is not Decision.PASS
        return said is not None and said.value == self.value


PLAIN = "-p no:hypothesispytest -p no:anyio -p no:randomly"  # in the order in which they are written
IT = "tests/test_it.py::test_it"
FILE = "tests/test_it.py"
CORE = "tests/test_core.py"


@dataclass(frozen=True)
class Ending:
    """One way to end: the files that differ from a sound project, and what is right to say.

    `running` is what a report of a crash must name. `stands` are the tests that stand for the only criterion. `quick`
    endings are part of the test suite, the others of `python -m benchmarks.endings` alone, as are those that need a
    plugin. `outside` marks those that could take the process with them that starts them.
    """

    name: str
    right: Right
    files: Mapping[str, str | bytes]
    running: str = ""
    stands: tuple[str, ...] = (CORE,)
    timeout_s: float = 60
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    outside: bool = False


TASK = """\
id: T1
title: Doubling
implementation: [pkg]
tests: [tests]
criteria:
  - id: AC1
    text: Double a number
    code: [{symbol: "pkg.core:double"}]
    tests: %s
"""

SOUND = {
    "pkg/__init__.py": '"""A tiny library."""\n',
    "pkg/core.py": "def double(x: int) -> int:\n    return x + x\n",
    "tests/test_core.py": "from pkg.core import double\n\n\ndef test_double() -> None:\n    assert double(2) == 4\n",
    "pyproject.toml": f"[tool.gates]\n[tool.pytest.ini_options]\naddopts = {PLAIN!r}\n",
}
BAD = "def test_it():\n    assert 1 == 2\n"
GOOD = "def test_it():\n    assert 1 == 1\n"
SKIPPED = "import pytest\n@pytest.mark.skip(reason='none')\ndef test_it():\n    assert 1 == 1\n"


def project(ending: Ending, folder: Path) -> Path:
    """Write an ending out as a project of its own, task file included."""
    task = TASK % json.dumps(list(ending.stands))
    return written(folder, {**SOUND, "tasks/T1.yaml": task, **ending.files})


def it(code: str = BAD) -> dict[str, str | bytes]:
    """A second test file, which runs after the sound one."""
    return {FILE: code}


def conftest(code: str, tests: str = BAD) -> dict[str, str | bytes]:
    """A conftest.py, and a second test file."""
    return {"tests/conftest.py": code, **it(tests)}


def options(words: str, tests: str = BAD, *, more: str = "") -> dict[str, str | bytes]:
    """Options in a pytest.ini, and a second test file."""
    return {"pytest.ini": f"[pytest]\naddopts = {PLAIN} {words}\n{more}", **it(tests)}
