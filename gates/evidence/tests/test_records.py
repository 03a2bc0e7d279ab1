"""What a test run is told in: one record a test; and where tests of the base are now."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from gates.code.syntax import texts
from gates.model import Location, Model
from gates.project.files import is_under
from gates.project.history import TwoStates
from gates.task.task import Task

Event: TypeAlias = dict[str, Any]
UNAWAITED = "was never awaited"  # Python's own words: its category is a plain RuntimeWarning


def function_of(test: str) -> str:
    """Return the test function of a node id, without its parameter set."""
    return test.partition("[")[0]


class TestOutcome(StrEnum):
    """How one test ended; `not run` is a test that was planned and has no end."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    NOT_RUN = "not run"


_GIVEN: set[str] = set()
BAD = frozenset({TestOutcome.FAILED, TestOutcome.ERROR})


class TestRecord(Model):
    """One planned test and how it ended: `crash` is where it failed, `reruns` how often a plugin ran it again."""

    __test__ = False

    id: str
    location: Location
    criteria: tuple[str, ...]
    outcome: TestOutcome
    duration_s: float
    message: str = ""
    crash: Location | None = None
    subtests_left_out: int = 0
    reruns: int = 0

    def model_post_init(self, _: object) -> None:
        """Share what pydantic keeps of which fields were given: of tens of thousands it is most of the memory."""
        object.__setattr__(self, "__pydantic_fields_set__", _GIVEN)

    @property
    def function(self) -> str:
        """Return the node id without the parameters: all cases of a test share it."""
        return function_of(self.id)

    @property
    def passed(self) -> bool:
        """Return whether all of the test was seen to pass: a subtest that was skipped was not."""
        return self.outcome is TestOutcome.PASSED and not self.subtests_left_out

    @property
    def ended(self) -> str:
        """Return how the test ended, in words."""
        if self.outcome is TestOutcome.PASSED and self.subtests_left_out:
            return f"{self.subtests_left_out} subtests skipped"
        return self.outcome.value

    @property
    def reason(self) -> str:
        """Return the first line of the reason."""
        return next(iter(self.message.strip().splitlines()), "no reason given")


class Out(StrEnum):
    """How a test, or a file of tests, came not to run."""

    DESELECTED = "deselected"
    SKIPPED = "skipped as a whole"
    UNCOLLECTED = "never collected"
    UNPLANNED = "never planned"


class LeftOut(Model):
    """A test, or a file or class of tests, that did not run, and why; what is `doubted` should have run."""

    id: str
    location: Location
    how: Out
    why: str = ""
    criteria: tuple[str, ...] = ()
    doubted: bool = False

    @property
    def said(self) -> str:
        """Return how it was left out, in words."""
        return f"{self.how.value}: {self.why}" if self.why else self.how.value


class CollectError(Model):
    """A file or class that pytest could not collect, and why."""

    id: str
    message: str


class Warned(Model):
    """A warning of the run, where it was raised, and in which test, if that is known."""

    category: str
    message: str
    location: Location
    test: str = ""


def followed(task: Task, states: TwoStates, *others: Task) -> Task:
    """Return the task bound to where the change has its code and tests, by what they say, or a name."""
    named = [path for one in (task, *others) for path in one.every_test]
    (found, now), symbols = moved_tests(named, states), moved_symbols(task, states)
    moved = {one: place for one, place in found.items() if one != place}
    criteria = []
    for c in task.criteria:
        tests = tuple(dict.fromkeys(e for path in c.tests for e in _led(path, moved, now, states)))
        code = tuple(e.model_copy(update={"symbol": symbols.get(e.symbol or "") or e.symbol}) for e in c.code)
        criteria.append(c.model_copy(update={"tests": tests, "code": code}))
    return task.model_copy(update={"criteria": tuple(criteria)})


def _led(path: str, moved: Mapping[str, str | None], now: Iterable[str], states: TwoStates) -> Iterator[str]:
    """Yield where a path of tests leads: to itself while anything of it is there or missed, and to what was moved."""
    bare, bracket, case = path.partition("[")
    places = [place for one, place in moved.items() if is_under(one, bare)]
    there = (states.root / bare.partition("::")[0]).exists()
    if not places or None in places or (there and ("::" not in bare or any(is_under(one, bare) for one in now))):
        yield path
    yield from (f"{place}{bracket}{case}" for place in places if place)


def moved_tests(paths: Iterable[str], states: TwoStates) -> tuple[dict[str, str | None], frozenset[str]]:
    """Return where each test of the files that differ is now, by its node id at the base, and all of today."""
    was, now = map(written_tests, states.changed(paths, ".py"))
    return found_again(was, now), frozenset(now)


def moved_symbols(task: Task, states: TwoStates) -> dict[str, str | None]:
    """Return where the definitions of the implementation are that the change took from their places, all as symbols."""
    was, now = (dict(_defined(side)) for side in states.changed(task.implementation, ".py"))
    return {one: place for one, place in found_again(was, now).items() if one != place}


def _defined(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the functions and classes of some files as symbols, each with what it says but for its name."""
    for path, content in files.items():
        module = path.removesuffix(".py").removeprefix("src/").removesuffix("/__init__").replace("/", ".")
        for name, text in texts(content).items():
            yield f"{module}:{name}", text.replace(repr(name.rpartition(".")[2]), "")


def found_again(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Return where tests or definitions are now: there, or else by what they say, or their name; `None` is nowhere."""
    places = {key: one for one, text in now.items() if one not in was for key in (one.rpartition(":")[2], text)}
    return {o: o if o in now else places.get(t) or places.get(o.rpartition(":")[2]) for o, t in was.items()}


def written_tests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the tests of some files by node id, each with what it says but for its name."""
    return {
        f"{path}::{name.replace('.', '::')}": text.replace(repr(own), "", 1)
        for path, content in files.items()
        for name, text in texts(content).items()
        if (own := name.rpartition(".")[2]).startswith("test")
    }
