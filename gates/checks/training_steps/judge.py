"""The part of the business logic gate that judges training steps by what was recorded while they ran."""

from collections.abc import Callable, Iterator, Sequence

from gates.check import Said
from gates.checks.training_steps import aspects
from gates.checks.training_steps.aspects import Missing, absent, columns, fault, hidden, unseen
from gates.evidence._probes import Aspect, ProbeCheck
from gates.evidence.recorded_step import ENDS, Attempt, Overflowed, Recorded, Recording, StepRecording, broken_in, pairs
from gates.model import GRAVE, Level, Outcome, Row
from gates.task.task import Need, TrainingStep

NEAR = 1e-6
STOPPED = 2  # steps that a training may lose after an overflow


def judge_overflow(step: StepRecording, needs: frozenset[Need]) -> Iterator[Said]:
    """Judge what became of a step whose gradients were made infinite."""
    run, needed = step.overflow, Need.OVERFLOW in needs
    if run is None:
        if not step.plain.complete or not step.plain.attempts:
            yield unseen("the training step itself was not seen to its end", needed=needed)
        elif why := hidden(step.plain):
            yield unseen(why, needed=needed)
        else:
            why = "no scaler was used in this training step, so nothing is asked to handle an overflow"
            yield absent(why, needed=needed)
        return
    by_itself = run.process is not None and not run.process.timed_out
    if (crashed := by_itself and run.injected and not run.complete and not run.problem) and run.process:
        told = f"The training step crashes after an overflow: {run.error or run.process.last_words}"
        yield fault("crash", told, run.process.ended, run.crash)
    for overflow in run.overflows:
        yield from _judge(overflow, run, needed=needed)
    missing = len(step.plain.attempts) - len(run.attempts)
    if run.complete and run.overflows and not run.steps_after_overflow and missing >= STOPPED:
        told = f"After an overflow no step was taken any more, where {missing} follow without one."
        yield fault("training stopped", told, "no step after the overflow", run.overflows[0].location)
    if not run.overflows and not crashed:
        ended = run.process.ended if run.process else "not run"
        why = run.problem or ("no gradient could be made infinite" if run.complete else ended)
        yield unseen(f"an overflow: {why}", needed=True)


def _judge(seen: Overflowed, run: Recorded, *, needed: bool) -> Iterator[Said]:
    """Judge what became of a step whose gradients were infinite when it was taken, or left out."""
    applied = f"{seen.changed} parameters changed"
    if seen.changed and seen.finite_at_step:
        before, after = seen.scale_before or 1.0, seen.scale_after
        if not seen.swallowed or after is None or before == 1.0 or after < before:
            yield unseen("an overflow: the gradients were made finite before the step", needed=needed)
            return
        why = "the infinite gradient was made finite, the step was taken"
        told = f"An overflow was hidden from the scaler: {why}, and the loss scale stays at {after:g}."
        yield fault("overflow hidden", told, applied, seen.location)
        return
    if seen.changed:
        told = f"An overflow was applied: {applied} in a step with an infinite gradient."
        yield fault("overflow applied", told, applied, seen.location)
        return
    if names := ", ".join(seen.state_changed):
        told = f"A step with an infinite gradient was left out, but changed the optimizer's {names}."
        yield fault("moments changed", told, names, seen.location)
    scale = list(_scale(seen))
    yield from scale
    if not scale and not seen.state_changed:
        fell = seen.scale_before is not None and seen.scale_after is not None and seen.scale_before != seen.scale_after
        lowered = f", and the scale went from {seen.scale_before:g} to {seen.scale_after:g}" if fell else ""
        after_it = f"; {run.steps_after_overflow} more steps followed" if run.steps_after_overflow else ""
        told = f"A step with an infinite gradient was left out: not a bit of the parameters changed{lowered}{after_it}."
        yield Said(Outcome.PASSED, told, "left out", seen.location, expected="not a bit changes")


def _scale(seen: Overflowed) -> Iterator[Said]:
    before, after, backoff = seen.scale_before, seen.scale_after, seen.backoff
    if before is None or after is None or backoff is None or backoff >= 1 or before == 1.0:
        return
    expected = max(before * backoff, seen.least or 0.0)
    if abs(after - expected) > NEAR * expected:
        told = f"After an overflow the loss scale is {after:g}, where {before:g} times {backoff:g} is {expected:g}."
        own = {"expected": f"{expected:g}", "level": Level.MUST if after >= before else Level.ADVISORY}
        if after < expected:
            own["impact"] = "Small gradients vanish in float16 until the scale has grown again."
        yield fault("scale after overflow", told, f"{after:g}", seen.location, **own)


def judge_schedule(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge whether the learning rate moves with a step that was left out."""
    skipped = next((seen for seen in (step.overflow.overflows if step.overflow else ()) if not seen.changed), None)
    if skipped is None or len({attempt.lr for attempt in step.plain.attempts}) < 2:
        why = "no step was left out" if skipped is None else "the learning rate never changes"
        yield absent(f"{why} in this training step, so nothing is seen of its schedule", needed=False)
    elif skipped.rates_before != skipped.rates_after:
        old, new = skipped.rates_before[0] or 0, skipped.rates_after[0] or 0
        told = f"The learning rate went from {old:g} to {new:g} with a step that was left out."
        yield fault("schedule", told, f"{new:g}", skipped.location, expected=f"{old:g}")
    else:
        told = "The learning rate did not move with a step that was left out."
        yield Said(Outcome.PASSED, told, "not moved", skipped.location, level=Level.ADVISORY)


def judge_order(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge the calls of each scaler with each of its optimizers; a line is told of once, and a rule once a file."""
    told: set[tuple[str, str]] = set()
    run = step.plain
    for breach in broken_in(run.events, step.orders, whole=run.complete):
        where, rule = breach.place.location, breach.rule
        keys = {(rule.rule, where.path if where else ""), ("line", str(where))}
        if not keys & told:
            told |= keys
            path = " -> ".join(f"{event.word} {event.location or '(not in the project)'}" for event in breach.trace)
            level = Level.MUST if rule.severity in GRAVE else Level.ADVISORY
            about = ("the order of a step", rule.impact, rule.fix, rule.rule, level)
            yield Said(Outcome.FAILED, f"{rule.rule}: {rule.problem} {path}", path, where, *about)
    if not pairs(run.events):
        why = "no backward pass and step of a torch optimizer was seen"
        yield Said(Outcome.UNKNOWN, f"The order of calls was not seen: {why}.", "not seen", level=Level.ADVISORY)
    elif not told:
        steps = sum(event.word in ENDS for event in run.events)
        first = next((event.location for event in run.events if event.word in ENDS), None)
        yield Said(Outcome.PASSED, f"The calls of {steps} steps happened in the right order.", f"{steps} steps", first)


def judge_logged(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge whether the scale of each scaler is in what was logged or returned, at each step, also where it changes."""
    runs = [run for run in (step.plain, step.overflow) if run is not None and run.complete]
    scalers = _scalers([attempt for run in runs for attempt in run.attempts])
    names = {scaler: _names(runs, scaler) for scaler in scalers}
    if any(event.word == "scaled_backward" for run in runs for event in run.events) and scalers == [None]:
        yield unseen("no step was taken through the scaler of its loss, so there is no scale to compare", needed=True)
    elif not any(run.logged for run in runs):
        yield absent("nothing was logged or returned by this training step", needed=True)
    elif all(names.values()):
        shown = ", ".join(sorted(set().union(*names.values()))[:3])
        also = ", also where an overflow lowered it" if len(runs) > 1 else ""
        told = f"The loss scale was logged at each of {sum(len(run.attempts) for run in runs)} steps, as {shown}{also}."
        yield Said(Outcome.PASSED, told, shown, expected="the loss scale at each step")
    else:
        keys = sorted({name for run in runs for record in run.logged for name in record.values})
        whose = f" of scaler {next(each for each in scalers if not names[each])}" if len(scalers) > 1 else ""
        told = f"No logged value is the loss scale{whose} at each step."
        yield fault("scale not logged", told, f"logged: {', '.join(keys[:8])}", None)


def _scalers(attempts: Sequence[Attempt]) -> list[int | None]:
    """Return the scalers to be logged: those that scale, before those that only might, before none at all."""
    scale = {attempt.scaler for attempt in attempts if attempt.scaler is not None and attempt.scale != 1.0}
    return [*sorted(scale or {attempt.scaler for attempt in attempts if attempt.scaler is not None})] or [None]


def _names(runs: Sequence[Recorded], scaler: int | None) -> set[str]:
    """Return the names under which the scale of a scaler was logged in each run that it stepped in."""
    stepped = [(run, used) for run in runs if (used := _used(run, scaler))]
    found = [{name for name, values in columns(run) if _is_scale(used, values)} for run, used in stepped]
    return set.intersection(*found) if found else set()


def _used(run: Recorded, scaler: int | None) -> list[float | None]:
    """Return the scales that a scaler stepped with, once for all of the steps between two of its updates."""
    own = [attempt for attempt in run.attempts if attempt.scaler == scaler]
    return [a.scale for i, a in enumerate(own) if not i or a.window is None or a.window != own[i - 1].window]


def _is_scale(used: list[float | None], values: list[float | None]) -> bool:
    """Return whether values are the scale of each step: as it was in the step, or after it."""
    return (1 < len(used) <= len(values) and _in_order(used[1:], values[:-1])) or _in_order(used, values)


def _in_order(wanted: list[float | None], values: list[float | None]) -> bool:
    """Whether the wanted values are among the others, in their order, and nothing but scales is."""
    rest, scales = iter(values), {*wanted, *values[-1:]}
    return bool(wanted) and all(any(value == each for value in rest) for each in wanted) and set(values) <= scales


Judge = Callable[[StepRecording, frozenset[Need]], Iterator[Said]]
Kind = Aspect[TrainingStep, StepRecording]


def _aspect(name: str, words: str, look: Judge, level: Level | None = Level.MUST) -> Kind:
    def judged(step: TrainingStep, seen: StepRecording) -> list[Said]:
        said = list(look(seen, frozenset(step.needs)))
        if name == "run" or seen.plain.complete:
            return said
        failed = [one for one in said if one.outcome is Outcome.FAILED and not isinstance(one, Missing)]
        # what is missing may only not have happened yet
        return failed or [unseen("the training step was not seen to its end", needed=False)]

    return Aspect(lambda step: f"{step.name} {words}", judged, name, lambda _step: level)


ASPECTS = (
    _aspect("run", "runs to its end", aspects.judge_run),
    _aspect("order", "calls in the right order", judge_order),
    _aspect("precision", "computes in the precision that it scales for", aspects.judge_precision),
    _aspect("gradients", "steps with the true gradients", aspects.judge_gradients),
    _aspect("parameters", "keeps its parameters in float32", aspects.judge_parameters),
    _aspect("overflow", "leaves out a step that overflows", judge_overflow),
    _aspect("schedule", "keeps the learning rate in a step left out", judge_schedule, None),
    _aspect("logging", "logs the loss scale", judge_logged),
    _aspect("mean", "uses the mean over its backward passes", aspects.judge_mean),
)
ASKED = {"logging": Need.LOGGED_SCALE, "mean": Need.MEAN}  # aspects that a task has to ask for
# A loss that was not scaled is a failure of its own, so that a needed scaler was seen where nothing failed.
SHOWN_BY = {
    Need.BF16: "precision",
    Need.AUTOCAST: "precision",
    Need.GRADIENTS: "gradients",
    Need.OVERFLOW: "overflow",
    Need.LOGGED_SCALE: "logging",
    Need.MEAN: "mean",
}


def _row(step: StepRecording) -> tuple[str, ...]:
    run = step.plain
    ended = run.problem or (run.process.ended if run.process else "not run")
    products = sorted({name for event in run.events for name in event.products})
    errors = [one.error for one in run.compared if one.error is not None and not one.why_not]
    params = sorted({name for attempt in run.attempts for name in attempt.params})
    off, steps = f"{max(errors):.1e}" if errors else "-", str(len(run.attempts))
    made = (", ".join(products) or "-", ", ".join(params) or "-")
    return ended, _overflow(step.overflow), off, steps, *made, step.name


def _overflow(run: Recorded | None) -> str:
    if run is None or not run.injected:
        return "-"
    return ", ".join(f"{o.changed} parameters changed" if o.changed else "left out" for o in run.overflows) or "crash"


CHECK = ProbeCheck[TrainingStep, StepRecording](
    name="training_steps",
    gate="business-logic",
    order=80,
    rule="BL006",
    evidence=Recording,
    aspects=lambda step: tuple(one for one in ASPECTS if ASKED.get(one.name) in {None, *step.needs}),
    promise="the training step does right",
    title="Training Steps",
    text="Run on the CPU, recorded; what they show is semantics, never speed.",
    columns=("Ended", "Overflow", "Gradients off by", "Steps", "Matrix products", "Parameters", "Call"),
    rows=lambda _step, seen, _said: [_row(seen)],
    doubt="",
    remedy="Make the training step show it, on a CPU.",
    needed=lambda step: {SHOWN_BY[need] for need in step.needs if need in SHOWN_BY},
    row=Row.TEST,
    label="recorded run",
).check()
