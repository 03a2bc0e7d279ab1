"""Train the smoke model from the command line: `python -m amp_core --help`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from amp_core.arguments import WRONG_USAGE, OneLineParser, plain_warnings
from amp_core.device import inspect, pick
from amp_core.precision import resolve
from amp_core.samples import refuse_unwritable, write_text
from amp_core.scaler import ScaleCollapsed
from amp_core.trainer import TrainConfig, TrainResult, train


def main(argv: Sequence[str] | None = None) -> int:
    """Train and print the result; return 0, 1 if training collapsed, or 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    try:
        config = _config(arguments)
        if arguments.json is not None:
            refuse_unwritable(arguments.json)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USAGE
    try:
        with plain_warnings():
            result = train(config)
    except ScaleCollapsed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(_as_json(result), indent=1, allow_nan=False) + "\n")
    print(_summary(result))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m amp_core", description=__doc__, allow_abbrev=False)
    parser.add_argument("--use-amp", action=argparse.BooleanOptionalAction, help="turn mixed precision on or off")
    parser.add_argument("--precision", help="fp32, bf16, fp16, or a Lightning-style name such as 16-mixed")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, xpu or mps (default: the accelerator, else cpu)")
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps (default 30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result, with every step, to FILE")
    return parser


def _config(arguments: argparse.Namespace) -> TrainConfig:
    """Return the configuration, having tried all that a user can get wrong."""
    device = pick(arguments.device)
    resolve(arguments.precision, arguments.use_amp, inspect(device))
    return TrainConfig(
        use_amp=arguments.use_amp, precision=arguments.precision, device=str(device), steps=arguments.steps
    )


def _as_json(result: TrainResult) -> dict[str, object]:
    values = dataclasses.asdict(result)
    values["history"] = [record.as_json() for record in result.history]
    return values


def _summary(result: TrainResult) -> str:
    known = f"chance {result.chance_accuracy:.4f}, best possible {result.best_accuracy:.4f}"
    return "\n".join(
        (
            f"device        {result.device}",
            f"precision     {result.precision} ({result.reason})",
            f"train loss    {result.train_loss:.4f} nat",
            f"val loss      {result.val_loss:.4f} nat",
            f"val accuracy  {result.val_accuracy:.4f} ({known})",
            f"loss scale    {result.loss_scale:g}",
            f"steps         {result.applied_steps} applied, {result.skipped_steps} skipped",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
