"""What calls and logs of a training step show: their order, windows, the loss scale, norms, last values."""

from collections.abc import Iterator, Sequence

from gates.check import Said
from gates.evidence.recorded_orders import BACKWARD, ENDS, Happened, broken_in, pairs
from gates.evidence.recorded_step import Attempt, Recorded, StepRecording
from gates.model import Level, Outcome, Severity
from gates.task.probes import Need

NEAR = 1e-3
ONE_MEAN, AT_EACH = "1 time the mean", "the loss scale at each step"
FULL_WINDOWS = "Divide by the number of backward passes that the window has."


def unseen(why: str, *, needed: bool) -> Said:
    """Say that something could not be seen; that leaves a verdict open only where it is needed."""
    level, fix = (Level.MUST, "Make the training step show it, on a CPU.") if needed else (Level.ADVISORY, "")
    return Said(Outcome.UNKNOWN, f"Not seen: {why}.", "not seen", level=level, remediation=fix)


def absent(why: str, *, needed: bool) -> Said:
    """Say that there is nothing to see, which is a failure where it is needed."""
    said = f"{why[0].upper()}{why[1:]}."
    if not needed:
        return Said(Outcome.NOT_APPLICABLE, said, "nothing to see", level=Level.ADVISORY)
    impact = "What the training step is to show does not happen in it."
    fix = "Fix the training step, or take this out of its 'needs'."
    wanted = "what the training step 'needs'"
    return Said(Outcome.FAILED, said, "absent", expected=wanted, impact=impact, remediation=fix)


def judge_order(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge the calls of each scaler with each of its optimizers; a line is told of once, and a rule once a file."""
    told: set[tuple[str, str]] = set()
    run = step.plain
    for breach in broken_in(run.events, step.orders, whole=run.whole):
        where = breach.place.location
        keys = {(breach.rule.rule, where.path if where else ""), ("line", str(where))}
        if not keys & told:
            told |= keys
            rule = breach.rule
            path = " -> ".join(f"{event.word} {event.location or '(not in the project)'}" for event in breach.trace)
            level = Level.MUST if rule.severity in {Severity.CRITICAL, Severity.HIGH} else Level.ADVISORY
            about = ("the order of a step", rule.impact, rule.fix, rule.rule, level)
            yield Said(Outcome.FAILED, f"{rule.rule}: {rule.problem} {path}", path, where, *about)
    if not pairs(run.events):
        why = "no backward pass and step of a torch optimizer was seen"
        yield Said(Outcome.UNKNOWN, f"The order of calls was not seen: {why}.", "not seen", level=Level.ADVISORY)
    elif not told:
        steps = sum(event.word in ENDS for event in run.events)
        first = next((event.location for event in run.events if event.word in ENDS), None)
        yield Said(Outcome.PASSED, f"The calls of {steps} steps happened in the right order.", f"{steps} steps", first)


def judge_windows(run: Recorded) -> Iterator[Said]:
    """Tell of a step on fewer backward passes than its mean is over, where other steps have them all."""
    windows = list(_windows(run.events))
    counts = {len(one) for one in windows if len(one) > 1 and abs(sum(event.share for event in one) - 1) < NEAR}
    for one in windows:
        asked = round(1 / one[0].share)
        if asked in counts and len(one) < asked and len({event.share for event in one}) == 1:
            told = f"A step on {len(one)} backward passes divides their sum by {asked}."
            why = ("The step of an incomplete window is too small.", FULL_WINDOWS, "partial window", Level.ADVISORY)
            times = f"{len(one) / asked:.2g} times the mean"
            yield Said(Outcome.FAILED, told, times, one[-1].location, "the mean", *why)
            return


def judge_mean(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge whether the losses of each step's backward passes, each with its share, add up to one mean."""
    windows = list(_windows(step.plain.events))
    wrong = next((one for one in windows if abs(sum(event.share for event in one) - 1) > NEAR), None)
    if wrong:
        times = f"{sum(event.share for event in wrong):.3g} times the mean"
        passes = f"{len(wrong)} backward pass{'es' if len(wrong) > 1 else ''}"
        impact = "The step is too large or too small, as if it had another learning rate."
        fix = "Call backward once for each batch of a window, on its loss divided by the number of batches."
        told = f"A step on {passes} uses {times} of their losses."
        yield Said(Outcome.FAILED, told, times, wrong[-1].location, ONE_MEAN, impact, fix, "mean")
    elif not windows or any(not event.whole for one in windows for event in one):
        yield unseen("what losses are divided by, as no whole graph of a backward pass was read", needed=True)
    else:
        most, place = max(map(len, windows)), windows[0][-1].location
        told = f"Each of {len(windows)} steps uses the mean of its losses, of {most} backward passes at most."
        yield Said(Outcome.PASSED, told, ONE_MEAN, place, ONE_MEAN)


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


BESIDE = 0.05


def judge_logged(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge whether the scale of each scaler is in what was logged or returned, at each step, also where it changes."""
    runs = [run for run in (step.plain, step.overflow) if run is not None and run.complete]
    scalers = _scalers([attempt for run in runs for attempt in run.attempts])
    names = {scaler: _names(runs, scaler) for scaler in scalers}
    steps = sum(len(run.attempts) for run in runs)
    if not any(run.logged for run in runs):
        yield absent("nothing was logged or returned by this training step", needed=True)
    elif all(names.values()):
        shown = ", ".join(sorted(set().union(*names.values()))[:3])
        also = ", also where an overflow lowered it" if len(runs) > 1 else ""
        told = f"The loss scale was logged at each of {steps} steps, as {shown}{also}."
        yield Said(Outcome.PASSED, told, shown, expected=AT_EACH)
    else:
        keys = sorted({name for run in runs for record in run.logged for name in record.values})
        unlogged = next(scaler for scaler in scalers if not names[scaler])
        whose = f" of scaler {unlogged}" if len(scalers) > 1 else ""
        told = f"No logged value is the loss scale{whose} at each step."
        why = ("A collapsing scale would not be seen.", "Log scaler.get_scale() with each step's other values.")
        yield Said(Outcome.FAILED, told, f"logged: {', '.join(keys[:8])}", None, AT_EACH, *why, "scale not logged")


def _scalers(attempts: Sequence[Attempt]) -> list[int | None]:
    """Return the scalers to be logged: those that scale, before those that only might, before none at all."""
    might = {attempt.scaler for attempt in attempts if attempt.scaler is not None}
    scale = {attempt.scaler for attempt in attempts if attempt.scaler is not None and attempt.scale != 1.0}
    return [*sorted(scale or might)] or [None]


def _names(runs: Sequence[Recorded], scaler: int | None) -> set[str]:
    """Return the names under which the scale of a scaler was logged in each run that it stepped in."""
    stepped = [(run, used) for run in runs if (used := _used(run, scaler))]
    found = [{name for name, values in _columns(run) if _is_scale(used, values)} for run, used in stepped]
    return set.intersection(*found) if found else set()


def _used(run: Recorded, scaler: int | None) -> list[float | None]:
    """Return the scales that a scaler stepped with, once for all of the steps between two of its updates."""
    mine = [attempt for attempt in run.attempts if attempt.scaler == scaler]
    return [
        attempt.scale
        for i, attempt in enumerate(mine)
        if not i or attempt.window is None or attempt.window != mine[i - 1].window
    ]


def _columns(run: Recorded) -> Iterator[tuple[str, list[float | None]]]:
    """Yield each name under which something was logged, and where, with its values."""
    for to, name in sorted({(record.to, name) for record in run.logged for name in record.values}):
        yield f"{name} ({to})", [one.values[name] for one in run.logged if one.to == to and name in one.values]


def _is_scale(used: list[float | None], values: list[float | None]) -> bool:
    """Return whether values are the scale of each step: as it was in the step, or after it."""
    later = len(used) > 1 and len(values) >= len(used) and _in_order(used[1:], values[:-1])
    return later or _in_order(used, values)


def _in_order(wanted: list[float | None], values: list[float | None]) -> bool:
    """Whether the wanted values are among the others, in their order, and nothing but scales is."""
    rest, scales = iter(values), {*wanted, *values[-1:]}
    return bool(wanted) and all(any(value == each for value in rest) for each in wanted) and set(values) <= scales


def judge_last_values(run: Recorded) -> Iterator[Said]:
    """Tell of the numbers that end, in what was logged or returned, as infinite or as none at all."""
    last = {name: (value, record) for record in run.logged for name, value in record.values.items()}
    for name, (value, record) in last.items():
        if value is None:
            told = f"The last value of {name!r} ({record.to}) is not finite."
            why = ("What is reported says nothing.", "Compute sums and metrics in float32.", f"not finite {name}")
            about = ("not finite", record.location, "a finite number", *why, Level.SHOULD)
            yield Said(Outcome.FAILED, told, *about)


def judge_norms(run: Recorded) -> Iterator[Said]:
    """Tell of a logged value that is, step for step, the length of the gradients times the loss scale."""
    first = next((one for one in run.compared if one.length), None)
    if first is None:
        return
    mine = [one for one in run.compared if one.optimizer == first.optimizer]
    scales = [attempt.scale or 1.0 for attempt in run.attempts if attempt.optimizer == first.optimizer]
    wanted = [one.length * scale for one, scale in zip(mine, scales, strict=False) if one.length and scale >= 2]
    for name, values in _columns(run):
        runs = (zip(wanted, values[i:], strict=False) for i in range(len(values) - len(wanted) + 1))
        if len(wanted) > 1 and any(all(abs((got or 0) / want - 1) < BESIDE for want, got in pairs) for pairs in runs):
            told = f"The logged value {name} is the length of the gradients times the loss scale."
            impact = "The log shows the loss scale, not the gradients."
            fix, subject = "Unscale the gradients before their norm is taken.", f"scaled norm {name}"
            about = (first.location, f"{first.length:g}", impact, fix, subject, Level.SHOULD)
            yield Said(Outcome.FAILED, told, f"{values[0]:g}", *about)
