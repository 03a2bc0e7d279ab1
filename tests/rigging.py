"""A tiny project whose criteria are rigged, each in a way of its own."""

from collections.abc import Mapping
from pathlib import Path

from building import pytest_options, written

TASK = """\
id: T1
title: Rigged
implementation: [pkg]
tests: [tests]
entry_points:
  - run: [python, -c, "import pkg.core; assert pkg.core.entered() == 7"]
    criteria: [ENTRY]
calculations:
  - call: pkg.core:tripled
    criteria: [TABLE]
    table: [{args: [2], expected: 6}, {args: [3], expected: 9}]
criteria:
  - id: GOOD
    text: Double a number
    code: [{symbol: "pkg.core:double"}]
    tests: [tests/test_good.py]
  - {id: VACUOUS, text: Say something, code: [{symbol: "pkg.core:double"}], tests: [tests/test_vacuous.py]}
  - {id: HANG, text: Add what is there, code: [{symbol: "pkg.core:emptied"}], tests: [tests/test_hang.py]}
  - {id: ORDER, text: Remember, code: [{symbol: "pkg.core:remembered"}], tests: [tests/test_order.py]}
  - {id: WRITER, text: Add, code: [{symbol: "pkg.core:add"}], tests: [tests/test_writer.py]}
  - {id: FAILS, text: Fail, code: [{symbol: "pkg.core:add"}], tests: [tests/test_fails.py]}
  - {id: SKIPPED, text: Skip, code: [{symbol: "pkg.core:add"}], tests: [tests/test_skipped.py]}
  - {id: NOTHING, text: Nothing, code: [{symbol: "pkg.core:add"}]}
  - {id: ENTRY, text: Enter, code: [{symbol: "pkg.core:entered"}]}
  - {id: TABLE, text: Triple, code: [{symbol: "pkg.core:tripled"}]}
  - {id: TEXT, text: Stand there, code: [{symbol: "pkg.core:double"}], tests: [tests/test_text.py]}
  - id: BOTH
    text: Stand there and run
    code: [{symbol: "pkg.core:double"}]
    tests: [tests/test_text.py, tests/test_good.py]
  - {id: IMPORT, text: Hold, code: [{symbol: "pkg.held:TABLE"}], tests: [tests/test_held.py]}
"""

CORE = '''\
"""What the criteria speak of."""

import logging

log = logging.getLogger(__name__)
seen: list[int] = []


def double(number: int) -> int:
    """Return twice a number."""
    log.info("doubling %s", number)
    return number * 2


def emptied(numbers: list[int]) -> int:
    """Take all numbers out, and add them."""
    total = 0
    while numbers:
        total += numbers.pop()
    return total


def remembered(number: int) -> int:
    """Remember a number."""
    seen.append(number)
    return len(seen)


def add(one: int, other: int) -> int:
    """Add two numbers."""
    return one + other


def entered() -> int:
    """Return seven."""
    return 3 + 4


def tripled(number: int) -> int:
    """Return three times a number."""
    return number * 3

'''

FILES: dict[str, str | bytes] = {
    "pyproject.toml": "[tool.gates]\n" + pytest_options("-p no:hypothesispytest"),
    "tasks/T1.yaml": TASK,
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "pkg/held.py": "TABLE = {'one': 1}\nassert TABLE['one'] == 1\n",
    "tests/test_good.py": "from pkg.core import double\ndef test_double():\n    assert double(3) == 6\n",
    "tests/test_vacuous.py": "import pkg.core\ndef test_nothing():\n    assert pkg.core\n",
    "tests/test_hang.py": "from pkg.core import emptied\ndef test_all():\n    assert emptied([1, 2]) == 3\n",
    "tests/test_order.py": (
        "from pkg.core import remembered\n"
        "def test_long_before():\n    import time\n    time.sleep(0.05)\n    assert remembered(1) == 1\n"
        "def test_after():\n    assert remembered(2) == 2\n"
    ),
    "tests/test_writer.py": (
        "import pathlib, pkg.core\n"
        "def test_add():\n"
        "    path = pathlib.Path(pkg.core.__file__)\n"
        "    path.with_name('made.py').write_text('made = 1')\n"
        "    path.write_text('broken(')\n"
        "    assert pkg.core.add(1, 2) == 3\n"
    ),
    "tests/test_fails.py": "def test_fails():\n    assert 1 == 2\n",
    "tests/test_skipped.py": "import pytest\n@pytest.mark.skip(reason='no')\ndef test_skipped():\n    assert True\n",
    "tests/test_text.py": (
        "from pathlib import Path\nfrom pkg import core\n"
        "def test_text():\n    core.double(1)\n    text = Path(core.__file__).read_text()\n"
        "    assert '    return number * 2\\n' in text\n"
    ),
    "tests/test_held.py": "from pkg.held import TABLE\ndef test_held():\n    assert TABLE\n",
}


def a_rigged_project(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """The project, with some files added or replaced."""
    return written(folder, {**FILES, **(files or {})})
