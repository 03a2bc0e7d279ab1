"""The part of the business logic gate that judges training steps by what was recorded while they ran."""

from collections.abc import Callable, Iterator

from gates.check import Check, EvidenceSet, Said, about_criterion, for_criteria, in_the_way, unseen
from gates.checks.training_steps import aspects
from gates.checks.training_steps.collect import Recording, StepRecording
from gates.checks.training_steps.orders import judge_logged, judge_order
from gates.checks.training_steps.overflow import judge_overflow, judge_schedule
from gates.evidence.recorded_step import Recorded
from gates.model import Finding, Level, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.probes import Need, TrainingStep
from gates.task.task import Criterion, Task

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
        columns=("Call", "Ended", "Steps", "Matrix products", "Gradients off by", "Parameters", "Overflow"),
        rows=tuple(_row(step) for step in (recording.steps if recording else ())),
    )


def _row(step: StepRecording) -> tuple[str, ...]:
    run = step.plain
    ended = run.problem or (run.process.ended if run.process else "not run")
    products = sorted({name for event in run.events for name in event.products})
    errors = [one.error for one in run.compared if one.error is not None and not one.why_not]
    params = sorted({name for attempt in run.attempts for name in attempt.params})
    return (
        step.name, ended, str(len(run.attempts)), ", ".join(products) or "-", f"{max(errors):.1e}" if errors else "-",
        ", ".join(params) or "-", _overflow(step.overflow),
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
