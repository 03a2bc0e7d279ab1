"""Two states of the tests: those that are gone, those that are skipped now, and the files that changed."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gates.checks.policy.change import Move, Part, moved
from gates.model import Location

NAMED = 5
Function = ast.FunctionDef | ast.AsyncFunctionDef
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class WrittenTest:
    """A test function: its line, its marks that leave it out, and its statements in one form, whatever it is called."""

    line: int
    marks: frozenset[str]
    source: str


@dataclass(frozen=True)
class Fate:
    """What became of files and tests: the files that are gone, and by their old node ids where tests are now."""

    gone: frozenset[str] = frozenset()
    tests: Mapping[str, str | None] = field(default_factory=dict)

    def is_found_again(self, path: str, bound: Callable[[str], bool]) -> bool:
        """Return whether all tests that a path named are still there, and bound by another path."""
        named = path.split("[")[0]
        found = [now for was, now in self.tests.items() if was == named or was.startswith(f"{named}::")]
        return bool(found) and all(now is not None and bound(now) for now in found)

    def is_gone(self, command: Iterable[str]) -> bool:
        """Return whether a command ran a file or a module that does not exist any more."""
        ends = [end for word in command for end in (word, f"{word.replace('.', '/')}.py")]
        ends += [f"{word.replace('.', '/')}/__main__.py" for word in command]
        return any(f"/{path}".endswith(f"/{end}") for end in ends for path in self.gone)


def read(files: Files, unread: list[str], when: str) -> dict[str, dict[str, WrittenTest]]:
    """Return the tests of each file by name, `Class::test_x`; a file that cannot be parsed is named."""
    found = {}
    for path, content in files.items():
        if path.endswith(".py"):
            try:
                found[path] = dict(_tests(ast.parse(content).body, ""))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                unread.append(f"{path} {when}: {type(error).__name__}")
    return found


def again(before: Mapping[str, Mapping[str, WrittenTest]], after: Mapping[str, Mapping[str, WrittenTest]]) -> Fate:
    """Return by old node id where each test of the changed files is now: there, or elsewhere by name or by source."""
    now = [(f"{path}::{name}", test) for path, tests in after.items() for name, test in tests.items()]
    named = {one.rpartition("::")[2]: one for one, _ in now}
    written = {test.source: one for one, test in now}
    found: dict[str, str | None] = {}
    for path, tests in before.items():
        for name, test in tests.items():
            there = name in after.get(path, ())
            elsewhere = named.get(name.rpartition("::")[2]) or written.get(test.source)
            found[f"{path}::{name}"] = f"{path}::{name}" if there else elsewhere
    return Fate(tests=found)


def compare(
    before: Mapping[str, Mapping[str, WrittenTest]], after: Mapping[str, Mapping[str, WrittenTest]], fate: Fate
) -> Iterator[Move]:
    """Yield the tests that are gone or skipped now, and the files of which tests changed."""
    for path, tests in before.items():
        changed = list[Move]()
        for name, was in tests.items():
            now = after.get(path, {}).get(name)
            if fate.tests.get(f"{path}::{name}") is None:
                yield moved(Part.TESTS, f"test {path}::{name}", "there", "deleted", None)
            elif now is not None:
                place = Location(path=path, line=now.line)
                yield from (
                    moved(Part.TESTS, f"test {path}::{name}", "runs", mark, place)
                    for mark in sorted(now.marks - was.marks)
                )
                if now.source != was.source:
                    old, new = was.source.splitlines(), now.source.splitlines()
                    sides = _without(old, new), _without(new, old)
                    changed.append(moved(Part.CHANGED, f"test {path}::{name}", sides[0], sides[1], place))
        yield from changed[:NAMED]
        if len(changed) > NAMED:
            more = f"{len(changed) - NAMED} more changed"
            yield moved(Part.CHANGED, f"tests of {path}", "as at the base", more, Location(path=path))


def _without(lines: list[str], others: list[str]) -> str:
    """Return the lines that are not among others."""
    return " ".join(line.strip() for line in lines if line not in others) or "nothing"


def others(before: Files, after: Files, tested: Collection[str]) -> Iterator[Move]:
    """Yield what lies beside the tests and changed: conftest files, helpers, expected values."""
    for path, content in before.items():
        if path not in tested and _lines(after.get(path)) != _lines(content):
            state = "changed" if path in after else "deleted"
            yield moved(Part.CHANGED, f"file {path}", "as at the base", state, Location(path=path))


def _lines(content: bytes | None) -> list[bytes] | None:
    return None if content is None else content.splitlines()


def _tests(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, WrittenTest]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, Function) and node.name.startswith("test"):
            marks = frozenset(
                text for one in node.decorator_list if "skip" in (text := ast.unparse(one)) or "xfail" in text
            )
            source = "\n".join(map(ast.unparse, [node.args, *node.body]))
            yield f"{prefix}{node.name}", WrittenTest(node.lineno, marks, source)
