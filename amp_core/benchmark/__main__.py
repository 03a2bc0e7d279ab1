"""Measure mixed precision against float32, and write the raw samples: `python -m amp_core.benchmark --help`."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from amp_core.arguments import WRONG_USAGE, OneLineParser, plain_warnings
from amp_core.benchmark.arms import accept
from amp_core.benchmark.interval import LEAST
from amp_core.benchmark.quality import NothingLearned
from amp_core.benchmark.setup import BenchmarkFailed, Plan, Setup
from amp_core.benchmark.suite import PARTS, run
from amp_core.benchmark.summary import summarise
from amp_core.device import inspect, pick
from amp_core.samples import refuse_unwritable, write


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if the measurement is worth nothing, or 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    try:
        setup = _setup(arguments)
        refuse_unwritable(arguments.out)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USAGE
    try:
        with plain_warnings():
            samples = run(setup, {name: PARTS[name] for name in arguments.parts})
    except (BenchmarkFailed, NothingLearned) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write(arguments.out, samples)
    print(summarise(samples))
    print(f"wrote {arguments.out}: {len(samples.metrics)} metrics on {samples.device.name}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m amp_core.benchmark", description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"), help="where to measure")
    parser.add_argument("--out", required=True, type=Path, help="the samples file to write (JSON)")
    parser.add_argument("--smoke", action="store_true", help="measure everything, but less of each")
    native = "what to time, such as fp32,bf16,fp16 (default: what the device computes natively; on a CPU fp32,bf16)"
    parser.add_argument("--precisions", type=_names, default=(), metavar="NAMES", help=native)
    parser.add_argument(
        "--parts", type=_parts, default=tuple(PARTS), metavar="NAMES", help=f"some of {','.join(PARTS)} (default: all)"
    )
    parser.add_argument("--rounds", type=_number(LEAST), help="rounds of timing, at least 6 (default 24)")
    parser.add_argument("--seeds", type=_number(LEAST), help="training seeds, at least 6 (default 8)")
    parser.add_argument("--threads", type=_number(1), default=1, help="CPU threads; one suffers least (default 1)")
    return parser


def _setup(arguments: argparse.Namespace) -> Setup:
    device = pick(arguments.device)
    given = {name: value for name in ("rounds", "seeds") if (value := getattr(arguments, name)) is not None}
    plan = dataclasses.replace(Plan.smoke() if arguments.smoke else Plan(), threads=arguments.threads, **given)
    precisions = accept(arguments.precisions, inspect(device)) if arguments.precisions else ()
    return Setup.on(device, plan, precisions)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _parts(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(PARTS)}, found {name!r}")
    return names


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a number of at least {least}, found {text!r}")
        return int(text)

    return parse


if __name__ == "__main__":
    sys.exit(main())
