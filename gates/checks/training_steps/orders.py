"""The order of a scaled step, judged on the calls that really happened."""

from collections.abc import Iterable, Iterator, Sequence

from gates.evidence.recorded_step import Happened, Recorded
from gates.evidence.runtime_orders import ENDS, Breach, RuntimeOrder, broken_in, pairs
from gates.judging import Said
from gates.model import Level, Location, Outcome, Severity

BACKWARD = {"backward", "scaled_backward"}
NEAR = 1e-3
SHOWN = 6


def judge_order(run: Recorded, orders: Iterable[RuntimeOrder]) -> Iterator[Said]:
    """Judge the calls of each scaler with each of its optimizers; a line is told of once, and a rule once a file."""
    told: set[tuple[str, str]] = set()
    for breach in broken_in(run, orders):
        where = breach.place.location
        keys = {(breach.rule.rule, where.path if where else ""), ("line", str(where))}
        if not keys & told:
            told |= keys
            yield said_of(breach)
    if not pairs(run.events):
        why = "no backward pass and step of a torch optimizer was seen"
        yield Said(Outcome.UNKNOWN, f"The order of calls was not seen: {why}.", "not seen", level=Level.ADVISORY)
    elif not told:
        steps = sum(event.word in ENDS for event in run.events)
        yield Said(Outcome.PASSED, f"The calls of {steps} steps happened in the right order.", f"{steps} steps",
                   _first(run.events))  # fmt: skip


def judge_windows(run: Recorded) -> Iterator[Said]:
    """Tell of a step on fewer backward passes than its mean is over, where other steps have them all."""
    windows = list(_windows(run.events))
    counts = {len(one) for one in windows if len(one) > 1 and abs(sum(event.share for event in one) - 1) < NEAR}
    for one in windows:
        asked = round(1 / one[0].share)
        if asked in counts and len(one) < asked and len({event.share for event in one}) == 1:
            yield Said(
                Outcome.FAILED,
                f"A step on {len(one)} backward passes divides their sum by {asked}.",
                f"{len(one) / asked:.2g} times the mean",
                one[-1].location,
                expected="the mean",
                level=Level.ADVISORY,
                subject="partial window",
                impact="The step of an incomplete window is too small.",
                remediation="Divide by the number of backward passes that the window has.",
            )
            return


def _windows(events: Sequence[Happened]) -> Iterator[list[Happened]]:
    """Yield the backward passes before each step, of each optimizer."""
    for optimizer in sorted({number for event in events for number in event.optimizers}):
        window: list[Happened] = []
        for event in events:
            if optimizer in event.optimizers and event.word in BACKWARD:
                window.append(event)
            elif optimizer in event.optimizers and event.word in {*ENDS, "zero_grad"}:
                if window and event.word in ENDS:
                    yield window
                window = []


def said_of(breach: Breach) -> Said:
    """Return what is to be said of a breach."""
    rule, trace = breach.rule, breach.trace
    shown = [*trace[: SHOWN - 1], trace[-1]] if len(trace) > SHOWN else list(trace)
    path = " -> ".join(f"{event.word} {event.location or '(not in the project)'}" for event in shown)
    blocks = rule.severity in {Severity.CRITICAL, Severity.HIGH}
    return Said(
        Outcome.FAILED, f"{rule.rule}: {rule.problem} {path}", path, breach.place.location,
        expected="the order of a step", impact=rule.impact, remediation=rule.fix, subject=rule.rule,
        level=Level.MUST if blocks else Level.ADVISORY,
    )  # fmt: skip


def _first(events: Sequence[Happened]) -> Location | None:
    return next((event.location for event in events if event.word in ENDS), None)
