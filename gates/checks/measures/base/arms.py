"""An arm timed in two folders in turn: the baseline's, and the project's own."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gates.checks.measures.base.baseline import Baseline
from gates.checks.measures.base.own_code import loaded, refuse_other_code
from gates.context import Context
from gates.evidence._timed import attempt, attempts_key
from gates.measuring.bench import Launch, launch
from gates.measuring.comparison import BASELINE, CANDIDATE, Comparison
from gates.measuring.deciding.spending import looks_until
from gates.measuring.ledger import Recalled, key_of
from gates.measuring.samples import Samples
from gates.measuring.session import Plan
from gates.measuring.taken import SPLIT, Taken, frozen_digest
from gates.project.import_paths import import_roots
from gates.task.measurement import Arm, Measurement
from gates.task.task import Task

METHOD = "gates.regression/1"


@dataclass(frozen=True)
class Sides:
    """The two folders of a comparison; `is_ours` says which of their paths are the code that is compared."""

    task: Task
    context: Context
    tree: Path
    baseline: Baseline
    is_ours: Callable[[str], bool]

    @property
    def folders(self) -> dict[str, Path]:
        """Return the project's folder on either side, the baseline first."""
        return {BASELINE: self.tree, CANDIDATE: self.context.root}

    def launch(self, side: str, arm: Arm, measurement: Measurement, device: str, seed: int) -> Launch:
        """Return how an arm is started on a side: its code is found first, and its bytecode is its own."""
        paths = import_roots(self.task, replace(self.context, root=self.folders[side]))
        threads = measurement.threads
        made = launch(arm, python=self.context.python, paths=paths, threads=threads, device=device, seed=seed)
        found_first = [*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        env = {**made.env, "PYTHONPATH": os.pathsep.join(found_first)}
        if arm.time:  # what is timed from its start must not find compiled what the other must compile
            kept = self.context.evidence / f"bytecode-{side}"
            env |= {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": ""}
        return replace(made, env=env)


def compare_arms(
    sides: Sides, measurement: Measurement, arm: str, device: str, asked: Sequence[Comparison], folder: Path
) -> tuple[Samples, Taken, Recalled]:
    """Time an arm on both sides until the regressions are decided; raise `ArmFailed` where a side cannot run."""
    measures = [measure for regression in asked for measure in regression.measures]
    facts = {
        "method": METHOD, "measurement": measurement.model_dump(mode="json"), "arm": arm, "device": device,
        "baseline": sides.baseline.commit, "measures": [one.model_dump(mode="json", by_alias=True) for one in measures],
        "looks": looks_until(measurement.pairs), "split": SPLIT,
    }  # fmt: skip
    digest = frozen_digest(facts)
    launches = {side: partial(sides.launch, side, measurement.arms[arm], measurement, device) for side in sides.folders}
    limit = measurement.timeout_s or min(sides.context.timeout_s, 300.0)
    _check_code(sides, measurement.arms[arm], launches, folder, limit)
    one = measurement.model_copy(update={"arms": {arm: measurement.arms[arm]}})
    key = key_of(attempts_key(sides.task, one, device, sides.context), METHOD, sides.baseline.code)
    plan = Plan(
        arms=launches, frozen=digest, talks=measurement.arms[arm].time is None, threads=measurement.threads,
        budget_s=measurement.budget_s, restarts=measurement.restarts, most=measurement.pairs, clock=measurement.clock,
        start_s=limit,
    )  # fmt: skip
    return attempt(plan, measures, key, sides.context.root, folder)


def _check_code(
    sides: Sides, arm: Arm, launches: Mapping[str, Callable[[int], Launch]], folder: Path, limit: float
) -> None:
    """Raise `ArmFailed` unless each side is seen to use its own code."""
    words = arm.run or arm.time or ()
    for side, other in ((BASELINE, CANDIDATE), (CANDIDATE, BASELINE)):
        files = loaded(side, launches[side](1), folder, talks=arm.time is None, timeout_s=limit)
        refuse_other_code(
            f"the {side}", files, words, folder=sides.folders[side], other=sides.folders[other], is_ours=sides.is_ours
        )
