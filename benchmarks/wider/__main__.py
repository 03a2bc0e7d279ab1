"""Measure more than a criterion needs, and draw it: `python -m benchmarks.wider --device cpu --out samples.json`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from amp_core.arguments import WRONG_USAGE, OneLineParser, plain_warnings
from amp_core.benchmark.quality import NothingLearned
from amp_core.benchmark.setup import BenchmarkFailed, Plan, Setup
from amp_core.benchmark.suite import PARTS, run
from amp_core.benchmark.summary import summarise
from amp_core.device import pick
from amp_core.samples import refuse_unwritable, write
from benchmarks.wider import plots
from benchmarks.wider.inference import measure_inference, summarise_latencies
from benchmarks.wider.scaling import measure_scaling

WIDER = {**PARTS, "inference": measure_inference, "scaling": measure_scaling}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if the measurement is worth nothing, or 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    try:
        setup = Setup.on(pick(arguments.device), Plan.smoke() if arguments.smoke else Plan())
        refuse_unwritable(arguments.out)
        if arguments.plots is not None:
            plots.refuse_undrawable(arguments.plots)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USAGE
    try:
        with plain_warnings():
            samples = run(setup, WIDER)
    except (BenchmarkFailed, NothingLearned) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write(arguments.out, samples)
    print(summarise(samples))
    print(summarise_latencies(samples.metrics))
    if arguments.plots is not None:
        print(f"drew {', '.join(str(path) for path in plots.draw(samples, arguments.plots))}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m benchmarks.wider", description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"), help="where to measure")
    parser.add_argument("--out", required=True, type=Path, help="the samples file to write (JSON)")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="also draw the samples, as SVG files in DIR")
    parser.add_argument("--smoke", action="store_true", help="measure everything, but less of each")
    return parser


if __name__ == "__main__":
    sys.exit(main())
