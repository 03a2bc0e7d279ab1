"""Two states of one task: every limit, level, binding and waiver that asks for less than it did.

The walk knows the model's fields and not their number: what a task can say is compared as soon as the model has it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gates.checks.policy.tests import NOTHING, Fate, Move, Part, moved
from gates.model import Level, Location, Model
from gates.project.files import is_under
from gates.task.measurement import Waiver
from gates.task.task import Criterion, EntryPoint, Measure, Task
from gates.task.types import Located

SILENT = {"line", "path", "digest", "spots", "id", "title", "timeout_s", "reason", "owner", "name", "uses"}
AT_LEAST = ("at_least", "epochs", "restarts", "pairs")  # fewer of these see less
SHARES = {"stall_share", "failure_rate", "warn_at", "block_at"}
UPPER = {"at_most", "below", "host_reads", "synchronisations", "empty_cache", *SHARES}
TOLERANCES = {"tolerance", "tolerance_bytes", "relative"}
DEMANDS = {"finite", "raises", "warns", "says", "same_result"}  # without a value they ask for nothing
PATHS = {"implementation", "tests"}
SETS = {"criteria", "rules", "needs"}
IDENTITIES = ("id", "symbol", "rule", "pattern", "name", "call", "run")
LEVELS = tuple(Level)


class Where(NamedTuple):
    """Where in a task the walk is: what it is called, its place, and whether nothing there decides."""

    name: str
    place: Location
    optional: bool = False

    def inside(self, was: Model, now: object, name: str) -> "Where":
        """Return the same a step deeper, in a part as it was and is; what did not decide is not the bar's."""
        place = self.place.model_copy(update={"line": now.line}) if isinstance(now, Located) else self.place
        wish = isinstance(was, Criterion | Measure) and was.level not in {None, Level.MUST}
        return Where(f"{self.name} {name}".strip(), place, self.optional or wish)

    def move(self, part: Part, what: str, before: object, after: object) -> Move:
        """Say what was moved here."""
        part = Part.CHANGED if self.optional and part is Part.BAR else part
        return moved(part, f"{self.name} {what}".strip(), before, after, self.place)


def compare(before: Task, after: Task, fate: Fate = NOTHING) -> Iterator[Move]:
    """Yield what asks for less than before; `fate` says what became of the files and tests that it was bound to."""
    yield from _models(before, after, Where("", Location(path=after.path, line=after.line)), fate)


def _models(before: Model, after: Model, where: Where, fate: Fate) -> Iterator[Move]:
    was, now = _plain(before), _plain(after)
    for name, field in type(before).model_fields.items():
        key = field.alias or name
        old, new = getattr(before, name), getattr(after, name)
        if key in SILENT or was.get(key) == now.get(key) or (key == "text" and not isinstance(before, Criterion)):
            continue
        if _is_models(old) or _is_models(new):
            yield from _items(key, old or (), new or (), where, fate)
        elif isinstance(old, Model) and isinstance(new, Model):
            yield from _models(old, new, where.inside(old, new, key), fate)
        elif key in PATHS:
            yield from _paths(key, old, new, where, fate)
        elif key == "when":
            yield from (where.move(Part.BAR, "applies only when", "always", word) for word in new if word not in old)
        elif key in SETS:
            yield from (where.move(Part.BAR, f"{key} {w}", "asked for", "removed") for w in old if w not in new)
        else:
            yield from _values(key, old, new, where)


def _uses(old: Sequence[Model], kept: Sequence[Model], new: Sequence[Model], where: Where) -> Iterator[Move]:
    """Compare what the code of a criterion must use, wherever: what moved to another symbol is not lost."""
    had, was, now = ([word for one in code for word in getattr(one, "uses", ())] for code in (old, kept, new))
    gained = len({*now} - {*had})
    for i, word in enumerate(word for word in was if word not in now):
        yield where.move(Part.CHANGED if i < gained else Part.BAR, f"uses {word}", "asked for", "removed")


def _values(key: str, old: object, new: object, where: Where) -> Iterator[Move]:
    """Compare two values of one key by what the key means."""
    if key == "level":
        was, is_ = Level(str(old or Level.MUST)), Level(str(new or Level.MUST))
        if LEVELS.index(is_) > LEVELS.index(was):
            yield where.move(Part.BAR, "level", was, is_)
    elif key == "on":
        yield where.move(Part.BAR if new in {"any", "cpu"} else Part.CHANGED, "seen on", old, new)
    elif key == "in" and isinstance(old, str):
        wider = new is None or is_under(old, str(new))
        yield where.move(Part.BAR if wider else Part.CHANGED, key, old, new or "anywhere")
    elif key.endswith(AT_LEAST) or key in UPPER | TOLERANCES:
        yield from _limits(key, old, new, where)
    elif key in DEMANDS:
        yield where.move(Part.CHANGED if new else Part.BAR, key, _words(old), _words(new) if new else "removed")
    elif key == "expires":
        if str(new) > str(old):
            yield where.move(Part.WAIVER, "waiver until", old, new)
    else:
        yield where.move(Part.CHANGED, key, _words(old), _words(new))


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
    lost = [path for path in old if not any(is_under(path, other) for other in new)]
    gained = len([path for path in new if path not in old])
    for path in lost:
        replaced = fate.is_found_again(path, lambda test: any(is_under(test, other) for other in new))
        if not replaced and path.split("::")[0] in fate.gone and gained > 0:
            replaced, gained = True, gained - 1
        yield where.move(Part.CHANGED if replaced else Part.BAR, f"{key} {path}", "bound", "removed")


def _items(key: str, old: Sequence[Model], new: Sequence[Model], where: Where, fate: Fate) -> Iterator[Move]:
    """Match the parts of two lists, compare those that match, and name those that are gone."""
    pairs, lost, gained = _matched(old, new)
    yield from _uses(old, [one for one, _ in pairs], new, where)
    for one, other in pairs:
        inner = where.inside(one, other, _name(one))
        was, now = getattr(one, "id", None), getattr(other, "id", None)
        if was != now:
            yield inner.move(Part.CHANGED, "id", was, now)
        yield from _models(one, other, inner, fate)
    for i, one in enumerate(lost if key != "waivers" else ()):
        replaced = i < len(gained) and (key == "code" or (isinstance(one, EntryPoint) and fate.is_gone(one.run or ())))
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
    for key_of in (_plain, _identity, _likeness):
        for one in [*lost]:
            key = key_of(one)
            other = next((item for item in left if key is not None and key_of(item) == key), None)
            if other is not None:
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
    said = _said(item)
    if isinstance(item, Measure):
        return item.of, item.kind, item.arms
    if _states_result(item):
        return str(said | {"name": "", "call": ""})
    if isinstance(item, Criterion):
        return item.text
    return str(said.get("symbol", "")).partition(":")[2] or None


def _name(item: Model) -> str:
    if isinstance(item, Criterion):
        return item.id
    said, named = _said(item), getattr(item, "id", None) or getattr(item, "name", None)
    if isinstance(item, Measure):
        return item.name.split(" >")[0].split(" <")[0]
    key = next((key for key in IDENTITIES if key in said), None)
    return str(named or (said[key] if key else ", ".join(f"{name} {value}" for name, value in said.items())))


def _said(item: Model) -> dict[str, Any]:
    return item.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _plain(item: Model) -> dict[str, Any]:
    return item.model_dump(mode="json", by_alias=True)


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
