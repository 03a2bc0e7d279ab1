"""The aspects of a recorded training step that only an overflow shows: the step left out, the scale, the schedule."""

from collections.abc import Iterator

from gates.check import Said, absent, unseen
from gates.checks.training_steps.aspects import hidden
from gates.checks.training_steps.collect import StepRecording
from gates.evidence.recorded_step import Overflowed, Recorded
from gates.model import Level, Outcome
from gates.task.probes import Need

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
            yield absent(
                "no scaler was used in this training step, so nothing is asked to handle an overflow", needed=needed
            )
        return
    crashed = _crashed(run)
    if crashed:
        yield crashed
    for overflow in run.overflows:
        yield from _judge(overflow, run, needed=needed)
    yield from _never_again(run, len(step.plain.attempts))
    if not run.overflows and not crashed:
        ended = run.process.ended if run.process else "not run"
        why = run.problem or ("no gradient could be made infinite" if run.complete else ended)
        yield unseen(f"an overflow: {why}", needed=True)


def _crashed(run: Recorded) -> Said | None:
    process = run.process
    if run.complete or process is None or process.timed_out or run.problem or not run.injected:
        return None
    what = run.error or process.last_words
    return Said(
        Outcome.FAILED, f"The training step crashes after an overflow: {what}", process.ended, run.crash,
        expected="the step is left out and training goes on",
        impact="Overflows are normal in float16; this one ends the training.",
        remediation="Mend the branch that handles an overflow, and test it.", subject="crash",
    )  # fmt: skip


def _never_again(run: Recorded, steps: int) -> Iterator[Said]:
    """Say so where no step is taken after an overflow, of several that the same training takes without one."""
    missing = steps - len(run.attempts)
    if run.complete and run.overflows and not run.steps_after_overflow and missing >= STOPPED:
        yield Said(
            Outcome.FAILED, f"After an overflow no step was taken any more, where {missing} follow without one.",
            "no step after the overflow", run.overflows[0].location, expected="training goes on",
            impact="One overflow, normal in float16, ends the training without a word.", subject="training stopped",
            remediation="Clear the gradients of a step that is left out: they stay infinite in the next window.",
        )  # fmt: skip


def _judge(seen: Overflowed, run: Recorded, *, needed: bool) -> Iterator[Said]:
    if seen.changed and seen.finite_at_step:
        yield _swallowed(seen) or unseen("an overflow: the gradients were made finite before the step", needed=needed)
        return
    after = f"; {run.steps_after_overflow} more steps followed" if run.steps_after_overflow else ""
    yield from judge_overflowed(seen, after)


def judge_overflowed(seen: Overflowed, after: str = "") -> Iterator[Said]:
    """Judge what became of a step whose gradients were infinite when it was taken, or left out."""
    where = seen.location
    if seen.changed:
        yield Said(
            Outcome.FAILED, f"An overflow was applied: {seen.changed} parameters changed in a step with an infinite "
            "gradient.", f"{seen.changed} parameters changed", where, expected="not a bit changes",
            impact="One overflow, normal in float16, ruins the model.", subject="overflow applied",
            remediation="Step with scaler.step(optimizer), which leaves out a step with infinite gradients.",
        )  # fmt: skip
        return
    if seen.state_changed:
        names = ", ".join(seen.state_changed)
        yield Said(
            Outcome.FAILED, f"A step with an infinite gradient was left out, but changed the optimizer's {names}.",
            names, where, expected="not a bit changes", impact="The next steps are wrong.", subject="moments changed",
            remediation="Do not touch the optimizer's state in a step that is left out.",
        )  # fmt: skip
    scale = list(_scale(seen))
    yield from scale
    if not scale and not seen.state_changed:
        fell = seen.scale_before is not None and seen.scale_after is not None and seen.scale_before != seen.scale_after
        lowered = f", and the scale went from {seen.scale_before:g} to {seen.scale_after:g}" if fell else ""
        yield Said(
            Outcome.PASSED, f"A step with an infinite gradient was left out: not a bit of the parameters changed"
            f"{lowered}{after}.", "left out", where, expected="not a bit changes",
        )  # fmt: skip


def _swallowed(seen: Overflowed) -> Said | None:
    """Return what is wrong with an infinite gradient that the scaler never came to see."""
    before, after = seen.scale_before, seen.scale_after
    if not seen.swallowed or before is None or after is None or before == 1.0 or after < before:
        return None
    return Said(
        Outcome.FAILED, f"An overflow was hidden from the scaler: the infinite gradient was made finite, the step was "
        f"taken, and the loss scale stays at {after:g}.", f"{seen.changed} parameters changed", seen.location,
        expected="not a bit changes", impact="Each step that overflows moves the model by what is left of its "
        "gradients, and the scale never falls.", subject="overflow hidden",
        remediation="Leave infinite gradients to scaler.unscale_ and scaler.step, which leave out the step.",
    )  # fmt: skip


def _scale(seen: Overflowed) -> Iterator[Said]:
    """Judge the scale after an overflow, where one scales."""
    before, after, backoff = seen.scale_before, seen.scale_after, seen.backoff
    if before is None or after is None or backoff is None or backoff >= 1 or before == 1.0:
        return
    expected = max(before * backoff, seen.least or 0.0)
    if abs(after - expected) <= NEAR * expected:
        return
    worse = after >= before
    yield Said(
        Outcome.FAILED, f"After an overflow the loss scale is {after:g}, where {before:g} times {backoff:g} would be "
        f"{expected:g}.", f"{after:g}", seen.location, expected=f"{expected:g}", subject="scale after overflow",
        level=Level.MUST if worse else Level.ADVISORY, impact="The next step overflows again, and the one after it.",
        remediation="Call scaler.update() after each scaler.step(optimizer), also after one that was left out.",
    )  # fmt: skip


def judge_schedule(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge whether the learning rate moves with a step that was left out."""
    overflows = step.overflow.overflows if step.overflow else ()
    skipped = next((seen for seen in overflows if not seen.changed), None)
    moves = len({attempt.lr for attempt in step.plain.attempts}) > 1
    if skipped is None or not moves:
        why = "no step was left out" if skipped is None else "the learning rate never changes"
        yield absent(f"{why} in this training step, so nothing is seen of its schedule", needed=False)
    elif skipped.rates_before != skipped.rates_after:
        old, new = skipped.rates_before[0], skipped.rates_after[0]
        yield Said(
            Outcome.FAILED, f"The learning rate went from {old or 0:g} to {new or 0:g} with a step that was left out.",
            f"{new or 0:g}", skipped.location, expected=f"{old or 0:g}", level=Level.ADVISORY, subject="schedule",
            impact="The schedule runs ahead of the steps that were taken.",
            remediation="Advance the schedule only after a step that was taken: compare the scale before and after "
            "update().",
        )  # fmt: skip
    else:
        yield Said(Outcome.PASSED, "The learning rate did not move with a step that was left out.", "not moved",
                   skipped.location, level=Level.ADVISORY)  # fmt: skip
