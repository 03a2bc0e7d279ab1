"""Tests that pass without the code that they stand for are seen to, in a real project; the others are not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bar import committed, git
from building import GOOD, a_context, a_criterion, a_task, collected, written

from gates.evidence.called_code import CalledCode
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.task import loading as spec

CORE = """\
import abc
import contextlib
import dataclasses
import enum
import functools
import os
import typing

KEPT = []


def double(x):
    return x * 2


def opaque(x):
    return functools.reduce(max, [x])


def codes(text):
    return [ord(letter) for letter in text]


def keep(x):
    KEPT.append(x)


class Shop:
    def __init__(self):
        self.goods = {}

    def put(self, name, count):
        self.goods[name] = count


@contextlib.contextmanager
def switched(name):
    os.environ[name] = "on"
    yield
    del os.environ[name]


@functools.lru_cache
def cached(x):
    return x + 1


TABLE = {1: 2}
RATE = 0.3
TEXT = "a"
SHARE = 60 * 60
MADE_BY = object()
LOADED = {}


def register(name):
    LOADED[name] = True


register("a")


def lookup(name):
    return name


FOUND = lookup("a")


@dataclasses.dataclass
class Config:
    timeout: int = 300
    name: str = "x"


@dataclasses.dataclass
class Pair:
    left: int
    right: int


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Null:
    '''Keeps nothing.'''

    def get(self, key):
        return None

    def put(self, key, value):
        pass


def nothing(x):
    return None


class Later:
    def go(self):
        raise NotImplementedError


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        '''Area.'''


@typing.runtime_checkable
class Sized(typing.Protocol):
    def size(self) -> int: ...
"""
PROGRAM = "[sys.executable, '-c', 'from pkg.core import double; assert double(2) == 4']"
# of each criterion the symbol that it is traced to, and its tests
CRITERIA = {
    "VALUE": ("double", "assert double(3) == 6"),
    "ITSELF": ("double", "assert double(3) == double(3)"),
    "OPAQUE": ("opaque", "assert core.opaque(3) == 3"),
    "OPAQUE_THERE": ("opaque", "assert core.opaque(3) is not None"),
    "OPAQUE_BOUNDS": ("opaque", "assert 0 <= core.opaque(3) <= 9"),
    "TYPE": ("codes", "assert isinstance(codes('a'), list)"),
    "EMPTY": ("codes", "assert all(code > 0 for code in codes(''))\n    assert len(codes('a')) < 9"),
    "EFFECT": ("keep", "keep(3)\n    assert KEPT[-1] == 3"),
    "NO_EFFECT": ("keep", "keep(3)\n    assert KEPT is not None"),
    "MADE": ("Shop", "assert isinstance(Shop(), Shop)"),
    "USED": ("Shop", "shop = Shop()\n    shop.put('a', 3)\n    assert shop.goods == {'a': 3}"),
    "ENTERED": ("switched", "with switched('LAMP'):\n        assert os.environ['LAMP'] == 'on'"),
    "NOT_ASKED": ("switched", "with switched('LAMP'):\n        assert os.environ"),
    "CHILD": ("double", f"done = subprocess.run({PROGRAM})\n    assert done is not None"),
    "CHILD_HEARD": ("double", f"subprocess.run({PROGRAM}, check=True)\n    assert double(0) == 0"),
    "DATA": ("double", "assert double(3) == int(open('tests/data/result.json').read())"),
    "CACHED": ("cached", "assert cached(1) == 2"),
    "FIXTURE": ("double", "assert six == 6"),
    "AROUND": ("pattern: $X * 2", "assert double(3) == 6"),
    "AROUND_ITSELF": ("pattern: $X * 2", "assert double(3) == double(3)"),
    "CONSTANT": ("TABLE", "assert TABLE[1] == 2"),
    "NUMBER": ("RATE", "assert core.RATE * 2 == 0.6"),
    "NUMBER_UNREAD": ("RATE", "assert double(0.1) == 0.2"),
    "PRODUCT_UNREAD": ("SHARE", "assert core.SHARE or double(1) == 2"),
    "TEXT": ("TEXT", "assert core.TEXT.islower()"),
    "FIELDS": ("Config", "assert core.Config().timeout == 300"),
    "FIELDS_UNREAD": ("Config", "assert double(4) == 8"),
    "FIELD": ("Config.timeout", "assert core.Config().timeout == 300"),
    "FIELD_UNREAD": ("Config.timeout", "assert core.Config().name == 'x'"),
    "NAMED_FIELDS": ("Pair", "assert core.Pair(1, 2).left == 1"),
    "LEVELS": ("Level", "assert [one.name for one in core.Level] == ['LOW', 'HIGH']"),
    "LEVELS_UNREAD": ("Level", "assert double(4) == 8"),
    "MADE_BY": ("MADE_BY", "assert core.MADE_BY is not None"),
    "AT_IMPORT": ("register", "assert core.LOADED == {'a': True}"),
    "AT_IMPORT_UNREAD": ("lookup", "assert double(4) == 8"),
    "NULL": ("Null", "assert core.Null().get('a') is None"),
    "NULL_UNREAD": ("Null", "core.Null().get('a')\n    assert double(1) == 2"),
    "NULL_UNCALLED": ("Null", "assert double(1) == 2"),
    "NOTHING": ("nothing", "assert core.nothing(1) is None"),
    "ABSTRACT": ("Shape", "with pytest.raises(TypeError):\n        core.Shape()"),
    "ABSTRACT_UNREAD": (
        "Shape", "made = type('Square', (core.Shape,), {'area': lambda self: 4})\n    assert made().area() == 4",
    ),
    "PROTOCOL": ("Sized", "assert isinstance(type('A', (), {'size': 1})(), core.Sized)"),
    "REFUSES": ("Later", "with pytest.raises(NotImplementedError):\n        core.Later().go()"),
    "COUNTED": ("double", "assert double(1) == double(1)"),
    "ELSEWHERE": ("double", "assert elsewhere.double(3) == 6"),
    "BY_PATH": ("double", "assert by_path.double(3) == 6"),
    "MODULE": ("double", "from made import SIX\n    assert SIX == 6"),
    "HISTORY": (
        "double",
        (
            "told = subprocess.run(['git', 'tag', '--points-at', 'HEAD'], capture_output=True).stdout\n"
            "    if told != b'v1\\n':\n        pytest.skip('no history')\n"
            "    assert double(3) == 6"
        ),
    ),
    "IDLE_ENTRY": ("double", "assert double(3) == double(3)"),
    "SKIPPED": ("double", "pytest.skip('not today')"),
    "SKIPS_IN_COPY": (
        "double",
        "if not os.path.exists('node_modules'):\n        pytest.skip('not installed')\n    assert double(3) == 6",
    ),
    "SKIPS_WITHOUT": ("double", "if double(3) != 6:\n        pytest.skip('not ready')\n    assert double(3) == 6"),
}  # fmt: skip
HEAD = """\
import importlib.util
import os
import subprocess
import sys

import pytest

from pkg import core
from pkg.core import KEPT, TABLE, Shop, cached, codes, double, keep, switched


@pytest.fixture(scope="session")
def six():
    return double(3)


def loaded(path):
    found = importlib.util.spec_from_file_location("loaded", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def elsewhere():
    return loaded(os.environ["ELSEWHERE"])


@pytest.fixture
def by_path():
    return loaded(open("tests/data/path.txt").read())


"""
USES = {"FIXTURE": "six", "ELSEWHERE": "elsewhere", "BY_PATH": "by_path"}


def bound(code: str) -> str:
    return code if code.startswith("pattern:") else f'symbol: "pkg.core:{code}"'


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, EmptiedSymbol]]:
    tests = HEAD + "\n\n".join(
        f"def test_{name.lower()}({USES.get(name, '')}):\n    {body}\n" for name, (_, body) in CRITERIA.items()
    )
    criteria = "\n".join(
        f"  - {{id: {name}, text: {name}, level: should, code: [{{{bound(symbol)}}}], "
        f'tests: ["tests/test_core.py::test_{name.lower()}"]}}' for name, (symbol, _) in CRITERIA.items()
    )  # fmt: skip
    table = "calculations: [{call: pkg.core:double, criteria: [COUNTED], table: [{args: [2], expected: 4}]}]"
    entry = 'entry_points: [{run: [python, -c, "import pkg"], criteria: [IDLE_ENTRY]}]'
    head = f"id: T1\ntitle: Emptied\nimplementation: [pkg]\ntests: [tests]\n{table}\n{entry}\n"
    files = {**GOOD, "pkg/core.py": CORE, "tests/test_core.py": tests, "tests/data/result.json": "6"}
    files["tasks/T1.yaml"] = f"{head}criteria:\n{criteria}\n"
    root = written(tmp_path_factory.mktemp("emptied"), files)
    committed(root)
    git(root, "tag", "v1")
    task, context = spec.load(root / "tasks/T1.yaml", root), a_context(root)
    written(root, {"tests/data/path.txt": str(root / "pkg/core.py"), "node_modules/a.js": ""})
    written(root, {"tests/made.py": "from pkg.core import double\nSIX = double(3)\n"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ELSEWHERE", str(root / "pkg/core.py"))
        before = (root / "pkg/core.py").read_bytes()
        evidence = collected(task, context, PytestRun, SourceTree, ExecutedLines, CalledCode, EmptiedCode)
    found = evidence.get(EmptiedCode)
    assert found and (root / "pkg/core.py").read_bytes() == before
    yield {symbol.criterion: symbol for symbol in found.symbols}


NOTICED = (
    "VALUE EFFECT USED ENTERED CHILD_HEARD DATA CACHED CONSTANT NUMBER TEXT FIELDS FIELD NAMED_FIELDS LEVELS AT_IMPORT "
    "OPAQUE NULL NOTHING ABSTRACT PROTOCOL FIXTURE ELSEWHERE MODULE AROUND HISTORY"
)
SURVIVED = (
    "ITSELF TYPE EMPTY NO_EFFECT MADE NOT_ASKED CHILD SKIPS_WITHOUT NUMBER_UNREAD PRODUCT_UNREAD FIELDS_UNREAD "
    "OPAQUE_THERE OPAQUE_BOUNDS FIELD_UNREAD LEVELS_UNREAD NULL_UNREAD ABSTRACT_UNREAD AROUND_ITSELF IDLE_ENTRY "
    "AT_IMPORT_UNREAD"
)


UNCALLED = "its tests do not call it in a copy"
NOT_TRIED = {
    "MADE_BY": "it has no body",
    "NULL_UNCALLED": UNCALLED,
    "BY_PATH": UNCALLED,
    "SKIPS_IN_COPY": "not all of its tests pass in a copy",
    "COUNTED": "calculations verify it, too",
}


def test_what_notices_that_code_does_nothing_what_does_not_and_what_is_not_tried(
    seen: dict[str, EmptiedSymbol],
) -> None:
    noticed = {name: f"tests/test_core.py::test_{name.lower()}" for name in NOTICED.split()}
    told = {name: one.by if one.noticed else one.why or one.end.value for name, one in seen.items()}
    assert told == {**noticed, **dict.fromkeys(SURVIVED.split(), "survived"), **NOT_TRIED}


def test_what_refuses_is_no_promise(seen: dict[str, EmptiedSymbol]) -> None:
    assert {name for name, one in seen.items() if one.promise} == {
        "NULL", "NULL_UNREAD", "NULL_UNCALLED", "NOTHING", "ABSTRACT", "ABSTRACT_UNREAD", "PROTOCOL",
    }  # fmt: skip


def test_each_test_of_a_criterion_is_asked_where_no_lines_say_that_it_runs_none_of_its_code(
    tmp_path: Path,
) -> None:
    files = {"tests/test_core.py": "from pkg.core import double\n\ndef test_own():\n    assert double(3) == 6\n"
             "\ndef test_copy():\n    copy = lambda x: 2 * x\n    assert copy(3) == 6\n",
             "pkg/core.py": "def double(x):\n    return 2 * x\n"}  # fmt: skip
    root = written(tmp_path, {**GOOD, **files})
    committed(root)
    names = {"OWN": "::test_own", "COPY": "::test_copy", "BOTH": ""}
    criteria = [a_criterion(id=name, tests=[f"tests/test_core.py{test}"]) for name, test in names.items()]
    task, context = a_task(criteria=criteria, entry_points=[], measurements=[]), a_context(root)
    seen = collected(task, context, PytestRun, SourceTree, EmptiedCode)
    emptied = seen.get(EmptiedCode)
    assert emptied is not None
    assert [(symbol.noticed, symbol.tests) for symbol in emptied.symbols] == [(True, 1), (False, 1), (True, 2)]
    seen.collect(ExecutedLines, task, context)  # with it those that run a function are asked, and the others are named
    emptied = EmptiedCode.derive(task, context, seen)
    assert [symbol.tests for symbol in emptied.symbols] == [1, 1, 1]
    both = emptied.symbols[2]
    assert (both.noticing, both.missing) == (("tests/test_core.py::test_own",), ("tests/test_core.py::test_copy",))


@pytest.mark.parametrize(
    ("bound", "by"),
    [
        ("tests/test_core.py", "tests/test_core.py"),
        ("tests/", "tests/test_core.py"),
        ("tests/test_core.py::test_share", ""),
    ],
)
def test_a_file_that_stubbed_code_breaks_notices_where_it_is_bound_as_a_whole(
    tmp_path: Path, bound: str, by: str
) -> None:
    test = "from pkg.core import double\n\nSHARE = 1 / double(1)\n\n\ndef test_share():\n    assert SHARE\n"
    root = written(tmp_path, {**GOOD, "tests/test_core.py": test})
    committed(root)
    task = a_task(criteria=[a_criterion(tests=[bound])], entry_points=[], measurements=[])
    found = collected(task, a_context(root), PytestRun, SourceTree, ExecutedLines, EmptiedCode).get(EmptiedCode)
    assert found is not None
    assert [(each.by, each.noticed) for each in found.symbols] == [(by, bool(by))]
