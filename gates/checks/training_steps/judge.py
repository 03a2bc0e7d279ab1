"""The part of the business logic gate that judges training steps by what was recorded while they ran."""

from collections.abc import Callable, Iterator

from gates.check import Check, EvidenceSet, Said, about_criterion, absent, for_criteria, in_the_way, unseen
from gates.checks.training_steps import aspects
from gates.checks.training_steps.aspects import hidden
from gates.checks.training_steps.collect import Recording, StepRecording
from gates.checks.training_steps.orders import judge_logged, judge_order
from gates.evidence.recorded_step import Overflowed, Recorded
from gates.model import Finding, Level, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.probes import Need, TrainingStep
from gates.task.task import Criterion, Task

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


RULES = (
    RuleText(
        id="BL006",
        title="Training steps do right while they run",
        meaning="Each training step runs on the CPU and is recorded. Judged are its order of calls, "
        "dtypes and gradients, and that an overflow is skipped. What was not observed is unknown.",
    ),
)
Judge = Callable[[StepRecording, frozenset[Need]], Iterator[Said]]
ASPECTS: dict[str, tuple[str, Judge, Level]] = {
    "run": ("runs to its end", aspects.judge_run, Level.MUST),
    "order": ("calls in the right order", lambda step, _needs: judge_order(step.plain, step.orders), Level.MUST),
    "precision": ("computes in the precision that it scales for", aspects.judge_precision, Level.MUST),
    "gradients": ("steps with the true gradients", aspects.judge_gradients, Level.MUST),
    "parameters": ("keeps its parameters in float32", aspects.judge_parameters, Level.MUST),
    "overflow": ("leaves out a step that overflows", judge_overflow, Level.MUST),
    "schedule": ("keeps the learning rate in a step left out", judge_schedule, Level.ADVISORY),
    "logging": ("logs the loss scale", judge_logged, Level.MUST),
}
# A loss that was not scaled is a failure of its own, so that a needed scaler was seen where nothing failed.
SHOWN_BY = {Need.BF16: "precision", Need.AUTOCAST: "precision", Need.GRADIENTS: "gradients", Need.OVERFLOW: "overflow",
            Need.LOGGED_SCALE: "logging"}  # fmt: skip


def plan(task: Task) -> Iterator[Planned]:
    """Plan the aspects of each training step, and each criterion that it stands for."""
    for i, step in enumerate(task.training_steps):
        for aspect in _aspects(step):
            words, _, level = ASPECTS[aspect]
            yield Planned(id=f"recorded:{i}:{aspect}", title=f"Training step {i + 1} {words}", level=level)
        yield from for_criteria(task, step, f"recorded:{i}:for", f" is shown by training step {i + 1}")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each training step by its aspects, and from these each criterion that it stands for."""
    recording = evidence.get(Recording)
    for i, step in enumerate(task.training_steps):
        seen = recording.step(i) if recording else None
        found = [finding for aspect in _aspects(step) for finding in _judged(task, i, step, aspect, seen, evidence)]
        yield from found
        for criterion in task.criteria_of(step):
            yield _for_criterion(task, i, step, criterion, found)


def _judged(
    task: Task, index: int, step: TrainingStep, aspect: str, seen: StepRecording | None, evidence: EvidenceSet
) -> Iterator[Finding]:
    _, look, level = ASPECTS[aspect]
    if seen is None:
        why = evidence.why_missing(Recording)
        fix = "Run the whole gate, with an interpreter that has torch."
        said = [
            Said(Outcome.UNKNOWN, f"The training step was not recorded: {why}", "not run", level=level, remediation=fix)
        ]
    else:
        said = list(look(seen, frozenset(step.needs)))
        if aspect != "run" and not seen.plain.complete:  # what is missing may only not have happened yet
            failed = [one for one in said if one.outcome is Outcome.FAILED and one.actual != "absent"]
            said = failed or [unseen("the training step was not seen to its end", needed=False)]
    check, evidence_file = f"recorded:{index}:{aspect}", f"recording/{index}.jsonl" if seen else None
    for one in said:
        yield one.finding("BL006", check, name=step.name, place=task.place(step), evidence=evidence_file)


def _for_criterion(task: Task, index: int, step: TrainingStep, criterion: Criterion, found: list[Finding]) -> Finding:
    """Fold what was seen of a training step into one finding on a criterion."""
    about = about_criterion(criterion, "BL006", f"recorded:{index}:for:{criterion.id}")
    if first := in_the_way(about, found, name=step.name, before=f"{step.name}: "):
        return first
    passed = [f.check.rpartition(":")[2] for f in found if f.outcome is Outcome.PASSED]
    missing = [aspect for need in step.needs if (aspect := SHOWN_BY.get(need)) and aspect not in passed]
    if missing:
        return about(
            outcome=Outcome.UNKNOWN, location=task.place(step), subject=step.name, actual="not seen",
            expected="what the training step 'needs'", evidence=found[0].evidence,
            message=f"{step.name}: not seen that it {ASPECTS[missing[0]][0]}.",
            remediation="Make the training step show it, on a CPU.",
        )  # fmt: skip
    warned = " ".join(f"Warned: {f.message}" for f in found if f.outcome is Outcome.FAILED)
    return about(
        outcome=Outcome.PASSED, location=task.place(step), subject=step.name, actual=", ".join(passed),
        message=f"`{step.name}` was recorded and does right: {', '.join(passed)}. {warned}".rstrip(),
        evidence=found[0].evidence,
    )  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each training step what was seen in it."""
    if not task.training_steps:
        return
    recording = evidence.get(Recording)
    yield Section(
        title="Training Steps",
        text="Run on the CPU, recorded; what they show is semantics, never speed."
        if recording
        else f"Not run: {evidence.why_missing(Recording)}.",
        columns=("Ended", "Overflow", "Gradients off by", "Steps", "Matrix products", "Parameters", "Call"),
        rows=tuple(_row(step) for step in (recording.steps if recording else ())),
    )


def _row(step: StepRecording) -> tuple[str, ...]:
    run = step.plain
    ended = run.problem or (run.process.ended if run.process else "not run")
    products = sorted({name for event in run.events for name in event.products})
    errors = [one.error for one in run.compared if one.error is not None and not one.why_not]
    params = sorted({name for attempt in run.attempts for name in attempt.params})
    return (
        ended, _overflow(step.overflow), f"{max(errors):.1e}" if errors else "-", str(len(run.attempts)),
        ", ".join(products) or "-", ", ".join(params) or "-", step.name,
    )  # fmt: skip


def _overflow(run: Recorded | None) -> str:
    if run is None or not run.injected:
        return "-"
    return ", ".join(f"{o.changed} parameters changed" if o.changed else "left out" for o in run.overflows) or "crash"


def _aspects(step: TrainingStep) -> list[str]:
    return [name for name in ASPECTS if name != "logging" or Need.LOGGED_SCALE in step.needs]


CHECK = Check(
    name="training_steps",
    gate="business-logic",
    order=80,
    rules=RULES,
    uses=(Recording,),
    plan=plan,
    judge=judge,
    page=describe,
    row=Row.TEST,
    label="recorded run",
)
