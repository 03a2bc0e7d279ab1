"""Ask every case of every library, print what was observed, and write the table.

`python -m benchmarks.conformance [--case A05] [--subject amp_core]` ends with 1 if amp_core does not conform.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.conformance.case import Case, Outcome, Result, Subject
from benchmarks.conformance.suite import discover_cases, discover_subjects, run
from benchmarks.conformance.table import render

RESULTS = Path(__file__).parents[1] / "results" / "conformance.md"
OURS = "amp_core"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if amp_core fails a case, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformance", description=__doc__)
    parser.add_argument("--case", action="append", default=[], help="a hazard such as A05, or a case's file name")
    parser.add_argument("--subject", action="append", default=[], help="a library, such as amp_core")
    parser.add_argument("--out", type=Path, help=f"the table to write (of a whole run: {RESULTS.name})")
    arguments = parser.parse_args(argv)
    try:
        cases = _chosen_cases(arguments.case)
        subjects = _chosen_subjects(arguments.subject)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    results: dict[str, dict[str, Result]] = {name: {} for name in cases}
    for name, subject, result in run(cases.items(), subjects):
        results[name][subject] = result
        print(f"{name:<32} {subject:<11} {result.outcome:<15} {result.observed}", flush=True)
    whole = not arguments.case and not arguments.subject
    out = arguments.out or (RESULTS if whole else None)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(render(cases, results), encoding="utf-8")
        print(f"wrote {out}")
    bad = [name for name, row in results.items() if OURS in row and row[OURS].outcome in (Outcome.FAILS, Outcome.ERROR)]
    print(f"{OURS} does not conform to: {', '.join(bad)}" if bad else f"{len(cases)} cases asked", file=sys.stderr)
    return int(bool(bad))


def _chosen_cases(wanted: Sequence[str]) -> dict[str, Case]:
    cases = discover_cases()
    for each in wanted:
        if not any(each in (name, case.hazard) for name, case in cases.items()):
            raise ValueError(f"no case {each!r}: expected a hazard such as A05, or one of {', '.join(cases)}")
    return {name: case for name, case in cases.items() if not wanted or {name, case.hazard} & set(wanted)}


def _chosen_subjects(wanted: Sequence[str]) -> list[Subject]:
    subjects = discover_subjects()
    for each in wanted:
        if each not in {subject.name for subject in subjects}:
            raise ValueError(f"no subject {each!r}: expected one of {', '.join(subject.name for subject in subjects)}")
    return [subject for subject in subjects if not wanted or subject.name in wanted]


if __name__ == "__main__":
    sys.exit(main())
