"""Assertions that are seen, as they run, to hold whatever the code does: a method that is not called, all of none."""

import re
import sys
import types
from collections.abc import Iterator

LAZY = (filter, map, zip)
NUMBERS = (int, float)
PREDICATE = re.compile(r"_*(is|has|can|was|should|equals?|matches|contains|exists|valid|same)(_|$|[A-Z])|is[a-z]+$")
OF_MOCKS = re.compile(r"(not_|was_|is_|has_|been_|any_)*(called|calls?|awaited|awaits?|assert)(_|$|\()")


class Vain:
    """The lines of the test that runs in which such an assertion was executed; `count` is told of each."""

    def __init__(self, count: list[int]) -> None:
        self.lines: list[int] = []
        self.mistaken: list[int] = []  # those of them that would have asked, had they been written another way
        self._kept: list[int] = []  # those of them on a coroutine that was kept under a name
        self._count = count
        self._gone_through: set[int] = set()

    def forget(self) -> None:
        """Begin with a test."""
        self.lines.clear()
        self.mistaken.clear()
        self._kept.clear()

    def mistake(self, asserted: int) -> int:
        """Return the line of the first that would have asked, or 0; what is kept is one where it is all there is."""
        return min([*self.mistaken, *(() if asserted else self._kept)], default=0)

    def begins(self, number: int) -> None:
        """Begin with an assertion, of which nothing has been gone through yet."""
        self._gone_through.discard(number)

    def each(self, number: int, value: object) -> object:
        """Note that an assertion on all parts of something has come to one of them."""
        self._gone_through.add(number)
        return value

    def all_of(self, number: int, line: int) -> None:
        """Note an assertion on all parts that has held; of none all holds."""
        if number not in self._gone_through:
            self._found(line)

    def value(self, value: object, name: str | None, line: int) -> object:
        """Note a value that was asserted where it is true by its kind: a method, or what is still to be awaited.

        `name` is that of the attribute that it was written as, `name()` of one that is called, and `None` where it was
        kept under a name before.
        """
        if _is_made_up(value, name or ""):
            self._found(line)
            if OF_MOCKS.match(name or ""):
                self.mistaken.append(line)
            return value
        lazy = isinstance(value, (types.CoroutineType, types.GeneratorType, *LAZY))
        if lazy or _is_method(value, name or ""):
            self._found(line)
            if name is not None and (lazy or PREDICATE.match(name)):
                self.mistaken.append(line)
            elif name is None and isinstance(value, types.CoroutineType):
                self._kept.append(line)
        return value

    def titled(self, value: object, message: object, line: int, plain: bool) -> Iterator[object]:
        """Note a value that was asserted beside another of its kind, which is no message but what it should be."""
        texts = isinstance(value, str) and isinstance(message, str)
        expected = plain and len(str(message).split()) == 1 if texts else _are_alike(value, message)
        if value and expected:
            self._found(line)
        yield from (value, message)

    def _found(self, line: int) -> None:
        self._count[2] += 1
        self.lines.append(line)


def _is_method(value: object, name: str) -> bool:
    """Return whether a value is a method that the class of its instance gives to all of them."""
    if not isinstance(value, types.MethodType | types.BuiltinMethodType) or not name:
        return False
    owner = value.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        return False
    kinds = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
    given = next((vars(kind)[name] for kind in kinds if name in vars(kind)), None)
    inner = getattr(given, "__func__", given)
    return inner is getattr(value, "__func__", inner) and getattr(value, "__name__", "") == name and inner is not None


def _is_made_up(value: object, name: str) -> bool:
    """Return whether a value is what a mock made of the name that it was asked for: it is true whatever happened."""
    mock = sys.modules.get("unittest.mock")
    if mock is None or not name or not isinstance(value, mock.NonCallableMock):
        return False
    facts = vars(value)
    asked, called = name.removesuffix("()"), name.endswith("()")
    made = vars(facts["_mock_new_parent"]) if called and facts.get("_mock_new_name") == "()" else facts
    return made.get("_mock_new_name") == asked and made.get("_mock_new_parent") is not None


def _are_alike(value: object, message: object) -> bool:
    """Return whether two values are of one kind that is no message; a truth needs no other to be compared with."""
    if any(type(one).__name__ in {"bool", "bool_", "NoneType", "str"} for one in (value, message)):
        return False
    return type(value) is type(message) or (isinstance(value, NUMBERS) and isinstance(message, NUMBERS))
