"""Builders of what was seen of a baseline and a candidate, and of real repositories with one of each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bar import committed, git
from building import PATIENCE_S, a_criterion, a_task, written
from taking import a_taken, some_samples

from gates.checks.measures.collect import Regressions
from gates.measuring.samples import Samples
from gates.measuring.taken import MeasurementRun, Taken
from gates.task.task import Task

BASE = [1.0 + i / 1000 for i in range(16)]
CORE = """
LOOPS = 12000

def work():
    return sum(i * i for i in range(LOOPS))
"""
BENCH = """
from pkg.core import work

def make_step():
    return work
"""
FILES = {"pkg/__init__.py": "", "pkg/core.py": CORE, "bench.py": BENCH, "README.md": "Squares.\n"}
QUICK = {"id": "bench", "restarts": 1, "pairs": 8, "budget_s": PATIENCE_S, "clock": "cpu", "line": 16}


def a_regressing_task(*limits: dict[str, Any], arm: dict[str, Any] | None = None, **changes: Any) -> Task:
    """A task with one arm whose step must not take more than twice as long as at the base."""
    least = {"from": "bench", "ratio": ["now", "base"], "of": "step_time_s", "at_most": 2.0}
    asked = [{**least, "line": 20 + i, **one} for i, one in enumerate(limits or [{}])]
    bench = {**QUICK, "arms": {"work": arm or {"call": "bench:make_step"}}, **changes.pop("bench", {})}
    criteria = [a_criterion(measures=asked, tests=[], code=[])]
    return a_task(**{"measurements": [bench], "criteria": criteria, "entry_points": [], **changes})


def sides(times: float = 1.0, metric: str = "step_time_s", baseline: list[float] = BASE) -> Samples:
    """Samples of a candidate that takes so many times what the baseline takes."""
    found = some_samples(old=baseline, new=[value * times for value in baseline]).model_dump(by_alias=True)
    old_and_new = found["metrics"].pop("step_time_s")
    old_and_new["arms"] = {"base": old_and_new["arms"]["old"], "now": old_and_new["arms"]["new"]}
    old_and_new["unit"] = "1/s" if metric.endswith("per_s") else "s"
    return Samples.model_validate({**found, "metrics": {metric: old_and_new}})


def taken(**changes: Any) -> Taken:
    """How a calm machine took them."""
    same = dict.fromkeys(("base", "now"), (1.0,) * 16)
    return a_taken(**{"baseline": "base", "stretch": same, "switches": {}, "most": 16, **changes})


def compared(
    samples: Samples | None = None, seen: Taken | None = None, problem: str = "", **changes: Any
) -> Regressions:
    """A comparison with main, in which one file has changed."""
    run = MeasurementRun(
        id="bench/work", device="any", process=None, samples=None if problem else samples or sides(),
        taken=None if problem else seen or taken(), problem=problem, raw="regressions/bench-work-any.json",
    )  # fmt: skip
    facts: dict[str, Any] = {
        "how": "git and workers", "base": "main", "commit": "b" * 40, "changed": ("pkg/core.py",),
        "lent": ("bench.py",), "runs": (run,),
    }  # fmt: skip
    return Regressions.model_validate({**facts, **changes})


def two_commits(
    folder: Path, before: Mapping[str, str | None] | None = None, after: Mapping[str, str] | None = None
) -> Path:
    """A repository with a state on main, less the files given as none, and another on a branch that is checked out."""
    written(folder, {name: text for name, text in {**FILES, **(before or {})}.items() if text is not None})
    committed(folder, "before")
    git(folder, "checkout", "-q", "-b", "change")
    written(folder, after or {})
    committed(folder, "after")
    return folder


def slower(times: float = 30) -> dict[str, str]:
    """The working file, so many times as slow: by so much, if nothing is said, that no other load hides it."""
    return {"pkg/core.py": CORE.replace("12000", str(round(12000 * times)))}
