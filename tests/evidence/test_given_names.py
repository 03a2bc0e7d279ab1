"""Names that only tests give to the code of a criterion, in real runs: these are told, no others are."""

from pathlib import Path

import pytest
from watching import kinds_in

BORROWS = "def scaled(x):\n    return shift(x)\n"
LATE = "def scaled(x):\n    from fastlib import shift\n    return shift(x)\n"
STUB = "def shift(x):\n    return x + x\n"
GIVEN: dict[str, tuple[dict[str, str], str]] = {
    "a name of its module": ({"tests/conftest.py": "import pkg.core\npkg.core.shift = lambda x: x\n"}, "`shift` is"),
    "a name of Python": ({"tests/conftest.py": "import builtins\nbuiltins.shift = lambda x: x + x\n"}, "`shift` is"),
    "a function of a library": (
        {"tests/conftest.py": "import copy, pkg.core\npkg.core.shift = lambda x, f=copy.copy: f(x)\n"}, "`shift` is",
    ),
    "a module of the tests": (
        {"pkg/core.py": LATE, "tests/stubs/fastlib.py": STUB,
         "tests/conftest.py": "import pathlib, sys\nsys.path.append(str(pathlib.Path(__file__).parent / 'stubs'))\n"},
        "`fastlib` is tests/stubs/fastlib.py, and only the tests have it",
    ),
}  # fmt: skip
SHIFTS = "from pkg.core import scaled\n\ndef test_it():\n    assert scaled([1]) == [1, 1]\n"


@pytest.mark.parametrize("case", GIVEN)
def test_name_that_only_the_tests_give_to_the_code_is_told(tmp_path: Path, case: str) -> None:
    more, said = GIVEN[case]
    found = kinds_in(
        tmp_path, SHIFTS.replace("[1]) == [1, 1]", "[1])"), {"pkg/core.py": BORROWS, **more}, "pkg.core:scaled"
    )
    assert said in found["test_it"]["value"]


OWN_WAYS: dict[str, dict[str, str]] = {
    "all of another": {"pkg/core.py": f"from pkg.other import *\n{BORROWS}", "pkg/other.py": STUB},
    "set by another": {"pkg/core.py": BORROWS, "pkg/__init__.py": f"from pkg import core\n{STUB}core.shift = shift\n"},
    "set by a loop": {
        "pkg/core.py": BORROWS,
        "pkg/__init__.py": f"from pkg import core\n{STUB}for f in (shift,):\n    setattr(core, f.__name__, f)\n",
    },
    "made in it": {"pkg/core.py": f"exec({STUB!r})\n{BORROWS}"},
    "made by globals": {"pkg/core.py": f"globals()['shift'] = lambda x: x + x\n{BORROWS}"},
    "made later": {"pkg/core.py": f"def _up():\n    global shift\n    shift = lambda x: x + x\n_up()\n{BORROWS}"},
    "for readers only": {
        "pkg/core.py": f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import Y\ntry:\n    from x "
        f"import shift\nexcept ImportError:\n    shift = lambda x: x + x\n{BORROWS}",
    },
    "a module of the package": {
        "pkg/__init__.py": "def scaled(x):\n    return part.shift(x)\n", "pkg/part.py": STUB,
        "pkg/core.py": "import pkg.part\nfrom pkg import scaled\n",
    },
    "translated": {"pkg/core.py": f"{STUB}\ndef scaled(x):\n    return shift(x) if _('a') else 0\n",
                   "tests/conftest.py": "import gettext\ngettext.install('x')\n"},
    "a module beside it": {"pkg/core.py": LATE, "fastlib.py": STUB},
    "a library": {"pkg/core.py": "def scaled(x):\n    from json import loads\n    return x + x\n"},
}  # fmt: skip


@pytest.mark.parametrize("case", OWN_WAYS)
def test_name_that_the_implementation_or_python_gives_is_its_own(tmp_path: Path, case: str) -> None:
    symbol = "pkg:scaled" if "pkg/part.py" in OWN_WAYS[case] else "pkg.core:scaled"
    assert kinds_in(tmp_path, SHIFTS, OWN_WAYS[case], symbol) == {"test_it": {}}
