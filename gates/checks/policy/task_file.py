"""Two states of one task: every limit, level, binding and waiver that asks for less than it did.

The walk knows the model's fields and not their number: what a task can say is compared as soon as the model has it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gates.checks.policy.change import Move, Part, moved
from gates.checks.policy.tests import Fate
from gates.model import Level, Location, Model
from gates.task.measurement import Waiver
from gates.task.task import Criterion, EntryPoint, Measure, Task
from gates.task.types import Located

SILENT = {"line", "path", "digest", "spots", "id", "text", "title", "timeout_s", "reason", "owner", "name"}
AT_LEAST = ("at_least", "epochs", "restarts", "pairs")  # fewer of these see less
UPPER = {
    "at_most",
    "below",
    "host_reads",
    "synchronisations",
    "empty_cache",
    "stall_share",
    "warn_at",
    "block_at",
    "failure_rate",
}
TOLERANCES = {"tolerance", "tolerance_bytes", "relative"}
DEMANDS = {"finite", "raises", "warns", "says", "same_result"}  # without a value they ask for nothing
PATHS = {"implementation", "tests"}
SETS = {"criteria", "uses", "rules", "needs"}
IDENTITIES = ("id", "symbol", "rule", "pattern", "name", "call", "run")
LEVELS = tuple(Level)
ALIKE = 0.5


@dataclass(frozen=True)
class Where:
    """Where in a task the walk is: what it is called, its file and its line."""

    name: str
    path: str
    line: int
    optional: bool = False
    used: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()

    def at(self, item: object, name: str) -> "Where":
        """Return the same a step deeper."""
        line = item.line if isinstance(item, Located) else self.line
        return replace(self, name=f"{self.name} {name}".strip(), line=line)

    def of(self, before: object, after: object = None) -> "Where":
        """Return the same inside a criterion or measure as it was: of one that did not decide, nothing is the bar's."""
        level = before.level if isinstance(before, Criterion | Measure) else None
        inner = replace(self, optional=self.optional or level not in {None, Level.MUST})
        if isinstance(before, Criterion):
            return replace(inner, used=_uses(before), uses=_uses(after))
        return inner

    def move(self, part: Part, what: str, before: object, after: object) -> Move:
        """Say what was moved here."""
        return moved(
            Part.CHANGED if self.optional and part is Part.BAR else part,
            f"{self.name} {what}".strip(),
            before,
            after,
            Location(path=self.path, line=self.line),
        )


def compare(before: Task, after: Task, fate: Fate | None = None) -> Iterator[Move]:
    """Yield what asks for less than before; `fate` says what became of the files and tests that it was bound to."""
    yield from _models(before, after, Where("", after.path, after.line), fate or Fate())


def _models(before: Model, after: Model, where: Where, fate: Fate) -> Iterator[Move]:
    for name, field in type(before).model_fields.items():
        key = field.alias or name
        old, new = getattr(before, name), getattr(after, name, None)
        if (key in SILENT and not (key == "text" and isinstance(before, Criterion))) or _plain(old) == _plain(new):
            continue
        if _is_models(old) or _is_models(new):
            yield from _items(key, old or (), new or (), where, fate)
        elif isinstance(old, Model) and isinstance(new, Model):
            yield from _models(old, new, where.at(new, key), fate)
        elif isinstance(old, tuple) and isinstance(new, tuple) and key in {*PATHS, *SETS, "when"}:
            yield from _words_of(key, old, new, where, fate)
        else:
            yield from _values(key, old, new, where)


def _words_of(key: str, old: Sequence[str], new: Sequence[str], where: Where, fate: Fate) -> Iterator[Move]:
    """Compare two lists of which each word asks for something, or, under `when`, excuses something."""
    if key in PATHS:
        yield from _paths(key, old, new, where, fate)
    elif key == "when":
        yield from (where.move(Part.BAR, "applies only when", "always", word) for word in new if word not in old)
    else:
        kept, gained = ({*new, *where.uses}, len(where.uses - where.used)) if key == "uses" else ({*new}, 0)
        for i, word in enumerate(word for word in old if word not in kept):
            yield where.move(Part.CHANGED if i < gained else Part.BAR, f"{key} {word}", "asked for", "removed")


def _values(key: str, old: object, new: object, where: Where) -> Iterator[Move]:
    """Compare two values of one key by what the key means."""
    if key == "level":
        was, is_ = Level(str(old or Level.MUST)), Level(str(new or Level.MUST))
        if LEVELS.index(is_) > LEVELS.index(was):
            yield where.move(Part.BAR, "level", was, is_)
    elif key == "on" or (key == "in" and isinstance(old, str)):
        yield _place(key, old, new, where)
    elif key.endswith(AT_LEAST) or key in UPPER | TOLERANCES:
        yield from _limits(key, old, new, where)
    elif key in DEMANDS:
        yield where.move(Part.CHANGED if new else Part.BAR, key, _words(old), _words(new) if new else "removed")
    elif key == "expires":
        if str(new) > str(old):
            yield where.move(Part.WAIVER, "waiver until", old, new)
    elif old is None or new is None or old != new:
        yield where.move(Part.CHANGED, key, _words(old), _words(new))


def _place(key: str, old: object, new: object, where: Where) -> Move:
    """Compare where something must be seen: on which device, in which files."""
    if key == "on":
        return where.move(Part.BAR if new in {"any", "cpu"} else Part.CHANGED, "seen on", old, new)
    wider = new is None or _covers(str(new), str(old))
    return where.move(Part.BAR if wider else Part.CHANGED, key, old, new or "anywhere")


def _limits(key: str, old: object, new: object, where: Where) -> Iterator[Move]:
    """Compare two limits; a limit that is gone asks for nothing, a tolerance that is new allows something."""
    lower_is_less = key.endswith(AT_LEAST)
    if isinstance(old, int | float) and isinstance(new, int | float):
        if (new < old) if lower_is_less else (new > old):
            yield where.move(Part.BAR, key, old, new)
    elif old is not None and key not in TOLERANCES:
        yield where.move(Part.BAR, key, old, "removed")
    elif old is None and new is not None and key in TOLERANCES:
        yield where.move(Part.BAR, key, "exact", new)


def _paths(key: str, old: Sequence[str], new: Sequence[str], where: Where, fate: Fate) -> Iterator[Move]:
    """Name the paths that are bound no longer, save for those that a wider path covers."""
    lost = [path for path in old if not any(_covers(other, path) for other in new)]
    gained = len([path for path in new if path not in old])
    for path in lost:
        replaced = fate.is_found_again(path, lambda test: any(_covers(other, test) for other in new))
        if not replaced and path.split("::")[0] in fate.gone and gained > 0:
            replaced, gained = True, gained - 1
        yield where.move(Part.CHANGED if replaced else Part.BAR, f"{key} {path}", "bound", "removed")


def _covers(wide: str, path: str) -> bool:
    return wide == "." or path == wide or path.startswith((f"{wide.rstrip('/')}/", f"{wide}::"))


def _items(key: str, old: Sequence[Model], new: Sequence[Model], where: Where, fate: Fate) -> Iterator[Move]:
    """Match the parts of two lists, compare those that match, and name those that are gone."""
    pairs, lost, gained = _matched(old, new)
    for one, other in pairs:
        inner = where.at(other, _name(one)).of(one, other)
        if getattr(one, "id", None) != getattr(other, "id", None):
            yield inner.move(Part.CHANGED, "id", getattr(one, "id", None), getattr(other, "id", None))
        yield from _models(one, other, inner, fate)
    for i, one in enumerate(lost if key != "waivers" else ()):
        replaced = i < len(gained) and (key == "code" or (isinstance(one, EntryPoint) and fate.is_gone(one.run or ())))
        yield where.of(one).move(Part.CHANGED if replaced else Part.BAR, f"{key} {_name(one)}", "asked for", "removed")
    if key == "waivers":
        for other in gained:
            expires, owner = getattr(other, "expires", ""), getattr(other, "owner", "")
            inner = where.at(other, f"waiver of {_name(other)}")
            yield inner.move(Part.WAIVER, "", "none", f"until {expires} ({owner})")


def _uses(criterion: object) -> frozenset[str]:
    """Return all that the code of a criterion must use, wherever: what moved to another symbol is not lost."""
    code = criterion.code if isinstance(criterion, Criterion) else ()
    return frozenset(word for binding in code for word in binding.uses)


def _matched(old: Sequence[Model], new: Sequence[Model]) -> tuple[list[tuple[Model, Model]], list[Model], list[Model]]:
    """Pair equal parts, then those of one identity, then those that are alike; return what is left over, too."""
    pairs: list[tuple[Model, Model]] = []
    lost, left = [*old], [*new]
    for fits in (_equal, _same, _alike):
        for one in [*lost]:
            other = next((item for item in left if fits(one, item)), None)
            if other is not None:
                pairs.append((one, other))
                lost = [item for item in lost if item is not one]
                left = [item for item in left if item is not other]
    return pairs, lost, left


def _equal(one: Model, other: Model) -> bool:
    return _plain(one) == _plain(other)


def _same(one: Model, other: Model) -> bool:
    return _identity(one) == _identity(other)


def _alike(one: Model, other: Model) -> bool:
    """Return whether most of what one part says is said by the other, too: it was renamed, or moved."""
    old, new = _said(one), _said(other)
    if isinstance(one, Waiver) or _states_result(one):  # one that asks for something else is another one
        return _states_result(one) and old | {"name": "", "call": ""} == new | {"name": "", "call": ""}
    if isinstance(one, Measure) and isinstance(other, Measure):
        return (one.of, one.kind, one.arms) == (other.of, other.kind, other.arms)
    if tail(old.get("symbol")) and tail(old.get("symbol")) == tail(new.get("symbol")):
        return True
    keys = old.keys() | new.keys()
    return len(keys) > 1 and sum(old.get(key) == new.get(key) for key in keys) / len(keys) >= ALIKE


def tail(symbol: object) -> str:
    """Return the name of a symbol in its module."""
    return str(symbol).partition(":")[2] if symbol else ""


def _identity(item: Model) -> object:
    if isinstance(item, Measure):
        return item.from_, item.of, item.kind, item.arms
    said = _said(item)
    if _states_result(item):
        return "row", *(str(said.get(key, "")) for key in ("call", "take", "args", "kwargs"))
    if "expires" in said:
        return said.get("criterion"), said.get("rule")
    key = next((key for key in IDENTITIES if key in said), None)
    return (key, str(said[key]), str(said.get("args", ""))) if key else None


def _name(item: Model) -> str:
    if isinstance(item, Criterion):
        return item.id
    if isinstance(item, Measure):
        return item.name.split(" >")[0].split(" <")[0]
    said = _said(item)
    named = getattr(item, "id", None) or getattr(item, "name", None)
    key = next((key for key in IDENTITIES if key in said), None)
    return str(named or (said[key] if key else ", ".join(f"{name} {value}" for name, value in said.items())))


def _said(item: Model) -> dict[str, Any]:
    return item.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _plain(value: object) -> object:
    if isinstance(value, Model):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _is_models(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Model)


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {getattr(item, 'name', item)}" for name, item in value.items()) or "none"
    if isinstance(value, tuple | list):
        return " ".join(str(part) for part in value if part not in {None, ""})
    return "none" if value is None else str(value)


def _states_result(one: Model) -> bool:
    """Return whether a part of a task states a result within a tolerance."""
    return {"tolerance", "relative", "expected", "raises"} <= type(one).model_fields.keys()
