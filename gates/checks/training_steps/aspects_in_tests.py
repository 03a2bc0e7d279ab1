"""What the recorded tests of a criterion show of the project's code: order, precision, parameters, overflows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gates.checks.training_steps.aspects import HALF, hidden
from gates.checks.training_steps.collect import RecordedTest
from gates.checks.training_steps.orders import BACKWARD, said_of
from gates.checks.training_steps.overflow import judge_overflowed
from gates.evidence.recorded_step import Attempt, Happened, Overflowed
from gates.evidence.runtime_orders import ENDS, UNCLEARED, Breach, RuntimeOrder, breaches, parsed
from gates.judging import Said
from gates.model import Level, Location, Outcome
from gates.project.files import is_among
from gates.task.recorded import Seen


@dataclass(frozen=True)
class Looked:
    """The tests to look at, the orders to judge their calls by, and what must be seen in one of them."""

    tests: Sequence[RecordedTest]
    orders: Sequence[RuntimeOrder]
    implementation: Sequence[str]
    needs: frozenset[Seen]

    def is_ours(self, place: Location | None) -> bool:
        """Return whether a place lies in the implementation."""
        return place is not None and is_among(place.path, self.implementation)

    def backward(self) -> Iterator[tuple[RecordedTest, Happened]]:
        """Yield the backward passes that the implementation makes."""
        for test in self.tests:
            for event in test.run.events:
                if event.word in BACKWARD and self.is_ours(event.location):
                    yield test, event

    def attempts(self) -> Iterator[tuple[RecordedTest, Attempt]]:
        """Yield the steps that a call of the project's code by a test led to."""
        for test in self.tests:
            for attempt in test.run.attempts:
                if attempt.driven is not None and self.is_ours(attempt.location):
                    yield test, attempt


def judge_order(looked: Looked) -> Iterator[Said]:
    """Judge the calls that one call of the project's code by a test led to, up to its last step."""
    told: set[tuple[str, str]] = set()
    compiled = parsed(looked.orders)
    for test in looked.tests:
        for calls in _calls(test):
            for breach in breaches(calls, compiled, ends=("done",)):
                keys = {(breach.rule.rule, str(breach.place.location)), ("line", str(breach.place.location))}
                if _counts(breach, looked, calls) and not keys & told:
                    told |= keys
                    said = said_of(breach)
                    yield replace(said, message=f"{said.message} (in {test.id})")
    steps = list(looked.attempts())
    own = sum(test.own_steps for test in looked.tests)
    beside = f"; {own} steps that tests take themselves are not judged" if own else ""
    if not steps:
        yield Said(Outcome.NOT_APPLICABLE, f"No call of the project's code by a test led to a step{beside}.", "no step",
                   level=Level.ADVISORY)  # fmt: skip
    elif not told:
        tests = {test.id: test.steps for test, _ in steps}
        count = sum(tests.values())
        yield Said(Outcome.PASSED, f"The calls of {count} steps in {len(tests)} tests happened in the right order"
                   f"{beside}.", f"{count} steps", steps[0][1].location)  # fmt: skip


def _calls(test: RecordedTest) -> Iterator[list[Happened]]:
    """Yield the events of each call, up to the last step that it came to the end of."""
    last: dict[int, int] = {}
    for attempt in test.run.attempts:
        if attempt.driven is not None:
            last[attempt.driven] = max(last.get(attempt.driven, 0), attempt.after)
    events: dict[int, list[Happened]] = defaultdict(list)
    for i, event in enumerate(test.run.events):
        if event.driven is not None and i < last.get(event.driven, 0) + 1:
            events[event.driven].append(event)
    yield from (events[call] for call in sorted(events))


def _counts(breach: Breach, looked: Looked, calls: Sequence[Happened]) -> bool:
    """Whether a fault is the project's: at its line, and of gradients that the call itself used before."""
    if not looked.is_ours(breach.place.location):
        return False
    if breach.rule.order != UNCLEARED.order:
        return True
    before = calls[: next(i for i, event in enumerate(calls) if event is breach.place)]
    return sum(event.word in ENDS and event.optimizers == breach.place.optimizers for event in before) > 1


def judge_precision(looked: Looked) -> Iterator[Said]:
    """Judge whether what must be seen of scaling and of half precision was."""
    backward = list(looked.backward())
    scaled = [(test, event) for test, event in backward if event.word == "scaled_backward" and event.scale != 1.0]
    half = [(test, event) for test, event in backward if set(event.products) & HALF]
    for need, seen, what in (
        (Seen.SCALER, scaled, "The project's code scales a loss"),
        (Seen.AUTOCAST, half, "The project's code computes a loss in half precision"),
    ):
        if need in looked.needs and not seen:
            yield _missing(f"{what} in none of {len(looked.tests)} recorded tests.", need, looked.tests)
    if scaled or half:
        shown = ", ".join(sorted({name for _, event in backward for name in event.products})) or "none"
        test, event = (scaled or half)[0]
        count = len({test.id for test, _ in scaled})
        yield Said(Outcome.PASSED, f"The project's code scales the loss in {count} tests; matrix products in {shown} "
                   f"(first in {test.id}).", shown, event.location)  # fmt: skip
    elif not looked.needs & {Seen.SCALER, Seen.AUTOCAST}:
        yield Said(Outcome.NOT_APPLICABLE, "The project's code uses no mixed precision in these tests.", "none",
                   level=Level.ADVISORY)  # fmt: skip


def judge_parameters(looked: Looked) -> Iterator[Said]:
    """Warn of a scaler that steps on parameters in half precision."""
    scaled = [(test, attempt) for test, attempt in looked.attempts() if attempt.scaler and (attempt.scale or 1) != 1]
    bad = next(((test, attempt) for test, attempt in scaled if set(attempt.params) & HALF), None)
    if bad:
        names = ", ".join(bad[1].params)
        yield Said(
            Outcome.FAILED, f"A scaled step is taken on parameters in {names} (in {bad[0].id}).", names,
            bad[1].location, expected="float32", level=Level.ADVISORY, subject="half parameters",
            impact="Small updates are rounded away.",
            remediation="Keep the parameters in float32, and let autocast cast them.",
        )  # fmt: skip
    elif scaled:
        names = ", ".join(sorted({name for _, attempt in scaled for name in attempt.params}))
        yield Said(Outcome.PASSED, f"Scaled steps are taken on parameters in {names}.", names,
                   scaled[0][1].location, level=Level.ADVISORY)  # fmt: skip
    else:
        yield Said(Outcome.NOT_APPLICABLE, "No scaled step was seen.", "none", level=Level.ADVISORY)


def judge_overflow(looked: Looked) -> Iterator[Said]:
    """Judge what became of steps whose gradients were infinite, whoever made them so."""
    seen = [(test, one) for test in looked.tests for one in test.run.overflows if _is_the_projects(one, looked)]
    good: list[tuple[RecordedTest, Overflowed]] = []
    told: set[str] = set()
    for test, one in seen:
        said = list(judge_overflowed(one))
        if any(each.outcome is Outcome.PASSED for each in said):
            good.append((test, one))
        elif one.driven is not None and str(one.location) not in told:
            told.add(str(one.location))
            yield from (replace(each, message=f"{each.message} (in {test.id})") for each in said)
    if good and not told:
        test, one = good[0]
        tests = len({each.id for each, _ in good})
        yield Said(
            Outcome.PASSED, f"{len(good)} steps with an infinite gradient were left out in {tests} tests, not a bit "
            f"changed (first in {test.id}).", f"{len(good)} left out", one.location, expected="not a bit changes",
        )  # fmt: skip
    elif not told:
        why = f"In none of {len(looked.tests)} recorded tests does the project's code leave out a step that overflows."
        none = Said(Outcome.NOT_APPLICABLE, why, "no overflow", level=Level.ADVISORY)
        yield _missing(why, Seen.OVERFLOW, looked.tests) if Seen.OVERFLOW in looked.needs else none


def _is_the_projects(one: Overflowed, looked: Looked) -> bool:
    """Whether the branch that handled an overflow is the project's: the step is, or the scaler's class."""
    return one.own or (one.driven is not None and looked.is_ours(one.location))


def _missing(why: str, need: Seen, tests: Sequence[RecordedTest]) -> Said:
    device = next((f" In {test.id}, {said}." for test in tests if (said := hidden(test.run))), "")
    return Said(
        Outcome.UNKNOWN, f"{why}{device}", "not seen", expected=f"{need} (needs)", subject=need.value,
        remediation="Test the function that takes the step, on the CPU, with what must be seen.",
    )  # fmt: skip
