"""What a test run is told in: one record a test, and the events that the witness plugin wrote."""

from enum import StrEnum
from typing import Any, TypeAlias

from gates.child.process import ProcessRun
from gates.model import Location, Model

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


BAD = frozenset({TestOutcome.FAILED, TestOutcome.ERROR})


class TestRecord(Model):
    """One planned test and how it ended; `crash` is the innermost line of a failure's traceback.

    `near` are other marks with what they name, if that looks like a criterion. `reruns` counts the failures that a
    plugin answered by running the test again.
    """

    __test__ = False

    id: str
    location: Location
    criteria: tuple[str, ...]
    near: tuple[tuple[str, str], ...] = ()
    outcome: TestOutcome
    duration_s: float
    message: str = ""
    crash: Location | None = None
    subtests_left_out: int = 0
    reruns: int = 0

    def now(self, planned: "TestRecord") -> "TestRecord":
        """Return the record of a test that ended before, as it is planned now."""
        told = {name: getattr(planned, name) for name in ("location", "criteria", "near")}
        return self.model_copy(update=told)

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
    """A test that did not run, or a file or class of tests, and why; `criteria` are those that markers give it to.

    What is `doubted` should have run, by all that can be read: no mark expression (`-m`) left it out, say.
    """

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


class Repeat(Model):
    """Another run of the same tests, in an order made from `seed`: how it ended, and each test in it."""

    seed: str
    process: ProcessRun
    outcomes: dict[str, TestOutcome]
    disagreements: tuple[str, ...]
    running: tuple[str, ...] = ()


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


def outcome_of(reports: list[Event]) -> TestOutcome:
    """Fold the phases of one test into its outcome: the worst counts, and without a teardown it has no end."""
    if any(r["outcome"] == "failed" and r["when"] == "call" for r in reports):
        return TestOutcome.FAILED
    if any(r["outcome"] == "failed" for r in reports):
        return TestOutcome.ERROR
    if not any(r["when"] == "teardown" for r in reports):
        return TestOutcome.NOT_RUN
    main = [r for r in reports if not r["subtest"]]
    if any(r["outcome"] == "skipped" for r in main):
        return TestOutcome.XFAILED if any(r["xfail"] for r in main) else TestOutcome.SKIPPED
    calls = [r for r in main if r["when"] == "call" and r["outcome"] == "passed"]
    if not calls:
        return TestOutcome.NOT_RUN
    return TestOutcome.XPASSED if calls[-1]["xfail"] else TestOutcome.PASSED
