"""The aspects of a training step that one recorded run shows: its end, precision, gradients, parameters, windows."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import yaml

from gates.check import Said
from gates.evidence.recorded_step import BACKWARD, ENDS, Compared, Happened, Recorded, StepRecording
from gates.model import Level, Location, Outcome
from gates.task.task import Need

HALF = {"float16", "bfloat16"}
# By the roundings of a few layers: 2**-11 each for float16, 2**-8 for bfloat16, which a sound step stays far below.
TOLERANCES = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.15}
NEAR, LOST, EVEN = 0.05, 0.05, 1e-3
ONE_MEAN = "1 time the mean"
Needs = frozenset[Need]


def unseen(why: str, *, needed: bool) -> Said:
    """Say that something could not be seen; that leaves a verdict open only where it is needed."""
    level, fix = (Level.MUST, "Make the training step show it, on a CPU.") if needed else (Level.ADVISORY, "")
    return Said(Outcome.UNKNOWN, f"Not seen: {why}.", "not seen", level=level, remediation=fix)


class Missing(Said):
    """Something that is needed and did not happen."""


def absent(why: str, *, needed: bool) -> Said:
    """Say that there is nothing to see, which is a failure where it is needed."""
    said = f"{why[0].upper()}{why[1:]}."
    if not needed:
        return Said(Outcome.NOT_APPLICABLE, said, "nothing to see", level=Level.ADVISORY)
    impact = "What the training step is to show does not happen in it."
    fix = "Fix the training step, or take this out of its 'needs'."
    return Missing(Outcome.FAILED, said, "absent", None, "what the training step 'needs'", impact, fix)


@cache
def _meanings() -> dict[str, dict[str, str]]:
    meanings: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_bytes())
    return meanings


def fault(name: str, told: str, actual: str, place: Location | None, detail: str = "", **own: object) -> Said:
    """Say that something is wrong, and what `faults.yaml` says of that; `detail` tells it from others of its name."""
    about = {"level": Level.MUST, "expected": "", **_meanings()[name], **own}
    level, expected = Level(str(about["level"])), str(about["expected"])
    meaning = str(about["impact"]), str(about["fix"])
    return Said(Outcome.FAILED, told, actual, place, expected, *meaning, f"{name} {detail}".rstrip(), level)


def judge_run(step: StepRecording, _needs: Needs) -> Iterator[Said]:
    """Judge the end of the plain run, and the numbers that it ended with."""
    run = step.plain
    yield from judge_last_values(run)
    ended = run.process.ended if run.process else "not run"
    unknown = partial(Said, Outcome.UNKNOWN)
    if run.problem or run.process is None:
        fix = "Name a callable that there is, and install what it needs."
        yield unknown(f"The training step was not seen running: {run.problem or 'no process'}.", ended, remediation=fix)
    elif run.process.timed_out:
        fix = "Give it less to do, or more time (timeout_s)."
        yield unknown(f"The training step was {ended}.", ended, remediation=fix)
    elif not run.complete and (why := hidden(run)) and any(one.ends for one in run.absent):
        yield unseen(why, needed=True)._replace(actual=ended)
    elif not run.complete:
        left = "it left its process before it returned (as sys.exit does)" if run.process.exit_code == 0 else ""
        what = f"{ended}: {run.error or left or run.process.last_words}"
        told, impact = f"The training step does not run to its end: {what}", "Training crashes here, on a CPU."
        yield Said(Outcome.FAILED, told, ended, run.crash, "it returns", impact, "Fix the crash.")
    elif not any(attempt.moved for attempt in run.attempts):
        told = "No step of a torch optimizer that moved a parameter was seen in the training step."
        fix = "Name a callable that takes some steps, with an optimizer of the parameters that it trains."
        yield unknown(told, f"{len(run.attempts)} steps", remediation=fix)
    else:
        taken = sum(not attempt.skipped for attempt in run.attempts)
        extra = f" ({'; '.join(run.troubles)})" if run.troubles else ""
        told = f"The training step ran to its end: {taken} steps taken, {len(run.attempts) - taken} left out{extra}."
        yield Said(Outcome.PASSED, told, f"{len(run.attempts)} steps")


def hidden(run: Recorded) -> str:
    """Return why what needs a device was not seen: it was asked for and not there; nothing where none was."""
    said = next((one.what for one in sorted(run.absent, key=lambda one: not one.ends)), "")
    why = "a device is asked for that is hidden while this is recorded; torch says"
    return f"{why}: {said.rstrip('.')}" if said else ""


def judge_precision(step: StepRecording, needs: Needs) -> Iterator[Said]:
    """Judge which precision the forward pass was computed in, given what scales the loss."""
    run = step.plain
    backward = [event for event in run.events if event.word in BACKWARD]
    products = sum((Counter(event.products) for event in backward), Counter[str]())
    half = sum(products[name] for name in HALF)
    scaled = [event for event in backward if event.word == "scaled_backward" and event.scale != 1.0]
    where = next((event.location for event in scaled or backward), None)
    shown = ", ".join(f"{count} in {name}" for name, count in sorted(products.items())) or "none"
    why = hidden(run)
    if Need.BF16 in needs and not products["bfloat16"]:
        asked = sorted({one.dtype for one in run.absent if one.dtype} | products.keys() & HALF)
        if asked or not why:
            yield absent(f"bfloat16 is needed, and {', '.join(asked) or 'float32 alone'} was asked for", needed=True)
    if why and not (half and (scaled or Need.SCALER not in needs)):
        yield unseen(why, needed=bool(needs & {Need.SCALER, Need.AUTOCAST, Need.BF16}))
        return
    if Need.SCALER in needs and not scaled:
        yield absent("no loss was scaled in this training step", needed=True)._replace(subject="scaler")
    if scaled and not half and products and all(event.whole for event in scaled):
        why = "the forward pass ran outside of autocast"
        yield fault("autocast", f"The loss is scaled, but nothing was computed in half precision: {why}.", shown, where)
    elif Need.AUTOCAST in needs and not half and all(event.whole for event in backward):
        yield absent("nothing was computed in half precision in this training step", needed=True)
    elif half:
        yield Said(Outcome.PASSED, f"The forward pass computed matrix products in: {shown}.", shown, where)
    elif not all(event.whole for event in backward):
        yield unseen("the precision, as parts of the graph cannot be read", needed=Need.AUTOCAST in needs)
    else:
        yield absent(f"no mixed precision in this training step (matrix products: {shown})", needed=False)
    yield from _doubts(run, scaled, products)


def _doubts(run: Recorded, scaled: Sequence[Happened], products: Counter[str]) -> Iterator[Said]:
    """Warn of what trains, but not as well as it could."""
    plain = next((event for event in run.events if event.word == "backward" and event.products.get("float16")), None)
    factors = [one.factor for one in run.compared if one.factor is not None]
    if plain and not scaled and not run.absent and not any(abs(factor - 1) > NEAR for factor in factors):
        told, level = "The loss of a float16 forward pass is not scaled.", Level.MUST if factors else Level.ADVISORY
        yield fault("unscaled float16", told, "no scaler", plain.location, level=level)
    if scaled and products["bfloat16"] and not products["float16"]:
        told = "A dynamic scaler is used with bfloat16, which does not need one."
        yield fault("scaled bfloat16", told, "bfloat16, scaled", scaled[0].location)


def judge_gradients(step: StepRecording, needs: Needs) -> Iterator[Said]:
    """Judge the gradients that were clipped or used beside those in float64."""
    run, limit = step.plain, _tolerance(step.plain)
    known = [one for one in run.compared if one.factor is not None and not one.why_not and _same(one, limit)]
    near = max(NEAR, limit)  # of the reference, but for a factor
    scaled = [one for one in known if one.error_less_factor is not None and one.error_less_factor <= near]
    wrong = [said for one in scaled if (said := _wrong(one, run)) is not None] or list(_off_by_two(scaled))
    yield from judge_norms(run)
    yield from judge_windows(run)
    if wrong:
        yield from {said.subject: said for said in reversed(wrong)}.values()
        return
    yield unseen(why, needed=Need.GRADIENTS in needs) if (why := _why_not(run)) else _right(run)
    lost = max(known, key=lambda one: one.lost or 0.0, default=None)
    if lost and (share := lost.lost or 0.0) > LOST:
        told = f"{share:.0%} of the gradients are zero where the reference is not."
        yield fault("lost gradients", told, f"{share:.0%}", lost.location, expected=f"<= {LOST:.0%}")


def _off_by_two(compared: Sequence[Compared]) -> Iterator[Said]:
    """Tell of a loss that is scaled by hand, and of gradients that are divided by another power of two."""
    many = [one for one in compared if one.by_hand != 1]
    left = {round(math.log2(abs(one.factor * one.by_hand)), 1) for one in many if one.factor}
    undivided = any(abs((one.factor or 0) - 1) < NEAR for one in many)
    if len(many) > 1 and len(left) == 1 and not undivided and (off := left.pop()) and off.is_integer():
        times = f"{2**off:g} times"
        told = f"The loss is scaled by hand, and the gradients are {times} those computed in float64"
        yield fault("divided by another scale", f"{told} in each of {len(many)} steps.", times, many[0].location)


def _right(run: Recorded) -> Said:
    good = [one for one in run.compared if one.finite]
    worst, first = max(one.error or 0.0 for one in good), good[0]
    within = f"within {worst:.1e} of their length, in {len(good)} steps"
    told = f"The gradients of {first.parameters} parameters are those of {first.precision} {within}."
    return Said(Outcome.PASSED, told, f"{worst:.1e}", first.location, expected=f"<= {_tolerance(run):g}")


def _same(one: Compared, limit: float) -> bool:
    """Whether the module returned the same again, so that its gradients can be compared at all."""
    return one.outputs_off is not None and one.outputs_off <= limit


def _tolerance(run: Recorded) -> float:
    names = {name for event in run.events for name in event.products} & TOLERANCES.keys()
    return max((TOLERANCES[name] for name in names), default=TOLERANCES["float32"])


def _wrong(one: Compared, run: Recorded) -> Said | None:
    """Return what is wrong with gradients that are off by the loss scale or by its inverse."""
    mine, factor = one.optimizer, one.factor or 0.0
    scales = {event.scale for event in run.events if event.word == "scaled_backward" and mine in event.optimizers}
    scales |= {attempt.scale for attempt in run.attempts if attempt.optimizer == mine}
    verb, actual = "clipped" if one.when == "clip" else "used", f"{factor:.6g} times"
    for scale in sorted(scale for scale in scales if scale is not None and scale >= 2):
        told = ""
        if abs(factor / scale - 1) < NEAR:
            what = f"they are {actual} those computed in float64, and the loss scale is {scale:g}"
            told = f"The gradients are {verb} while they are still scaled: {what}."
        elif abs(factor * scale - 1) < NEAR:
            told = f"The gradients are divided by the loss scale {scale:g} once too often when they are {verb}."
        if told:
            return fault("scaled gradients", told, actual, one.location, verb)
    return None


def _why_not(run: Recorded) -> str:
    """Return why the gradients are not known to be right: of each optimizer, in each step in which they are finite."""
    for one in run.compared:
        if (one.finite or one.why_not) and (why := one.why_not or _difference(one, _tolerance(run))):
            return why
    if {one.optimizer for one in run.compared} - {one.optimizer for one in run.compared if one.finite}:
        return "the gradients of the first steps were not finite"
    words = {(event.word, each) for event in run.events for each in event.optimizers}
    by_hand = [each for word, each in words if word == "unscale_by_hand" and ("unscale", each) not in words]
    if any(("step", each) in words for each in by_hand):
        return "whether scaler.step divides once more what was divided by the loss scale and clipped"
    return "" if run.compared else "no parameter of an optimizer had a gradient when it stepped"


def _difference(one: Compared, limit: float) -> str:
    """Return what is in the way of taking finite gradients for those of the reference."""
    if not _same(one, limit):
        return f"the module does not return the same again ({one.outputs_off or 0:.1e} off)"
    if one.error is None:
        return "the gradients of the reference are zero"
    if one.error > limit:
        coarse = ", or half precision is too coarse for so small a model" if limit > TOLERANCES["float32"] else ""
        return f"the gradients are not those of the recorded calls alone{coarse} ({one.error:.1e} off)"
    return f"the gradients of {one.left_out} parameters come from outside of any module" if one.left_out else ""


def judge_parameters(step: StepRecording, _needs: Needs) -> Iterator[Said]:
    """Judge the dtypes of what the optimizers hold, and whether a step, without our help, left it finite."""
    run = step.plain
    for one in run.spoiled[:1]:
        names = ", ".join(one.names[:3])
        yield fault("spoiled", f"Not finite any more after a step: {names}.", names, one.location)
    mixed = any(set(event.products) & HALF or event.scaling for event in run.events)
    params = ", ".join(sorted({name for attempt in run.attempts for name in attempt.params}))
    half = [attempt for attempt in run.attempts if set(attempt.params) & HALF]
    if not params:
        yield absent("no parameter was seen", needed=False)
    elif half:
        level, told = Level.MUST if mixed else Level.ADVISORY, f"The optimizer steps on parameters in {params}."
        yield fault("half parameters", told, params, half[0].location, level=level)
    else:
        place = run.attempts[0].location
        yield Said(Outcome.PASSED, f"The parameters stayed in {params}.", params, place, expected="float32")


def judge_windows(run: Recorded) -> Iterator[Said]:
    """Tell of a step on fewer backward passes than its mean is over, where other steps have them all."""
    windows = list(_windows(run.events))
    counts = {len(one) for one in windows if len(one) > 1 and abs(sum(event.share for event in one) - 1) < EVEN}
    for one in windows:
        asked = round(1 / one[0].share)
        if asked in counts and len(one) < asked and len({event.share for event in one}) == 1:
            told = f"A step on {len(one)} backward passes divides their sum by {asked}."
            yield fault("partial window", told, f"{len(one) / asked:.2g} times the mean", one[-1].location)
            return


def judge_mean(step: StepRecording, _needs: Needs) -> Iterator[Said]:
    """Judge whether the losses of each step's backward passes, each with its share, add up to one mean."""
    windows = list(_windows(step.plain.events))
    if wrong := next((one for one in windows if abs(sum(event.share for event in one) - 1) > EVEN), None):
        times = f"{sum(event.share for event in wrong):.3g} times the mean"
        passes = f"{len(wrong)} backward pass{'es' if len(wrong) > 1 else ''}"
        yield fault("mean", f"A step on {passes} uses {times} of their losses.", times, wrong[-1].location)
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


def columns(run: Recorded) -> Iterator[tuple[str, list[float | None]]]:
    """Yield each name under which something was logged, and where, with its values."""
    for to, name in sorted({(record.to, name) for record in run.logged for name in record.values}):
        yield f"{name} ({to})", [one.values[name] for one in run.logged if one.to == to and name in one.values]


def judge_last_values(run: Recorded) -> Iterator[Said]:
    """Tell of the numbers that end, in what was logged or returned, as infinite or as none at all."""
    last = {name: (value, record) for record in run.logged for name, value in record.values.items()}
    for name, (value, record) in last.items():
        if value is None:
            told = f"The last value of {name!r} ({record.to}) is not finite."
            yield fault("not finite", told, "not finite", record.location, name)


def judge_norms(run: Recorded) -> Iterator[Said]:
    """Tell of a logged value that is, step for step, the length of the gradients times the loss scale."""
    if (first := next((one for one in run.compared if one.length), None)) is None:
        return
    mine = [one for one in run.compared if one.optimizer == first.optimizer]
    scales = [attempt.scale or 1.0 for attempt in run.attempts if attempt.optimizer == first.optimizer]
    wanted = [one.length * scale for one, scale in zip(mine, scales, strict=False) if one.length and scale >= 2]
    for name, values in columns(run):
        runs = (zip(wanted, values[i:], strict=False) for i in range(len(values) - len(wanted) + 1))
        if len(wanted) > 1 and any(all(abs((got or 0) / want - 1) < NEAR for want, got in pairs) for pairs in runs):
            told = f"The logged value {name} is the length of the gradients times the loss scale."
            yield fault("scaled norm", told, f"{values[0]:g}", first.location, name, expected=f"{first.length:g}")
