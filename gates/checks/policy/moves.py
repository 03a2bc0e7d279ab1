"""Two states of a task, its tests and settings: what asks for less, or is gone. The model's fields lead the walk."""

import ast
import configparser
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from gates.code.syntax import parsed_definitions
from gates.evidence.tests.test_records import found_again, written_tests
from gates.model import LEVELS, Level, Location, Model
from gates.project.files import is_under
from gates.task.measurement import Waiver
from gates.task.task import Criterion, EntryPoint, Measure, Task
from gates.task.types import Located
from gates.words import first_of, printable

LONGEST = 200


class Part(StrEnum):
    """What a goalpost belongs to: the bar itself, how it is measured, the tests, or the settings."""

    BAR = "bar"
    WAIVER = "waiver"
    CHANGED = "changed"
    TESTS = "tests"
    SETTINGS = "settings"


class Move(Model):
    """What stood where before and stands where now."""

    part: Part
    what: str
    before: str
    after: str
    location: Location | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.before} -> {self.after}"


def moved(part: Part, what: str, before: object, after: object, place: Location | None) -> Move:
    """Make a move of values of any kind, in one line that is no longer than people read."""
    location = place and place.model_copy(update={"path": printable(place.path)})
    return Move(part=part, what=shown(what), before=shown(before), after=shown(after), location=location)


def shown(value: object) -> str:
    """Return a value in one line, cut where it is long."""
    if isinstance(value, dict):
        value = ", ".join(f"{name}: {getattr(item, 'name', item)}" for name, item in value.items()) or None
    elif isinstance(value, tuple | list):
        value = " ".join(str(part) for part in value if part not in {None, ""})
    text = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return line if len(line := printable(" ".join(text.split()))) <= LONGEST else f"{line[:LONGEST]}..."


NAMED = 5
Files = Mapping[str, bytes]


def _is_gone(command: Iterable[str], gone: Iterable[str]) -> bool:
    """Return whether a command ran a file or a module that does not exist any more."""
    ends = [end for word in command for end in (word, *may_run(word))]
    return any(f"/{path}".endswith(f"/{end}") for end in ends for path in gone)


def may_run(word: str) -> list[str]:
    """Return the files that a word of a command, or a callable, may run: a script, a module, a package."""
    module = word.partition(":")[0].removesuffix(".py").replace(".", "/")
    return [f"{module}{end}" for end in (".py", "/__init__.py", "/__main__.py")]


def compare_tests(before: Files, after: Files) -> Iterator[Move]:
    """Yield the tests that are gone or skipped now, then each file that changed: of one of tests, which of them."""
    old, new = written_tests(before), written_tests(after)
    was, now = dict(_skips(before)), dict(_skips(after))
    for test, place in found_again(old, new).items():
        for mark in sorted(now.get(place or "", frozenset()) - was[test]):
            yield moved(Part.TESTS, f"test {test}", "runs", mark, Location(path=str(place).partition("::")[0]))
        if place is None:
            yield moved(Part.TESTS, f"test {test}", "there", "deleted", None)
    for path, content in before.items():
        own = [test for test in old if test.startswith(f"{path}::")]
        if changed := [t for t in own if new.get(t, old[t]) != old[t] and now.get(t, was[t]) <= was[t]]:
            names = first_of([test.partition("::")[2] for test in changed], NAMED)
            yield moved(Part.CHANGED, f"tests of {path}", "those of the base", f"{names} changed", Location(path=path))
        elif not own and after.get(path, b"").splitlines() != content.splitlines():
            state = "changed" if path in after else "deleted"
            yield moved(Part.CHANGED, f"file {path}", "that of the base", state, Location(path=path))


def _skips(files: Files) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the marks of each definition that leave it out, by its node id."""
    for path, content in files.items():
        for name, node in parsed_definitions(content):
            marks = map(ast.unparse, node.decorator_list)
            yield f"{path}::{name.replace('.', '::')}", frozenset(m for m in marks if "skip" in m or "xfail" in m)


PYTEST, COVERAGE = {"pytest", "tool:pytest", "tool.pytest", "tool.pytest.ini_options"}, ("coverage:", "tool.coverage.")
PYTEST_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
WATCHED = ("pyproject.toml", *PYTEST_FILES, ".coveragerc")
GATES = ("tasks", "python", "keep_going", "goalposts", "rules", "evidence_signers")  # of its own settings; of others:
HARMLESS = ("markers", "minversion", "required_plugins", "cache_dir", "log_")
Table = dict[str, Any]


def compare_settings(before: Files, after: Files, unread: list[str]) -> Iterator[Move]:
    """Yield each setting that lets tests pass and is another now; files that cannot be read are added to `unread`."""
    for path in WATCHED:
        sides: list[Table | None] = []
        for when, files in (("at the base", before), ("now", after)):
            try:
                sides.append(_settings(path, files[path]) if path in files else None)
            except (ValueError, configparser.Error) as error:
                unread.append(f"{path}: {' '.join(str(error).split())[:200]} {when}")
        if len(sides) < 2:
            continue
        old, new = sides
        if path != "pyproject.toml" and (old is None) != (new is None) and (old or new or path.endswith("pytest.ini")):
            state = ("none", "there") if old is None else ("there", "none")  # the first file with settings alone counts
            yield moved(Part.SETTINGS, f"the settings in {path}", *state, Location(path=path))
        for name in sorted({**(old or {}), **(new or {})}):
            was, now = (_shown_value(side[name]) if side and name in side else "default" for side in sides)
            if was != now:
                yield moved(Part.SETTINGS, name, was, now, Location(path=path))


def _settings(path: str, content: bytes) -> Table:
    """Return the settings of a file that are compared, each by what it belongs to and its own name."""
    text = content.decode("utf-8-sig")
    if path.endswith(".toml"):
        tables = dict(_flattened(tomllib.loads(text), ""))
    else:
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        tables = {name: dict(parser[name]) for name in parser.sections()}
    found: Table = {}
    for kind, table in ((_kind(path, name), table) for name, table in tables.items()):
        keys = table.keys() & {*GATES} if kind == "gates" else table if kind else ()
        name = "[tool.gates]" if kind == "gates" else kind
        found |= {f"{name} {key}": table[key] for key in keys if not key.startswith(HARMLESS)}
    return found


def _kind(path: str, section: str) -> str:
    covers = path == ".coveragerc" or section.startswith(COVERAGE)
    return "gates" if section == "tool.gates" else "pytest" if section in PYTEST else "coverage" if covers else ""


def _flattened(table: Table, prefix: str) -> Iterator[tuple[str, Table]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"{prefix}{key}", {name: own for name, own in value.items() if not isinstance(own, dict)}
            yield from _flattened(value, f"{prefix}{key}.")


def _shown_value(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.lower().split() if isinstance(value, bool) else text.split())


SILENT = {"line", "path", "digest", "spots", "id", "title", "timeout_s", "reason", "owner", "name", "uses"}
AT_LEAST = ("at_least", "epochs", "restarts", "pairs")  # fewer of these see less
UPPER = {"at_most", "below", "host_reads", "synchronisations", "stall_share", "failure_rate"}
TOLERANCES = {"tolerance", "tolerance_bytes", "relative"}
DEMANDS = {"finite", "raises", "warns", "says", "same_result"}  # without a value they ask for nothing
IDENTITIES = ("id", "symbol", "rule", "pattern", "name", "call", "run")


class Where(NamedTuple):
    """Where in a task the walk is: its name, its place, the files that are gone, and if nothing there decides."""

    name: str
    place: Location
    gone: frozenset[str]
    optional: bool = False

    def inside(self, was: Model, now: object, name: str) -> "Where":
        """Return the same a step deeper, in a part as it was and is; what did not decide is not the bar's."""
        place = self.place.model_copy(update={"line": now.line}) if isinstance(now, Located) else self.place
        wish = isinstance(was, Criterion | Measure) and was.level not in {None, Level.MUST}
        return Where(f"{self.name} {name}".strip(), place, self.gone, self.optional or wish)

    def move(self, part: Part, what: str, before: object, after: object) -> Move:
        """Say what was moved here."""
        part = Part.CHANGED if self.optional and part is Part.BAR else part
        return moved(part, f"{self.name} {what}".strip(), before, after, self.place)


def compare_tasks(before: Task, after: Task, gone: frozenset[str]) -> Iterator[Move]:
    """Yield what asks for less than before; `gone` are the files that are no longer there."""
    yield from _models(before, after, Where("", Location(path=after.path, line=after.line), gone))


def _models(before: Model, after: Model, where: Where) -> Iterator[Move]:
    was, now = _said(before), _said(after)
    for name, field in type(before).model_fields.items():
        key = field.alias or name
        old, new = getattr(before, name), getattr(after, name)
        if key in SILENT or was.get(key) == now.get(key) or (key == "text" and not isinstance(before, Criterion)):
            continue
        if any(isinstance(side, tuple) and side and isinstance(side[0], Model) for side in (old, new)):
            yield from _items(key, old or (), new or (), where)
        elif isinstance(old, Model) and isinstance(new, Model):
            yield from _models(old, new, where.inside(old, new, key))
        elif key in {"implementation", "tests"}:
            yield from _paths(key, old, new, where)
        elif key == "when":
            yield from (where.move(Part.BAR, "applies only when", "always", word) for word in new if word not in old)
        elif key in {"criteria", "rules", "needs"}:
            yield from (where.move(Part.BAR, f"{key} {w}", "asked for", "removed") for w in old if w not in new)
        else:
            part, what, was_then, is_now = _weighed(key, old, new)
            if part:
                yield where.move(part, what, was_then, is_now)


def _uses(old: Sequence[Model], kept: Sequence[Model], new: Sequence[Model], where: Where) -> Iterator[Move]:
    """Compare what the code of a criterion must use, wherever: what moved to another symbol is not lost."""
    had, was, now = ([word for one in code for word in getattr(one, "uses", ())] for code in (old, kept, new))
    gained = len({*now} - {*had})
    for i, word in enumerate(word for word in was if word not in now):
        yield where.move(Part.CHANGED if i < gained else Part.BAR, f"uses {word}", "asked for", "removed")


def _weighed(key: str, old: object, new: object) -> tuple[Part | None, str, object, object]:
    """Return what it means that a value of a key became another, how that is called, and both sides."""
    if key == "level":
        was, is_ = Level(str(old or Level.MUST)), Level(str(new or Level.MUST))
        return Part.BAR if LEVELS.index(is_) > LEVELS.index(was) else None, key, was, is_
    if key == "on":
        return Part.BAR if new in {"any", "cpu"} else Part.CHANGED, "seen on", old, new
    if key == "in" and isinstance(old, str):
        return Part.BAR if new is None or is_under(old, str(new)) else Part.CHANGED, key, old, new or "anywhere"
    if key == "expires":
        return Part.WAIVER if str(new) > str(old) else None, "waiver until", old, new
    if key.endswith(AT_LEAST) or key in UPPER | TOLERANCES:
        if isinstance(old, int | float) and isinstance(new, int | float):
            return Part.BAR if (new < old if key.endswith(AT_LEAST) else new > old) else None, key, old, new
        lower = (old is None) == (key in TOLERANCES)  # no limit asks for nothing, a tolerance allows something
        return Part.BAR if lower else None, key, "exact" if old is None else old, "removed" if new is None else new
    if key in DEMANDS:
        return Part.CHANGED if new else Part.BAR, key, old, new or "removed"
    return Part.CHANGED, key, old, new


def _paths(key: str, old: Sequence[str], new: Sequence[str], where: Where) -> Iterator[Move]:
    """Name the paths that are bound no longer, save for those that a wider path covers."""
    gained = len([path for path in new if path not in old])
    for path in [path for path in old if not any(is_under(path, other) for other in new)]:
        replaced = path.split("::")[0] in where.gone and gained > 0
        gained -= replaced
        yield where.move(Part.CHANGED if replaced else Part.BAR, f"{key} {path}", "bound", "removed")


def _items(key: str, old: Sequence[Model], new: Sequence[Model], where: Where) -> Iterator[Move]:
    pairs, lost, gained = _matched(old, new)
    yield from _uses(old, [one for one, _ in pairs], new, where)
    for one, other in pairs:
        inner = where.inside(one, other, _name(one))
        was, now = getattr(one, "id", None), getattr(other, "id", None)
        if was != now:
            yield inner.move(Part.CHANGED, "id", was, now)
        yield from _models(one, other, inner)
    for i, one in enumerate(lost if key != "waivers" else ()):
        ran_what_is_gone = isinstance(one, EntryPoint) and _is_gone(one.run or (), where.gone)
        replaced = i < len(gained) and (key == "code" or ran_what_is_gone)
        what = f"{key} {_name(one)}"
        yield where.inside(one, None, "").move(Part.CHANGED if replaced else Part.BAR, what, "asked for", "removed")
    for other in gained:
        if isinstance(other, Waiver):
            inner, until = where.inside(other, other, f"waiver of {_name(other)}"), f"until {other.expires}"
            yield inner.move(Part.WAIVER, "", "none", f"{until} ({other.owner})")


def _matched(old: Sequence[Model], new: Sequence[Model]) -> tuple[list[tuple[Model, Model]], list[Model], list[Model]]:
    """Pair equal parts, then those of one identity, then those that are alike; return what is left over, too."""
    pairs: list[tuple[Model, Model]] = []
    lost, left = [*old], [*new]
    for key_of in (_said, _identity, _likeness):
        for one in [*lost]:
            key = key_of(one)
            if other := next((item for item in left if key is not None and key_of(item) == key), None):
                pairs.append((one, other))
                lost = [item for item in lost if item is not one]
                left = [item for item in left if item is not other]
    return pairs, lost, left


def _identity(item: Model) -> object:
    """Return what tells a part of a task from its neighbours, whatever it asks for."""
    said = _said(item)
    if isinstance(item, Measure):
        return item.from_, item.of, item.kind, item.arms
    if _states_result(item):
        return "row", *(str(said.get(key, "")) for key in ("call", "take", "args", "kwargs"))
    if isinstance(item, Waiver):
        return item.criterion, item.rule
    key = next((key for key in IDENTITIES if key in said), None)
    return (key, str(said[key]), str(said.get("args", ""))) if key else None


def _likeness(item: Model) -> object:
    """Return what a part has kept where it was renamed or moved; nothing where such a one is another part."""
    if isinstance(item, Measure):
        return item.of, item.kind, item.arms
    if _states_result(item):
        return str(_said(item) | {"name": "", "call": ""})
    return item.text if isinstance(item, Criterion) else None


def _name(item: Model) -> str:
    said, named = _said(item), getattr(item, "id", None) or getattr(item, "name", None)
    if isinstance(item, Measure):
        return item.name.split(" >")[0].split(" <")[0]
    key = next((key for key in IDENTITIES if key in said), None)
    return str(named or (said[key] if key else ", ".join(f"{name} {value}" for name, value in said.items())))


def _said(item: Model) -> dict[str, Any]:
    return item.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _states_result(one: Model) -> bool:
    """Return whether a part of a task states a result within a tolerance."""
    return {"tolerance", "relative", "expected", "raises"} <= type(one).model_fields.keys()
