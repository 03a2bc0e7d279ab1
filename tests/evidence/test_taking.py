"""Which tests are taken of an earlier run after an edit, and that the lines they ran are then as of a fresh run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from building import QUICK, a_context, a_task, written

from gates.check import Earlier, EvidenceSet
from gates.code.units import Units
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.lines.traced import FOLDER, taking
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Location

CORE = """\
from functools import cache

LIMIT = 3


def double(x):
    return x + x


def twice(x):
    # by way of another
    return double(x)


def at_import():
    return 1


ONE = at_import()


def shared():
    return [1]


def below_cache():
    return 5


@cache
def kept():
    return below_cache()


@cache
def hides():
    return 6


hides()
del hides.__wrapped__


def lonely():
    return 0


def ordered():
    return True


def below_filled():
    return 7


@cache
def filled():
    return below_filled()
"""
LATE = "from pkg.core import lonely\n\nNUMBER = lonely()\n"
TESTS = """\
import subprocess
import sys

import pytest

from pkg import core


@pytest.fixture(scope="module")
def wide():
    return core.shared()


def test_double():
    sys.path.append(".venv/site-packages")  # what is installed binds no other test
    import lazily
    assert core.double(2) == 4


@pytest.mark.parametrize("x", [1, 2])
def test_twice(x):
    assert core.twice(x) == x + x


def test_wide(wide):
    assert wide == [1]


def test_kept():
    assert core.kept() == 5


def test_program():
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0


def test_git():
    assert b"ref" in open(".git/HEAD", "rb").read()


@pytest.mark.skip
def test_skipped():
    pass
"""
OTHER = """\
from pkg.core import LIMIT


def test_limit():
    assert LIMIT == 3


def test_late():
    from pkg import core, late

    assert late.NUMBER == 0 and core.filled() == 7


def test_later():
    from pkg import core, late

    assert core.double(late.NUMBER) == 0
"""
ORDER = """\
from pkg.core import ordered

seen = []


def test_first():
    seen.append(1)


def test_second():
    assert ordered() and seen
"""
LATER = """\
def test_module():
    from pkg import late

    assert late.NUMBER == 0


def test_filled():
    from pkg import core

    assert core.filled() == 7
"""
READ = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
READS = """\
import inspect
import traceback
from pathlib import Path

import pytest
from pkg import lines, read, shown


def test_text():
    assert "print" not in Path(read.__file__).read_text()


def test_code():
    assert read.one.__code__.co_consts


def test_called():
    assert read.two() == 2 and not inspect.signature(read.one).parameters


def test_lines():
    assert "print" not in inspect.getsource(lines.one)


def test_linked(tmp_path):
    (tmp_path / "one.py").symlink_to(read.__file__)
    assert "print" not in (tmp_path / "one.py").read_text()


def test_kind():
    assert not inspect.isgeneratorfunction(read.one)


def test_patched(monkeypatch):
    monkeypatch.setattr("os.path.realpath", None)
    open(read.__file__).close()


def test_shown():
    assert "raise" in "".join(traceback.format_exception(pytest.raises(ValueError, shown.one).value))


def test_source():
    assert "print" not in inspect.getsource(shown)
"""
FILES = {
    "pkg/__init__.py": "",
    "pkg/read.py": READ,
    "pkg/lines.py": READ,
    "pkg/shown.py": "def one():\n    raise ValueError(1)\n\n\n" + READ.partition("\n\n\n")[2],
    "tests/test_warnings.py": READS,  # as a file of the standard library
    ".venv/site-packages/lazily.py": "",
    "pkg/core.py": CORE,
    "pkg/late.py": LATE,
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef plain():\n    return 1\n",
    "tests/test_core.py": TESTS,
    "tests/test_other.py": OTHER,
    "tests/test_order.py": ORDER,
    "tests/test_same.py": LATER,
    "pytest.ini": f"[pytest]\npythonpath = .\naddopts = {QUICK}\n",
    ".git/HEAD": "ref: refs/heads/main\n",
}
ALWAYS = {
    "test_core.py::test_program",
    "test_core.py::test_git",
    "test_core.py::test_skipped",
    "test_warnings.py::test_patched",
}
TWICE = {"test_core.py::test_twice[1]", "test_core.py::test_twice[2]"}
ALL = None


@dataclass(frozen=True)
class Project:
    root: Path
    raw: Path
    seen: EvidenceSet

    @contextmanager
    def edited(self, *edits: tuple[str, str, str]) -> Iterator[Earlier]:
        """Edit files, each by a text instead of another, and have the first run at hand meanwhile."""
        sources = {os.path.realpath(one): one.read_bytes() for one in self.root.rglob("*.py")}
        files = {os.path.realpath(self.root / path): (self.root / path).read_bytes() for path, *_ in edits}
        try:
            for path, old, new in edits:
                text = (self.root / path).read_text()
                assert old in text
                (self.root / path).write_text(text.replace(old, new))
            known = [file for file in files if file in sources]
            changed = {file: (Units.of(sources[file]), Units.of(Path(file).read_bytes())) for file in known}
            yield Earlier(self.seen, self.raw, "2026-01-01T00:00:00Z", sources, changed)
        finally:
            for file, before in files.items():
                Path(file).write_bytes(before)


def collected(root: Path, raw: Path, earlier: Earlier | None = None) -> EvidenceSet:
    raw.mkdir()
    context, seen = replace(a_context(root), evidence=raw), EvidenceSet(earlier=earlier)
    for kind in (PytestRun, ExecutedLines):
        seen.collect(kind, a_task(), context)
    return seen


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("taking")
    root = written(folder / "project", FILES)
    seen = collected(root, folder / "raw")
    run = run_of(seen)
    assert run.complete, run.disagreements
    yield Project(root, folder / "raw", seen)


def run_of(seen: EvidenceSet) -> PytestRun:
    run = seen.get(PytestRun)
    assert run is not None, seen.why_missing(PytestRun)
    return run


def ran(seen: EvidenceSet) -> set[str] | None:
    """Return the tests that ran where some were taken."""
    run = run_of(seen)
    names = {test.id.removeprefix("tests/") for test in run.tests if test.id not in run.taken}
    return names if run.taken else ALL


def told(seen: EvidenceSet) -> object:
    run, lines = run_of(seen), seen.get(ExecutedLines)
    assert lines is not None
    records = [test.model_copy(update={"duration_s": 0, "message": ""}) for test in run.tests]
    places = [Location(path=path, line=line) for path, ran in lines.lines.items() for line in sorted(ran) if line]
    where = [(place, names) for place in places if any(names := lines.contexts_in(place))]
    return records, lines.functions, where, lines.unseen, run.complete, lines.doubts


HERE = (
    ("pkg/core.py", "return double(x)", "return double(x) + 0"),
    ("pkg/core.py", "# by way of another", "# by another"),
    ("tests/test_other.py", "LIMIT == 3", "3 == LIMIT"),
)
MOVING = (
    ("pkg/core.py", "\nLIMIT = 3", "\n# told\n\nLIMIT = 3"),
    ("pkg/core.py", "return x + x", "return 2 * x"),
    ("tests/test_other.py", "def test_late", "def test_more():\n    pass\n\n\ndef test_late"),
)


def test_tests_that_ran_nothing_of_an_edit_are_taken_and_taken_again_and_all_is_as_of_a_fresh_run(
    project: Project, tmp_path: Path
) -> None:
    others = {f"test_other.py::test_{name}" for name in ("limit", "late", "later")}
    with project.edited(*HERE) as earlier:
        first = collected(project.root, tmp_path / "first", earlier)
        assert ran(first) == TWICE | others | ALWAYS
        assert told(first) == told(project.seen)  # which no line of these edits changes
        with Project(project.root, tmp_path / "first", first).edited(*MOVING) as further:
            second, fresh = (collected(project.root, tmp_path / name, of) for name, of in
                             (("second", further), ("fresh", None)))  # fmt: skip
    assert ran(second) == {*TWICE, *others, *ALWAYS, "test_core.py::test_double", "test_other.py::test_more"}
    assert told(second) == told(fresh)


def test_what_an_import_rests_on_that_only_one_of_two_runs_saw_holds_for_the_tests_of_that_run(
    project: Project, tmp_path: Path
) -> None:
    doubling = {*TWICE, "test_core.py::test_double", "test_other.py::test_later", *ALWAYS}
    with project.edited(("pkg/core.py", "return x + x", "return 2 * x")) as earlier:
        first = collected(project.root, tmp_path / "first", earlier)
        with Project(project.root, tmp_path / "first", first).edited(("pkg/core.py", "2 * x", "x * 2")) as further:
            second = collected(project.root, tmp_path / "second", further)
    assert (ran(first), ran(second)) == (doubling, doubling)


@pytest.mark.parametrize(
    ("old", "new"), [("return 0\n", "return 3 - 3\n"), ("return 7", "return 3 + 4")], ids=["imported", "filled"]
)
def test_what_outlasts_a_test_that_ran_again_binds_those_that_were_taken(
    project: Project, tmp_path: Path, old: str, new: str
) -> None:
    with project.edited(HERE[2], ("pkg/core.py", "# by way", "# told\n    # by way")) as earlier:
        first = collected(project.root, tmp_path / "first", earlier)
        late = {"test_other.py::test_late"}
        assert (late | {"test_same.py::test_module"}) & (ran(first) or set()) == late
        with Project(project.root, tmp_path / "first", first).edited(("pkg/core.py", old, new)) as further:
            assert ran(collected(project.root, tmp_path / "second", further)) is ALL


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param("pkg/core.py", "return 1\n", "return 2 - 1\n", id="what ran at import"),
        pytest.param("pkg/core.py", "return [1]", "return [0 + 1]", id="below a wide fixture"),
        pytest.param("pkg/core.py", "return 5", "return 4 + 1", id="below what is kept"),
        pytest.param("pkg/core.py", "return 0\n", "return 1 - 1\n", id="below an import in a test"),
        pytest.param("pkg/lines.py", "return 1", "return 2 - 1", id="what was read line by line"),
        pytest.param("pkg/shown.py", "return 2", "return 1 + 1", id="what was read so after it was shown"),
        pytest.param("pkg/core.py", "LIMIT = 3", "LIMIT = 4 - 1", id="a constant"),
        pytest.param("tests/conftest.py", "def plain", "def other", id="a conftest file"),
    ],
)
def test_after_an_edit_of_what_any_test_may_rest_on_none_is_taken(
    project: Project, path: str, old: str, new: str
) -> None:
    run = run_of(project.seen)
    with project.edited((path, old, new)) as earlier:
        assert taking(earlier, run.tests, (), project.raw / "pytest" / FOLDER, a_context(project.root)) is None
    with project.edited(("pkg/core.py", "return x + x", "return 2 * x")) as earlier:
        assert taking(earlier, run.tests, (), project.raw / "pytest" / FOLDER, a_context(project.root)) is not None


@pytest.mark.parametrize("new", ["return 2 - 1", "return 1  # told"])
def test_tests_that_read_code_as_a_text_or_an_object_rest_on_it(project: Project, tmp_path: Path, new: str) -> None:
    with project.edited(("pkg/read.py", "return 1", new)) as earlier:
        again = ran(collected(project.root, tmp_path / "kept", earlier))
    assert again == {*ALWAYS, *(f"test_warnings.py::test_{name}" for name in ("text", "code", "linked", "kind"))}


def test_where_a_test_fails_without_the_others_all_are_run(project: Project, tmp_path: Path) -> None:
    with project.edited(("pkg/core.py", "return True", "return not False")) as earlier:
        run = run_of(collected(project.root, tmp_path / "kept", earlier))
    assert not run.taken
    assert {test.outcome for test in run.tests} == {TestOutcome.PASSED, TestOutcome.SKIPPED}


def test_after_an_edit_of_what_was_imported_before_anything_was_traced_none_is_taken(tmp_path: Path) -> None:
    settings = f"[pytest]\npythonpath = .\naddopts = {QUICK} -p pkg.core\n"
    root = written(tmp_path / "project", {**FILES, "pytest.ini": settings})
    project = Project(root, tmp_path / "raw", collected(root, tmp_path / "raw"))
    with project.edited(HERE[0]) as earlier:
        tests = run_of(project.seen).tests
        assert taking(earlier, tests, (), project.raw / "pytest" / FOLDER, a_context(project.root)) is None


def test_workers_of_xdist_leave_out_what_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    settings = QUICK.replace("-p no:xdist ", "-n 2 ")
    files = {**FILES, "pytest.ini": f"[pytest]\npythonpath = .\naddopts = {settings}\n", "tests/test_order.py": ""}
    root = written(tmp_path / "project", files)
    project = Project(root, tmp_path / "raw", collected(root, tmp_path / "raw"))
    with project.edited(HERE[0]) as earlier:
        kept = collected(project.root, tmp_path / "kept", earlier)
    assert ran(kept) == TWICE | ALWAYS
    assert told(kept) == told(project.seen)  # which no line of the edit changes


BEFORE = b"""\
X = 1


class A:
    def f(self):
        return 1

    @property
    def f(self):
        return [2, 3]


def g(a=1):
    def inner():
        return 4
    return inner
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (b"return 1", b"return 2", [5]),
        (b"[2, 3]", b"[2, 4]", [9]),
        (b"return 4", b"return 5", [13]),
        (b"[2, 3]", b"(2, 3)", [9]),
        (b"X = 1", b"# told\nX = 1", []),
        (b"X = 1", b"X = 2", None),
        (b"a=1", b"a=2", None),
        (b"@property\n    ", b"", None),
        (b"X = 1", b"import os", None),
        (b"def g", b"async def g", None),
    ],
)
def test_what_changed_between_two_texts_is_bodies_or_more(old: bytes, new: bytes, changed: list[int] | None) -> None:
    found = Units.of(BEFORE).changed(Units.of(BEFORE.replace(old, new, 1)))
    assert (found if found is None else [node.lineno for node in found]) == changed


def test_lines_of_what_is_the_same_are_found_where_they_moved_to() -> None:
    after = b"# told\n\n" + BEFORE.replace(b"return 4", b"return (\n            5)")
    moved = Units.of(BEFORE).moved(Units.of(after))
    assert {line: moved.get(line) for line in (1, 6, 10, 13, 14)} == {1: 3, 6: 8, 10: 12, 13: 15, 14: None}
    assert Units.of(BEFORE).moved(Units.of(BEFORE.replace(b"@property\n    ", b"", 1))) == {}
