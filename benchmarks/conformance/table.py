"""The results as a Markdown file, and nothing that differs from run to run."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from benchmarks.conformance.case import Case, Outcome, Result

WORDS = {
    Outcome.CONFORMS: "conforms",
    Outcome.FAILS: "**fails**",
    Outcome.NOT_APPLICABLE: "n/a",
    Outcome.ERROR: "**error**",
}
EXPLAINED = (
    "Each is asked of every library alike, used as its documentation says. `by_hand` is the recipe of torch's own."
    " A case does not apply (n/a) where a library offers nothing that could be asked; that never counts as conforming."
    " Accelerate has no fp16 on a CPU: its own logic is run with torch's CPU scaler in the place of a GPU's."
    " Fabric and the Trainer get theirs through their own MixedPrecision plugin."
    " What conforming means stands with each case below."
)

Results: TypeAlias = Mapping[str, Mapping[str, Result]]  # by case, then by subject


def render(cases: Mapping[str, Case], results: Results) -> str:
    """Return the whole file."""
    subjects = list(next(iter(results.values())))
    parts = [_head(cases), _counts(subjects, results), _matrix(cases, subjects, results), _unseen(cases)]
    parts.append(["## What was observed", ""])
    parts += [_observed(name, cases[name], results[name]) for name in results]
    return "\n".join(line for part in parts for line in part)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _versions() -> str:
    found = {name: _version(name) for name in ("torch", "accelerate", "lightning", "wandb")}
    return ", ".join(f"{name} {number}" for name, number in found.items() if number)


def _head(cases: Mapping[str, Case]) -> list[str]:
    hazards = {case.hazard for case in cases.values() if case.hazard.startswith("A")}
    python = platform.python_version()
    return [
        "# Conformance",
        "",
        f"Written by `python -m benchmarks.conformance`: Python {python}, {_versions()}, on a CPU.",
        "",
        f"{len(hazards)} known bugs of mixed-precision training as {len(cases)} cases. {EXPLAINED}",
        "",
    ]


def _counts(subjects: Sequence[str], results: Results) -> Iterator[str]:
    yield f"| | {' | '.join(subjects)} |"
    yield "|---|" + "---|" * len(subjects)
    for outcome in Outcome:
        counts = (sum(row[subject].outcome is outcome for row in results.values()) for subject in subjects)
        yield f"| {outcome} | {' | '.join(map(str, counts))} |"
    yield ""


def _matrix(cases: Mapping[str, Case], subjects: Sequence[str], results: Results) -> Iterator[str]:
    yield f"| hazard | question | {' | '.join(subjects)} |"
    yield "|---|---|" + "---|" * len(subjects)
    for name, row in results.items():
        words = " | ".join(WORDS[row[subject].outcome] for subject in subjects)
        yield f"| {cases[name].hazard} | {cases[name].question} | {words} |"
    yield ""


def _unseen(cases: Mapping[str, Case]) -> Iterator[str]:
    yield "## What a CPU cannot show"
    yield ""
    yield from (f"- {case.hazard}: {case.unseen}" for case in cases.values() if case.unseen)
    yield ""


def _observed(name: str, case: Case, row: Mapping[str, Result]) -> Iterator[str]:
    yield f"### {case.hazard}: {case.question}"
    yield ""
    yield f"Conforms: {case.conforming}. Known from {', '.join(case.references)}. `cases/{name}.py`"
    yield ""
    yield from (f"- {subject}: {result.outcome}; {_plain(result.observed)}" for subject, result in row.items())
    yield ""


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "/").replace("*", r"\*").replace("_", r"\_")
