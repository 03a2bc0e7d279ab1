"""Train the smoke model from the command line: `python -m examples.t035 --help`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from amp_core.arguments import WRONG_USAGE, OneLineParser, plain_warnings
from amp_core.benchmark.timing import threads
from amp_core.checkpoint import CheckpointError
from amp_core.device import inspect, pick
from amp_core.precision import resolve
from amp_core.samples import refuse_unwritable, write_text
from amp_core.scaler import ScaleCollapsed
from examples.t035.trainer import TrainConfig, TrainResult, train

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Train and print the result; return 0, 1 if training collapsed, 2 for wrong usage, or 130 if interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        config = _config(arguments)
        if arguments.json is not None:
            refuse_unwritable(arguments.json)
        if arguments.checkpoints is not None:
            arguments.checkpoints.mkdir(parents=True, exist_ok=True)
            refuse_unwritable(arguments.checkpoints / "step-00000000.pt")
    except (ValueError, OSError) as error:
        return _say(error, WRONG_USAGE)
    try:
        # the model is tiny: more threads than one would wait for each other
        with plain_warnings(), threads(1), _bar(config.steps, shown=not arguments.quiet) as show:
            result = train(
                config,
                checkpoints=arguments.checkpoints,
                save_every=arguments.save_every,
                resume=arguments.resume,
                on_step=lambda number, _: show(number),
            )
    except ScaleCollapsed as error:
        return _say(error, 1)
    except (CheckpointError, OSError) as error:
        return _say(error, WRONG_USAGE)
    except KeyboardInterrupt:
        return _say(_interrupted(arguments.checkpoints), INTERRUPTED)
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(_as_json(result), indent=1, allow_nan=False) + "\n")
    print(_summary(result))
    return 0


def _parser() -> argparse.ArgumentParser:
    defaults = TrainConfig()
    parser = OneLineParser(prog="python -m examples.t035", description=__doc__, allow_abbrev=False)
    parser.add_argument("--use-amp", action=argparse.BooleanOptionalAction, help="turn mixed precision on or off")
    parser.add_argument("--precision", help="fp32, tf32, bf16, fp16, or a Lightning-style name such as 16-mixed")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, xpu or mps (default: the accelerator, else cpu)")
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps (default 30)")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per optimizer step (default 1)")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of weights, data and order (default 0)")
    parser.add_argument("--workers", type=int, default=defaults.workers, help="loader processes (default 0)")
    parser.add_argument("--ema-decay", type=float, help="also keep, and validate, moving averages of the parameters")
    parser.add_argument("--validate-every", type=int, metavar="STEPS", help="validate on the way")
    parser.add_argument("--patience", type=int, help="stop after so many validations without a lower loss")
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="write checkpoints into DIR")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS", help="how often (default 10)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in DIR")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, which only a terminal shows anyway")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result, with every step, to FILE")
    return parser


@contextmanager
def _bar(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves a progress bar on stderr to a step; where no terminal shows it, it does nothing."""
    if not (shown and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console  # only now: importing it costs more than a run without a bar should pay
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=total)
        yield lambda step: progress.update(task, completed=step)


def _config(arguments: argparse.Namespace) -> TrainConfig:
    """Return the configuration, having tried all that a user can get wrong."""
    device = pick(arguments.device)
    resolve(arguments.precision, arguments.use_amp, inspect(device))
    if arguments.resume and arguments.checkpoints is None:
        raise ValueError("--resume needs --checkpoints DIR: the folder to go on from")
    if arguments.save_every < 1:
        raise ValueError(f"--save-every must be at least 1, found {arguments.save_every!r}")
    return TrainConfig(
        use_amp=arguments.use_amp,
        precision=arguments.precision,
        device=str(device),
        steps=arguments.steps,
        accumulate=arguments.accumulate,
        seed=arguments.seed,
        workers=arguments.workers,
        ema_decay=arguments.ema_decay,
        validate_every=arguments.validate_every,
        patience=arguments.patience,
    )


def _say(message: object, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def _interrupted(checkpoints: Path | None) -> str:
    if checkpoints is None or not list(checkpoints.glob("step-*.pt")):
        return "interrupted: no checkpoint was written"
    return f"interrupted: --resume goes on from {str(checkpoints)!r}"


def _as_json(result: TrainResult) -> dict[str, object]:
    values = dataclasses.asdict(result)
    values["history"] = [record.as_json() for record in result.history]
    return values


def _summary(result: TrainResult) -> str:
    known = f"chance {result.chance_accuracy:.4f}, best possible {result.best_accuracy:.4f}"
    last = "no step was left" if result.train_loss is None else f"{result.train_loss:.4f} nat"
    stopped = ", stopped early" if result.stopped_early else ""
    return "\n".join(
        (
            f"device        {result.device}",
            f"precision     {result.precision} ({result.reason})",
            f"computed in   {', '.join(result.observed_dtypes) or 'not observed'}",
            f"train loss    {last}",
            f"val loss      {result.val_loss:.4f} nat",
            f"val accuracy  {result.val_accuracy:.4f} ({known})",
            f"loss scale    {result.loss_scale:g}",
            f"steps         {result.applied_steps} applied, {result.skipped_steps} skipped{stopped}",
            f"digest        {result.digest}",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
